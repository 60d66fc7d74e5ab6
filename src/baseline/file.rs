//! The store `file`: one record in the repository, read as the base commit has it, so that a change cannot move its own bar.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::git::{FileAt, Repository, short};
use super::{Answer, Found, LARGEST_RECORD, Store, StoreFailure};
use crate::record::{BaselineRecord, write_whole};

/// A file with one record.
#[derive(Debug, Clone)]
pub struct FileStore {
    /// The file in the working tree.
    pub path: PathBuf,
    /// The same from the repository's folder.
    pub within: PathBuf,
    /// The repository and the commit that the file is read at; `None` outside of a repository: as it lies there.
    pub at: Option<(Repository, String)>,
}

impl FileStore {
    /// The record; `None` where there is no file.
    ///
    /// # Errors
    /// When it is no record, or git does not answer.
    pub async fn read(&self) -> Result<Option<Found>, StoreFailure> {
        let place = self.place();
        let Some((repository, commit)) = &self.at else {
            return Ok(match read_bounded(&self.path, LARGEST_RECORD) {
                Ok(None) => None,
                Ok(Some(text)) => Some(found(&text, place)?),
                Err(problem) => return Err(StoreFailure::Corrupt { place, problem }),
            });
        };
        match repository.file_at(commit, &self.within, LARGEST_RECORD).await {
            Ok(FileAt::Absent) => Ok(None),
            Ok(FileAt::Unreadable(problem)) => Err(StoreFailure::Corrupt { place, problem }),
            Ok(FileAt::Content(text)) => found(&text, place).map(Some),
            Err(failure) => Err(StoreFailure::Unavailable(failure.to_string())),
        }
    }

    /// Where it is read, for people.
    pub fn place(&self) -> String {
        match &self.at {
            Some((_, commit)) => format!("{} at {}", self.path.display(), short(commit)),
            None => format!("{}, as it lies there: no commit tells what it was before", self.path.display()),
        }
    }
}

impl Store for FileStore {
    fn name(&self) -> &'static str {
        "file"
    }

    /// The one record, wherever it was measured: whoever asks tells then that it was measured elsewhere.
    fn find<'a>(&'a self, contract: &'a str, _: &'a [String]) -> Answer<'a, Vec<Found>> {
        self.list(contract, 1)
    }

    fn list<'a>(&'a self, _: &'a str, most: usize) -> Answer<'a, Vec<Found>> {
        Box::pin(async move { Ok(self.read().await?.into_iter().take(most).collect()) })
    }

    fn put<'a>(&'a self, record: &'a BaselineRecord) -> Answer<'a, String> {
        Box::pin(async move {
            write_record(&self.path, record)?;
            Ok(format!("{}, to be committed", self.path.display()))
        })
    }
}

/// Writes a record for people and machines: indented JSON.
///
/// # Errors
/// When it cannot be written.
pub fn write_record(path: &Path, record: &BaselineRecord) -> Result<(), StoreFailure> {
    let failed = |problem: String| StoreFailure::Unavailable(format!("the baseline cannot be written: {problem}"));
    let text = serde_json::to_string_pretty(record).map_err(|error| failed(error.to_string()))? + "\n";
    write_whole(path, text.as_bytes()).map_err(|error| failed(error.to_string()))
}

/// Reads the record in a file.
///
/// # Errors
/// When there is no such file, or it holds no record.
pub fn read_record(path: &Path) -> Result<BaselineRecord, StoreFailure> {
    let place = path.display().to_string();
    match read_bounded(path, LARGEST_RECORD) {
        Ok(Some(text)) => Ok(found(&text, place)?.record),
        Ok(None) => Err(StoreFailure::Unavailable(format!("there is no file {place}; name a record's file"))),
        Err(problem) => Err(StoreFailure::Corrupt { place, problem }),
    }
}

/// A record that was read somewhere.
///
/// # Errors
/// When it is none.
pub(super) fn found(text: &[u8], place: String) -> Result<Found, StoreFailure> {
    match BaselineRecord::parse(text) {
        Ok(record) => Ok(Found { record, place }),
        Err(problem) => Err(StoreFailure::Corrupt { place, problem }),
    }
}

/// A file of at most so many bytes; `None` where there is none. Errors complete "the file …".
pub(super) fn read_bounded(path: &Path, largest: u64) -> Result<Option<Vec<u8>>, String> {
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("cannot be read: {error}")),
    };
    let mut content = Vec::new();
    file.take(largest + 1).read_to_end(&mut content).map_err(|error| format!("cannot be read: {error}"))?;
    if content.len() as u64 > largest {
        return Err(format!("is larger than the {largest} bytes that are read"));
    }
    Ok(Some(content))
}
