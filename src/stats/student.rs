//! Student's t: the quantile that an interval from a few trials needs, and that interval.

use super::Estimate;
use super::beta::beta_tails;

/// The quantile `t(p; ν)` of Student's distribution with `freedom` degrees of freedom, for `p` from 0.5 to below 1.
///
/// It inverts `P(T > t) = ½ · I_x(ν/2, ½)` with `x = ν / (ν + t²)` (Abramowitz and Stegun 26.7.1) by bisection.
pub fn t_quantile(p: f64, freedom: u32) -> f64 {
    let nu = f64::from(freedom.max(1));
    let above = |t: f64| 0.5 * beta_tails(0.5 * nu, 0.5, nu / (nu + t * t)).lower;
    let wanted = 1.0 - p;
    let (mut low, mut high) = (0.0, 1.0);
    while above(high) > wanted && high < f64::MAX / 4.0 {
        (low, high) = (high, 2.0 * high);
    }
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if above(middle) > wanted { low = middle } else { high = middle }
    }
    high
}

/// The mean of one number for each trial with its t interval, each bound at `1 − alpha`: `m ∓ t(1−α; R−1) · max(sd, least) / √R`.
/// `None` with fewer than two. A standard deviation below `least` is not believed.
pub fn t_interval(values: &[f64], alpha: f64, least: f64) -> Option<Estimate> {
    let count = u32::try_from(values.len()).ok().filter(|count| *count >= 2)?;
    let n = f64::from(count);
    let point = values.iter().sum::<f64>() / n;
    let width = t_quantile(1.0 - alpha, count - 1) * deviation(values).max(least) / n.sqrt();
    let (lower, upper) = (point - width, point + width);
    Some(Estimate { point, lower, upper, confidence: 1.0 - alpha, n, method: "t interval" })
}

/// The standard deviation of a sample of at least two.
pub fn deviation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (values.len() as f64 - 1.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_match_the_tables_and_the_closed_form() {
        for (p, freedom, want) in
            [(0.995, 2, 9.924_843_2), (0.987_5, 4, 3.495_405_93), (0.98, 7, 2.516_752_42), (0.95, 8, 1.859_548_037_5)]
        {
            assert!((t_quantile(p, freedom) - want).abs() < 1e-7, "t({p}; {freedom}) = {}", t_quantile(p, freedom));
        }
        // One degree of freedom is Cauchy's distribution: tan(π(p − ½)).
        for p in [0.6, 0.9, 0.999] {
            let want = (std::f64::consts::PI * (p - 0.5)).tan();
            assert!((t_quantile(p, 1) / want - 1.0).abs() < 1e-9, "{p}");
        }
        assert!(t_quantile(0.5, 3).abs() < 1e-9);
    }
}
