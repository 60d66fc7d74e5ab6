//! What could not be published, for the page that could.

use super::escape::{self, TEXT_CAP};

/// The problems as a short block of Markdown; empty where there are none.
pub fn problems(lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let lines: Vec<String> =
        lines.iter().map(|line| format!("> - {}\n", escape::markdown(line, 2 * TEXT_CAP))).collect();
    format!("> [!WARNING]\n> Not everything was published:\n{}", lines.concat())
}

#[cfg(test)]
mod tests {
    use super::problems;

    #[test]
    fn problems_are_listed_and_none_says_nothing() {
        assert_eq!(problems(&[]), "");
        assert_eq!(
            problems(&["a\n> b".to_owned(), "see `x` @you".to_owned()]),
            "> [!WARNING]\n> Not everything was published:\n> - a &#62; b\n> - see &#96;x&#96; &#64;&#8203;you\n"
        );
    }
}
