//! The event that started a workflow.

use std::fs::{self, File};
use std::io::Read;

use serde_json::Value;

/// The largest event that is read, in bytes; GitHub sends none above 25 MB.
const LARGEST_EVENT: u64 = 32 << 20;

/// Reads the event that lies at the path in `GITHUB_EVENT_PATH`.
///
/// # Errors
/// What is wrong with it, in a few words: it cannot be read, is no file (which may have no end), is too large, or is not JSON.
pub fn read_event(path: &str) -> Result<Value, String> {
    let found = fs::metadata(path).map_err(|error| error.to_string())?;
    if !found.is_file() {
        return Err("it is no file".to_owned());
    }
    if found.len() > LARGEST_EVENT {
        return Err(format!("it has {} bytes", found.len()));
    }
    let mut text = Vec::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    file.take(LARGEST_EVENT).read_to_end(&mut text).map_err(|error| error.to_string())?;
    serde_json::from_slice(&text).map_err(|error| error.to_string())
}
