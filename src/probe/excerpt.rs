//! Parts of foreign texts in messages: on one line, short, and without control characters.

/// The most characters of a text that a message repeats.
const EXCERPT: usize = 200;

/// The beginning of a text.
pub(super) fn plain(text: &str) -> String {
    let cut = if text.chars().nth(EXCERPT).is_some() { "…" } else { "" };
    format!("{}{cut}", harmless(text.chars().take(EXCERPT)))
}

/// The beginning of a text, in quotes.
pub(super) fn quote(text: &str) -> String {
    format!("`{}`", plain(text))
}

/// The end of a text, in quotes.
pub(super) fn quote_end(text: &str) -> String {
    let excess = text.chars().count().saturating_sub(EXCERPT);
    let cut = if excess > 0 { "…" } else { "" };
    format!("`{cut}{}`", harmless(text.chars().skip(excess)))
}

/// Characters with every one escaped that is not to be printed as it is. Quotes are.
fn harmless(text: impl Iterator<Item = char>) -> String {
    let mut escaped = String::new();
    for character in text {
        match character {
            '\'' | '"' => escaped.push(character),
            _ => escaped.extend(character.escape_debug()),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_short_and_harmless() {
        assert_eq!(quote("\u{1b}[31mred\n"), "`\\u{1b}[31mred\\n`");
        assert_eq!(quote("couldn't \"talk\""), "`couldn't \"talk\"`");
        assert_eq!(quote(&"é".repeat(300)), format!("`{}…`", "é".repeat(200)));
        assert_eq!(quote_end(&format!("{}end", "x".repeat(300))), format!("`…{}end`", "x".repeat(197)));
    }
}
