//! Text that others wrote (contracts, servers, models, processes), made harmless: one function per format.
//!
//! Nothing else in this module writes such text into a report, so this file is the place to look when a report
//! shows something that it should not.

use std::borrow::Cow;

use url::Url;

/// The longest text shown in one place; more is cut with an ellipsis.
pub(super) const TEXT_CAP: usize = 400;

/// Makes text safe for a terminal, on one line: control characters and everything that moves or hides other text
/// (escape sequences, bidirectional controls, zero-width characters) become visible, and at most `cap` characters stay.
pub(super) fn terminal(text: &str, cap: usize) -> String {
    let mut safe = String::with_capacity(text.len().min(cap * 4));
    for (index, c) in text.chars().enumerate() {
        if index == cap {
            safe.push('…');
            break;
        }
        push_visible(&mut safe, c);
    }
    safe
}

/// Makes text safe inside a paragraph, list item or table cell of GitHub-flavoured Markdown, on one line; GitLab reads the same
/// text and finds nothing in it either.
///
/// Everything that could mean something to the parser is written as a character reference. That is not enough for
/// mentions, references, links and emoji: both look for those in the *rendered* text, where the references are resolved, so a
/// zero-width space also stands inside of what they look for. What looks like a commit becomes code, where neither looks and from
/// which it can be copied. At most `cap` characters of the text stay, and fewer where escaping makes it more than [`GROWTH`] times
/// as long: nobody can fill a page with a single name.
pub(super) fn markdown(text: &str, cap: usize) -> String {
    let plain: Vec<char> = on_one_line(text, cap).chars().collect();
    let mut safe = String::with_capacity(plain.len() * 2);
    let mut line_start = true;
    let mut at = 0;
    while let Some(c) = plain.get(at).copied() {
        if safe.len() > GROWTH * cap {
            safe.push('…');
            break;
        }
        let previous = at.checked_sub(1).map_or(' ', |before| plain[before]);
        let commit = commit_at(previous, &plain[at..]);
        if let Some(digits) = commit {
            push_commit(&mut safe, digits);
            (at, line_start) = (at + digits.len(), false);
            continue;
        }
        push_inert(&mut safe, line_start, previous, c, plain.get(at + 1).copied());
        // A number at the start of a line is still the start of a list until something else follows.
        line_start = line_start && (c == ' ' || c.is_ascii_digit());
        at += 1;
    }
    safe
}

/// How much longer than its text an escaped text may be, in bytes.
const GROWTH: usize = 4;

/// Writes one character so that no parser of Markdown reads anything into it.
fn push_inert(safe: &mut String, line_start: bool, previous: char, c: char, next: Option<char>) {
    let breaks = breaks_apart(previous, c, next);
    if c == '$' {
        // Neither reference nor space keeps a dollar from opening a formula; to GitHub an element of its own does.
        safe.push_str("<span>&#36;</span>");
    } else if is_markup(previous, c, next) || (breaks && c == ':') || (line_start && starts_block(previous, c, next)) {
        safe.push_str(&format!("&#{};", c as u32));
    } else {
        safe.push(c);
    }
    if breaks {
        safe.push_str("&#8203;");
    }
}

/// The hexadecimal digits that a text begins with, where GitHub would link them as a commit: a word of seven or more.
fn commit_at(previous: char, text: &[char]) -> Option<&[char]> {
    const SHORTEST: usize = 7;
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let digits = text.iter().take_while(|c| c.is_ascii_hexdigit()).count();
    let ends = !text.get(digits).is_some_and(|c| is_word(*c));
    (digits >= SHORTEST && ends && !is_word(previous)).then(|| &text[..digits])
}

/// Writes what looks like a commit. A number that does is left to be read as one, with something in it that nobody sees.
fn push_commit(safe: &mut String, digits: &[char]) {
    const UNLINKED: usize = 6;
    if digits.iter().all(char::is_ascii_digit) {
        let parts: Vec<String> = digits.chunks(UNLINKED).map(|part| part.iter().collect()).collect();
        safe.push_str(&parts.join("&#8203;"));
    } else {
        safe.push_str("<code>");
        safe.extend(digits);
        safe.push_str("</code>");
    }
}

/// The text with everything seen and on one line, at most `cap` characters of it.
fn on_one_line(text: &str, cap: usize) -> String {
    let mut plain = String::new();
    for (index, c) in text.trim().chars().enumerate() {
        if index == cap {
            plain.push('…');
            break;
        }
        match c {
            '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => plain.push(' '),
            c => push_visible(&mut plain, c),
        }
    }
    plain
}

/// Makes text safe where nothing reads markup, as in an annotation: everything seen, on one line, at most `bytes` long.
pub(super) fn line(text: &str, bytes: usize) -> String {
    const MORE: char = '…';
    let mut plain = on_one_line(text, bytes);
    if plain.len() > bytes {
        let room = bytes.saturating_sub(MORE.len_utf8());
        plain.truncate((0..=room).rev().find(|at| plain.is_char_boundary(*at)).unwrap_or(0));
        plain.push(MORE);
    }
    plain
}

/// Makes text safe inside an element or an attribute of XML 1.0, at most `cap` characters of it: what such a document cannot
/// hold at all becomes visible.
pub(super) fn xml(text: &str, cap: usize) -> String {
    let mut safe = String::with_capacity(text.len().min(cap * 4));
    for (index, c) in text.chars().enumerate() {
        if index == cap {
            safe.push('…');
            break;
        }
        match c {
            '&' | '<' | '>' | '"' | '\'' | '\n' => safe.push_str(&format!("&#{};", c as u32)),
            '\u{fffe}' | '\u{ffff}' => safe.push('\u{fffd}'),
            c => push_visible(&mut safe, c),
        }
    }
    safe
}

/// A digest or commit, as code that nothing links; what is neither is escaped like any text.
pub(super) fn digest(text: &str) -> String {
    const LONGEST: usize = 64;
    let is_one = !text.is_empty() && text.len() <= LONGEST && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_one { format!("`{text}`") } else { markdown(text, LONGEST) }
}

/// A link in Markdown with a text of our own; `None` where the address is not one of `http` or `https`, or names a user.
pub(super) fn link(text: &str, address: &str) -> Option<String> {
    const LONGEST: usize = 2_000;
    const PLAIN: &str = "-._~:/?#&=%+,@";
    let url = Url::parse(address).ok()?;
    let is_plain = ["http", "https"].contains(&url.scheme()) && url.username().is_empty() && url.password().is_none();
    if !is_plain || url.as_str().len() > LONGEST {
        return None;
    }
    let mut target = String::new();
    for byte in url.as_str().bytes() {
        match char::from(byte) {
            c if c.is_ascii_alphanumeric() || PLAIN.contains(c) => target.push(c),
            _ => target.push_str(&format!("%{byte:02X}")),
        }
    }
    Some(format!("[{text}]({target})"))
}

/// Makes text of several lines safe for standard error: what is hidden or moves other text becomes visible, and no line
/// begins like a command to the runner of a CI job, which reads standard error too.
pub fn plain(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            safe.push('\n');
        }
        uncommanding(line).chars().for_each(|c| push_visible(&mut safe, c));
    }
    safe
}

/// The line, so that the runner of a CI job does not take it for a command. GitHub's looks for `::` behind the blanks at the start
/// of each line that a job prints, which then gets a bar, and for the older `##[` anywhere in a line, which is taken apart.
pub(super) fn uncommanding(line: &str) -> Cow<'_, str> {
    let text = line.trim_start();
    let is_command = text.starts_with("::");
    if !is_command && !text.contains("##[") {
        return Cow::Borrowed(line);
    }
    let bar = if is_command { "| " } else { "" };
    let text = text.replace("##[", "# #[");
    Cow::Owned(format!("{}{bar}{text}", &line[..line.len() - line.trim_start().len()]))
}

/// Writes one character so that a reader sees it and a terminal does nothing else.
fn push_visible(out: &mut String, c: char) {
    match c {
        '\u{0}'..='\u{1f}' => out.extend(char::from_u32(0x2400 + c as u32)),
        '\u{7f}' => out.push('␡'),
        c if is_hidden(c) => out.extend(c.escape_unicode()),
        c => out.push(c),
    }
}

/// Whether a character shows nothing of its own but changes what is around it: C1 controls, format characters,
/// separators of lines and paragraphs, tags.
fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{80}'..='\u{9f}' | '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}'
        | '\u{890}' | '\u{891}' | '\u{8e2}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        | '\u{fff0}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Whether the parser could read a character as markup. An underscore inside a word means nothing to it.
fn is_markup(previous: char, c: char, next: Option<char>) -> bool {
    match c {
        '&' | '<' | '>' | '|' | '`' | '*' | '~' | '[' | ']' | '#' | '@' | '\\' | '$' => true,
        '_' => !(previous.is_alphanumeric() && next.is_some_and(char::is_alphanumeric)),
        _ => false,
    }
}

/// Whether a character makes a bullet, rule, heading, numbered list or command where a line starts.
fn starts_block(previous: char, c: char, next: Option<char>) -> bool {
    match c {
        '-' | '+' | '=' => true,
        // A slash begins a command to GitLab, `/merge`.
        '/' => previous == ' ',
        '.' | ')' => next.is_none_or(char::is_whitespace),
        _ => false,
    }
}

/// Whether `c` and what follows would be found by GitHub or GitLab in rendered text: a mention, an issue, an address, an emoji.
fn breaks_apart(previous: char, c: char, next: Option<char>) -> bool {
    let Some(next) = next.filter(|next| !next.is_whitespace()) else { return false };
    match c {
        '@' | '#' | ':' => true,
        // A merge request, milestone, label, epic and snippet of GitLab; a name may stand in quotes.
        '!' | '%' | '~' | '&' | '$' => next.is_alphanumeric() || matches!(next, '"' | '_'),
        // GitLab marks `{+ what was added +}`, and links `[[a page]]`.
        '{' | '[' => matches!(next, '+' | '-' | '['),
        // `GH-12` is a reference to an issue.
        '-' => previous.eq_ignore_ascii_case(&'h') && next.is_ascii_digit(),
        // `www.` starts an address without a scheme.
        'w' | 'W' => previous.eq_ignore_ascii_case(&'w') && next == '.',
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_lines_move_nothing_and_command_nobody() {
        for (text, shown) in [
            ("a\n  b", "a\n  b"),
            ("a\u{1b}[2Jb\r", "a␛[2Jb␍"),
            ("a\n  ::error::b", "a\n  | ::error::b"),
            ("##[error]b", "# #[error]b"),
            ("  a ###[add-mask]b ##[x]", "  a ## #[add-mask]b # #[x]"),
            ("a ::b", "a ::b"),
        ] {
            assert_eq!(plain(text), shown);
        }
    }

    #[test]
    fn a_terminal_sees_no_control_character() {
        for (text, shown) in [
            ("\x1b[31mred\x1b[0m", "␛[31mred␛[0m"),
            ("two\nlines\r\ttab", "two␊lines␍␉tab"),
            ("a\u{202e}b\u{2066}c", r"a\u{202e}b\u{2066}c"),
            ("\u{9b}2J\u{7f}", r"\u{9b}2J␡"),
            ("zero\u{200b}width\u{feff}", r"zero\u{200b}width\u{feff}"),
            ("tag\u{e0041}", r"tag\u{e0041}"),
            ("größe 推論 ✓", "größe 推論 ✓"),
        ] {
            assert_eq!(terminal(text, 100), shown);
        }
        assert_eq!(terminal("abcdef", 3), "abc…");
        assert_eq!(terminal("abc", 3), "abc");
        for code in (0..=0x10_ffff).filter_map(char::from_u32).filter(|c| c.is_control()) {
            assert!(terminal(&code.to_string(), 9).chars().all(|c| !c.is_control()), "{code:?}");
        }
    }

    #[test]
    fn markdown_sees_no_markup() {
        for (text, shown) in [
            ("a|b", "a&#124;b"),
            ("`x`", "&#96;x&#96;"),
            ("<img src=x>", "&#60;img src=x&#62;"),
            ("&lt;", "&#38;&#8203;lt;"),
            ("@octocat", "&#64;&#8203;octocat"),
            ("see #12, o/r#3 and GH-4", "see &#35;&#8203;12, o/r&#35;&#8203;3 and GH-&#8203;4"),
            ("https://evil.example", "https&#58;&#8203;//evil.example"),
            ("www.evil.example", "www&#8203;.evil.example"),
            ("a@b.example", "a&#64;&#8203;b.example"),
            ("[t](u) ![i](u)", "&#91;t&#93;(u) !&#91;i&#93;(u)"),
            ("- item", "&#45; item"),
            ("12. item", "12&#46; item"),
            ("12.5 ms", "12.5 ms"),
            ("# head", "&#35; head"),
            ("--- a-b", "&#45;-- a-b"),
            ("one\n\n> two\r\n| three", "one  &#62; two  &#124; three"),
            ("\x1b[31m", "␛&#91;31m"),
            ("a\u{202e}b", "a&#92;u{202e}b"),
            (":tada: 12:30", "&#58;&#8203;tada: 12&#58;&#8203;30"),
            ("_a_ restart_count __b__", "&#95;a&#95; restart_count &#95;&#95;b&#95;&#95;"),
            ("plain text, 12.5 ms (p99)", "plain text, 12.5 ms (p99)"),
            ("99% ±0.9% a/b 1,048,576 -5.2% … +3%", "99% ±0.9% a/b 1,048,576 -5.2% … +3%"),
            ("/merge", "&#47;merge"),
            ("  /approve", "&#47;approve"),
            (
                r#"!12 %12 %"next" ~bug ~"a b" &12 $12 ^alert#12"#,
                "!&#8203;12 %&#8203;12 %&#8203;\"next\" &#126;&#8203;bug &#126;&#8203;\"a b\" &#38;&#8203;12 \
                 <span>&#36;</span>&#8203;12 ^alert&#35;&#8203;12",
            ),
            ("group/project!12", "group/project!&#8203;12"),
            ("[[page]] {+ new +}", "&#91;&#8203;&#91;page&#93;&#93; {&#8203;+ new +}"),
            ("[^1]: note", "&#91;^1&#93;: note"),
            ("$x$", "<span>&#36;</span>&#8203;x<span>&#36;</span>"),
            ("o/r@0123456789abcdef", "o/r&#64;&#8203;<code>0123456789abcdef</code>"),
            ("at abcdef0, ABCDEF01...1234567", "at <code>abcdef0</code>, <code>ABCDEF01</code>...123456&#8203;7"),
            ("012345 xabcdef01 abcdef01_x", "012345 xabcdef01 abcdef01_x"),
            ("a\0b", "a␀b"),
        ] {
            assert_eq!(markdown(text, 100), shown);
        }
        assert_eq!(markdown("abcdef", 3), "abc…");
    }

    #[test]
    fn escaping_does_not_make_a_long_text_endless() {
        for text in ["@a", "&", "<", "abcdef0 ", "\u{202e}", "推", "z"] {
            let safe = markdown(&text.repeat(100_000), 400);
            assert!(safe.len() <= 4 * 400 + 512, "{} bytes of {text:?}", safe.len());
            assert!(safe.ends_with('…'), "{text:?}");
        }
    }

    #[test]
    fn a_line_has_at_most_so_many_bytes() {
        assert_eq!(line("two\r\nlines\x1b[0m ", 100), "two  lines␛[0m");
        assert_eq!(line("推論推論", 12), "推論推論");
        assert_eq!(line("推論推論推", 14), "推論推…");
        for bytes in 3..40 {
            assert!(line(&"é\u{202e}推".repeat(50), bytes).len() <= bytes);
        }
    }

    #[test]
    fn xml_holds_every_text() {
        for (text, shown) in [
            ("a<b>&\"c'", "a&#60;b&#62;&#38;&#34;c&#39;"),
            ("]]>", "]]&#62;"),
            ("\0\x1b\u{7f}\u{fffe}\u{ffff}", "␀␛␡\u{fffd}\u{fffd}"),
            ("a\nb\tc", "a&#10;b␉c"),
            ("\u{85}\u{202e}", r"\u{85}\u{202e}"),
        ] {
            assert_eq!(xml(text, 100), shown);
        }
        assert_eq!(xml("abcdef", 3), "abc…");
    }

    #[test]
    fn only_plain_addresses_are_linked() {
        for (address, target) in [
            ("https://github.com/o/r/actions/runs/1", Some("https://github.com/o/r/actions/runs/1")),
            ("http://ghes.example:8080/x?a=b&c=d", Some("http://ghes.example:8080/x?a=b&c=d")),
            (
                "https://a.example/)[x](javascript:alert)|*`<b>",
                Some("https://a.example/%29%5Bx%5D%28javascript:alert%29%7C%2A%60%3Cb%3E"),
            ),
            ("https://a.example/?q=\\x", Some("https://a.example/?q=%5Cx")),
            ("javascript:alert(1)", None),
            ("data:text/html,x", None),
            ("https://user:secret@a.example/", None),
            ("/relative", None),
            ("", None),
        ] {
            assert_eq!(link("run", address), target.map(|target| format!("[run]({target})")), "{address}");
        }
    }
}
