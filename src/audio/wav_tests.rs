//! WAV files as the specifications describe them, and as servers write them.

use std::num::NonZeroU64;

use super::{Encoding, PcmFormat, WavError, WavReader, read_wav};

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
