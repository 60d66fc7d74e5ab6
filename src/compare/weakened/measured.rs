//! How much is measured.

use super::{Found, plain, time};
use crate::contract::{Contract, EvidencePlan, Search, Traffic};
use crate::judge::Claim;
use crate::schedule::ArrivalProcess;
use crate::units::Load;

const TRIAL: &str = "/traffic/trial/window";

pub(super) fn traffic(base: &Contract, head: &Contract, found: &mut Found) {
    match (&base.traffic, &head.traffic) {
        (
            Traffic::Open { process: base_process, counts: base_counts, .. },
            Traffic::Open { process: head_process, counts: head_counts, .. },
        ) => {
            if (base_process, head_process) == (&ArrivalProcess::Poisson, &ArrivalProcess::Constant) {
                // Equal gaps make shorter queues at the same load.
                found.tell("/traffic/model", "arrivals from poisson to constant");
            }
            found.lower(TRIAL, "requests in a window", base_counts.window, head_counts.window, plain);
        }
        (Traffic::Closed { window: base_window, .. }, Traffic::Closed { window: head_window, .. }) => {
            found.lower(TRIAL, "window", *base_window, *head_window, time);
        }
        (Traffic::Open { .. }, Traffic::Closed { .. }) => {
            found.tell("/traffic/model", "a closed loop waits for replies; before, arrivals never did");
            return;
        }
        (Traffic::Closed { .. }, Traffic::Open { .. }) => {
            found.tell("/traffic/model", "changed from a closed loop to an open one");
            return;
        }
    }
    let listed = head.traffic.loads();
    let pointer = if matches!(head.traffic, Traffic::Open { .. }) { "/traffic/loads" } else { "/traffic/concurrency" };
    // The load that must hold is listed by itself; one that is raised is no load less.
    let was_raised = |load: &Load| *load == base.slo.at && head.slo.at > *load;
    for load in base.traffic.loads().into_iter().filter(|load| !listed.contains(load) && !was_raised(load)) {
        found.tell(pointer, format!("{load} is not listed any more"));
    }
}

pub(super) fn evidence(base: &EvidencePlan, head: &EvidencePlan, found: &mut Found) {
    if strength(head.claim) < strength(base.claim) {
        let what = format!("claim from {} to {}", claim(base.claim), claim(head.claim));
        found.tell("/traffic/claim", what);
    }
    let most = |plan: &EvidencePlan| plan.looks.last().copied().unwrap_or(0);
    // What a single run claims needs no repeats; that the claim is a weaker one is told above.
    if head.claim == base.claim {
        found.lower("/traffic/repeats", "trials at the load that must hold", most(base), most(head), plain);
    }
    search(base.search.as_ref(), head.search.as_ref(), found);
}

fn search(base: Option<&Search>, head: Option<&Search>, found: &mut Found) {
    let at = "/traffic/search";
    let Some(base) = base else { return };
    let Some(head) = head else {
        found.tell(at, "the search for the capacity is missing");
        return;
    };
    found.higher(&format!("{at}/from"), "search from the lowest load", base.from, head.from, plain);
    found.lower(&format!("{at}/to"), "search up to the highest load", base.to, head.to, plain);
    found.higher(&format!("{at}/precision"), "precision of the search", base.precision, head.precision, plain);
    found.lower(&format!("{at}/seeds"), "searches", base.seeds, head.seeds, plain);
}

fn strength(claim: Claim) -> u8 {
    match claim {
        Claim::ThisRun => 0,
        Claim::TypicalRun => 1,
        Claim::LongRun => 2,
    }
}

fn claim(claim: Claim) -> &'static str {
    match claim {
        Claim::ThisRun => "this_run",
        Claim::TypicalRun => "typical_run",
        Claim::LongRun => "long_run",
    }
}
