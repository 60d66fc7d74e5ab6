//! Small files of a configuration.

use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use crate::probe::excerpt::quote;

/// The largest file that is read, in bytes.
const LARGEST: u64 = 1 << 20;

/// A file's content. Pipes and devices are refused, because they might never end.
///
/// # Errors
/// When it is no file, too large, or not for this user.
pub(super) async fn read_small(path: &Path) -> Result<Vec<u8>, String> {
    let name = quote(&path.display().to_string());
    let told = |error: std::io::Error| format!("{name}: {error}");
    let metadata = tokio::fs::metadata(path).await.map_err(told)?;
    if !metadata.is_file() {
        return Err(format!("{name}: it is no regular file"));
    }
    if metadata.len() > LARGEST {
        return Err(format!("{name}: it is larger than {LARGEST} bytes"));
    }
    tokio::fs::read(path).await.map_err(told)
}

/// What a configuration holds as base64 (`written`), or else in a file; `None` where there is neither.
///
/// # Errors
/// When it cannot be read, with `what` it was to be.
pub(super) async fn data_or_file(
    what: &str,
    written: Option<&str>,
    file: Option<&Path>,
) -> Result<Option<Vec<u8>>, String> {
    if let Some(written) = written.filter(|written| !written.is_empty()) {
        let bytes = BASE64_STANDARD.decode(written.trim()).map_err(|_| format!("the {what} is no base64"))?;
        return Ok(Some(bytes));
    }
    match file {
        Some(file) => read_small(file).await.map(Some).map_err(|error| format!("cannot read the {what} {error}")),
        None => Ok(None),
    }
}
