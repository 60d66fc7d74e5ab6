//! Where a series of values changed its level (method, section 10.4).

use super::student::t_quantile;

/// Values that each side of a change point needs.
const LEAST_SIDE: usize = 4;
/// The level of the t test that confirms it.
const ALPHA: f64 = 0.001;

/// A confirmed change of the level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// The first value behind the change.
    pub at: usize,
    /// Mean of the values behind it less that of those before.
    pub shift: f64,
    /// That difference over its standard error.
    pub t: f64,
}

/// The split with the largest two-sample energy statistic, where a two-sided t test at 0.1 % confirms it and each side has at least
/// four values; `None` otherwise.
///
/// The statistic is `n·m/(n+m) · (2·E|X−Y| − E|X−X′| − E|Y−Y′|)` (Székely and Rizzo 2004).
pub fn change_point(values: &[f64]) -> Option<ChangePoint> {
    let splits = LEAST_SIDE..(values.len() + 1).checked_sub(LEAST_SIDE)?;
    let energy = |at: &usize| energy(&values[..*at], &values[*at..]);
    let at = splits.max_by(|a, b| energy(a).total_cmp(&energy(b)))?;
    let (before, after) = values.split_at(at);
    let shift = mean(after) - mean(before);
    let freedom = values.len() as f64 - 2.0;
    let pooled = (squares(before) + squares(after)) / freedom;
    let error = (pooled * (1.0 / before.len() as f64 + 1.0 / after.len() as f64)).sqrt();
    let t = shift / error;
    (t.abs() > t_quantile(1.0 - 0.5 * ALPHA, values.len() as u32 - 2)).then_some(ChangePoint { at, shift, t })
}

fn energy(x: &[f64], y: &[f64]) -> f64 {
    let apart = |a: &[f64], b: &[f64]| {
        let sum: f64 = a.iter().flat_map(|a| b.iter().map(move |b| (a - b).abs())).sum();
        sum / (a.len() * b.len()) as f64
    };
    let (n, m) = (x.len() as f64, y.len() as f64);
    n * m / (n + m) * (2.0 * apart(x, y) - apart(x, x) - apart(y, y))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn squares(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_found_where_it_is() {
        let wiggle = |index: usize| if index.is_multiple_of(2) { 0.01 } else { -0.01 };
        let values: Vec<f64> = (0..20).map(|index| if index < 12 { 0.0 } else { -0.1 } + wiggle(index)).collect();
        let found = change_point(&values).unwrap();
        // 12 and 8 values that lie 0.01 from their means: t = −0.1 / (√(20·0.0001/18)·√(1/12 + 1/8)).
        let t = -0.1 / ((20.0 * 1e-4 / 18.0_f64).sqrt() * (1.0 / 12.0 + 1.0 / 8.0_f64).sqrt());
        assert_eq!(found.at, 12);
        assert!((found.shift + 0.1).abs() < 1e-12 && (found.t - t).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn noise_and_short_sides_have_none() {
        assert_eq!(change_point(&[0.0; 30]), None, "nothing differs");
        let noisy: Vec<f64> = (0..30).map(|index| f64::from(index * 7 % 10)).collect();
        assert_eq!(change_point(&noisy), None);
        assert_eq!(change_point(&[0.0, 0.1, 0.0, 0.1, 5.0, 5.1, 5.0]), None, "three behind the step");
        assert_eq!(change_point(&[]), None);
    }

    #[test]
    fn the_statistic_is_that_of_two_small_samples() {
        // E|X−Y| = 2, E|X−X′| = ½, E|Y−Y′| = ½: 2·2/4 · (4 − 1).
        assert!((energy(&[0.0, 1.0], &[2.0, 3.0]) - 3.0).abs() < 1e-12);
    }
}
