//! How much less a correlated series tells than independent values would (method, section 7).

/// Batches that a series is cut into.
const BATCHES: usize = 20;

/// The variance inflation of a series, by batch means with autoregressive correction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Inflation {
    /// Values per batch.
    pub batch_length: usize,
    /// Population variance of all values.
    pub variance: f64,
    /// Variance of the batch means.
    pub batch_variance: f64,
    /// Correlation of neighbouring batch means, corrected and clipped; `None` where a variance is zero.
    pub phi: Option<f64>,
    /// The factor before it is held to at least 1; `None` where a variance is zero.
    pub raw: Option<f64>,
    /// Effective counts are counts divided by this.
    pub factor: f64,
}

/// The variance inflation of `series`, in order of arrival; `None` with fewer values than batches.
pub fn inflation(series: &[f64]) -> Option<Inflation> {
    let batch_length = series.len() / BATCHES;
    if batch_length == 0 {
        return None;
    }
    let variance = squares(series) / series.len() as f64;
    let means: Vec<f64> = series.chunks_exact(batch_length).take(BATCHES).map(mean).collect();
    let spread = squares(&means);
    let batch_variance = spread / (BATCHES - 1) as f64;
    let mut inflation = Inflation { batch_length, variance, batch_variance, phi: None, raw: None, factor: 1.0 };
    if variance > 0.0 && spread > 0.0 {
        let centre = mean(&means);
        let products: f64 = means.windows(2).map(|pair| (pair[0] - centre) * (pair[1] - centre)).sum();
        let phi = (products / spread + 1.0 / BATCHES as f64).clamp(0.0, 0.95);
        let raw = batch_length as f64 * batch_variance / variance * (1.0 + phi) / (1.0 - phi);
        inflation = Inflation { phi: Some(phi), raw: Some(raw), factor: raw.max(1.0), ..inflation };
    }
    Some(inflation)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The sum of squares about the mean.
fn squares(values: &[f64]) -> f64 {
    let centre = mean(values);
    values.iter().map(|v| (v - centre) * (v - centre)).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn check(series: &Value, want: &Value) {
        let series: Vec<f64> = series.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
        let got = inflation(&series).unwrap();
        assert_eq!(Some(got.batch_length as u64), want["batch_length"].as_u64());
        for (got, key) in [
            (Some(got.variance), "variance"),
            (Some(got.batch_variance), "batch_variance"),
            (got.phi, "phi"),
            (got.raw, "vif_raw"),
            (Some(got.factor), "vif"),
        ] {
            match (got, want[key].as_f64()) {
                (Some(got), Some(want)) => assert!((got - want).abs() <= 1e-6 * want.abs().max(1.0), "{key} {got}"),
                (got, want) => assert_eq!(got, want, "{key}"),
            }
        }
    }

    #[test]
    fn factors_match_the_reference() {
        let file: Value =
            serde_json::from_str(include_str!("../../tests/fixtures/reference/percentile_evidence.json")).unwrap();
        for case in file["vif_cases"].as_array().unwrap() {
            check(&case["in_flight"], &case["vif_in_flight"]);
            check(&case["violation"], &case["vif_violation"]);
        }
    }

    #[test]
    fn short_and_constant_series_are_not_inflated() {
        assert_eq!(inflation(&[1.0; 19]), None);
        assert_eq!(inflation(&[1.0; 40]).map(|i| (i.factor, i.raw)), Some((1.0, None)));
    }
}
