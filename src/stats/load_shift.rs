//! How much slower one trial was, read off the headrooms of the baseline on the same schedule (method, section 10.1).
//!
//! A system that is `e^σ` times slower looks at load `λ` like the baseline at `λ·e^σ` with all times stretched by `e^σ`, so its
//! headroom `h` solves `H(σ) − σ = h`.

/// The least fall of the mean headroom for each unit of `ln load` at which a curve is of use.
pub const LEAST_SLOPE: f64 = 2.0;
/// How far a shift is looked for on either side.
const FARTHEST: f64 = 0.5;
/// By how much a curve falls at least from one load to the next, so that it can be inverted.
const LEAST_FALL: f64 = 1e-6;

/// The baseline's headrooms on one schedule: points of `ln(load / capacity)`, ascending, and the headroom there, falling.
#[derive(Debug, Clone, PartialEq)]
pub struct HeadroomCurve {
    points: Vec<(f64, f64)>,
}

impl HeadroomCurve {
    /// The curve through headrooms at loads, ascending, in units of the capacity `at`; `None` with fewer than two, or unlike numbers
    /// of loads and headrooms.
    ///
    /// Headrooms that rise are pooled with their neighbours, and `k · 1e-6` is taken from the `k`-th.
    pub fn new(loads: &[f64], at: f64, headrooms: &[f64]) -> Option<Self> {
        if loads.len() < 2 || loads.len() != headrooms.len() {
            return None;
        }
        let falling = not_rising(headrooms).into_iter().enumerate().map(|(k, value)| value - LEAST_FALL * k as f64);
        Some(Self { points: loads.iter().map(|load| (load / at).ln()).zip(falling).collect() })
    }

    /// The headroom at `ln(load / capacity)`: linear between the points, with the slopes of the ends beyond them.
    fn at(&self, log_load: f64) -> f64 {
        let above = self.points.iter().position(|(x, _)| *x >= log_load).unwrap_or(self.points.len() - 1);
        let right = above.clamp(1, self.points.len() - 1);
        let ((x0, y0), (x1, y1)) = (self.points[right - 1], self.points[right]);
        y0 + (y1 - y0) * (log_load - x0) / (x1 - x0)
    }

    /// The logarithm `D = −σ` of the capacity of a trial with this headroom at the capacity over the baseline's, within ±0.5.
    pub fn log_ratio(&self, headroom: f64) -> f64 {
        let (mut low, mut high) = (-FARTHEST, FARTHEST);
        // The left side falls throughout, so that what lies beyond an end ends there.
        for _ in 0..100 {
            let middle = 0.5 * (low + high);
            if self.at(middle) - middle > headroom { low = middle } else { high = middle }
        }
        -0.5 * (low + high)
    }
}

/// A logarithm of a ratio held to ± 3 times the margin, so that one trial that went wrong does not decide alone.
pub fn clipped(log_ratio: f64, margin: f64) -> f64 {
    let most = 3.0 * (-margin).ln_1p().abs();
    log_ratio.clamp(-most, most)
}

/// The change of the mean headroom for each unit of `ln load` between the second load and the last but one; `None` with fewer than
/// four loads or no schedule. Headrooms are given by schedule, each by load ascending.
pub fn mean_slope(loads: &[f64], headrooms: &[Vec<f64>]) -> Option<f64> {
    let (from, to) = (1, loads.len().checked_sub(2)?);
    if to <= from || headrooms.is_empty() || headrooms.iter().any(|of| of.len() != loads.len()) {
        return None;
    }
    let rise: f64 = headrooms.iter().map(|of| of[to] - of[from]).sum::<f64>() / headrooms.len() as f64;
    Some(rise / (loads[to] / loads[from]).ln())
}

/// The nearest sequence that does not rise, by pooling adjacent violators.
fn not_rising(values: &[f64]) -> Vec<f64> {
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for &value in values {
        blocks.push((value, 1));
        while let [.., (before, m), (last, n)] = blocks[..]
            && last > before
        {
            blocks.truncate(blocks.len() - 2);
            blocks.push(((before * m as f64 + last * n as f64) / (m + n) as f64, m + n));
        }
    }
    blocks.into_iter().flat_map(|(value, count)| std::iter::repeat_n(value, count)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::ratio::tests::{assert_equals, cases, numbers};
    use super::super::ratio::{PAIRED_LOOKS, RatioRule};
    use super::*;

    #[test]
    fn shifts_equal_the_reference() {
        let cases = cases("load_shift");
        for case in &cases {
            let (input, expect) = (&case["input"], &case["expect"]);
            let (loads, at) = (numbers(&input["loads"]), input["reference_load"].as_f64().unwrap());
            let margin = input["margin"].as_f64().unwrap();
            let headrooms: Vec<Vec<f64>> = input["baseline_headroom"].as_array().unwrap().iter().map(numbers).collect();
            let slope = mean_slope(&loads, &headrooms).unwrap();
            assert!((slope - expect["slope"].as_f64().unwrap()).abs() < 1e-7, "{slope} {case}");
            let shift = |(of, head): (&Vec<f64>, f64)| HeadroomCurve::new(&loads, at, of).unwrap().log_ratio(head);
            let found: Vec<f64> = headrooms.iter().zip(numbers(&input["candidate_headroom"])).map(shift).collect();
            for (found, want) in found.iter().zip(numbers(&expect["log_ratio_per_seed"])) {
                assert!((found - want).abs() < 1e-8, "{found} {want} {case}");
            }
            let found: Vec<f64> = found.into_iter().map(|found| clipped(found, margin)).collect();
            let rule = RatioRule::new(&PAIRED_LOOKS, margin);
            for want in expect["steps"].as_array().unwrap() {
                let look = rule.look(&found[..want["runs"].as_u64().unwrap() as usize]).unwrap();
                assert_equals(&look.estimate, margin, want);
            }
        }
        assert_eq!(cases.len(), 4);
    }

    #[test]
    fn what_rises_is_pooled_and_what_lies_beyond_the_range_ends_there() {
        assert_eq!(not_rising(&[3.0, 1.0, 2.0, 0.0]), [3.0, 1.5, 1.5, 0.0]);
        assert_eq!(not_rising(&[1.0, 2.0, 3.0]), [2.0; 3]);
        let curve = HeadroomCurve::new(&[0.9, 1.0, 1.1], 1.0, &[0.2, 0.0, -0.2]).unwrap();
        assert!((curve.log_ratio(-9.0) + 0.5).abs() < 1e-9 && (curve.log_ratio(9.0) - 0.5).abs() < 1e-9);
        // An equal system has the headroom of the curve.
        assert!(curve.log_ratio(0.0).abs() < 1e-5);
        assert!((clipped(-0.4, 0.05) - 3.0 * 0.95_f64.ln()).abs() < 1e-12);
        assert_eq!(HeadroomCurve::new(&[1.0], 1.0, &[0.0]), None);
        assert_eq!(mean_slope(&[1.0, 1.1, 1.2], &[vec![0.0; 3]]), None);
    }
}
