//! Any bytes as a WAV file: the same samples and the same format whether it is read as a whole or as it arrives.
#![no_main]

use goodput::audio::{WavError, WavReader, read_wav};
use libfuzzer_sys::fuzz_target;

/// Bytes in front of the file that say how it is cut; `seeds.py` writes as many.
const CUTS: usize = 4;

fuzz_target!(|input: &[u8]| {
    let Some((cuts, file)) = input.split_at_checked(CUTS) else { return };
    let whole = read_wav(file);
    let mut reader = WavReader::default();
    match (read_cut(&mut reader, cuts, file), whole) {
        (Ok(samples), Ok(wav)) => {
            assert_eq!(samples, wav.samples);
            let format = reader.format().map(|format| (format.pcm, format.bytes_per_second));
            assert_eq!(format, Some((wav.format, wav.bytes_per_second)));
            let seconds = wav.duration_ns as f64 / 1e9;
            let exact = wav.samples.len() as f64 / wav.bytes_per_second.get() as f64;
            assert!((seconds - exact).abs() <= 1e-9 * (1.0 + exact), "{seconds} s instead of {exact} s");
        }
        // A file that ends too early is told from one that goes on only by its end.
        (Ok(samples), Err(WavError::NotWav | WavError::NoSamples)) => assert!(samples.is_empty()),
        (Err(cut), Err(whole)) => assert_eq!(cut, whole),
        (cut, whole) => panic!("cut {cut:?}, whole {whole:?}"),
    }
});

fn read_cut(reader: &mut WavReader, cuts: &[u8], file: &[u8]) -> Result<Vec<u8>, WavError> {
    let mut lengths = cuts.iter().map(|length| 1 + usize::from(*length)).cycle();
    let (mut rest, mut samples) = (file, Vec::new());
    while !rest.is_empty() {
        let (piece, left) = rest.split_at(lengths.next().unwrap_or(1).min(rest.len()));
        samples.extend_from_slice(reader.samples(piece)?);
        rest = left;
    }
    Ok(samples)
}
