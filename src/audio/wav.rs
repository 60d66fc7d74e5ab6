//! WAV files: a container that tells the format of the sound in it (Multimedia Programming Interface and Data
//! Specifications 1.0, "Waveform Audio File Format"), as they are stored and as servers stream them.

use std::num::NonZeroU64;

use super::{Encoding, PcmFormat, duration_ns};

/// What a WAV header says of the samples that follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WavFormat {
    /// The format, where it is one that is named here; `None` for others, such as 24-bit or floating-point samples.
    pub pcm: Option<PcmFormat>,
    /// Bytes that last one second; known for other formats too.
    pub bytes_per_second: NonZeroU64,
}

/// Why bytes are no readable WAV file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WavError {
    /// Another kind of file.
    #[error("no WAV file: it does not begin with `RIFF` and `WAVE`")]
    NotWav,
    /// The samples come without a format.
    #[error("no usable WAV file: no `fmt ` chunk comes before its samples")]
    NoFormat,
    /// The format has no channels, no rate, or no size of a sample.
    #[error("no usable WAV file: its `fmt ` chunk is too short, or says 0 channels, samples or bytes per second")]
    BadFormat,
    /// The file ends in front of its samples.
    #[error("no usable WAV file: it ends before its `data` chunk")]
    NoSamples,
}

/// A WAV file that was read as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WavFile<'a> {
    /// The format of the samples, where it is one that is named here.
    pub format: Option<PcmFormat>,
    /// Bytes that last one second.
    pub bytes_per_second: NonZeroU64,
    /// How long the samples last, in nanoseconds.
    pub duration_ns: u64,
    /// The samples, without the container.
    pub samples: &'a [u8],
}

/// Reads a whole WAV file.
///
/// # Errors
///
/// [`WavError`] says what it is instead, or what it lacks.
pub fn read_wav(bytes: &[u8]) -> Result<WavFile<'_>, WavError> {
    let mut reader = WavReader::default();
    let samples = reader.samples(bytes)?;
    let format = match reader.part {
        Part::File => return Err(WavError::NotWav),
        Part::Samples { .. } | Part::Rest => reader.format.ok_or(WavError::NoFormat)?,
        Part::Chunk | Part::Format { .. } | Part::Other { .. } => return Err(WavError::NoSamples),
    };
    let duration_ns = duration_ns(samples.len() as u64, format.bytes_per_second);
    Ok(WavFile { format: format.pcm, bytes_per_second: format.bytes_per_second, duration_ns, samples })
}

/// Reads a WAV file while it arrives, cut anywhere. It keeps a few bytes of the header and no samples.
#[derive(Debug, Clone, Default)]
pub struct WavReader {
    part: Part,
    /// The beginning of the part that is being read.
    kept: Vec<u8>,
    format: Option<WavFormat>,
}

/// What the next bytes belong to.
#[derive(Debug, Clone, Copy, Default)]
enum Part {
    /// The first twelve bytes.
    #[default]
    File,
    /// A chunk's name and size.
    Chunk,
    /// The format: so many bytes to be read, and so many behind them to be skipped.
    Format { length: usize, skip: u64 },
    /// So many bytes of a chunk that says nothing of duration.
    Other { left: u64 },
    /// Samples; `None`: until the end.
    Samples { left: Option<u64> },
    /// What follows the samples.
    Rest,
}

/// Bytes of a format that every kind has, and all that matters.
const FORMAT_LENGTH: u32 = 16;

impl WavReader {
    /// Takes the next bytes of the file, and gives back those of them that are samples. A data size of 0 or `0xFFFFFFFF`, which
    /// servers write that do not know it yet, means until the end; so does one that is never reached.
    ///
    /// # Errors
    ///
    /// [`WavError`], from which on nothing more is to be read.
    pub fn samples<'b>(&mut self, mut bytes: &'b [u8]) -> Result<&'b [u8], WavError> {
        loop {
            match self.part {
                Part::File => {
                    let Some(head) = self.keep(&mut bytes, 12) else { return Ok(&[]) };
                    // RF64 is the same with sizes of 64 bits in a chunk of their own (EBU Tech 3306).
                    if !(head.starts_with(b"RIFF") || head.starts_with(b"RF64")) || !head.ends_with(b"WAVE") {
                        return Err(WavError::NotWav);
                    }
                    self.part = Part::Chunk;
                }
                Part::Chunk => {
                    let Some(head) = self.keep(&mut bytes, 8) else { return Ok(&[]) };
                    self.part = chunk(&head, self.format.is_some())?;
                }
                Part::Format { length, skip } => {
                    let Some(format) = self.keep(&mut bytes, length) else { return Ok(&[]) };
                    self.format = Some(parse_format(&format).ok_or(WavError::BadFormat)?);
                    self.part = Part::Other { left: skip };
                }
                Part::Other { left } => {
                    let skipped = left.min(bytes.len() as u64);
                    bytes = &bytes[skipped as usize..];
                    if skipped < left {
                        self.part = Part::Other { left: left - skipped };
                        return Ok(&[]);
                    }
                    self.part = Part::Chunk;
                }
                Part::Samples { left: None } => return Ok(bytes),
                Part::Samples { left: Some(left) } => {
                    let taken = left.min(bytes.len() as u64);
                    self.part = if taken == left { Part::Rest } else { Part::Samples { left: Some(left - taken) } };
                    return Ok(&bytes[..taken as usize]);
                }
                Part::Rest => return Ok(&[]),
            }
        }
    }

    /// The format, once the header has told it.
    pub fn format(&self) -> Option<WavFormat> {
        self.format
    }

    /// Moves bytes over until `length` are kept; then gives them away.
    fn keep(&mut self, bytes: &mut &[u8], length: usize) -> Option<Vec<u8>> {
        let taken = length.saturating_sub(self.kept.len()).min(bytes.len());
        self.kept.extend_from_slice(&bytes[..taken]);
        *bytes = &bytes[taken..];
        (self.kept.len() == length).then(|| std::mem::take(&mut self.kept))
    }
}

/// What follows the head of a chunk.
fn chunk(head: &[u8], has_format: bool) -> Result<Part, WavError> {
    let size = number(head, 4, 4);
    match &head[..4] {
        b"data" if !has_format => Err(WavError::NoFormat),
        b"data" => Ok(Part::Samples { left: Some(u64::from(size)).filter(|_| size != 0 && size != u32::MAX) }),
        b"fmt " if size < FORMAT_LENGTH => Err(WavError::BadFormat),
        b"fmt " => Ok(Part::Format { length: FORMAT_LENGTH as usize, skip: padded(size) - u64::from(FORMAT_LENGTH) }),
        _ => Ok(Part::Other { left: padded(size) }),
    }
}

/// Chunks begin at even places.
fn padded(size: u32) -> u64 {
    u64::from(size) + u64::from(size % 2)
}

fn parse_format(bytes: &[u8]) -> Option<WavFormat> {
    const PCM: u32 = 1;
    const FLOAT: u32 = 3;
    const ALAW: u32 = 6;
    const ULAW: u32 = 7;
    const EXTENSIBLE: u32 = 0xFFFE;
    let (tag, channels, sample_rate) = (number(bytes, 0, 2), number(bytes, 2, 2), number(bytes, 4, 4));
    let (average, bits) = (number(bytes, 8, 4), number(bytes, 14, 2));
    if channels == 0 || sample_rate == 0 {
        return None;
    }
    let encoding = match (tag, bits) {
        (PCM, 16) => Some(Encoding::Pcm16),
        (ULAW, 8) => Some(Encoding::G711Ulaw),
        (ALAW, 8) => Some(Encoding::G711Alaw),
        _ => None,
    };
    let pcm = encoding.map(|encoding| PcmFormat { encoding, sample_rate, channels: channels as u16 });
    // Of plain samples the size is certain; the average that the header states is left out by some writers. Of compressed
    // sound there is nothing else.
    let plain = matches!(tag, PCM | FLOAT | EXTENSIBLE)
        .then(|| u64::from(sample_rate) * u64::from(channels) * u64::from(bits.div_ceil(8)));
    let computed = pcm.map(|pcm| pcm.bytes_per_second()).or(plain).filter(|rate| *rate > 0);
    let bytes_per_second = NonZeroU64::new(computed.unwrap_or(u64::from(average)))?;
    Some(WavFormat { pcm, bytes_per_second })
}

/// A little-endian number of `length` bytes.
fn number(bytes: &[u8], at: usize, length: usize) -> u32 {
    bytes[at..at + length].iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(tag: u16, channels: u16, rate: u32, average: u32, bits: u16) -> Vec<u8> {
        let mut format = Vec::new();
        format.extend(tag.to_le_bytes());
        format.extend(channels.to_le_bytes());
        format.extend(rate.to_le_bytes());
        format.extend(average.to_le_bytes());
        format.extend((channels * bits.div_ceil(8)).to_le_bytes());
        format.extend(bits.to_le_bytes());
        format
    }

    fn chunk(name: &[u8; 4], size: u32, data: &[u8]) -> Vec<u8> {
        [&name[..], &size.to_le_bytes(), data].concat()
    }

    fn wav(chunks: &[Vec<u8>]) -> Vec<u8> {
        [&b"RIFF\xff\xff\xff\xffWAVE"[..], &chunks.concat()].concat()
    }

    /// 16-bit mono at 24 kHz with this declared data size.
    fn speech(size: u32, data: &[u8]) -> Vec<u8> {
        wav(&[chunk(b"fmt ", 16, &header(1, 1, 24_000, 48_000, 16)), chunk(b"data", size, data)])
    }

    #[test]
    fn only_samples_are_sound_whatever_size_is_declared() {
        let data = [7; 480];
        let after = [&data[..], b"LIST\x04\x00\x00\x00abcd"].concat();
        for (size, data, samples) in [
            (480, &data[..], 480),
            (480, &after, 480),
            (0, &data, 480),
            (u32::MAX, &data, 480),
            (0x7FFF_FFFF, &data, 480),
            (481, &data, 480),
            (0, &[], 0),
            (2, &data, 2),
        ] {
            let file = speech(size, data);
            let read = read_wav(&file).unwrap();
            assert_eq!((read.samples.len(), read.duration_ns), (samples, samples as u64 * 1_000_000_000 / 48_000));
            let expected = PcmFormat { encoding: Encoding::Pcm16, sample_rate: 24_000, channels: 1 };
            assert_eq!(read.format, Some(expected), "{size}");
        }
    }

    #[test]
    fn a_file_may_be_cut_anywhere_and_hold_other_chunks() {
        let file = wav(&[
            chunk(b"JUNK", 3, b"abc\0"),
            chunk(b"fmt ", 18, &[&header(7, 2, 8_000, 0, 8)[..], &[0, 0]].concat()),
            chunk(b"fact", 4, &[0; 4]),
            chunk(b"data", 6, b"sample"),
            chunk(b"LIST", 2, b"xx"),
        ]);
        for length in 1..file.len() {
            let mut reader = WavReader::default();
            let mut samples = Vec::new();
            for piece in file.chunks(length) {
                samples.extend_from_slice(reader.samples(piece).unwrap());
            }
            assert_eq!(samples, b"sample", "pieces of {length} bytes");
            assert_eq!(reader.format().map(|format| format.bytes_per_second.get()), Some(16_000));
        }
    }

    #[test]
    fn formats_without_a_name_still_tell_their_rate() {
        for (tag, channels, rate, average, bits, expected) in [
            (1, 1, 48_000, 0, 24, Some(144_000)),
            (1, 1, 8_000, 8_000, 8, Some(8_000)),
            (3, 2, 16_000, 1, 32, Some(128_000)),
            (0xFFFE, 1, 16_000, 32_000, 16, Some(32_000)),
            (0x11, 1, 22_050, 11_155, 4, Some(11_155)),
            (0x55, 1, 22_050, 0, 0, None),
            (1, 0, 22_050, 44_100, 16, None),
            (1, 1, 0, 44_100, 16, None),
        ] {
            let format = header(tag, channels, rate, average, bits);
            let file = wav(&[chunk(b"fmt ", 16, &format), chunk(b"data", 0, &[1; 100])]);
            let read = read_wav(&file).map(|read| (read.format, read.bytes_per_second.get()));
            assert_eq!(read, expected.map(|rate| (None, rate)).ok_or(WavError::BadFormat), "{tag} {bits}");
        }
    }

    #[test]
    fn what_is_no_wav_file_is_told_why() {
        let format = chunk(b"fmt ", 16, &header(1, 1, 24_000, 48_000, 16));
        for (file, expected) in [
            (Vec::new(), WavError::NotWav),
            (b"RIFF".to_vec(), WavError::NotWav),
            (b"RIFF\0\0\0\0AVI LIST".to_vec(), WavError::NotWav),
            (b"ID3\x04 and so on and on".to_vec(), WavError::NotWav),
            (wav(&[]), WavError::NoSamples),
            (wav(std::slice::from_ref(&format)), WavError::NoSamples),
            (wav(&[chunk(b"JUNK", u32::MAX, b"x"), format]), WavError::NoSamples),
            (wav(&[chunk(b"data", 2, b"xx")]), WavError::NoFormat),
            (wav(&[chunk(b"fmt ", 14, &[1; 14])]), WavError::BadFormat),
        ] {
            assert_eq!(read_wav(&file), Err(expected), "{file:?}");
        }
    }
}
