//! Durations as people write them: `75ms`, `3s`, `1.5m`.

use std::time::Duration;

use super::{UnitError, format_scaled, parse_scaled, split_unit};

/// The units a duration can be written in, with their length in nanoseconds.
const UNITS: [(&str, u64); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Reads a duration: a decimal number and one of `ns`, `us`, `ms`, `s`, `m`, `h`. It is exact to the nanosecond.
///
/// # Errors
/// When the unit is missing or unknown, the number is none, negative or finer than a nanosecond.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let (digits, unit) = split_unit(text.trim());
    UNITS
        .iter()
        .find(|(name, _)| *name == unit)
        .and_then(|(_, scale)| parse_scaled(digits, *scale))
        .map(Duration::from_nanos)
        .ok_or_else(|| UnitError {
            written: text.to_owned(),
            expected: "a duration; write a number and one of ns, us, ms, s, m, h, as in `75ms` or `3s`",
        })
}

/// Writes a duration exactly, in the largest unit that needs no more than three decimals.
pub fn format_duration(duration: Duration) -> String {
    let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    for (unit, scale) in [("h", 3_600_000_000_000), ("m", 60_000_000_000)] {
        if nanos >= scale && nanos % scale == 0 {
            return format!("{}{unit}", nanos / scale);
        }
    }
    let (unit, scale) = match nanos {
        0 => return "0s".to_owned(),
        1_000_000_000.. => ("s", 1_000_000_000),
        1_000_000.. => ("ms", 1_000_000),
        1_000.. => ("us", 1_000),
        _ => ("ns", 1),
    };
    format!("{}{unit}", format_scaled(nanos, scale))
}

/// The next longer duration that a person would write: whole seconds, from ten minutes on whole minutes.
pub fn rounded_up(duration: Duration) -> Duration {
    let seconds = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
    Duration::from_secs(if seconds < 600 { seconds } else { seconds.next_multiple_of(60) })
}

/// Writes measured nanoseconds for a person: three significant digits and a unit.
pub fn format_nanos(nanos: u64) -> String {
    let (unit, scale) = match nanos {
        0 => return "0 ms".to_owned(),
        999_500_000.. => ("s", 1e9),
        999_500.. => ("ms", 1e6),
        _ => ("µs", 1e3),
    };
    let value = nanos as f64 / scale;
    match value {
        99.95.. => format!("{value:.0} {unit}"),
        9.995.. => format!("{value:.1} {unit}"),
        _ => format!("{value:.2} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_exactly_and_refused_without_unit() {
        for (text, nanos) in [
            ("75ms", 75_000_000),
            ("3s", 3_000_000_000),
            ("1.5m", 90_000_000_000),
            ("0.5us", 500),
            ("10 ms", 10_000_000),
            ("2h", 7_200_000_000_000),
        ] {
            assert_eq!(parse_duration(text).map(|d| d.as_nanos()), Ok(nanos), "{text}");
        }
        for text in ["3", "", "s", "3 sec", "-3s", "1e3s", "0.1ns", "3.s", "nans", "infs", "99999999999999h"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_are_written_as_they_were_read() {
        for text in ["75ms", "3s", "90s", "2h", "1m", "500ns", "1.5us", "0s"] {
            let written = parse_duration(text).map(format_duration).unwrap_or_default();
            assert_eq!(parse_duration(&written), parse_duration(text), "{text} became {written}");
        }
        assert_eq!(format_duration(Duration::from_millis(1500)), "1.5s");
        assert_eq!(format_duration(Duration::from_secs(120)), "2m");
    }

    #[test]
    fn a_duration_is_rounded_up_to_what_a_person_writes() {
        for (millis, text) in [(0, "0s"), (144_001, "145s"), (145_000, "145s"), (600_001, "11m"), (7_200_000, "2h")] {
            assert_eq!(format_duration(rounded_up(Duration::from_millis(millis))), text);
        }
    }

    #[test]
    fn measured_times_have_three_digits() {
        for (nanos, text) in [
            (0, "0 ms"),
            (1_234, "1.23 µs"),
            (999_499, "999 µs"),
            (999_500, "1.00 ms"),
            (12_345_678, "12.3 ms"),
            (123_456_789, "123 ms"),
            (2_345_678_901, "2.35 s"),
            (120_000_000_000, "120 s"),
        ] {
            assert_eq!(format_nanos(nanos), text);
        }
    }
}
