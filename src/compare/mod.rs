//! A run against a baseline: changes with intervals, and whether comparing is fair at all (method, section 10).
//!
//! Everything here reads stored records alone: the same two records give the same changes, anywhere.

mod reference;

pub use reference::Reference;

use crate::contract::{BaselinePlan, Contract};
use crate::judge::{Reason, Status};
use crate::record::{BaselineRecord, Change, Comparison, RecordTrial, RunResult};
use crate::units::Share;

/// Two records and the rules by which they are compared.
#[derive(Debug, Clone, Copy)]
pub struct Sides<'a> {
    /// The baseline.
    pub base: &'a BaselineRecord,
    /// The run.
    pub head: &'a BaselineRecord,
    /// The run's contract.
    pub contract: &'a Contract,
    /// Margins, and which latencies gate.
    pub rules: &'a BaselinePlan,
    /// Both were measured side by side, trial by trial: their schedules and the machine's state pair them.
    pub is_paired: bool,
}

/// Compares two records.
pub fn compare(_sides: Sides<'_>) -> Comparison {
    Comparison::default()
}

/// What changed between a run and what it is compared with; `None` where there is nothing to compare it with.
pub fn compare_run(contract: &Contract, result: &RunResult) -> Option<Comparison> {
    let (rules, used) = (contract.baseline.as_ref()?, result.baseline.as_ref()?);
    let base = used.record.as_ref()?;
    let head = BaselineRecord::of(result);
    let is_paired = used.chosen.as_ref().is_some_and(|chosen| chosen.why == crate::record::Why::Paired);
    Some(compare(Sides { base, head: &head, contract, rules, is_paired }))
}

/// What pairs of trials at the reference's load say of a loss that was suspected.
pub fn confirm(contract: &Contract, reference: &Reference, base: &[RecordTrial], head: &[RecordTrial]) -> Change {
    Change {
        metric: "goodput".to_owned(),
        load: Some(reference.load()),
        base: None,
        head: None,
        ratio: None,
        interval: None,
        confidence: None,
        method: None,
        margin: contract.baseline.as_ref().map_or(Share::ONE.rest(), |plan| plan.margin),
        base_trials: base.len() as u32,
        head_trials: head.len() as u32,
        status: Status::Unknown,
        reason: Reason::NotMeasured,
        significant: false,
        material: false,
        gates: false,
        note: None,
    }
}
