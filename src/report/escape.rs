//! Text that others wrote (contracts, servers, models, processes), made harmless: one function per format.
//!
//! Nothing else in this module writes such text into a report, so this file is the place to look when a report
//! shows something that it should not.

use std::borrow::Cow;

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

/// Makes text safe inside a paragraph, list item or table cell of GitHub-flavoured Markdown, on one line.
///
/// Everything that could mean something to the parser is written as a character reference. That is not enough for
/// mentions, references, links and emoji: GitHub looks for those in the *rendered* text, where the references are
/// resolved, so a zero-width space also follows `@`, `#`, `:` and the like. At most `cap` characters stay.
pub(super) fn markdown(text: &str, cap: usize) -> String {
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
    let mut safe = String::with_capacity(plain.len() * 2);
    let mut line_start = true;
    let mut previous = ' ';
    let mut characters = plain.chars().peekable();
    while let Some(c) = characters.next() {
        let next = characters.peek().copied();
        let breaks = breaks_apart(previous, c, next);
        if is_markup(previous, c, next) || (breaks && c == ':') || (line_start && starts_block(c, next)) {
            safe.push_str(&format!("&#{};", c as u32));
        } else {
            safe.push(c);
        }
        if breaks {
            safe.push_str("&#8203;");
        }
        // A number at the start of a line is still the start of a list until something else follows.
        line_start = line_start && (c == ' ' || c.is_ascii_digit());
        previous = c;
    }
    safe
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

/// The line, with a bar before its text where the runner of a CI job would take it for a command: such a runner reads what
/// a job prints, and looks behind the blanks at the start of each line.
pub(super) fn uncommanding(line: &str) -> Cow<'_, str> {
    let text = line.trim_start();
    if !["::", "##["].iter().any(|start| text.starts_with(start)) {
        return Cow::Borrowed(line);
    }
    Cow::Owned(format!("{}| {text}", &line[..line.len() - text.len()]))
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
        '\u{80}'..='\u{9f}' | '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{180e}'
        | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// Whether the parser could read a character as markup. An underscore inside a word means nothing to it.
fn is_markup(previous: char, c: char, next: Option<char>) -> bool {
    match c {
        '&' | '<' | '>' | '|' | '`' | '*' | '~' | '[' | ']' | '#' | '@' | '\\' | '$' => true,
        '_' => !(previous.is_alphanumeric() && next.is_some_and(char::is_alphanumeric)),
        _ => false,
    }
}

/// Whether a character makes a bullet, rule, heading or numbered list where a line starts.
fn starts_block(c: char, next: Option<char>) -> bool {
    match c {
        '-' | '+' | '=' => true,
        '.' | ')' => next.is_none_or(char::is_whitespace),
        _ => false,
    }
}

/// Whether `c` and what follows would be found by GitHub in rendered text: a mention, an issue, an address, an emoji.
fn breaks_apart(previous: char, c: char, next: Option<char>) -> bool {
    let Some(next) = next.filter(|next| !next.is_whitespace()) else { return false };
    match c {
        '@' | '#' | ':' => true,
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
            ("##[error]b", "| ##[error]b"),
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
            ("&lt;", "&#38;lt;"),
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
        ] {
            assert_eq!(markdown(text, 100), shown);
        }
        assert_eq!(markdown("abcdef", 3), "abc…");
    }
}
