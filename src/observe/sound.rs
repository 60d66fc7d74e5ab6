//! The sound of a reply: how much there is, how long it lasts, and whether a listener would have waited for it.

use std::num::NonZeroU64;

use crate::audio::{Encoding, PcmFormat, Playback, WavFormat};

/// The sound so far. Without its format only its bytes and its times are known.
#[derive(Debug, Default)]
pub(super) struct Sound {
    encoding: Option<Encoding>,
    /// What the last header of a WAV file said.
    wav: Option<WavFormat>,
    playback: Option<Playback>,
    /// When the first came.
    pub(super) first_ns: Option<u64>,
    /// When the last came.
    pub(super) last_ns: Option<u64>,
    /// Its bytes, containers apart.
    pub(super) bytes: u64,
    /// A sample other than silence came.
    loud: bool,
}

impl Sound {
    /// Its format is this; what came before stays what it was.
    pub(super) fn know_pcm(&mut self, format: PcmFormat) {
        if self.bytes > 0 {
            return;
        }
        self.encoding = Some(format.encoding);
        self.playback = NonZeroU64::new(format.bytes_per_second()).map(Playback::new);
    }

    /// The format of what follows is that of a WAV file, by its header. Where files of several formats follow each other,
    /// the bytes of one do not last as long as those of another, and how long all of them last is not known.
    pub(super) fn know_wav(&mut self, format: WavFormat) {
        match self.wav.replace(format) {
            Some(known) if known == format => {}
            Some(_) => (self.encoding, self.playback) = (None, None),
            None => {
                self.encoding = format.pcm.map(|pcm| pcm.encoding);
                self.playback = format.bytes_per_second.map(Playback::new);
            }
        }
    }

    /// Samples, or pieces of an encoding that is not looked into, arrived.
    pub(super) fn piece(&mut self, at_ns: u64, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.first_ns.get_or_insert(at_ns);
        self.last_ns = Some(at_ns);
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        if let Some(playback) = &mut self.playback {
            playback.piece(at_ns, bytes.len() as u64);
        }
        self.loud = self.loud || self.encoding.is_some_and(|encoding| !encoding.is_silence(bytes));
    }

    /// How long it lasts; `None` where there is none or its format is not known.
    pub(super) fn duration_ns(&self) -> Option<u64> {
        self.heard().map(Playback::duration_ns)
    }

    /// How long a listener who starts at the first sound runs dry in all; `None` as above.
    pub(super) fn underrun_ns(&self) -> Option<u64> {
        self.heard().map(Playback::underrun_ns)
    }

    /// Whether there is some and all of it is silence, as far as its encoding is known.
    pub(super) fn is_silent(&self) -> bool {
        self.bytes > 0 && self.encoding.is_some() && !self.loud
    }

    fn heard(&self) -> Option<&Playback> {
        self.playback.as_ref().filter(|_| self.bytes > 0)
    }
}
