//! Student's t: the quantile that an interval from a few trials needs.

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
