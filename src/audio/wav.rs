//! WAV files: a container that tells the format of the sound in it (Multimedia Programming Interface and Data
//! Specifications 1.0, "Waveform Audio File Format"), as they are stored and as servers stream them.

use std::num::NonZeroU64;
use std::ops::RangeInclusive;

use super::{Encoding, PcmFormat, duration_ns};

/// What a WAV header says of the samples that follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WavFormat {
    /// The format, where it is one that is named here; `None` for others, such as 24-bit or floating-point samples.
    pub pcm: Option<PcmFormat>,
    /// Bytes that last one second, known for other formats too; `None` where the header contradicts itself or cannot be true.
    pub bytes_per_second: Option<NonZeroU64>,
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
    /// The format is cut.
    #[error("no usable WAV file: its `fmt ` chunk is shorter than {FORMAT_LENGTH} bytes")]
    BadFormat,
    /// The file ends in front of its samples.
    #[error("no usable WAV file: it ends before its `data` chunk")]
    NoSamples,
}

/// A WAV file that was read as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WavFile<'a> {
    /// The format of the samples.
    pub format: WavFormat,
    /// The samples, without the container.
    pub samples: &'a [u8],
}

impl WavFile<'_> {
    /// How long the samples last, in nanoseconds; `None` where the header does not tell.
    pub fn duration_ns(&self) -> Option<u64> {
        self.format.bytes_per_second.map(|rate| duration_ns(self.samples.len() as u64, rate))
    }
}

/// Reads a whole WAV file, up to the end of its first samples: what a stored file holds behind them is not played either.
///
/// # Errors
///
/// [`WavError`] says what it is instead, or what it lacks.
pub fn read_wav(bytes: &[u8]) -> Result<WavFile<'_>, WavError> {
    let mut reader = WavReader::default();
    let mut rest = bytes;
    reader.header(&mut rest)?;
    match reader.part {
        Part::File => Err(WavError::NotWav),
        Part::Samples { format, left } => {
            let length = left.map_or(rest.len(), |left| left.min(rest.len() as u64) as usize);
            Ok(WavFile { format, samples: &rest[..length] })
        }
        _ => Err(WavError::NoSamples),
    }
}

/// Reads a WAV file while it arrives, cut anywhere, and those that follow it. It keeps a few bytes of the header and no samples.
#[derive(Debug, Clone, Default)]
pub struct WavReader {
    part: Part,
    /// The beginning of the part that is being read.
    kept: Vec<u8>,
    format: Option<WavFormat>,
    /// The size of the samples where 32 bits cannot hold it, by the chunk `ds64`.
    long_size: Option<u64>,
    /// The samples are over, but for what follows them.
    behind: bool,
    /// The samples may be followed by a byte that makes their number even.
    padded: bool,
}

/// What the next bytes belong to.
#[derive(Debug, Clone, Copy, Default)]
enum Part {
    /// The first twelve bytes.
    #[default]
    File,
    /// A chunk's name and size.
    Chunk,
    /// The format, and so many bytes behind it to be skipped.
    Format { skip: u64 },
    /// The sizes of 64 bits, and so many bytes behind them to be skipped.
    LongSizes { skip: u64 },
    /// So many bytes of a chunk that says nothing of duration.
    Other { left: u64 },
    /// Samples; `None`: until the end.
    Samples { format: WavFormat, left: Option<u64> },
    /// What follows the samples, directly or after another chunk.
    Behind { directly: bool },
    /// Nothing that can be read.
    Rest,
}

/// Bytes of a format that every kind has, and all that matters.
const FORMAT_LENGTH: u32 = 16;

/// Bytes of the two sizes that begin a `ds64` chunk: of the file, and of its samples (EBU Tech 3306, section 3.5).
const LONG_SIZES_LENGTH: u32 = 16;

/// Sample rates that sound is stored at, in samples a second; what is outside was not written by who knew.
const SAMPLE_RATES: RangeInclusive<u32> = 1_000..=768_000;

impl WavReader {
    /// Takes the next bytes, and hands on those of them that are samples, piece by piece and with their format.
    ///
    /// A data size of 0 or `0xFFFFFFFF`, which servers write that do not know it yet, means until the end; so does one that
    /// is never reached, and one behind which no chunk begins. Another file behind the samples goes on by its own header.
    ///
    /// # Errors
    ///
    /// [`WavError`], from which on nothing more is to be read.
    pub fn read(&mut self, mut bytes: &[u8], mut samples: impl FnMut(WavFormat, &[u8])) -> Result<(), WavError> {
        loop {
            match self.part {
                Part::Samples { format, left } => {
                    let taken = left.map_or(bytes.len(), |left| left.min(bytes.len() as u64) as usize);
                    let (piece, rest) = bytes.split_at(taken);
                    if !piece.is_empty() {
                        samples(format, piece);
                    }
                    bytes = rest;
                    match left.map(|left| left - taken as u64) {
                        Some(0) => self.end_samples(),
                        left => {
                            self.part = Part::Samples { format, left };
                            return Ok(());
                        }
                    }
                }
                Part::Behind { directly } => {
                    if bytes.is_empty() {
                        return Ok(());
                    }
                    if std::mem::take(&mut self.padded) && bytes[0] == 0 {
                        bytes = &bytes[1..];
                    }
                    let Some(name) = self.keep(&mut bytes, 4) else { return Ok(()) };
                    self.part = self.part_behind(&name, directly);
                    match self.part {
                        Part::Samples { format, .. } => samples(format, &name),
                        _ => self.kept = name,
                    }
                }
                Part::Rest => return Ok(()),
                _ => {
                    if !self.header(&mut bytes)? {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// The format, once the header has told it: of several files that of the last.
    pub fn format(&self) -> Option<WavFormat> {
        self.format
    }

    /// Reads what is no sound, up to what may be. False where the bytes end before.
    fn header(&mut self, bytes: &mut &[u8]) -> Result<bool, WavError> {
        loop {
            match self.part {
                Part::File => {
                    let Some(head) = self.keep(bytes, 12) else { return Ok(false) };
                    // RF64 is the same with sizes of 64 bits in a chunk of their own (EBU Tech 3306).
                    if !is_file(&head[..4]) || !head.ends_with(b"WAVE") {
                        return Err(WavError::NotWav);
                    }
                    *self = Self { part: Part::Chunk, ..Self::default() };
                }
                Part::Chunk => {
                    let Some(head) = self.keep(bytes, 8) else { return Ok(false) };
                    self.begin_chunk(&head)?;
                }
                Part::Format { skip } => {
                    let Some(format) = self.keep(bytes, FORMAT_LENGTH as usize) else { return Ok(false) };
                    self.format = Some(parse_format(&format));
                    self.part = Part::Other { left: skip };
                }
                Part::LongSizes { skip } => {
                    let Some(sizes) = self.keep(bytes, LONG_SIZES_LENGTH as usize) else { return Ok(false) };
                    self.long_size = Some(u64::from(number(&sizes, 12, 4)) << 32 | u64::from(number(&sizes, 8, 4)));
                    self.part = Part::Other { left: skip };
                }
                Part::Other { left } => {
                    let skipped = left.min(bytes.len() as u64);
                    *bytes = &bytes[skipped as usize..];
                    if skipped < left {
                        self.part = Part::Other { left: left - skipped };
                        return Ok(false);
                    }
                    self.part = if self.behind { Part::Behind { directly: false } } else { Part::Chunk };
                }
                Part::Samples { .. } | Part::Behind { .. } | Part::Rest => return Ok(true),
            }
        }
    }

    /// Decides by the head of a chunk how it is read.
    fn begin_chunk(&mut self, head: &[u8]) -> Result<(), WavError> {
        let size = number(head, 4, 4);
        // Chunks begin at even places.
        let padded = u64::from(size) + u64::from(size % 2);
        self.part = match &head[..4] {
            b"data" => {
                let size = if size == u32::MAX { self.long_size.unwrap_or(0) } else { u64::from(size) };
                self.padded = size % 2 == 1;
                let left = Some(size).filter(|size| ![0, u64::MAX].contains(size));
                Part::Samples { format: self.format.ok_or(WavError::NoFormat)?, left }
            }
            b"fmt " if size < FORMAT_LENGTH => return Err(WavError::BadFormat),
            b"fmt " => Part::Format { skip: padded - u64::from(FORMAT_LENGTH) },
            b"ds64" if size >= LONG_SIZES_LENGTH => Part::LongSizes { skip: padded - u64::from(LONG_SIZES_LENGTH) },
            _ => Part::Other { left: padded },
        };
        Ok(())
    }

    fn end_samples(&mut self) {
        self.behind = true;
        self.part = Part::Behind { directly: true };
    }

    /// What four bytes behind the samples begin. What is no chunk directly behind them shows that their size was wrong.
    fn part_behind(&self, name: &[u8], directly: bool) -> Part {
        let is_chunk = name.iter().all(|byte| matches!(byte, b' '..=b'~'));
        match self.format {
            _ if is_file(name) => Part::File,
            _ if is_chunk => Part::Chunk,
            Some(format) if directly => Part::Samples { format, left: None },
            _ => Part::Rest,
        }
    }

    /// Moves bytes over until `length` are kept; then gives them away.
    fn keep(&mut self, bytes: &mut &[u8], length: usize) -> Option<Vec<u8>> {
        let taken = length.saturating_sub(self.kept.len()).min(bytes.len());
        self.kept.extend_from_slice(&bytes[..taken]);
        *bytes = &bytes[taken..];
        (self.kept.len() == length).then(|| std::mem::take(&mut self.kept))
    }
}

/// Whether a file begins with this name.
fn is_file(name: &[u8]) -> bool {
    name == b"RIFF" || name == b"RF64"
}

fn parse_format(bytes: &[u8]) -> WavFormat {
    const PCM: u32 = 1;
    const ALAW: u32 = 6;
    const ULAW: u32 = 7;
    let (tag, channels, sample_rate) = (number(bytes, 0, 2), number(bytes, 2, 2), number(bytes, 4, 4));
    let (byte_rate, block, bits) = (number(bytes, 8, 4), number(bytes, 12, 2), number(bytes, 14, 2));
    let encoding = match (tag, bits) {
        (PCM, 16) => Some(Encoding::Pcm16),
        (ULAW, 8) => Some(Encoding::G711Ulaw),
        (ALAW, 8) => Some(Encoding::G711Alaw),
        _ => None,
    };
    let pcm = encoding.map(|encoding| PcmFormat { encoding, sample_rate, channels: channels as u16 });
    // The same is said several times over. Where two of it differ nobody can tell which is true; the rate of compressed
    // sound is an average, and no measure either.
    let computed = u64::from(sample_rate) * u64::from(block);
    let is_true = channels > 0
        && SAMPLE_RATES.contains(&sample_rate)
        && computed == u64::from(byte_rate)
        && pcm.is_none_or(|pcm| pcm.bytes_per_second() == computed);
    WavFormat { pcm: pcm.filter(|_| is_true), bytes_per_second: NonZeroU64::new(computed).filter(|_| is_true) }
}

/// A little-endian number of `length` bytes.
fn number(bytes: &[u8], at: usize, length: usize) -> u32 {
    bytes[at..at + length].iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte))
}
