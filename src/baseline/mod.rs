//! Where baseline records are kept, and which of them a run is compared with.
//!
//! One record, many stores: each is one file behind the trait [`Store`]. The choice is made by the commit that a record was
//! measured at, never by its date.

use std::future::Future;
use std::pin::Pin;

use crate::record::BaselineRecord;

/// The largest record that is read, in bytes; one of 5 loads with 8 trials has some 100 kB.
pub const LARGEST_RECORD: u64 = 16 << 20;

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
