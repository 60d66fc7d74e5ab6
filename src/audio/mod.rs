//! Sound as far as its duration is concerned: how many bytes of a format last how long, what a container says of them, and
//! whether a listener would have run dry.

mod playback;
mod wav;
#[cfg(test)]
mod wav_tests;

use std::fmt;
use std::num::NonZeroU64;

pub use playback::Playback;
pub use wav::{WavError, WavFile, WavFormat, WavReader, read_wav};

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

    /// Whether all of these bytes belong to samples of amplitude zero. G.711 writes zero with either sign, as the two codes
    /// of its smallest step (tables 1a and 2a of the recommendation).
    pub fn is_silence(self, bytes: &[u8]) -> bool {
        let zeros: [u8; 2] = match self {
            Self::Pcm16 => [0x00, 0x00],
            Self::G711Ulaw => [0xFF, 0x7F],
            Self::G711Alaw => [0xD5, 0x55],
        };
        bytes.iter().all(|byte| zeros.contains(byte))
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

    /// How long so many bytes last, in nanoseconds, rounded down.
    pub fn duration_ns(&self, bytes: u64) -> u64 {
        NonZeroU64::new(self.bytes_per_second()).map_or(0, |rate| duration_ns(bytes, rate))
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

/// How long `bytes` of sound last, in nanoseconds, rounded down.
pub fn duration_ns(bytes: u64, bytes_per_second: NonZeroU64) -> u64 {
    let duration = u128::from(bytes) * 1_000_000_000 / u128::from(bytes_per_second.get());
    u64::try_from(duration).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_last_as_long_as_their_format_says() {
        for (encoding, sample_rate, channels, bytes, expected) in [
            (Encoding::Pcm16, 24_000, 1, 4_800, 100_000_000),
            (Encoding::Pcm16, 16_000, 2, 64_000, 1_000_000_000),
            (Encoding::G711Ulaw, 8_000, 1, 1, 125_000),
            (Encoding::G711Alaw, 8_000, 2, 8_000, 500_000_000),
            (Encoding::Pcm16, 44_100, 1, 1, 11_337),
            (Encoding::Pcm16, 1, 1, u64::MAX, u64::MAX),
        ] {
            let rate = NonZeroU64::new(PcmFormat { encoding, sample_rate, channels }.bytes_per_second());
            assert_eq!(rate.map(|rate| duration_ns(bytes, rate)), Some(expected), "{encoding:?} {sample_rate}");
        }
    }

    #[test]
    fn silence_is_amplitude_zero_in_every_encoding() {
        for (encoding, bytes, expected) in [
            (Encoding::Pcm16, &[0, 0, 0][..], true),
            (Encoding::Pcm16, &[0, 0, 1, 0], false),
            (Encoding::G711Ulaw, &[0xFF, 0x7F], true),
            (Encoding::G711Ulaw, &[0x00], false),
            (Encoding::G711Alaw, &[0xD5, 0x55], true),
            (Encoding::G711Alaw, &[0xFF], false),
        ] {
            assert_eq!(encoding.is_silence(bytes), expected, "{encoding:?} {bytes:?}");
        }
    }
}
