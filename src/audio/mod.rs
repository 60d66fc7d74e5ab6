//! Sound as far as its duration is concerned: how many bytes of a format last how long.

use std::fmt;

/// How long so many bytes last at a rate above zero, in nanoseconds.
fn duration_ns(bytes: u64, bytes_per_second: u64) -> u64 {
    u64::try_from(u128::from(bytes) * 1_000_000_000 / u128::from(bytes_per_second.max(1))).unwrap_or(u64::MAX)
}

/// How one sample of sound is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// 16-bit signed integers.
    Pcm16,
    /// 8-bit samples after ITU-T G.711, μ-law.
    G711Ulaw,
    /// 8-bit samples after ITU-T G.711, A-law.
    G711Alaw,
}

impl Encoding {
    /// Bytes of one sample of one channel.
    pub fn bytes_per_sample(self) -> u64 {
        match self {
            Self::Pcm16 => 2,
            Self::G711Ulaw | Self::G711Alaw => 1,
        }
    }
}

/// The format of sound that comes without a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PcmFormat {
    /// How one sample is written.
    pub encoding: Encoding,
    /// Samples per second of each channel; above zero.
    pub sample_rate: u32,
    /// Channels, interleaved; above zero.
    pub channels: u16,
}

impl PcmFormat {
    /// Bytes that last one second.
    pub fn bytes_per_second(&self) -> u64 {
        self.bytes_per_frame() * u64::from(self.sample_rate)
    }

    /// Bytes of one sample of every channel.
    pub fn bytes_per_frame(&self) -> u64 {
        self.encoding.bytes_per_sample() * u64::from(self.channels)
    }

    /// How long so many bytes last, in nanoseconds.
    pub fn duration_ns(&self, bytes: u64) -> u64 {
        duration_ns(bytes, self.bytes_per_second())
    }
}

impl fmt::Display for PcmFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let encoding = match self.encoding {
            Encoding::Pcm16 => "pcm16",
            Encoding::G711Ulaw => "g711_ulaw",
            Encoding::G711Alaw => "g711_alaw",
        };
        write!(f, "{encoding} of {} Hz with {} channel(s)", self.sample_rate, self.channels)
    }
}
