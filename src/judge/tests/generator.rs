//! What an audit of the load generator lets a verdict claim.

use super::verdicts::check;
use super::*;
use crate::record::{AUDIT_SCHEMA, AuditRecord, AuditTrial, MachineRecord};

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
