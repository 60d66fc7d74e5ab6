//! Whether requests pile up over a window (method, section 4).

/// Batches that the window is cut into.
const BATCHES: usize = 10;
/// One-sided 95 % point of Student's t with the 8 degrees of freedom that a line through 10 batches leaves.
const T_CRITICAL: f64 = 1.859_548_037_5;
/// Share of the arrivals that may pile up unnoticed.
const MAX_GROWTH: f64 = 0.05;
/// Where the batches lie exactly on a line its slope is beyond doubt, and t is held to this so that records stay finite.
const T_LIMIT: f64 = 1e9;

/// Arrivals that the test needs: two in each batch.
pub const MIN_DRIFT_ARRIVALS: usize = 2 * BATCHES;

/// The slope of the number in flight over the window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// Requests in flight gained per second.
    pub slope_per_s: f64,
    /// Correction for neighbouring batches that resemble each other.
    pub phi: f64,
    /// Slope over its standard error.
    pub t: f64,
    /// Share of the arrivals that piles up: slope over rate.
    pub growth: f64,
    /// Significant, and more than 5 % of the arrivals.
    pub drifting: bool,
}

/// Fits the number in flight just before each arrival against time. `arrivals_ns` ascends, `in_flight` runs beside it, and
/// `rate` is in arrivals per second; `None` with fewer than [`MIN_DRIFT_ARRIVALS`] arrivals or none of time between them.
pub fn drift(arrivals_ns: &[u64], in_flight: &[u64], rate: f64) -> Option<Drift> {
    let count = arrivals_ns.len().min(in_flight.len());
    if count < MIN_DRIFT_ARRIVALS || rate <= 0.0 {
        return None;
    }
    let origin = arrivals_ns[0];
    let bounds = |k: usize| k * count / BATCHES..(k + 1) * count / BATCHES;
    let seconds = |k| mean(arrivals_ns[bounds(k)].iter().map(|at| at.saturating_sub(origin) as f64 / 1e9));
    let level = |k| mean(in_flight[bounds(k)].iter().map(|&n| n as f64));
    let (times, levels): ([f64; BATCHES], [f64; BATCHES]) = (std::array::from_fn(seconds), std::array::from_fn(level));

    let (mean_time, mean_level) = (mean(times.into_iter()), mean(levels.into_iter()));
    let spread: f64 = times.iter().map(|t| (t - mean_time).powi(2)).sum();
    if spread <= 0.0 {
        return None;
    }
    let products: f64 = times.iter().zip(levels).map(|(t, l)| (t - mean_time) * (l - mean_level)).sum();
    let slope = products / spread;
    let residuals: [f64; BATCHES] = std::array::from_fn(|k| levels[k] - mean_level - slope * (times[k] - mean_time));
    let (phi, standard_error) = corrected_error(&residuals, spread);
    let t = if slope.abs() < f64::EPSILON { 0.0 } else { (slope / standard_error).clamp(-T_LIMIT, T_LIMIT) };
    let growth = slope / rate;
    Some(Drift { slope_per_s: slope, phi, t, growth, drifting: t > T_CRITICAL && growth > MAX_GROWTH })
}

/// The correlation correction, and the standard error of the slope widened by it.
fn corrected_error(residuals: &[f64; BATCHES], spread: f64) -> (f64, f64) {
    let squares: f64 = residuals.iter().map(|r| r * r).sum();
    let products: f64 = residuals.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let correlation = if squares > 0.0 { products / squares } else { 0.0 };
    let phi = (correlation + 0.2).clamp(0.0, 0.9);
    let plain = (squares / (BATCHES - 2) as f64 / spread).sqrt();
    (phi, plain * ((1.0 + phi) / (1.0 - phi)).sqrt())
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn slopes_match_the_reference() {
        let file: Value =
            serde_json::from_str(include_str!("../../tests/fixtures/reference/percentile_evidence.json")).unwrap();
        let series = |v: &Value| v.as_array().unwrap().iter().map(|v| v.as_u64().unwrap()).collect::<Vec<_>>();
        for case in file["vif_cases"].as_array().unwrap() {
            let rate = case["rate"].as_f64().unwrap();
            let got = drift(&series(&case["arrival_ns"]), &series(&case["in_flight"]), rate).unwrap();
            let want = &case["drift"];
            for (got, key) in
                [(got.slope_per_s, "slope_per_s"), (got.phi, "phi"), (got.t, "t"), (got.growth, "growth_fraction")]
            {
                assert!((got - want[key].as_f64().unwrap()).abs() < 1e-6, "{key} {got} {}", case["id"]);
            }
            assert!((T_CRITICAL - want["t_critical"].as_f64().unwrap()).abs() < 1e-8);
            assert_eq!(Some(got.drifting), want["drifting"].as_bool(), "{}", case["id"]);
        }
    }

    #[test]
    fn constant_levels_do_not_drift_and_straight_growth_does() {
        let arrivals: Vec<u64> = (0..100).map(|i| i * 1_000_000_000).collect();
        let still = drift(&arrivals, &[7; 100], 1.0).unwrap();
        assert!(!still.drifting && still.t.abs() < f64::EPSILON, "{still:?}");
        let growing: Vec<u64> = (0..100).collect();
        let rising = drift(&arrivals, &growing, 1.0).unwrap();
        assert!(rising.drifting && rising.t.is_finite() && (rising.growth - 1.0).abs() < 1e-9, "{rising:?}");
        assert_eq!(drift(&arrivals[..19], &growing[..19], 1.0), None);
        assert_eq!(drift(&[5; 100], &growing, 1.0), None, "arrivals without time between them");
    }
}
