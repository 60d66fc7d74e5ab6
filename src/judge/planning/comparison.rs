//! What comparing with a baseline costs.

use serde::Serialize;

use super::{Span, StepForecast, nanos};
use crate::contract::{Contract, PairWhen, Traffic};
use crate::search::{CURVE_TRIALS, Campaign};
use crate::units::{Load, Rate};

/// Most looks at the trials against the baseline's capacity.
const MOST_AGAINST: u64 = 8;

/// What comparing with a baseline costs, and what it costs to become one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparisonForecast {
    /// Trials at the capacity of the stored baseline; none where there is none.
    pub against: Span,
    /// Trials of the endpoint without the change that are made beside those of the steps.
    pub beside: Span,
    /// Trials around the own capacity, by which later runs are compared with this one.
    pub around: Span,
    /// Time under load of all of them, in nanoseconds.
    pub load_time_ns: Span,
}

impl ComparisonForecast {
    /// All its trials.
    pub fn trials(&self) -> Span {
        self.against + self.beside + self.around
    }
}

/// `None` where the contract asks for no comparison. `steps` are those of the plan.
pub(super) fn forecast(
    contract: &Contract,
    campaign: &Campaign<'_>,
    steps: &[StepForecast],
) -> Option<ComparisonForecast> {
    let plan = contract.baseline.as_ref()?;
    let is_open = matches!(contract.traffic, Traffic::Open { .. });
    let is_paired = plan.pair.as_ref().is_some_and(|pair| pair.when == PairWhen::Always);
    let against =
        Span { least: 0, most: if is_open && !is_paired && !plan.from.is_empty() { MOST_AGAINST } else { 0 } };
    let around = if campaign.measures_curve() { CURVE_TRIALS } else { 0 };
    let around = Span { least: 0, most: around };
    let beside = |of: fn(&StepForecast) -> Span| if is_paired { steps.iter().map(of).sum() } else { Span::default() };
    let time = |load: Load| nanos(contract.traffic.trial_time(load));
    // A capacity is not below the load that must hold, or else there is more to say than what it costs.
    let at = time(contract.slo.at);
    let slowest = contract.evidence.search.map_or(at, |search| time(Load::RateMilli(lowest(search.from))));
    let most = against.most.saturating_mul(at).saturating_add(around.most.saturating_mul(slowest));
    let load_time_ns = Span { least: 0, most } + beside(|step| step.load_time_ns);
    Some(ComparisonForecast { against, beside: beside(|step| step.trials), around, load_time_ns })
}

/// The lowest load around a capacity that lies where a search begins: nine tenths of it.
fn lowest(from: Rate) -> Rate {
    Rate::from_milli(from.milli() * 9 / 10).unwrap_or(from)
}
