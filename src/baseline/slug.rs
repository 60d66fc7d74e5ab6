//! A contract's name as a part of a path.

use crate::units::Digest;

/// The longest part of a name that is kept.
const LONGEST: usize = 60;

/// The name in characters that every file system and object storage takes. A name that had to be changed is told from others
/// by its digest.
pub fn slug(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if !name.is_empty() && name.len() <= LONGEST && name.chars().all(is_plain) {
        return name.to_owned();
    }
    let kept = name.chars().take(LONGEST).map(|c| c.to_ascii_lowercase()).map(|c| if is_plain(c) { c } else { '-' });
    format!("{}.{}", kept.collect::<String>(), Digest::of(name.as_bytes()).short())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_a_path_of_its_own() {
        assert_eq!(slug("chat-8b"), "chat-8b");
        for name in ["", "..", "a/b", "A", "größe", "a b", &"x".repeat(61)] {
            let path = slug(name);
            assert!(path.len() <= LONGEST + 13, "{path}");
            assert!(path.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c)), "{path}");
            assert!(!path.starts_with('.') || name.is_empty(), "{path}");
        }
        assert_ne!(slug("a/b"), slug("a b"));
        // What is added begins with a point, which no plain name has.
        assert_ne!(slug("A"), slug("a"));
    }
}
