//! What is asked of `nvidia-smi` for each field, and what its cells mean.

use super::super::excerpt::quote;
use crate::contract::NvidiaField;

const MEBIBYTE: f64 = 1_048_576.0;

/// The names that make up a field. Before driver 535 some had others.
pub(super) fn names(field: NvidiaField, is_old: bool) -> &'static [&'static str] {
    match field {
        NvidiaField::EccUncorrected => &["ecc.errors.uncorrected.volatile.total"],
        NvidiaField::EccCorrected => &["ecc.errors.corrected.volatile.total"],
        NvidiaField::RetiredPages => &["retired_pages.single_bit_ecc.count", "retired_pages.double_bit.count"],
        // The brake by the power supply is one of the reasons that `hw_slowdown` sums up.
        NvidiaField::Throttled if is_old => &[
            "clocks_throttle_reasons.hw_slowdown",
            "clocks_throttle_reasons.hw_thermal_slowdown",
            "clocks_throttle_reasons.sw_thermal_slowdown",
        ],
        NvidiaField::Throttled => &[
            "clocks_event_reasons.hw_slowdown",
            "clocks_event_reasons.hw_thermal_slowdown",
            "clocks_event_reasons.sw_thermal_slowdown",
        ],
        NvidiaField::Utilization => &["utilization.gpu"],
        NvidiaField::MemoryUsed => &["memory.used"],
        NvidiaField::Power => &["power.draw"],
        NvidiaField::Temperature => &["temperature.gpu"],
    }
}

/// The number that a GPU's cells give, in the field's unit.
///
/// # Errors
/// When one of them is no number, with its name: `[N/A]`, `[Not Supported]`, `ERR!` and the like are no zeros.
pub(super) fn value(field: NvidiaField, names: &[&str], cells: &[&str]) -> Result<f64, String> {
    let mut read = names.iter().zip(cells).map(|(name, cell)| {
        let value = if field == NvidiaField::Throttled { state(cell) } else { number(cell) };
        value.ok_or_else(|| format!("{} for `{name}`{}", quote(cell), hint(field)))
    });
    match field {
        // One reason is enough, whatever the card cannot tell of the others.
        NvidiaField::Throttled => {
            let states: Vec<Result<f64, String>> = read.collect();
            match states.contains(&Ok(1.0)) {
                true => Ok(1.0),
                false => states.into_iter().find(Result::is_err).unwrap_or(Ok(0.0)),
            }
        }
        NvidiaField::Utilization => read.sum::<Result<f64, String>>().map(|percent| percent / 100.0),
        NvidiaField::MemoryUsed => read.sum::<Result<f64, String>>().map(|mebibytes| mebibytes * MEBIBYTE),
        _ => read.try_fold(0.0, |sum, value| value.map(|value| sum + value)),
    }
}

fn state(cell: &str) -> Option<f64> {
    match cell {
        "Active" => Some(1.0),
        "Not Active" => Some(0.0),
        _ => None,
    }
}

/// Rust also reads `inf` and `nan`, which are no measurements.
fn number(cell: &str) -> Option<f64> {
    let is_plain = cell.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    cell.parse::<f64>().ok().filter(|value| is_plain && value.is_finite())
}

fn hint(field: NvidiaField) -> &'static str {
    match field {
        NvidiaField::EccUncorrected | NvidiaField::EccCorrected => "; is ECC there, and on?",
        NvidiaField::RetiredPages => {
            "; cards from Ampere on remap rows instead, which a `command` counts by `nvidia-smi --query-remapped-rows`"
        }
        NvidiaField::Utilization => "; a card that is split by MIG tells none",
        _ => "",
    }
}
