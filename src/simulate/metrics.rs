//! The `/metrics` page, in the Prometheus text format.

use std::fmt::{Display, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use super::engine::Occupancy;

/// Counters since the last restart.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// Requests that were answered to the end.
    pub(super) finished: AtomicU64,
    /// Requests that were refused.
    pub(super) refused: AtomicU64,
    /// Requests that ended otherwise: given up by the client, or broken by a fault.
    pub(super) broken: AtomicU64,
    /// Tokens of the prompts of all requests taken in.
    pub(super) prompt_tokens: AtomicU64,
    /// Restarts since the start; this one survives them.
    pub(super) restarts: AtomicU64,
}

impl Counters {
    pub(super) fn restart(&self) {
        for counter in [&self.finished, &self.refused, &self.broken, &self.prompt_tokens] {
            counter.store(0, Ordering::Relaxed);
        }
        self.restarts.fetch_add(1, Ordering::Relaxed);
    }
}

/// Writes the page.
pub(super) fn page(counters: &Counters, occupancy: Occupancy, generated_tokens: u64) -> String {
    let mut text = String::with_capacity(2_048);
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    family(&mut text, "requests_running", "gauge", "Requests in service.", &[("", &occupancy.running)]);
    family(&mut text, "requests_waiting", "gauge", "Requests in the queue.", &[("", &occupancy.waiting)]);
    if let Some(size) = occupancy.kv_tokens {
        let share = occupancy.kv_used as f64 / size as f64;
        family(&mut text, "kv_cache_usage_ratio", "gauge", "Reserved share of the key-value cache.", &[("", &share)]);
    }
    let outcomes: [(&str, &dyn Display); 3] = [
        (r#"{outcome="finished"}"#, &read(&counters.finished)),
        (r#"{outcome="refused"}"#, &read(&counters.refused)),
        (r#"{outcome="broken"}"#, &read(&counters.broken)),
    ];
    family(&mut text, "requests_total", "counter", "Requests by how they ended.", &outcomes);
    let prompt = read(&counters.prompt_tokens);
    family(&mut text, "prompt_tokens_total", "counter", "Prompt tokens taken in.", &[("", &prompt)]);
    family(&mut text, "generation_tokens_total", "counter", "Tokens generated.", &[("", &generated_tokens)]);
    family(&mut text, "restarts_total", "counter", "Restarts by the fault script.", &[("", &read(&counters.restarts))]);
    text
}

fn family(text: &mut String, name: &str, kind: &str, help: &str, samples: &[(&str, &dyn Display)]) {
    let _ = writeln!(text, "# HELP goodput_simulated_{name} {help}\n# TYPE goodput_simulated_{name} {kind}");
    for (labels, value) in samples {
        let _ = writeln!(text, "goodput_simulated_{name}{labels} {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_has_help_type_and_samples() {
        let counters = Counters::default();
        counters.finished.store(3, Ordering::Relaxed);
        let occupancy = Occupancy { running: 2, waiting: 1, kv_used: 50, kv_tokens: Some(200) };
        let text = page(&counters, occupancy, 96);
        for line in [
            "# TYPE goodput_simulated_requests_running gauge\ngoodput_simulated_requests_running 2\n",
            "goodput_simulated_kv_cache_usage_ratio 0.25\n",
            "goodput_simulated_requests_total{outcome=\"finished\"} 3\n",
            "# TYPE goodput_simulated_generation_tokens_total counter\ngoodput_simulated_generation_tokens_total 96\n",
        ] {
            assert!(text.contains(line), "{line} not in {text}");
        }
        let count = |prefix: &str| text.lines().filter(|line| line.starts_with(prefix)).count();
        assert_eq!(count("# HELP"), count("# TYPE"));
        assert!(text.ends_with('\n'));
        counters.restart();
        assert!(page(&counters, occupancy, 0).contains("goodput_simulated_restarts_total 1\n"));
    }
}
