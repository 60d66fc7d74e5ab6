//! Where baseline records are kept, and which of them a run is compared with.
//!
//! One record, many stores: each is one file behind the trait [`Store`]. The choice is made by the commit that a record was
//! measured at, never by its date.

mod around;
pub mod artifact;
mod base;
mod branch;
mod choose;
mod file;
mod fit;
mod git;
pub mod s3;
mod slug;

use std::future::Future;
use std::path::Path;
use std::pin::Pin;

use crate::contract::StoreSpec;
use crate::record::BaselineRecord;

pub use base::{Candidate, Line, Stated};
pub use branch::BranchStore;
pub use choose::{Question, choose, contract_at_base};
pub use file::{FileStore, read_record, write_record};
pub use fit::{age, unfit};
pub use git::{GitFailure, Repository, short};
pub use slug::slug;

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

/// What stores need to know of the place that they are asked from.
#[derive(Debug, Clone, Copy)]
pub struct Places<'a> {
    /// The contract's folder.
    pub folder: &'a Path,
    /// The repository that it lies in.
    pub repository: Option<&'a Repository>,
    /// The commit at which files of the repository are read.
    pub at: Option<&'a str>,
}

/// The store that a contract names.
///
/// # Errors
/// When it cannot be asked from here.
pub fn open(spec: &StoreSpec, places: &Places<'_>) -> Result<Box<dyn Store>, StoreFailure> {
    let repository = places.repository.cloned();
    match spec {
        StoreSpec::File(path) => Ok(Box::new(FileStore {
            path: path.clone(),
            within: around::within(places.folder, path),
            at: repository.zip(places.at.map(str::to_owned)),
        })),
        StoreSpec::Branch(branch) => match repository {
            Some(repository) => Ok(Box::new(BranchStore::new(repository, branch.clone()))),
            None => Err(StoreFailure::Unavailable(format!(
                "the branch `{branch}` cannot be asked: the contract lies in no repository of git"
            ))),
        },
        StoreSpec::Artifact { name, workflow } => {
            Ok(Box::new(artifact::Artifacts::from_environment(name, workflow.as_deref())?))
        }
        StoreSpec::S3 { bucket, prefix, region, endpoint } => {
            Ok(Box::new(s3::Bucket::new(bucket, prefix, region, endpoint.as_ref())?))
        }
    }
}
