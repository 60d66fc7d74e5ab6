//! Values that must not appear in any file, log or error.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use secrecy::{ExposeSecret, SecretString};

/// What stands in place of a secret.
const MASK: &str = "***";

/// What stands where a text was cut.
const CUT: char = '…';

/// Shorter values are not masked: they would blot out ordinary text and protect nothing.
const SHORTEST: usize = 4;

/// The characters that every escape of a first character begins with.
const MARKS: [char; 3] = ['\\', '%', '&'];

/// The secrets of a run: header values that came from the environment.
#[derive(Clone, Default)]
pub struct Secrets {
    values: Vec<SecretString>,
    /// The escapes of each character of the values. A server may hand a value back in any of them, and mixed.
    escapes: BTreeMap<char, Vec<String>>,
}

impl Secrets {
    /// Adds a value to mask, however its characters are escaped.
    pub fn add(&mut self, value: &str) {
        if value.len() < SHORTEST {
            return;
        }
        self.values.push(SecretString::from(value));
        // A secret that holds another one goes first, so that nothing of it stays.
        self.values.sort_by_key(|secret| std::cmp::Reverse(secret.expose_secret().len()));
        for character in value.chars() {
            self.escapes.entry(character).or_insert_with(|| escapes(character));
        }
    }

    /// The text with every secret in it replaced: plain, with any of its characters escaped as JSON, URLs and HTML escape
    /// them, and also one of which only a part is left because the text was cut: at its ends and at an ellipsis.
    pub fn mask<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut masked = Cow::Borrowed(text);
        for secret in self.values.iter().map(ExposeSecret::expose_secret) {
            if let Some(without) = self.without(&masked, secret) {
                masked = Cow::Owned(without);
            }
        }
        masked
    }

    /// The text without this secret; `None` where it is not in there.
    fn without(&self, text: &str, secret: &str) -> Option<String> {
        let (mut masked, mut kept, mut ends) = (String::new(), 0, Vec::new());
        let (mut at, mut after_cut) = (0, true);
        while let Some(character) = text[at..].chars().next() {
            let mut end = None;
            if secret.starts_with(character) || MARKS.contains(&character) {
                ends.splice(.., [at]);
                end = self.end(text, &mut ends, secret, true);
            }
            if after_cut {
                end = end.or_else(|| self.end_of_tail(text, at, &mut ends, secret));
            }
            if let Some(end) = end {
                masked.extend([&text[kept..at], MASK]);
                kept = end;
            }
            after_cut = end.is_none() && character == CUT;
            at = end.unwrap_or(at + character.len_utf8());
        }
        // A secret is not empty, so something was masked if and only if the rest does not begin at the start.
        (kept > 0).then(|| masked + &text[kept..])
    }

    /// Where the secret ends that begins at one of these places; also where the text is cut, if enough of it stands there.
    ///
    /// A character and its escape can begin alike, as `\` and `\\` do, so that all places up to which the text agrees are
    /// followed side by side.
    fn end(&self, text: &str, ends: &mut Vec<usize>, secret: &str, may_be_cut: bool) -> Option<usize> {
        for (matched, wanted) in secret.char_indices() {
            let reached = ends.len();
            for index in 0..reached {
                let (at, rest) = (ends[index], &text[ends[index]..]);
                if may_be_cut
                    && matched >= SHORTEST
                    && let Some(length) = self.cut(rest, wanted)
                {
                    return Some(at + length);
                }
                ends.extend(rest.starts_with(wanted).then(|| at + wanted.len_utf8()));
                let escapes = self.escapes_of(wanted).filter(|escape| begins(rest, escape));
                ends.extend(escapes.map(|escape| at + escape.len()));
            }
            ends.drain(..reached);
            ends.sort_unstable();
            ends.dedup();
            if ends.is_empty() {
                return None;
            }
        }
        ends.last().copied()
    }

    /// How much of an escape of this character stands here before the text is cut, nothing included; `None` where the text
    /// goes on.
    fn cut(&self, rest: &str, wanted: char) -> Option<usize> {
        let alike = |escape: &String| {
            escape.bytes().zip(rest.bytes()).take_while(|(wanted, byte)| wanted.eq_ignore_ascii_case(byte)).count()
        };
        let is_cut = |length: &usize| rest[*length..].is_empty() || rest[*length..].starts_with(CUT);
        std::iter::once(0).chain(self.escapes_of(wanted).map(alike)).find(is_cut)
    }

    /// Where the secret ends whose beginning a cut took away. The cut may have gone through an escape; letters and digits
    /// are taken to stand plain there, so that long secrets cost little.
    fn end_of_tail(&self, text: &str, at: usize, ends: &mut Vec<usize>, secret: &str) -> Option<usize> {
        secret.char_indices().find_map(|(index, lost)| {
            let tail = &secret[index + lost.len_utf8()..];
            if tail.len() < SHORTEST {
                return None;
            }
            ends.splice(.., [at]);
            for escape in self.escapes_of(lost).filter(|_| !lost.is_alphanumeric()) {
                let left = (1..escape.len()).map(|from| &escape[from..]).filter(|left| begins(&text[at..], left));
                ends.extend(left.map(|left| at + left.len()));
            }
            self.end(text, ends, tail, false)
        })
    }

    fn escapes_of(&self, character: char) -> impl Iterator<Item = &String> {
        self.escapes.get(&character).into_iter().flatten()
    }
}

/// Whether the text begins with the escape, which is ASCII; its hexadecimal digits may be in either case.
fn begins(text: &str, escape: &str) -> bool {
    text.as_bytes().get(..escape.len()).is_some_and(|start| start.eq_ignore_ascii_case(escape.as_bytes()))
}

/// The escapes of a character in JSON, URLs and HTML, also where what was escaped has been escaped again.
fn escapes(character: char) -> Vec<String> {
    let code = u32::from(character);
    let units: Vec<u16> = character.encode_utf16(&mut [0; 2]).to_vec();
    let bytes = character.to_string().into_bytes();
    let mut escapes: Vec<String> = [r"\", r"\\", r"\\\\"]
        .map(|slashes| units.iter().map(|unit| format!("{slashes}u{unit:04x}")).collect())
        .into_iter()
        .chain(["%", "%25"].map(|percent| bytes.iter().map(|byte| format!("{percent}{byte:02x}")).collect()))
        .collect();
    if character.is_ascii_punctuation() {
        escapes.extend((1..=7).map(|slashes| format!("{}{character}", r"\".repeat(slashes))));
    }
    let name = match character {
        '"' => "quot",
        '&' => "amp",
        '\'' => "apos",
        '<' => "lt",
        '>' => "gt",
        _ => "",
    };
    let numbers = [format!("#{code}"), format!("#{code:03}"), format!("#x{code:x}"), format!("#x{code:04x}")];
    for entity in numbers.iter().map(String::as_str).chain((!name.is_empty()).then_some(name)) {
        escapes.extend(["&", "&amp;", r"\u0026"].map(|mark| format!("{mark}{entity};")));
    }
    match character {
        '\t' => escapes.push(r"\t".to_owned()),
        ' ' => escapes.push("+".to_owned()),
        _ => {}
    }
    escapes
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.values.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_wherever_they_stand() {
        let mut secrets = Secrets::default();
        secrets.add("hunter2-token");
        secrets.add("ab");
        assert_eq!(secrets.mask("Bearer hunter2-token, abc"), "Bearer ***, abc");
        assert!(!format!("{secrets:?}").contains("hunter2"));
    }

    #[test]
    fn parts_that_a_cut_has_left_are_masked() {
        let mut secrets = Secrets::default();
        secrets.add("hunter2-token");
        for (text, shown) in [
            ("bad token hunter2-t", "bad token ***"),
            ("bad token hun", "bad token hun"),
            ("-token was bad", "*** was bad"),
            ("`…2-token was bad`", "`…*** was bad`"),
            ("bad `hunter…` and good", "bad `***…` and good"),
            ("a hunter… and a …token", "a ***… and a …***"),
        ] {
            assert_eq!(secrets.mask(text), shown, "{text}");
        }
    }

    #[test]
    fn secrets_are_masked_inside_of_json_and_of_each_other() {
        let mut secrets = Secrets::default();
        secrets.add("pass\"word");
        secrets.add("pass\"word\"2");
        assert_eq!(secrets.mask(r#"{"seen":"pass\"word"}"#), r#"{"seen":"***"}"#);
        assert_eq!(secrets.mask("pass\"word\"2"), "***");
    }

    /// Has every character in it that some encoder escapes.
    const TOKEN: &str = r#"sk-Ab/Cd+9"q\z_XYZ01/23456789"#;

    /// The token as encoders write it. Letters and digits stand plain.
    const FORMS: &[&str] = &[
        TOKEN,
        // Python's and serde's JSON, PHP's, .NET's, and one whose digits are in the other case.
        r#"sk-Ab/Cd+9\"q\\z_XYZ01/23456789"#,
        r#"sk-Ab\/Cd+9\"q\\z_XYZ01\/23456789"#,
        r"sk-Ab/Cd\u002B9\u0022q\\z_XYZ01/23456789",
        r"sk-Ab\u002fCd\u002b9\u0022q\u005cz_XYZ01\u002f23456789",
        // JSON as a string in JSON, by each of them.
        r#"sk-Ab/Cd+9\\\"q\\\\z_XYZ01/23456789"#,
        r#"sk-Ab\\\/Cd+9\\\"q\\\\z_XYZ01\\\/23456789"#,
        r"sk-Ab/Cd\\u002B9\\u0022q\\\\z_XYZ01/23456789",
        // URLs, in both cases, and one inside of another.
        "sk-Ab%2FCd%2B9%22q%5Cz_XYZ01%2F23456789",
        "sk-Ab%2fCd%2b9%22q%5cz_XYZ01%2f23456789",
        "sk-Ab%252FCd%252B9%2522q%255Cz_XYZ01%252F23456789",
        // HTML by Python, Go, a template that goes by OWASP's list; once more, and inside of Go's JSON.
        r"sk-Ab/Cd+9&quot;q\z_XYZ01/23456789",
        r"sk-Ab/Cd&#43;9&#34;q\z_XYZ01/23456789",
        "sk-Ab&#x2F;Cd&#x2B;9&quot;q&#x5c;z&#095;XYZ01&#x2f;23456789",
        r"sk-Ab/Cd+9&amp;quot;q\z_XYZ01/23456789",
        r"sk-Ab/Cd\u0026#43;9\u0026#34;q\\z_XYZ01/23456789",
        // Mixed freely.
        r"sk-Ab%2FCd\u002B9&quot;q\\z_XYZ01\/23456789",
        r"sk-Ab&#47;Cd%2b9\u0022q%5Cz_XYZ01/23456789",
    ];

    fn secrets(values: &[&str]) -> Secrets {
        let mut secrets = Secrets::default();
        values.iter().for_each(|value| secrets.add(value));
        secrets
    }

    #[test]
    fn secrets_are_masked_in_every_escape() {
        let secrets = secrets(&[TOKEN]);
        for form in FORMS {
            assert_eq!(secrets.mask(form), "***", "{form}");
            let text = format!("né{form}é, “{form}”, \\{form}\\n {{\"seen\":\"{form}\"}} 語");
            assert_eq!(secrets.mask(&text), "né***é, “***”, \\***\\n {\"seen\":\"***\"} 語", "{form}");
        }
        for escape in [
            |byte| format!("\\u{byte:04X}"),
            |byte| format!("%{byte:02x}"),
            |byte| format!("&#{byte};"),
            |byte| format!("&#X{byte:X};"),
        ] as [fn(u8) -> String; 4]
        {
            let all: String = TOKEN.bytes().map(escape).collect();
            assert_eq!(secrets.mask(&format!("a {all} b")), "a *** b", "{all}");
        }
    }

    #[test]
    fn every_named_entity_is_known_and_every_plane_of_characters() {
        let secrets = secrets(&["a<b>c&d'e\"f", "né😀 t"]);
        for form in [
            "a&lt;b&gt;c&amp;d&#39;e&quot;f",
            "a&lt;b&gt;c&amp;d&#039;e&#34;f",
            "a&LT;b&#62;c&#x26;d&apos;e&#x22;f",
            r#"a\u003Cb\u003Ec\u0026d\u0027e\u0022f"#,
            r"n\u00e9\uD83D\uDE00 t",
            "n%C3%A9%F0%9F%98%80%20t",
            "n%c3%a9%f0%9f%98%80+t",
            "n&#233;&#x1F600;&#32;t",
        ] {
            assert_eq!(secrets.mask(&format!("({form})")), "(***)", "{form}");
        }
    }

    #[test]
    fn parts_of_an_escaped_secret_that_a_cut_has_left_are_masked() {
        let secrets = secrets(&[TOKEN]);
        for form in FORMS {
            for at in SHORTEST..form.len() - SHORTEST {
                let (head, tail) = form.split_at(at);
                assert_eq!(secrets.mask(&format!("é {head}")), "é ***", "{head}");
                assert_eq!(secrets.mask(&format!("`{head}…` é")), "`***…` é", "{head}");
                assert_eq!(secrets.mask(&format!("{tail} é")), "*** é", "{tail}");
                assert_eq!(secrets.mask(&format!("é `…{tail}`")), "é `…***`", "{tail}");
            }
        }
    }

    #[test]
    fn what_only_resembles_a_secret_stays() {
        let secrets = secrets(&[TOKEN]);
        for near in [
            r#"sk-Ab/Cd+9"q\z_XYZ01/2345678X"#,
            r#"sk-Ab/Cd+9"qz_XYZ01/23456789"#,
            r#"SK-AB/CD+9"Q\Z_XYZ01/23456789"#,
            r#"sk-A\b/Cd+9"q\z_XYZ01/23456789"#,
            r#"sk-Ab%2ECd+9"q\z_XYZ01/23456789"#,
            r#"sk-Ab\u+02FCd+9"q\z_XYZ01/23456789"#,
            r#"sk-Ab/Cd&#430;9"q\z_XYZ01/23456789"#,
            r#"sk-Ab/Cd&#439"q\z_XYZ01/23456789"#,
            r#"sk-Ab/Cd+9&quotq\z_XYZ01/23456789"#,
            r#"sk-Ab/Cd 9"q\z_XYZ01/23456789"#,
            "sk-Ab/Cd",
            "sk-é…é",
        ] {
            let text = format!("bad {near} token");
            let masked = secrets.mask(&text);
            assert!(matches!(masked, Cow::Borrowed(_)), "{near}: {masked}");
        }
        let hostile = r"\%&\\%25&amp;\u002".repeat(2_000);
        assert!(matches!(secrets.mask(&hostile), Cow::Borrowed(_)));
    }

    #[test]
    fn what_a_secret_and_its_escape_share_is_followed_both_ways() {
        let secrets = secrets(&[r"a\\%25&amp;z"]);
        for form in [r"a\\%25&amp;z", r"a\\\\%25&amp;z", "a%5c%5C%2525%26amp%3Bz", r"a\\&#92;%25&amp;amp;z"] {
            assert_eq!(secrets.mask(&format!("({form})")), "(***)", "{form}");
        }
        assert_eq!(secrets.mask(r"(a\%25&amp;z)"), r"(a\%25&amp;z)");
    }
}
