//! From the samples of a trial to what its window tells of each resource, and from the trials of a step to the same of it.

use std::collections::BTreeSet;
use std::ops::Range;

use super::accumulator::TrialAccumulator;
use crate::contract::{Resource, ResourceKind};
use crate::record::{ResourceRecord, ResourceSample, TrialRecord};
use crate::units::format_duration;

/// What the samples of one trial tell of each resource, in the order in which the resources were asked for. `window` is the
/// time, in nanoseconds since the trial's start, in which a sample counts. A resource without a number has none here.
pub fn resource_records(asked: &[Resource], samples: &[ResourceSample], window: Range<u64>) -> Vec<ResourceRecord> {
    let in_window = |resource: &Resource| {
        let counts = |sample: &&ResourceSample| sample.name == resource.name && window.contains(&sample.at_ns);
        let mut due: Vec<&ResourceSample> = samples.iter().filter(counts).collect();
        due.sort_by_key(|sample| sample.at_ns);
        due
    };
    asked.iter().map(|resource| of_window(resource, &in_window(resource))).collect()
}

/// One resource over the samples that were due in a window, in their order.
fn of_window(resource: &Resource, due: &[&ResourceSample]) -> ResourceRecord {
    let numbers: Vec<Number> = numbers(due);
    let values: Vec<f64> = numbers.iter().map(|number| number.value).collect();
    let rise = match resource.kind {
        ResourceKind::Gauge => None,
        ResourceKind::Counter => Some(rise(&numbers)),
    };
    let (rise, no_rise) = match rise {
        Some(Ok(rise)) => (Some(rise), None),
        Some(Err(why)) => (None, Some(why)),
        None => (None, None),
    };
    let missing = due.iter().find(|sample| sample.value.is_none());
    let failure = match missing {
        Some(sample) => Some(sample.failure.clone().unwrap_or_else(|| "it gave no number".to_owned())),
        None if due.is_empty() => Some(format!(
            "no sample was due while the window lasted; sample it more often than every {}",
            format_duration(resource.every)
        )),
        None => no_rise,
    };
    ResourceRecord {
        name: resource.name.clone(),
        kind: resource.kind,
        unit: resource.unit,
        due: due.len() as u64,
        samples: numbers.len() as u64,
        min: values.iter().copied().reduce(f64::min),
        max: values.iter().copied().reduce(f64::max),
        last: values.last().copied(),
        median: median(values),
        rate_per_s: rise.map(Rise::per_second),
        rate_over_ns: rise.map(|rise| rise.over_ns),
        failure,
    }
}

/// A sample that has a number.
#[derive(Debug, Clone, Copy)]
struct Number {
    at_ns: u64,
    value: f64,
    began_anew: bool,
}

/// The numbers among samples. What began anew with a sample that has none began anew before the next one.
fn numbers(due: &[&ResourceSample]) -> Vec<Number> {
    let mut began_anew = false;
    let mut numbers = Vec::with_capacity(due.len());
    for sample in due {
        began_anew |= sample.began_anew;
        if let Some(value) = sample.value {
            numbers.push(Number { at_ns: sample.at_ns, value, began_anew: std::mem::take(&mut began_anew) });
        }
    }
    numbers
}

/// How far a counter rose, and in which time.
#[derive(Debug, Clone, Copy)]
struct Rise {
    by: f64,
    over_ns: u64,
}

impl Rise {
    fn per_second(self) -> f64 {
        self.by / (self.over_ns as f64 / 1e9)
    }
}

/// The rise of a counter from its first sample to its last, or why that is not known.
fn rise(numbers: &[Number]) -> Result<Rise, String> {
    for pair in numbers.windows(2) {
        // A count that was lost on the way makes every rise across it too small.
        if pair[1].value < pair[0].value {
            return Err(format!("it went down from {} to {}: it has no rate", pair[0].value, pair[1].value));
        }
        if pair[1].began_anew {
            return Err("what it counts began anew: it has no rate".to_owned());
        }
    }
    let over = numbers
        .first()
        .zip(numbers.last())
        .map(|(first, last)| Rise { by: last.value - first.value, over_ns: last.at_ns - first.at_ns });
    over.filter(|rise| rise.over_ns > 0).ok_or_else(|| "a rate needs two samples in the window".to_owned())
}

/// The nearest-rank median, the `⌈n/2⌉`-th smallest; `None` of nothing.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len().div_ceil(2).checked_sub(1)?).copied()
}

/// What the trials that speak for a step tell of each resource.
pub(super) fn step_resources(pool: &[&(TrialRecord, TrialAccumulator)]) -> Vec<ResourceRecord> {
    let mut told = BTreeSet::new();
    let each = pool.iter().flat_map(|(trial, _)| &trial.resources);
    each.filter(|record| told.insert(record.name.as_str())).map(|first| of_step(first, pool)).collect()
}

/// One resource over all those trials; `first` says what it is.
fn of_step(first: &ResourceRecord, pool: &[&(TrialRecord, TrialAccumulator)]) -> ResourceRecord {
    let of_trial = |trial: &&(TrialRecord, TrialAccumulator)| {
        trial.0.resources.iter().find(|record| record.name == first.name).cloned()
    };
    let trials: Vec<Option<ResourceRecord>> = pool.iter().map(of_trial).collect();
    let known = || trials.iter().flatten();
    let over_ns = trials.iter().map(|trial| trial.as_ref()?.rate_over_ns).sum::<Option<u64>>();
    let rise = trials.iter().map(|trial| {
        let trial = trial.as_ref()?;
        Some(trial.rate_per_s? * (trial.rate_over_ns? as f64 / 1e9))
    });
    let rise = rise.sum::<Option<f64>>().zip(over_ns).map(|(by, over_ns)| Rise { by, over_ns });
    ResourceRecord {
        name: first.name.clone(),
        kind: first.kind,
        unit: first.unit,
        due: known().map(|trial| trial.due).sum(),
        samples: known().map(|trial| trial.samples).sum(),
        min: known().filter_map(|trial| trial.min).reduce(f64::min),
        median: median(known().filter_map(|trial| trial.median).collect()),
        max: known().filter_map(|trial| trial.max).reduce(f64::max),
        last: trials.last().and_then(|trial| trial.as_ref()?.last),
        rate_per_s: rise.map(Rise::per_second),
        rate_over_ns: rise.map(|rise| rise.over_ns),
        failure: known().find_map(|trial| trial.failure.clone()),
    }
}
