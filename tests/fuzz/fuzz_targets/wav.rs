//! Any bytes as a WAV file: the same samples and the same format whether it is read as a whole or as it arrives. What
//! arrives behind the samples of a file may go on with another.
#![no_main]

use goodput::audio::{WavError, WavFormat, WavReader, read_wav};
use libfuzzer_sys::fuzz_target;

/// Bytes in front of the file that say how it is cut; `seeds.py` writes as many.
const CUTS: usize = 4;

fuzz_target!(|input: &[u8]| {
    let Some((cuts, file)) = input.split_at_checked(CUTS) else { return };
    let whole = read_wav(file);
    let mut reader = WavReader::default();
    match (read_cut(&mut reader, cuts, file), whole) {
        (Ok(samples), Ok(wav)) => {
            let heard: Vec<u8> = samples.iter().flat_map(|(_, piece)| piece).copied().collect();
            assert!(heard.starts_with(wav.samples));
            assert!(samples.first().is_none_or(|(format, _)| *format == wav.format));
            if let (Some(duration_ns), Some(rate)) = (wav.duration_ns(), wav.format.bytes_per_second) {
                let (seconds, exact) = (duration_ns as f64 / 1e9, wav.samples.len() as f64 / rate.get() as f64);
                assert!((seconds - exact).abs() <= 1e-9 * (1.0 + exact), "{seconds} s instead of {exact} s");
            }
        }
        // A file that ends too early is told from one that goes on only by its end.
        (Ok(samples), Err(WavError::NotWav | WavError::NoSamples)) => assert!(samples.is_empty()),
        (Err(cut), Err(whole)) => assert_eq!(cut, whole),
        // A second file behind the samples is broken, or nothing but its beginning.
        (Err(_), Ok(_)) => {}
        (cut, whole) => panic!("cut {cut:?}, whole {whole:?}"),
    }
});

fn read_cut(reader: &mut WavReader, cuts: &[u8], file: &[u8]) -> Result<Vec<(WavFormat, Vec<u8>)>, WavError> {
    let mut lengths = cuts.iter().map(|length| 1 + usize::from(*length)).cycle();
    let (mut rest, mut samples) = (file, Vec::new());
    while !rest.is_empty() {
        let (piece, left) = rest.split_at(lengths.next().unwrap_or(1).min(rest.len()));
        reader.read(piece, |format, piece| samples.push((format, piece.to_vec())))?;
        rest = left;
    }
    Ok(samples)
}
