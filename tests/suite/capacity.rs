//! The search over real sockets against the simulated endpoint: queues of the reference with all their times divided, so that
//! a search takes a minute. They carry load, and nothing else may run beside them.

use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::queues::Queue;
use crate::scene::Scene;

/// Longer than any of these can take.
const HANG: Duration = Duration::from_secs(280);
const REQUESTS: u64 = 300;
/// What the machine adds to every wait, and the schedules of five seeds to the interval, may move its ends by this.
const TOLERANCE: f64 = 1.1;

/// One queue, with all of its times divided.
struct Fast {
    id: &'static str,
    divisor: u32,
    /// The model in a profile, with divided times.
    model: &'static str,
    /// The objectives of a contract, with divided limits.
    objectives: &'static str,
    /// The load that must hold, and the search's range, in requests per second.
    at: u32,
    from: u32,
    to: u32,
    /// Where the median run of 300 requests just holds, in units of the long run's capacity: least and most.
    over_long_run: (f64, f64),
}

impl Fast {
    fn contract(&self) -> String {
        let Self { at, from, to, objectives, .. } = self;
        format!(
            "version: 1
name: fast
endpoint:
  url: http://127.0.0.1:0/v1/chat/completions
  protocol: openai-chat
  model: fast
  timeout: 10s
  launch: {{ simulate: simulated.yaml }}
workload:
  cases: [{{ id: one, prompt: Hi, max_tokens: 2 }}]
  seed: 11
traffic:
  model: poisson
  search: {{ from: {from}/s, to: {to}/s, precision: 10%, seeds: 5 }}
  trial: {{ requests: {REQUESTS}, warm_up: 800ms }}
  repeats: 3
  budget: {{ release: 10m }}
slo:
  objectives: [{objectives}]
  at_load: {at}/s
  capacity: {{ at_least: {at}/s }}
"
        )
    }

    /// `goodput gate --plan release`, to its end; the result.
    fn release(&self) -> Value {
        let scene = Scene::new();
        scene.write("contract.yaml", self.contract());
        scene.write("simulated.yaml", format!("version: 1\nseed: 5\nmodel: {}\noutput_tokens: 2\n", self.model));
        let mut command = scene.goodput(&["gate", "--plan", "release", "--runs", "runs", "contract.yaml"]);
        let mut gate = scene.start(&mut command);
        let begun = Instant::now();
        while !gate.has_ended() {
            assert!(begun.elapsed() < HANG, "it hangs");
            sleep(Duration::from_millis(50));
        }
        gate.end().result().value
    }

    /// The interval must hold the true capacity of a run of so many requests, or come close to it.
    fn assert_found(&self) {
        let result = self.release();
        let capacity = &result["capacity"];
        let end = |key: &str| capacity[key]["rate_milli"].as_f64().map(|milli| milli / 1e3);
        let (Some(holds), Some(breaks)) = (end("holds_at"), end("breaks_at")) else {
            panic!("no interval: {capacity}")
        };
        let long_run = Queue::new(self.id).capacity * f64::from(self.divisor);
        let (least, most) = (self.over_long_run.0 * long_run, self.over_long_run.1 * long_run);
        assert!(holds <= most * TOLERANCE && breaks >= least / TOLERANCE, "{holds} to {breaks}, not {least} to {most}");
        assert!(breaks / holds < 2.0, "{holds} to {breaks} says little");
        assert_eq!(capacity["requests_per_trial"], REQUESTS);
        let check = |id: &str| {
            let checks = result["verdict"]["checks"].as_array().unwrap();
            checks.iter().find(|check| check["id"] == id).map(|check| check["status"].clone())
        };
        // A machine that is too busy to keep a schedule, twice, says so: then that schedule has no end, and nothing fails for it.
        match capacity["seeds"].as_u64() {
            Some(5) => {
                assert_eq!(capacity["confidence"], 937_500, "{capacity}");
                assert_eq!(check("capacity"), Some("PASS".into()), "{}", result["verdict"]);
            }
            Some(3 | 4) => assert_ne!(check("completeness"), Some("PASS".into()), "{}", result["verdict"]),
            _ => panic!("too few schedules: {capacity}"),
        }
        assert_ne!(result["verdict"]["overall"], "FAIL", "{}", result["verdict"]);
    }
}

/// M/D/8 with 40 ms of service and P99 of the wait within 20 ms; the reference has 1.0942 for 300 requests.
#[test]
fn eight_servers_with_constant_service() {
    Fast {
        id: "q-05",
        divisor: 50,
        model: "{ kind: slots, slots: 8, service: { fixed: 40ms } }",
        objectives: "{ metric: ttft, percentile: 99, at_most: 20ms }",
        at: 80,
        from: 40,
        to: 400,
        over_long_run: (1.0942, 1.0942),
    }
    .assert_found();
}

/// M/M/16 with a mean of 40 ms and P95 of the wait within 60 ms; 1.10 for 300 requests (method, section 2).
#[test]
fn sixteen_servers_with_exponential_service() {
    Fast {
        id: "q-07",
        divisor: 50,
        model: "{ kind: slots, slots: 16, service: { exponential: 40ms } }",
        objectives: "{ metric: ttft, percentile: 95, at_most: 60ms }",
        at: 250,
        from: 100,
        to: 1000,
        over_long_run: (1.10, 1.10),
    }
    .assert_found();
}

/// M/M/8 with a mean of 40 ms, P99 of the wait within 24 ms and P95 of the whole within 160 ms; short runs flatter it by at
/// most what they do the queues that are known.
#[test]
fn two_objectives_of_which_the_wait_binds() {
    Fast {
        id: "q-08",
        divisor: 125,
        model: "{ kind: slots, slots: 8, service: { exponential: 40ms } }",
        objectives: "{ metric: ttft, percentile: 99, at_most: 24ms }, { metric: e2e, percentile: 95, at_most: 160ms }",
        at: 62,
        from: 30,
        to: 310,
        over_long_run: (1.0, 1.2),
    }
    .assert_found();
}
