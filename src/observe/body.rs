//! Bodies that are read as a whole: one JSON document, or the little that is kept of a failure.

use super::stream::Stamp;

/// Collects a body up to a limit.
#[derive(Debug)]
pub(super) struct WholeBody {
    bytes: Vec<u8>,
    limit: usize,
    over: bool,
    completed: Stamp,
}

impl WholeBody {
    /// An empty body of at most `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit, over: false, completed: Stamp::default() }
    }

    /// Adds a write; what goes over the limit is dropped.
    pub(super) fn push(&mut self, bytes: &[u8], stamp: Stamp) {
        let room = self.limit - self.bytes.len();
        self.over |= bytes.len() > room;
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        // Blanks around a document are no part of it: it is complete with its last byte that is none.
        if bytes.iter().any(|byte| !byte.is_ascii_whitespace()) {
            self.completed = stamp;
        }
    }

    /// Whether more came than the limit holds.
    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// Whether nothing but blanks came.
    pub(super) fn is_blank(&self) -> bool {
        self.bytes.trim_ascii().is_empty()
    }

    /// The body, with a leading byte order mark removed.
    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&self.bytes)
    }

    /// The write that brought its last byte that is no blank.
    pub(super) fn completed(&self) -> Stamp {
        self.completed
    }
}
