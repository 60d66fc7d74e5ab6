//! The search, the looks and the verdict in virtual time, against queues whose answer is known (method, section 15).

use goodput::contract::{Plan, RequestMetric};
use goodput::record::{RunResult, TrialRecord, summarise_step};
use goodput::schedule::{ArrivalProcess, PlannedTrial, TrialCounts, TrialShape};
use goodput::search::Part;
use goodput::simulate::{Stage, parse_profile, rehearse, rehearse_trial};
use goodput::units::{Load, Rate};
use serde_json::{Value, json};

use crate::queues::{Queue, contract, rate, reference, search, share};

#[test]
fn timing() {
    for id in ["q-05", "q-01", "q-09", "q-20"] {
        let queue = Queue::new(id);
        let counts = TrialCounts { warm_up: 300, window: 1_000, drain: 200 };
        let contract = queue.contract(rate(queue.capacity), counts, 1);
        let begun = std::time::Instant::now();
        let mut trials = 0;
        for seed in 0..100 {
            let planned =
                PlannedTrial { trial: 0, seed, load: contract.slo.at, shape: contract.traffic.shape(contract.slo.at) };
            let (trial, _) = rehearse_trial(&contract.slo, &planned, Part::Step, queue.stage(&planned, 0.0)).unwrap();
            trials += u32::from(trial.held == Some(true));
        }
        println!("{id} {trials} {:?}", begun.elapsed() / 100);
        let begun = std::time::Instant::now();
        let mut line = String::new();
        for seed in 0..20 {
            let mut contract = contract.clone();
            contract.workload.seed = seed * 1000;
            let result = rehearse(&contract, Plan::Check, |planned| queue.stage(planned, 0.0)).unwrap();
            let c = result.capacity.as_ref();
            line.push_str(&format!(
                "{:?}/{} ",
                c.map(|c| (c.holds_at.is_some(), c.breaks_at.is_some())),
                result.steps[0].trials.len()
            ));
        }
        println!("{id} gates {line} {:?}", begun.elapsed() / 20);
    }
}
