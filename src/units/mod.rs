//! Numbers with units: rates, durations, shares, ratios, digests and offered loads.
//!
//! Everything that decides a verdict is kept in integers (nanoseconds, thousandths of a request per second, parts per
//! million), so that it is equal on every platform and in every build.

mod digest;
mod duration;
mod rate;
mod ratio;
mod share;

pub use digest::{Digest, DigestBuilder};
pub use duration::{format_duration, format_nanos, parse_duration, rounded_up};
pub use rate::{Load, Rate};
pub use ratio::{format_measured_ratio, format_ratio, parse_ratio};
pub use share::Share;

/// A written number that is not what its place asks for. The text completes "`…` is not a …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{written}` is not {expected}")]
pub struct UnitError {
    /// What was written.
    pub written: String,
    /// What its place asks for, with an example.
    pub expected: &'static str,
}

/// Splits `"12.5ms"` into its digits and its unit. Signs, exponents and blanks around are not part of a number here.
fn split_unit(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

/// Reads a plain decimal number times `scale` exactly, as an integer; `None` when it has more digits than `scale` holds,
/// is not a number, or does not fit.
fn parse_scaled(digits: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if (whole.is_empty() && fraction.is_empty()) || (digits.contains('.') && fraction.is_empty()) {
        return None;
    }
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut value = whole.checked_mul(u128::from(scale))?;
    if !fraction.is_empty() {
        let denominator = 10u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
        let numerator = fraction.parse::<u128>().ok()?.checked_mul(u128::from(scale))?;
        if numerator % denominator != 0 {
            return None;
        }
        value = value.checked_add(numerator / denominator)?;
    }
    u64::try_from(value).ok()
}

/// Writes `value / scale` as a decimal number without trailing zeros.
fn format_scaled(value: u64, scale: u64) -> String {
    let digits = scale.ilog10() as usize;
    let (whole, rest) = (value / scale, value % scale);
    if rest == 0 {
        return whole.to_string();
    }
    let fraction = format!("{rest:0digits$}");
    format!("{whole}.{}", fraction.trim_end_matches('0'))
}
