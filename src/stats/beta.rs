//! The regularised incomplete beta function, accurate for counts up to millions.
//!
//! The usual library routine stops its continued fraction after a fixed number of terms, too few near the mean of a large
//! sample, and loses digits by subtracting large log-gammas. Here the leading factor is Loader's saddle-point form of the
//! binomial probability (C. Loader, "Fast and Accurate Computation of Binomial Probabilities", 2000), which has no such
//! cancellation, and the fraction runs until it has converged.

use std::f64::consts::PI;

use statrs::function::gamma::ln_gamma;

/// Terms after which the fraction is taken as it is. It needs about the square root of the larger parameter.
const MAX_TERMS: u32 = 200_000;

/// Both tails of a beta distribution; each is computed directly, so that a small one keeps its digits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tails {
    /// `I_x(a, b)`.
    pub(super) lower: f64,
    /// `1 − I_x(a, b)`.
    pub(super) upper: f64,
}

/// The tails of Beta(a, b) at `x`, for `a > 0` and `b > 0`.
pub(super) fn beta_tails(a: f64, b: f64, x: f64) -> Tails {
    if x <= 0.0 {
        return Tails { lower: 0.0, upper: 1.0 };
    }
    if x >= 1.0 {
        return Tails { lower: 1.0, upper: 0.0 };
    }
    let probability = binomial_density(a, b, x);
    if x < (a + 1.0) / (a + b + 2.0) {
        let lower = (probability * b / (a + b) * continued_fraction(a, b, x)).clamp(0.0, 1.0);
        Tails { lower, upper: 1.0 - lower }
    } else {
        let upper = (probability * a / (a + b) * continued_fraction(b, a, 1.0 - x)).clamp(0.0, 1.0);
        Tails { lower: 1.0 - upper, upper }
    }
}

/// `P(Bin(n, p) = k)`.
pub(super) fn binomial_probability(n: u64, k: u64, p: f64) -> f64 {
    let (hits, misses) = (k as f64, n.saturating_sub(k) as f64);
    match (k, n.saturating_sub(k)) {
        (0, _) => (misses * (-p).ln_1p()).exp(),
        (_, 0) => p.powf(hits),
        _ => binomial_density(hits, misses, p),
    }
}

/// `Γ(a+b+1) / (Γ(a+1)·Γ(b+1)) · p^a · (1−p)^b` for real `a > 0`, `b > 0`.
fn binomial_density(a: f64, b: f64, p: f64) -> f64 {
    let n = a + b;
    let exponent =
        stirling_error(n) - stirling_error(a) - stirling_error(b) - deviance(a, n * p) - deviance(b, n * (1.0 - p));
    exponent.exp() * (n / (2.0 * PI * a * b)).sqrt()
}

/// `ln Γ(z+1)` less Stirling's formula.
fn stirling_error(z: f64) -> f64 {
    if z <= 15.0 {
        return ln_gamma(z + 1.0) - (z + 0.5) * z.ln() + z - 0.5 * (2.0 * PI).ln();
    }
    let square = z * z;
    (1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - (1.0 / 1680.0 - 1.0 / (1188.0 * square)) / square) / square) / square)
        / z
}

/// `x·ln(x/m) + m − x`, by a series where `x` and `m` are close.
fn deviance(x: f64, m: f64) -> f64 {
    if (x - m).abs() >= 0.1 * (x + m) {
        return x * (x / m).ln() + m - x;
    }
    let ratio = (x - m) / (x + m);
    let mut sum = (x - m) * ratio;
    let mut term = 2.0 * x * ratio;
    for j in 1..1_000 {
        term *= ratio * ratio;
        let addend = term / f64::from(2 * j + 1);
        sum += addend;
        if addend.abs() <= f64::EPSILON * sum.abs() {
            break;
        }
    }
    sum
}

/// The continued fraction of the incomplete beta function (Abramowitz and Stegun 26.5.8) by Lentz's method.
fn continued_fraction(a: f64, b: f64, x: f64) -> f64 {
    let away_from_zero = |v: f64| if v.abs() < 1e-300 { 1e-300 } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for term in 1..MAX_TERMS {
        let m = f64::from(term);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut factor = 1.0;
        for numerator in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + numerator * d);
            c = away_from_zero(1.0 + numerator / c);
            factor = c * d;
            fraction *= factor;
        }
        if (factor - 1.0).abs() <= f64::EPSILON {
            break;
        }
    }
    fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_counts_agree_with_sums_of_probabilities() {
        for (n, k, p) in [(1_000u64, 4u64, 0.01), (20_000, 230, 0.01), (1_000_000, 10_020, 0.01), (50_000, 24_900, 0.5)]
        {
            let sum: f64 = (0..=k).map(|i| binomial_probability(n, i, p)).sum();
            let tails = beta_tails((k + 1) as f64, (n - k) as f64, p);
            assert!((tails.upper - sum).abs() < 1e-10, "n {n}, k {k}: {} against {sum}", tails.upper);
            assert!((tails.upper + tails.lower - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn closed_forms_hold() {
        // I_x(1, b) = 1 − (1−x)^b and I_x(a, 1) = x^a.
        for (x, b) in [(0.01, 300.0), (0.5, 2.5), (0.9, 0.5)] {
            assert!((beta_tails(1.0, b, x).lower - (1.0 - (1.0f64 - x).powf(b))).abs() < 1e-13, "{x} {b}");
            assert!((beta_tails(b, 1.0, x).lower - x.powf(b)).abs() < 1e-13, "{x} {b}");
        }
        assert!((binomial_probability(10, 0, 0.1) - 0.9f64.powi(10)).abs() < 1e-15);
        assert!((binomial_probability(10, 10, 0.1) - 1e-10).abs() < 1e-20);
    }
}
