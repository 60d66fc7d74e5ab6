//! Ratios as people write them: a plain decimal number such as `0.35`, kept in parts per million.

use super::{UnitError, format_scaled, parse_scaled};

/// Parts per million of one.
const ONE: u64 = 1_000_000;

/// Reads a plain decimal number, exact to a part per million.
///
/// # Errors
/// When it is no number, negative, or finer than a part per million.
pub fn parse_ratio(text: &str) -> Result<u64, UnitError> {
    parse_scaled(text.trim(), ONE).ok_or_else(|| UnitError {
        written: text.to_owned(),
        expected: "a ratio; write a plain number with at most six decimals, as in `0.5`",
    })
}

/// Writes a ratio exactly.
pub fn format_ratio(ppm: u64) -> String {
    format_scaled(ppm, ONE)
}

/// Writes a measured ratio for a person: three significant digits, down to a part per million.
pub fn format_measured_ratio(ppm: u64) -> String {
    let value = ppm as f64 / ONE as f64;
    match ppm {
        99_950_000.. => format!("{value:.0}"),
        9_995_000.. => format!("{value:.1}"),
        999_500.. => format!("{value:.2}"),
        99_950.. => format!("{value:.3}"),
        9_995.. => format!("{value:.4}"),
        _ => format_ratio(ppm),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_read_exactly_and_written_as_they_were_read() {
        for (text, ppm) in [("0.5", 500_000), ("1", 1_000_000), ("12.25", 12_250_000), ("0.000001", 1), ("0", 0)] {
            assert_eq!(parse_ratio(text), Ok(ppm), "{text}");
            assert_eq!(format_ratio(ppm), text);
        }
        for text in ["", "-1", "0.0000001", "50%", "500ms", "1e3", "NaN", "inf", "99999999999999999999"] {
            assert!(parse_ratio(text).is_err(), "{text}");
        }
    }

    #[test]
    fn measured_ratios_have_three_digits() {
        for (ppm, text) in [
            (0, "0"),
            (7, "0.000007"),
            (12_345, "0.0123"),
            (350_000, "0.350"),
            (352_941, "0.353"),
            (999_499, "0.999"),
            (999_500, "1.00"),
            (1_234_567, "1.23"),
            (12_345_678, "12.3"),
            (123_456_789, "123"),
        ] {
            assert_eq!(format_measured_ratio(ppm), text);
        }
    }
}
