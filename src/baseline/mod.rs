//! Where baseline records are kept, and which of them a run is compared with.
//!
//! One record, many stores: each is one file behind the trait [`Store`]. The choice is made by the commit that a record was
//! measured at, never by its date.

pub mod artifact;
pub mod s3;

use std::future::Future;
use std::pin::Pin;

use crate::record::BaselineRecord;
use crate::units::Digest;

/// The largest record that is read, in bytes; one of 5 loads with 8 trials has some 100 kB.
pub const LARGEST_RECORD: u64 = 16 << 20;

/// The most records of one commit that are read, the newest ones: a branch at rest that is measured every night gathers many.
const MOST_AT_COMMIT: usize = 8;

/// One place where records are kept.
pub trait Store: Send + Sync {
    /// Its name in contracts and reports.
    fn name(&self) -> &'static str;

    /// The records of a contract that were measured at one of `commits`, given in the order in which they are wanted: those of
    /// the first commit that has any. Empty where none has one.
    fn find<'a>(&'a self, contract: &'a str, commits: &'a [String]) -> Answer<'a, Vec<Found>>;

    /// The newest records of a contract, at most `most` of them, newest first.
    fn list<'a>(&'a self, contract: &'a str, most: usize) -> Answer<'a, Vec<Found>>;

    /// Keeps a record, and says where. A record that is there already is left as it is.
    fn put<'a>(&'a self, record: &'a BaselineRecord) -> Answer<'a, String>;
}

/// What a store answers.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreFailure>> + Send + 'a>>;

/// A record, and where it was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The record, held against its digest.
    pub record: BaselineRecord,
    /// Where, for people: a path at a commit, a run's address, a key.
    pub place: String,
}

/// Why a store does not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreFailure {
    /// A record is there and cannot be read: never an empty history.
    #[error("{place}: the baseline {problem}")]
    Corrupt {
        /// Where it is.
        place: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The store cannot be asked, or refuses; the text ends with the next step.
    #[error("{0}")]
    Unavailable(String),
}

/// The longest name of a folder that is made of a contract's name.
const LONGEST_SLUG: usize = 64;

/// The folder of a contract in stores that have folders: lower-case letters, digits and `-`. Where the name had to be changed
/// for that, the beginning of its digest follows, so that two names never share a folder.
pub(super) fn slug(name: &str) -> String {
    let kept = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    let slug: String = name.chars().take(LONGEST_SLUG).map(kept).collect();
    if slug == name && !name.is_empty() {
        return slug;
    }
    let digest = Digest::of(name.as_bytes());
    format!("{slug}-{}", digest.as_str().get(..8).unwrap_or_default())
}

/// The most letters of a stranger's text that a message repeats.
const LONGEST_QUOTE: usize = 200;

/// What a server said, fit for a message: on one line, bounded and without control characters.
fn plain(text: &str) -> String {
    let visible = text.chars().take(LONGEST_QUOTE * 8).map(|letter| if letter.is_control() { ' ' } else { letter });
    let visible: String = visible.collect();
    let mut words = visible.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = words.char_indices().nth(LONGEST_QUOTE) {
        words.truncate(end);
        words.push('…');
    }
    words
}

#[cfg(test)]
mod tests {
    use super::{plain, slug};

    #[test]
    fn a_name_that_is_a_folder_already_stays() {
        assert_eq!(slug("gamma-26b-chat"), "gamma-26b-chat");
        assert_eq!(slug(&"a".repeat(64)), "a".repeat(64));
    }

    /// The digits are those of `printf %s NAME | sha256sum`.
    #[test]
    fn a_name_that_is_changed_carries_its_digest() {
        let rows = [
            ("Gamma 26B", "gamma-26b-dd835934"),
            ("gamma/26b", "gamma-26b-3814fbd1"),
            ("gamma.26b", "gamma-26b-6445dd05"),
            ("..", "---5ec1f7e7"),
            ("größe", "gr--e-d353a267"),
            ("", "-e3b0c442"),
        ];
        for (name, folder) in rows {
            assert_eq!(slug(name), folder, "{name}");
        }
        assert_ne!(slug(&format!("{}b", "a".repeat(64))), slug(&format!("{}c", "a".repeat(64))));
    }

    #[test]
    fn a_stranger_s_text_is_one_bounded_line() {
        assert_eq!(plain("a\r\n\tb \u{1b}[31m c"), "a b [31m c");
        let long = plain(&"x".repeat(100_000));
        assert_eq!(long, format!("{}…", "x".repeat(200)));
    }
}
