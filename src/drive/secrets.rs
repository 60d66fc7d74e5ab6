//! Values that must not appear in any file, log or error.

use std::borrow::Cow;
use std::fmt;

use secrecy::{ExposeSecret, SecretString};

/// What stands in place of a secret.
const MASK: &str = "***";

/// What stands where a text was cut.
const CUT: char = '…';

/// Shorter values are not masked: they would blot out ordinary text and protect nothing.
const SHORTEST: usize = 4;

/// The secrets of a run: header values that came from the environment.
#[derive(Clone, Default)]
pub struct Secrets {
    values: Vec<SecretString>,
}

impl Secrets {
    /// Adds a value to mask, also in the form that it has inside of JSON.
    pub fn add(&mut self, value: &str) {
        if value.len() < SHORTEST {
            return;
        }
        self.values.push(SecretString::from(value));
        let quoted = serde_json::Value::from(value).to_string();
        let escaped = &quoted[1..quoted.len() - 1];
        if escaped != value {
            self.values.push(SecretString::from(escaped));
        }
        // A secret that holds another one goes first, so that nothing of it stays.
        self.values.sort_by_key(|secret| std::cmp::Reverse(secret.expose_secret().len()));
    }

    /// The text with every secret in it replaced, also one of which only a part is left because the text was cut: at its
    /// ends and at an ellipsis.
    pub fn mask<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut masked = Cow::Borrowed(text);
        for secret in self.values.iter().map(ExposeSecret::expose_secret) {
            if masked.contains(secret) {
                masked = Cow::Owned(masked.replace(secret, MASK));
            }
            if let Some(without) = without_parts(&masked, secret) {
                masked = Cow::Owned(without);
            }
        }
        masked
    }
}

/// The text without the parts of a secret that a cut has left; `None` where there is none.
fn without_parts(text: &str, secret: &str) -> Option<String> {
    let pieces: Vec<&str> = text.split(CUT).collect();
    let masked: Vec<Cow<'_, str>> = pieces.iter().map(|piece| without_ends(piece, secret)).collect();
    let changed = masked.iter().zip(&pieces).any(|(masked, piece)| masked != piece);
    changed.then(|| masked.join(&CUT.to_string()))
}

fn without_ends<'a>(piece: &'a str, secret: &str) -> Cow<'a, str> {
    let inner = secret.char_indices().map(|(at, _)| at);
    let head = inner.clone().rev().filter(|at| *at >= SHORTEST).find(|at| piece.ends_with(&secret[..*at]));
    let start = head.map_or(piece, |length| &piece[..piece.len() - length]);
    let tail = inner.skip(1).filter(|at| secret.len() - at >= SHORTEST).find(|at| start.starts_with(&secret[*at..]));
    let middle = tail.map_or(start, |at| &start[secret.len() - at..]);
    if head.is_none() && tail.is_none() {
        return Cow::Borrowed(piece);
    }
    let mask = |is_cut: bool| if is_cut { MASK } else { "" };
    Cow::Owned(format!("{}{middle}{}", mask(tail.is_some()), mask(head.is_some())))
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
}
