//! A run against a baseline: changes with intervals, and whether comparing is fair at all (method, section 10).
//!
//! Everything here reads stored records alone: the same two records give the same changes, anywhere.

mod reference;
mod weakened;

pub use reference::Reference;
pub use weakened::weakened;

use crate::contract::{BaselinePlan, Contract};
use crate::record::{BaselineRecord, Comparison, RunResult};

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
