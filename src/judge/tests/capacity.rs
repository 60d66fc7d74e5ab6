//! Capacity and the binding objective.

use super::*;
use crate::record::settle;

/// The capacity of a run with these steps.
fn capacity_of(contract: &Contract, steps: &[StepRecord]) -> Option<crate::record::CapacityRecord> {
    let mut run = RunResult { steps: steps.to_vec(), ..result() };
    run.steps.iter_mut().flat_map(|step| &mut step.trials).for_each(|trial| settle(&contract.slo, trial));
    capacity(contract, &run)
}

#[test]
fn the_capacity_is_the_interval_below_the_lowest_load_that_broke() {
    let contract = contract();
    let held: fn(&mut TrialRecord) = |_| {};
    let broke: fn(&mut TrialRecord) = |t| t.objectives[0].violations = 11;
    let drifts: fn(&mut TrialRecord) = |t| {
        t.drift = Some(DriftRecord { slope_per_s: 1.0, t: 9.0, growth: 0.2, drifting: true });
    };
    let void: fn(&mut TrialRecord) = |t| t.health.faults.push("late".to_owned());
    let open: fn(&mut TrialRecord) = |t| (t.complete, t.objectives[0].undecided) = (false, 900);
    for (name, trials, want) in [
        ("all held", vec![held, held, held], "6 - false"),
        ("the last broke", vec![held, held, broke], "4 6 false"),
        ("piling up is breaking", vec![held, drifts, broke], "2 4 false"),
        ("nothing held", vec![broke, broke, broke], "- 2 false"),
        ("a load above one that broke is not believed", vec![held, broke, held], "2 4 true"),
        ("a void step says nothing", vec![held, void, broke], "2 6 false"),
        ("neither does an interrupted one", vec![held, open, open], "2 - false"),
        ("nothing is known", vec![void, open, void], "none"),
    ] {
        let steps: Vec<StepRecord> = [2, 4, 6]
            .into_iter()
            .zip(trials)
            .map(|(at, change)| {
                let mut step = step(load(at));
                change(&mut step.trials[0]);
                step
            })
            .collect();
        let found = capacity_of(&contract, &steps).map_or_else(
            || "none".to_owned(),
            |found| {
                let show =
                    |load: Option<Load>| load.map_or_else(|| "-".to_owned(), |load| load.to_string().replace("/s", ""));
                format!("{} {} {}", show(found.holds_at), show(found.breaks_at), found.non_monotone)
            },
        );
        assert_eq!(found, want, "{name}");
    }
}

#[test]
fn the_binding_objective_is_named() {
    let mut contract = contract();
    let slo = &mut contract.slo;
    slo.objectives.insert(0, Objective::SuccessRate { at_least: share(900_000) });
    slo.objectives.pop();
    let binding = |ttft: ObjectiveEvidence, success: ObjectiveEvidence| {
        let mut high = step(load(6));
        high.trials[0].objectives = vec![success.clone(), ttft];
        let mut low = step(load(4));
        low.trials[0].objectives = vec![success, evidence("ttft_p99", N, 0, Some(2_700_000_000))];
        let found = capacity_of(&contract, &[low, high]).unwrap().binding.unwrap();
        format!("{} {} {} {}/{}", found.objective, found.load, found.broke, found.violations, found.n)
    };
    // 20 of 10 allowed exceed more than 90 of 100 allowed.
    let ttft = evidence("ttft_p99", N, 20, Some(4_000_000_000));
    assert_eq!(binding(ttft, evidence("success_rate", N, 90, None)), "ttft_p99 6/s true 20/1000");
    // Nothing broke: 2.7 s of 3 s is closer than 50 failures of 100.
    let fine = evidence("ttft_p99", N, 0, Some(1_000_000));
    assert_eq!(binding(fine, evidence("success_rate", N, 50, None)), "ttft_p99 4/s false 0/1000");
}

#[test]
fn metrics_of_different_units_are_compared_by_their_own_limits() {
    let mut contract = contract();
    let rtf = Objective::Percentile { metric: RequestMetric::Rtf, quantile: share(990_000), at_most: 500_000 };
    let underrun = Objective::Percentile { metric: RequestMetric::Underrun, quantile: share(990_000), at_most: 0 };
    contract.slo.objectives = vec![ttft_p99(), rtf, underrun];
    let mut low = step(load(4));
    // 0.45 of 0.5 is closer than 2.4 s of 3 s; no silence is no strain on a limit of none.
    let silence = ObjectiveEvidence { quantile: Some(0), ..evidence("underrun_p99", N, 0, None) };
    low.trials[0].objectives =
        vec![evidence("ttft_p99", N, 0, Some(2_400_000_000)), evidence("rtf_p99", N, 0, Some(450_000)), silence];
    let found = capacity_of(&contract, &[low]).unwrap().binding.unwrap();
    assert_eq!((found.objective.as_str(), found.broke), ("rtf_p99", false));
}
