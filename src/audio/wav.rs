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

#[cfg(test)]
mod tests {
    use super::*;

    fn header(tag: u16, channels: u16, rate: u32, byte_rate: u32, bits: u16) -> Vec<u8> {
        let mut format = Vec::new();
        format.extend(tag.to_le_bytes());
        format.extend(channels.to_le_bytes());
        format.extend(rate.to_le_bytes());
        format.extend(byte_rate.to_le_bytes());
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
            let duration_ns = Some(samples as u64 * 1_000_000_000 / 48_000);
            assert_eq!((read.samples.len(), read.duration_ns()), (samples, duration_ns));
            let expected = PcmFormat { encoding: Encoding::Pcm16, sample_rate: 24_000, channels: 1 };
            assert_eq!(read.format.pcm, Some(expected), "{size}");
        }
    }

    /// What is sound in a file that comes in pieces of any one length, with the bytes of a second.
    #[track_caller]
    fn check_pieces(file: &[u8], expected: &[(&[u8], u64)]) {
        for length in 1..=file.len() {
            let mut reader = WavReader::default();
            let mut heard: Vec<(Vec<u8>, u64)> = Vec::new();
            for piece in file.chunks(length) {
                let read = reader.read(piece, |format, samples| {
                    assert!(!samples.is_empty());
                    let rate = format.bytes_per_second.map_or(0, NonZeroU64::get);
                    match heard.last_mut() {
                        Some((all, of)) if *of == rate => all.extend_from_slice(samples),
                        _ => heard.push((samples.to_vec(), rate)),
                    }
                });
                assert_eq!(read, Ok(()), "pieces of {length} bytes");
            }
            let heard: Vec<_> = heard.iter().map(|(samples, rate)| (samples.as_slice(), *rate)).collect();
            assert_eq!(heard, expected, "pieces of {length} bytes");
        }
    }

    #[test]
    fn what_follows_the_declared_samples_is_told_by_its_beginning() {
        let other = wav(&[chunk(b"fmt ", 16, &header(1, 1, 16_000, 32_000, 16)), chunk(b"data", 4, b"more")]);
        let list = chunk(b"LIST", 3, b"abc\0");
        let same = speech(4, b"more");
        let join = |parts: &[&[u8]]| parts.concat();
        // Files one after another, with chunks between them, at even places or not.
        check_pieces(&join(&[&speech(6, b"sample"), &same]), &[(b"samplemore", 48_000)]);
        check_pieces(&join(&[&speech(6, b"sample"), &list, &same, &list]), &[(b"samplemore", 48_000)]);
        check_pieces(&join(&[&speech(6, b"sample"), &other]), &[(b"sample", 48_000), (b"more", 32_000)]);
        check_pieces(&join(&[&speech(5, b"sampl"), b"\0", &list, &same]), &[(b"samplmore", 48_000)]);
        check_pieces(&join(&[&speech(5, b"sampl"), &same]), &[(b"samplmore", 48_000)]);
        // A second chunk of samples is played by others too.
        check_pieces(&join(&[&speech(6, b"sample"), &chunk(b"data", 4, b"more")]), &[(b"samplemore", 48_000)]);
        // The size was wrong.
        let loud = [b"sample", &[0x01, 0x80, b'a', b'b', b'c', b'd'][..], b"RIFF"].concat();
        check_pieces(&speech(6, &loud), &[(&loud, 48_000)]);
        // Behind a chunk nobody can tell.
        check_pieces(&join(&[&speech(6, b"sample"), &list, &[0xFF; 9]]), &[(b"sample", 48_000)]);
        check_pieces(&join(&[&speech(6, b"sample"), b"\0"]), &[(b"sample", 48_000)]);
        // A stored file ends with its first samples, as players see it.
        assert_eq!(read_wav(&join(&[&speech(6, b"sample"), &same])).map(|file| file.samples), Ok(&b"sample"[..]));
        let foreign = join(&[&speech(6, b"sample"), b"RIFF\0\0\0\0AVI "]);
        assert_eq!(WavReader::default().read(&foreign, |_, _| {}), Err(WavError::NotWav));
    }

    #[test]
    fn a_long_file_tells_its_size_in_a_chunk_of_its_own() {
        let file = |declared: u32, long: u64, data: &[u8]| {
            let sizes = [0xFFFF_u64.to_le_bytes(), long.to_le_bytes(), 2_u64.to_le_bytes()].concat();
            let ds64 = chunk(b"ds64", 28, &[&sizes[..], &[0; 4]].concat());
            let format = chunk(b"fmt ", 16, &header(1, 1, 24_000, 48_000, 16));
            [&b"RF64\xff\xff\xff\xffWAVE"[..], &ds64, &format, &chunk(b"data", declared, data)].concat()
        };
        check_pieces(&file(u32::MAX, 6, b"sampleLIST\x02\0\0\0xx"), &[(b"sample", 48_000)]);
        check_pieces(&file(u32::MAX, 1 << 40, b"sample"), &[(b"sample", 48_000)]);
        check_pieces(&file(u32::MAX, 0, b"sample"), &[(b"sample", 48_000)]);
        check_pieces(&file(6, 99, b"sampleLIST\x02\0\0\0xx"), &[(b"sample", 48_000)]);
        assert_eq!(read_wav(&file(u32::MAX, 4, b"sampleLIST")).map(|file| file.samples), Ok(&b"samp"[..]));
    }

    #[test]
    fn a_file_may_be_cut_anywhere_and_hold_other_chunks() {
        let file = wav(&[
            chunk(b"JUNK", 3, b"abc\0"),
            chunk(b"fmt ", 18, &[&header(7, 2, 8_000, 16_000, 8)[..], &[0, 0]].concat()),
            chunk(b"fact", 4, &[0; 4]),
            chunk(b"data", 6, b"sample"),
            chunk(b"LIST", 2, b"xx"),
        ]);
        check_pieces(&file, &[(b"sample", 16_000)]);
    }

    #[test]
    fn formats_without_a_name_still_tell_their_rate_and_contradictions_none() {
        let with_block = |block: u16| {
            let mut format = header(1, 1, 24_000, 48_000, 16);
            format[12..14].copy_from_slice(&block.to_le_bytes());
            format
        };
        for (format, named, expected) in [
            (header(1, 1, 48_000, 144_000, 24), false, Some(144_000)),
            (header(1, 1, 8_000, 8_000, 8), false, Some(8_000)),
            (header(3, 2, 16_000, 128_000, 32), false, Some(128_000)),
            (header(0xFFFE, 1, 16_000, 32_000, 16), false, Some(32_000)),
            (header(1, 1, 1_000, 2_000, 16), true, Some(2_000)),
            (header(6, 2, 768_000, 1_536_000, 8), true, Some(1_536_000)),
            // Compressed: the rate is an average.
            (header(0x11, 1, 22_050, 11_155, 4), false, None),
            (header(0x55, 1, 22_050, 0, 0), false, None),
            (header(1, 1, 999, 1_998, 16), false, None),
            (header(1, 1, 768_001, 1_536_002, 16), false, None),
            (header(1, 1, 24_000, 0, 16), false, None),
            (header(1, 1, 24_000, 24_000, 16), false, None),
            (header(1, 0, 22_050, 44_100, 16), false, None),
            (header(1, 1, 0, 0, 16), false, None),
            (header(1, 1, u32::MAX, 2, 16), false, None),
            (with_block(0), false, None),
            (with_block(4), false, None),
        ] {
            let file = wav(&[chunk(b"fmt ", 16, &format), chunk(b"data", 0, &[1; 100])]);
            let read = read_wav(&file).unwrap();
            let found = (read.format.pcm.is_some(), read.format.bytes_per_second.map(NonZeroU64::get));
            assert_eq!((found, read.samples.len()), ((named, expected), 100), "{format:?}");
            assert_eq!(read.duration_ns(), expected.map(|rate| 100 * 1_000_000_000 / rate), "{format:?}");
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
