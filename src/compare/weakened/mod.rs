//! Where a contract asks for less than another one: a change may not quietly lower its own bar.

mod measured;
mod slo;
mod stability;
#[cfg(test)]
mod tests;

use std::fmt::Display;
use std::time::Duration;

use crate::contract::{BaselinePlan, Contract, UnknownPolicy};
use crate::record::Weakening;
use crate::units::format_duration;

/// Every place where `head` asks for less than `base`, in the order of the contract's parts. Both must have been read relative to the
/// same folder. Other cases or payloads are another workload, with which nothing is compared, and so are not told here.
///
/// What is asked in another way, as a health check by another command, is told as changed: whether that is less, a reader decides.
pub fn weakened(base: &Contract, head: &Contract) -> Vec<Weakening> {
    let mut found = Found::default();
    if base.name != head.name {
        found.tell(
            "/name",
            format!("the name from `{}` to `{}`, under which no baseline is kept", base.name, head.name),
        );
    }
    timeouts(base, head, &mut found);
    measured::traffic(base, head, &mut found);
    measured::evidence(&base.evidence, &head.evidence, &mut found);
    slo::slo(&base.slo, &head.slo, &mut found);
    slo::resources(base, head, &mut found);
    stability::stability(base, head, &mut found);
    baseline(base.baseline.as_ref(), head.baseline.as_ref(), &mut found);
    let policies = [
        ("unknown", base.policy.unknown, head.policy.unknown),
        ("missing_baseline", base.policy.missing_baseline, head.policy.missing_baseline),
    ];
    for (name, base, head) in policies {
        if (base, head) == (UnknownPolicy::Block, UnknownPolicy::Warn) {
            found.tell(format!("/policy/{name}"), format!("`{name}` from block to warn"));
        }
    }
    found.0
}

/// What was found so far.
#[derive(Debug, Default)]
struct Found(Vec<Weakening>);

impl Found {
    fn tell(&mut self, pointer: impl Into<String>, what: impl Into<String>) {
        self.0.push(Weakening { pointer: pointer.into(), what: what.into() });
    }

    /// Tells of a figure that may not grow.
    fn higher<T: PartialOrd>(&mut self, pointer: &str, name: &str, base: T, head: T, show: impl Fn(&T) -> String) {
        if head > base {
            self.tell(pointer, format!("{name} from {} to {}", show(&base), show(&head)));
        }
    }

    /// Tells of a figure that may not shrink.
    fn lower<T: PartialOrd>(&mut self, pointer: &str, name: &str, base: T, head: T, show: impl Fn(&T) -> String) {
        if head < base {
            self.tell(pointer, format!("{name} from {} to {}", show(&base), show(&head)));
        }
    }
}

/// A figure as it is written.
fn plain<T: Display>(value: &T) -> String {
    value.to_string()
}

fn time(value: &Duration) -> String {
    format_duration(*value)
}

/// A request that may take longer fails later, and so less often.
fn timeouts(base: &Contract, head: &Contract, found: &mut Found) {
    let (base, head) = (&base.endpoint, &head.endpoint);
    found.higher("/endpoint/timeout", "timeout", base.timeout, head.timeout, time);
    found.higher("/endpoint/idle_timeout", "idle_timeout", base.idle_timeout, head.idle_timeout, time);
}

fn baseline(base: Option<&BaselinePlan>, head: Option<&BaselinePlan>, found: &mut Found) {
    let Some(base) = base else { return };
    let Some(head) = head else {
        found.tell("/baseline", "nothing is compared with a baseline any more");
        return;
    };
    found.higher("/baseline/margin", "margin", base.margin, head.margin, plain);
    for gate in base.latency.iter().filter(|gate| gate.gates) {
        let name = format!("{}_p{}", gate.metric.name(), gate.percentile);
        let same = |(_, other): &(usize, &crate::contract::LatencyMargin)| {
            (other.metric, other.percentile) == (gate.metric, gate.percentile)
        };
        match head.latency.iter().enumerate().find(same) {
            Some((index, other)) if other.gates => {
                let pointer = format!("/baseline/latency/{index}/margin");
                found.higher(&pointer, &format!("margin of {name}"), gate.margin, other.margin, plain);
            }
            Some((index, _)) => {
                found.tell(format!("/baseline/latency/{index}/gates"), format!("{name} is only shown"));
            }
            None => found.tell("/baseline/latency", format!("{name} is missing; its margin was {}", gate.margin)),
        }
    }
    for key in base.fingerprint.must_match.keys().filter(|key| !head.fingerprint.must_match.contains_key(*key)) {
        found.tell("/baseline/fingerprint/must_match", format!("`{key}` need not match any more"));
    }
    sources(base, head, found);
    if head.accepted.is_some() && head.accepted != base.accepted {
        found.tell("/baseline/accepted", "exceptions are read from another file");
    }
}

/// What a change is compared with: whoever chooses that chooses the bar.
fn sources(base: &BaselinePlan, head: &BaselinePlan, found: &mut Found) {
    if base.from != head.from {
        found.tell("/baseline/from", "baselines are taken from other places");
    }
    if base.within != head.within {
        found.tell("/baseline/within", "baselines are looked for within other bounds");
    }
    match (&base.release, &head.release) {
        (Some(_), None) => found.tell("/baseline/release", "no release is held against slow decline any more"),
        (Some(was), Some(is)) if was != is => {
            found.tell("/baseline/release", "slow decline is held against another release");
        }
        _ => {}
    }
    match (&base.pair, &head.pair) {
        (Some(_), None) => found.tell("/baseline/pair", "the endpoint without the change is not run any more"),
        (was, is) if was != is => {
            found.tell("/baseline/pair", "the endpoint without the change is another one, or run at other times");
        }
        _ => {}
    }
}
