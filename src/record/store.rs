//! The run folder: what is on disk, and how it is read back.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{AUDIT_SCHEMA, AuditRecord, KeptReply, RESULT_SCHEMA, RequestRecord, RunResult};

/// The largest file of one object that is read, in bytes: a result of thousands of trials has some ten million.
const LARGEST_FILE: u64 = 256 << 20;

/// A file of a run that cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file system refuses.
    #[error("failed to {action} {}: {source}", path.display())]
    Io {
        /// What was tried: `write`, `read`, `create`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not what it should be.
    #[error("{}{}: {problem}", path.display(), line.map(|l| format!(":{l}")).unwrap_or_default())]
    Content {
        /// The file.
        path: PathBuf,
        /// The line, from 1, where there are lines.
        line: Option<u64>,
        /// What is wrong.
        problem: String,
    },
}

impl StoreError {
    fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }

    fn content(path: &Path, line: Option<u64>, problem: impl Into<String>) -> Self {
        Self::Content { path: path.to_owned(), line, problem: problem.into() }
    }
}

/// The folder of one run.
#[derive(Debug, Clone)]
pub struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    /// Creates `base/name`, or `base/name-2`, … where that is taken.
    ///
    /// # Errors
    /// When the folder cannot be created.
    pub fn create(base: &Path, name: &str) -> Result<Self, StoreError> {
        fs::create_dir_all(base).map_err(StoreError::io("create", base))?;
        let mut number = 1;
        loop {
            let path = base.join(if number == 1 { name.to_owned() } else { format!("{name}-{number}") });
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self { path }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(StoreError::io("create", &path)(error)),
            }
        }
    }

    /// The folder's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of one of its files.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a whole file so that readers see the old one or the new one, never a part.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<(), StoreError> {
        write_whole(&self.file(name), content)
    }

    /// Appends JSON lines to a file.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn append_lines<T: Serialize>(&self, name: &str, lines: &[T]) -> Result<(), StoreError> {
        let path = self.file(name);
        let mut text = Vec::new();
        for line in lines {
            serde_json::to_writer(&mut text, line).map_err(|error| StoreError::io("write", &path)(error.into()))?;
            text.push(b'\n');
        }
        let file = OpenOptions::new().create(true).append(true).open(&path);
        file.and_then(|mut file| file.write_all(&text)).map_err(StoreError::io("write", &path))
    }

    /// Opens `requests.jsonl` for appending.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn request_log(&self) -> Result<RequestLog, StoreError> {
        let path = self.file("requests.jsonl");
        let file = OpenOptions::new().create(true).append(true).open(&path).map_err(StoreError::io("write", &path))?;
        Ok(RequestLog { writer: BufWriter::with_capacity(1 << 16, file) })
    }
}

/// Writes a whole file so that readers see the old one or the new one, never a part.
///
/// # Errors
/// When it cannot be written.
pub fn write_whole(path: &Path, content: &[u8]) -> Result<(), StoreError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let draft = path.with_file_name(format!(".{name}.draft"));
    let written = File::create(&draft)
        .and_then(|mut file| file.write_all(content).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&draft, path));
    written.map_err(|error| {
        // Half a draft helps nobody; what counts is the error itself.
        drop(fs::remove_file(&draft));
        StoreError::io("write", path)(error)
    })
}

/// Where finished requests are kept.
pub trait RecordSink: Send + 'static {
    /// Adds one request. Called from one thread, in the order in which requests finish.
    ///
    /// # Errors
    /// When it cannot be kept; the trial is then stopped.
    fn record(&mut self, record: &RequestRecord) -> io::Result<()>;

    /// Everything recorded so far is readable by others after this.
    ///
    /// # Errors
    /// When it cannot be kept.
    fn flush(&mut self) -> io::Result<()>;
}

/// `requests.jsonl`, written a line a request as they finish.
#[derive(Debug)]
pub struct RequestLog {
    writer: BufWriter<File>,
}

impl RecordSink for RequestLog {
    fn record(&mut self, record: &RequestRecord) -> io::Result<()> {
        serde_json::to_writer(&mut self.writer, record)?;
        self.writer.write_all(b"\n")
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// Reads `requests.jsonl` line by line and hands each request to `each`. A last line without its end was torn by a crash
/// and is dropped; any other damage is an error.
///
/// # Errors
/// When the file cannot be read, or a line is no request; the error names the line.
pub fn read_requests(path: &Path, each: impl FnMut(RequestRecord)) -> Result<u64, StoreError> {
    read_lines(path, "a request", each)
}

/// The same of `samples.jsonl` and the replies that it holds.
///
/// # Errors
/// When the file cannot be read, or a line is no reply; the error names the line.
pub fn read_kept(path: &Path, each: impl FnMut(KeptReply)) -> Result<u64, StoreError> {
    read_lines(path, "a reply", each)
}

fn read_lines<T: DeserializeOwned>(path: &Path, what: &str, mut each: impl FnMut(T)) -> Result<u64, StoreError> {
    let mut reader = BufReader::with_capacity(1 << 16, File::open(path).map_err(StoreError::io("read", path))?);
    let mut line = Vec::new();
    let mut number = 0;
    loop {
        line.clear();
        reader.read_until(b'\n', &mut line).map_err(StoreError::io("read", path))?;
        if line.last() != Some(&b'\n') {
            return Ok(number);
        }
        number += 1;
        let record = serde_json::from_slice(&line)
            .map_err(|error| StoreError::content(path, Some(number), format!("not {what}: {error}")))?;
        each(record);
    }
}

/// Reads `result.json`.
///
/// # Errors
/// When it cannot be read, is damaged, or was written by a version whose format this one does not know.
pub fn read_result(path: &Path) -> Result<RunResult, StoreError> {
    read_versioned(path, RESULT_SCHEMA, "a result")
}

/// Reads `audit.json`.
///
/// # Errors
/// When it cannot be read, is damaged, or was written by a version whose format this one does not know.
pub fn read_audit(path: &Path) -> Result<AuditRecord, StoreError> {
    read_versioned(path, AUDIT_SCHEMA, "an audit")
}

/// Reads a whole file, which must be one: what is no file may have no end.
fn read_bounded(path: &Path) -> Result<Vec<u8>, StoreError> {
    let found = fs::metadata(path).map_err(StoreError::io("read", path))?;
    if !found.is_file() {
        return Err(StoreError::content(path, None, "not a file".to_owned()));
    }
    if found.len() > LARGEST_FILE {
        let problem =
            format!("it has {} MB, and {} MB are the most that is read", found.len() >> 20, LARGEST_FILE >> 20);
        return Err(StoreError::content(path, None, problem));
    }
    let mut text = Vec::new();
    let file = File::open(path).map_err(StoreError::io("read", path))?;
    file.take(LARGEST_FILE).read_to_end(&mut text).map_err(StoreError::io("read", path))?;
    Ok(text)
}

/// Reads a file of one JSON object whose `schema` names its format; `what` says what it is to be.
fn read_versioned<T: DeserializeOwned>(path: &Path, schema: &str, what: &str) -> Result<T, StoreError> {
    let text = read_bounded(path)?;
    let value: serde_json::Value =
        serde_json::from_slice(&text).map_err(|error| StoreError::content(path, None, format!("not JSON: {error}")))?;
    match value.get("schema").and_then(serde_json::Value::as_str) {
        Some(found) if found == schema => {}
        Some(other) => {
            let problem = format!("its format is `{other}`; this version reads `{schema}`");
            return Err(StoreError::content(path, None, problem));
        }
        None => return Err(StoreError::content(path, None, format!("not {what}: it has no `schema`"))),
    }
    serde_json::from_value(value).map_err(|error| StoreError::content(path, None, format!("not {what}: {error}")))
}
