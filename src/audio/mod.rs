//! Sound as far as its duration is concerned: how many bytes of a format last how long.

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
        self.encoding.bytes_per_sample() * u64::from(self.sample_rate) * u64::from(self.channels)
    }
}
