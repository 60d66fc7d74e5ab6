//! What must hold.

use super::{Found, plain};
use crate::contract::{Contract, Objective, RequestMetric, Resource, Slo};
use crate::units::Load;

pub(super) fn slo(base: &Slo, head: &Slo, found: &mut Found) {
    for (metric, limit) in base.request.set() {
        let (name, pointer) = (metric.name(), format!("/slo/request/{}", metric.name()));
        match head.request.set().find(|(other, _)| *other == metric) {
            Some((_, other)) => {
                found.higher(&pointer, &format!("{name} of a request"), limit, other, shown(metric));
            }
            None => found.tell("/slo/request", format!("{name} is missing; it was {}", shown(metric)(&limit))),
        }
    }
    for objective in &base.objectives {
        objective_of(objective, &head.objectives, found);
    }
    match (base.at, head.at) {
        (Load::RateMilli(base), Load::RateMilli(head)) => {
            found.lower("/slo/at_load", "the load that must hold", base, head, plain);
        }
        (Load::Clients(base), Load::Clients(head)) => {
            found.lower("/slo/at_concurrency", "the clients that must be served", base, head, plain);
        }
        // That the loop is another one is told of the traffic.
        (Load::RateMilli(_), Load::Clients(_)) | (Load::Clients(_), Load::RateMilli(_)) => {}
    }
    match (base.capacity, head.capacity) {
        (Some(base), Some(head)) => found.lower("/slo/capacity/at_least", "the least capacity", base, head, plain),
        (Some(base), None) => found.tell("/slo/capacity", format!("the least capacity is missing; it was {base}")),
        (None, _) => {}
    }
}

/// Writes a limit of this metric.
fn shown(metric: RequestMetric) -> impl Fn(&u64) -> String {
    move |limit| metric.show_limit(*limit)
}

fn objective_of(base: &Objective, head: &[Objective], found: &mut Found) {
    let id = base.id();
    // A limit that is kept at a higher percentile holds at the lower one too.
    if head.iter().any(|other| other.id() != id && implies(other, base)) {
        return;
    }
    let Some((index, other)) = head.iter().enumerate().find(|(_, other)| other.id() == id) else {
        found.tell("/slo/objectives", format!("{id} is missing; it was {}", base.limit_text()));
        return;
    };
    let at = format!("/slo/objectives/{index}");
    match (base, other) {
        (Objective::Percentile { metric, at_most: base, .. }, Objective::Percentile { at_most: head, .. }) => {
            found.higher(&format!("{at}/at_most"), &id, *base, *head, shown(*metric));
        }
        (Objective::SuccessRate { at_least: base }, Objective::SuccessRate { at_least: head })
        | (Objective::Attainment { at_least: base }, Objective::Attainment { at_least: head }) => {
            found.lower(&format!("{at}/at_least"), &id, *base, *head, plain);
        }
        // Objectives of the same name are of the same kind.
        _ => found.tell(at, format!("{id} is another objective")),
    }
}

/// Whether whatever meets `other` meets `base`.
fn implies(other: &Objective, base: &Objective) -> bool {
    match (other, base) {
        (
            Objective::Percentile { metric: other, quantile: other_quantile, at_most: other_limit },
            Objective::Percentile { metric, quantile, at_most },
        ) => other == metric && other_quantile >= quantile && other_limit <= at_most,
        _ => false,
    }
}

/// Limits on resources, and how those are read that have one.
pub(super) fn resources(base: &Contract, head: &Contract, found: &mut Found) {
    for limit in &base.slo.resources {
        let id = limit.id();
        let same = head.slo.resources.iter().enumerate().find(|(_, other)| other.id() == id);
        let Some((index, other)) = same else {
            found.tell("/slo/resources", format!("{id} is missing; it was ≤ {}", limit.show(limit.at_most)));
            continue;
        };
        let pointer = format!("/slo/resources/{index}/at_most");
        found.higher(&pointer, &id, limit.at_most, other.at_most, |figure| limit.show(*figure));
    }
    let limited = |name: &str| base.slo.resources.iter().any(|limit| limit.resource == name);
    for resource in base.resources.iter().filter(|resource| limited(&resource.name)) {
        let Some(other) = head.resources.iter().find(|other| other.name == resource.name) else { continue };
        // One entry can bring several resources, so that its place is not known.
        let pointer = "/resources";
        if !is_read_alike(base, resource, head, other) {
            found.tell(pointer, format!("{} is read in another way", resource.name));
        } else {
            found.higher(pointer, &format!("{} is sampled", resource.name), resource.every, other.every, |time| {
                format!("every {}", super::time(time))
            });
        }
    }
}

fn is_read_alike(base: &Contract, resource: &Resource, head: &Contract, other: &Resource) -> bool {
    let plain = |resource: &Resource| (resource.kind, resource.unit, resource.across, resource.scale.to_bits());
    plain(resource) == plain(other)
        && super::stability::is_same(base, &resource.probe.source, head, &other.probe.source)
}
