//! The hidden mark by which a comment is found again, and by which runs know which of them is newer.

use crate::units::Digest;

/// How a mark of this form begins.
const START: &str = "<!-- goodput 1 ";

/// How it ends.
const END: &str = " -->";

/// What a comment says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Marker {
    /// Which contract and key it is about: twelve hexadecimal digits.
    pub(super) id: String,
    /// The commit that was analysed.
    pub(super) head: String,
    pub(super) age: Age,
}

/// Which run wrote it; a later one is greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Age {
    pub(super) run: u64,
    pub(super) attempt: u64,
}

impl Marker {
    /// The mark of a contract's comment.
    pub(super) fn new(contract: &str, key: Option<&str>, head: &str, age: Age) -> Self {
        let id = Digest::of(format!("{contract}\0{}", key.unwrap_or_default()).as_bytes()).short().to_owned();
        Self { id, head: head.to_owned(), age }
    }

    /// As it stands in a comment.
    pub(super) fn text(&self) -> String {
        let Self { id, head, age: Age { run, attempt } } = self;
        format!("{START}id={id} head={head} run={run} attempt={attempt}{END}")
    }

    /// The mark at the very start of a comment's text; anywhere else it is a quotation.
    pub(super) fn of(text: &str) -> Option<Self> {
        let (mark, _) = text.strip_prefix(START)?.split_once(END)?;
        let mut fields = mark.split(' ');
        let mut field = |name: &str| fields.next()?.strip_prefix(name)?.strip_prefix('=');
        let (id, head) = (field("id")?, field("head")?);
        let age = Age { run: field("run")?.parse().ok()?, attempt: field("attempt")?.parse().ok()? };
        Some(Self { id: id.to_owned(), head: head.to_owned(), age })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "0123456789abcdef0123456789abcdef01234567";

    #[test]
    fn a_mark_reads_back_and_carries_no_text_of_others() {
        let age = Age { run: 42, attempt: 2 };
        for (contract, key, id) in [
            // The digits are those of `printf 'tiny\0' | sha256sum`, and so on.
            ("tiny", None, "144e258f5b42"),
            ("tiny", Some("h200"), "7785c9888b79"),
            ("--> @you", None, "268a7e115478"),
        ] {
            let marker = Marker::new(contract, key, HEAD, age);
            assert_eq!(marker.text(), format!("<!-- goodput 1 id={id} head={HEAD} run=42 attempt=2 -->"));
            assert_eq!(Marker::of(&format!("{}\n## PASS", marker.text())), Some(marker));
        }
    }

    #[test]
    fn what_is_no_mark_at_the_start_is_none() {
        let mark = Marker::new("tiny", None, HEAD, Age { run: 1, attempt: 1 }).text();
        for text in [
            String::new(),
            format!(" {mark}"),
            format!("> {mark}"),
            mark.replace("goodput 1", "goodput 2"),
            mark.replace("run=1", "run=x"),
            mark.replace("run=1", "run=-1"),
            mark.replace(" attempt=1", ""),
            mark.replace("id=", "di="),
            mark.replace(" -->", ""),
        ] {
            assert_eq!(Marker::of(&text), None, "{text}");
        }
    }

    #[test]
    fn a_later_attempt_and_a_later_run_are_newer() {
        let age = |run, attempt| Age { run, attempt };
        assert!(age(2, 1) > age(1, 9) && age(2, 2) > age(2, 1) && age(10, 1) > age(9, 1));
    }
}
