//! SHA-256 digests that name a schedule, a workload, a plan or a contract.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest, as 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct Digest(String);

impl Digest {
    /// The digest of `bytes` alone.
    pub fn of(bytes: &[u8]) -> Self {
        let mut builder = DigestBuilder::default();
        builder.raw(bytes);
        builder.finish()
    }

    /// The hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first twelve digits, for people.
    pub fn short(&self) -> &str {
        self.0.get(..12).unwrap_or(&self.0)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Builds a digest piece by piece.
#[derive(Debug, Default)]
pub struct DigestBuilder {
    hasher: Sha256,
}

impl DigestBuilder {
    /// Adds one number, as eight little-endian bytes.
    pub fn word(&mut self, word: u64) {
        self.hasher.update(word.to_le_bytes());
    }

    /// Adds a text or byte string led by its length, so that neighbours cannot be confused.
    pub fn field(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u64);
        self.hasher.update(bytes);
    }

    /// Adds bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
    }

    /// The digest of everything added.
    pub fn finish(self) -> Digest {
        use fmt::Write as _;
        let mut text = String::with_capacity(64);
        for byte in self.hasher.finalize() {
            let _ = write!(text, "{byte:02x}");
        }
        Digest(text)
    }
}
