//! A file of sound that a case sends.

use bytes::Bytes;

use super::Case;
use super::content::AUDIO;
use crate::audio::{PcmFormat, WavFile, read_wav};

/// A file of sound, read.
#[derive(Debug, Clone, PartialEq)]
pub struct Sound {
    /// The file's own name, without its folder.
    pub name: String,
    /// The whole file.
    pub file: Bytes,
    /// How long it lasts; `None` where its container is not one that is read here.
    pub duration_ns: Option<u64>,
    /// Its samples, where they are plain.
    pub samples: Option<Samples>,
}

/// Plain samples.
#[derive(Debug, Clone, PartialEq)]
pub struct Samples {
    /// Their format.
    pub format: PcmFormat,
    /// The bytes.
    pub bytes: Bytes,
}

impl Sound {
    /// Reads a file's bytes; what is no WAV has no known duration.
    pub fn new(name: String, file: Bytes) -> Self {
        let wav = read_wav(&file).ok();
        let duration_ns = wav.as_ref().and_then(WavFile::duration_ns);
        let samples = wav.and_then(|wav| Some(Samples { format: wav.format.pcm?, bytes: file.slice_ref(wav.samples) }));
        Self { name, duration_ns, samples, file }
    }
}

impl Case {
    /// The path of the sound that it sends, as written.
    pub fn audio(&self) -> Option<&str> {
        self.fields.get(AUDIO)?.as_str()
    }
}
