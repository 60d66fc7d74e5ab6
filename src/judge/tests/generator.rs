//! What an audit of the load generator lets a verdict claim.

use super::verdicts::check;
use super::*;
use crate::record::{AUDIT_SCHEMA, AuditRecord, AuditTrial, MachineRecord, SamplingRecord};

/// An audit in which these rates were kept with an error of so many microseconds, and these were not.
pub(super) fn audit(kept: &[(u64, u64)], broke: &[u64]) -> Option<AuditRecord> {
    let trial = |per_second: u64, error: Option<u64>| AuditTrial {
        rate: Rate::from_milli(per_second * 1_000).unwrap(),
        due: N,
        sent: N,
        dispatch_lag: lag(),
        ttft_error: error.map(|micros| {
            let at = Some(micros * 1_000);
            Quantiles { count: N, p50_ns: at, p90_ns: at, p95_ns: at, p99_ns: at, max_ns: at }
        }),
        cpu_share: None,
        faults: if error.is_some() { Vec::new() } else { vec!["late".to_owned()] },
    };
    let kept = kept.iter().map(|(rate, error)| trial(*rate, Some(*error)));
    let trials: Vec<AuditTrial> = kept.chain(broke.iter().map(|rate| trial(*rate, None))).collect();
    Some(AuditRecord {
        schema: AUDIT_SCHEMA.to_owned(),
        tool_version: "0".to_owned(),
        audited_at: String::new(),
        machine: MachineRecord {
            system: "linux x86_64".to_owned(),
            cpu_model: None,
            cores: 2,
            kernel: None,
            memory_bytes: None,
        },
        trusted_rate: AuditRecord::trusted(&trials),
        trials,
    })
}

#[test]
fn an_audit_bounds_what_is_claimed() {
    // The load that must hold is 4/s; that 6/s is beyond the audit fails nothing.
    check("just as far", |r| r.audit = audit(&[(2, 100), (4, 100)], &[]), "PASS", &[]);
    check("farther", |r| r.audit = audit(&[(2, 100), (5, 100)], &[6]), "PASS", &[]);
    check(
        "not as far",
        |r| r.audit = audit(&[(2, 100), (3, 100)], &[]),
        "UNKNOWN",
        &["load_generator UNKNOWN generator_saturated | lag p99 120 µs, 1000 of 1000 sent | \
           audited up to 3/s; run `goodput audit --to 4/s`"],
    );
    check(
        "between the last that was kept and the first that was not",
        |r| r.audit = audit(&[(3, 100)], &[5, 5]),
        "UNKNOWN",
        &["load_generator UNKNOWN generator_saturated | lag p99 120 µs, 1000 of 1000 sent | \
           audited up to 3/s; run `goodput audit --to 4/s`"],
    );
    check(
        "where it was seen to fail",
        |r| r.audit = audit(&[(3, 100)], &[4, 4]),
        "UNKNOWN",
        &["load_generator UNKNOWN generator_saturated | lag p99 120 µs, 1000 of 1000 sent | \
           audited on this machine, the generator kept 3/s and did not keep 4/s; give it more CPU and run `goodput audit` \
           again, or lower the load"],
    );
    check(
        "nowhere",
        |r| r.audit = audit(&[], &[1, 1]),
        "UNKNOWN",
        &["load_generator UNKNOWN generator_saturated | lag p99 120 µs, 1000 of 1000 sent | \
           audited on this machine, the generator did not keep even 1/s; give it more CPU and run `goodput audit` again"],
    );
}

#[test]
fn a_trial_that_was_not_kept_says_so_before_any_audit() {
    let mut run = result();
    run.audit = audit(&[(2, 100)], &[]);
    at_load(&mut run).health.faults.push("late".to_owned());
    let row = super::super::generator::check(&contract().slo, &run).unwrap();
    assert_eq!((row.reason, row.note.as_deref()), (Reason::GeneratorSaturated, Some("late")));
}

#[test]
fn clients_keep_no_schedule_and_need_no_audit() {
    let mut contract = contract();
    contract.slo.at = Load::Clients(8);
    let mut run = result();
    run.steps = vec![step(Load::Clients(8))];
    run.audit = audit(&[], &[1, 1]);
    let row = super::super::generator::check(&contract.slo, &run).unwrap();
    assert_eq!(row.status, Status::Pass);
}

/// Sampling of a trial that took 300 s: so many readings due and left out, and so much CPU time.
fn sampled(due: u64, missed: u64, cpu_seconds: f64) -> Option<SamplingRecord> {
    let at = Some(12_000_000);
    let took = Quantiles { count: due - missed, p50_ns: at, p90_ns: at, p95_ns: at, p99_ns: at, max_ns: at };
    Some(SamplingRecord { due, missed, lag: None, took: Some(took), cpu_seconds: Some(cpu_seconds) })
}

#[test]
fn the_cost_of_sampling_is_told_and_decides_nothing() {
    check(
        "cheap",
        |r| at_load(r).health.sampling = sampled(60, 0, 1.2),
        "PASS",
        &[
            "load_generator PASS held | lag p99 120 µs, 1000 of 1000 sent | sampling: 60 readings, took p99 12.0 ms, 0.4% of a core",
        ],
    );
    check(
        "just cheap enough",
        |r| at_load(r).health.sampling = sampled(60, 12, 30.0),
        "PASS",
        &[
            "load_generator PASS held | lag p99 120 µs, 1000 of 1000 sent | sampling: 48 readings, took p99 12.0 ms, 10.0% of a core",
        ],
    );
    check(
        "costly and slow",
        |r| at_load(r).health.sampling = sampled(60, 13, 36.0),
        "PASS",
        &[
            "load_generator PASS held | lag p99 120 µs, 1000 of 1000 sent | sampling: 47 readings, took p99 12.0 ms, 12.0% of a core; \
         sampling took 12% of a core: sample less often, or fewer resources; 13 of 60 readings were left out because a \
         source answered too slowly: sample it less often",
        ],
    );
    let mut run = result();
    at_load(&mut run).health.sampling = sampled(60, 60, 0.0);
    at_load(&mut run).health.sampling.as_mut().unwrap().took = None;
    at_load(&mut run).health.faults.push("late".to_owned());
    let row = super::super::generator::check(&contract().slo, &run).unwrap();
    assert_eq!(row.reason, Reason::GeneratorSaturated);
    assert_eq!(row.observed.as_deref(), Some("lag p99 120 µs, 1000 of 1000 sent"));
    let note = row.note.unwrap();
    assert!(note.starts_with("late; sampling: 0 readings, 0.0% of a core; 60 of 60 readings were left out"), "{note}");
}
