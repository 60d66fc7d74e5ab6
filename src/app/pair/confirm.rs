//! A suspected loss, confirmed or not by trials of both endpoints in turn.

use std::time::Duration;

use super::{Beside, Duo, STORE};
use crate::app::gate::store;
use crate::app::run::{Around, Side};
use crate::compare::{self, Reference};
use crate::contract::Plan;
use crate::judge::Status;
use crate::record::{Asked, BaselineUse, RecordStep, RecordTrial, RunResult, Stop};
use crate::search::Part;
use crate::units::Load;

/// Numbers of pairs at which the evidence is looked at (method, section 10.3).
const LOOKS: [usize; 3] = [3, 5, 8];

/// Rows whose loss is confirmed.
const SUSPECTS: [&str; 2] = ["capacity", "goodput"];

/// Where the comparison with a stored baseline finds a loss, measures both endpoints in turn at the load and on the schedules of
/// that comparison. What comes of it, or why nothing does, is put into `used`; it never enters a record.
pub(in crate::app) async fn confirm(
    head: &mut Side,
    beside: Beside,
    used: &mut BaselineUse,
    plan: Plan,
    around: Around<'_>,
) {
    if around.interrupt.token().is_cancelled() || head.stopped().is_some() {
        return;
    }
    let so_far = head.result(Some(used.clone()));
    if !is_suspected(&so_far) {
        return;
    }
    let answer = match Reference::of(head.contract(), used, head.fingerprint()) {
        // Without a curve, pairs of trials at one load say nothing of the capacity.
        Some(reference @ Reference::Shift { .. }) => match beside.side(head, plan) {
            Ok(mut base) => {
                around.teller.say("goodput: a loss is suspected; both endpoints are measured in turn to confirm it");
                measure(head, &mut base, &reference, plan, used, around).await
            }
            Err(failure) => format!("the loss was not confirmed: {}", failure.text()),
        },
        _ => "the loss was not confirmed: the baseline has no headroom curve, as `--plan baseline` measures it"
            .to_owned(),
    };
    around.teller.say(&format!("goodput: {answer}"));
    used.asked.push(Asked { store: STORE.to_owned(), answer });
}

fn is_suspected(result: &RunResult) -> bool {
    let changes = result.comparison.iter().flat_map(|found| &found.changes);
    changes
        .into_iter()
        .any(|change| change.gates && change.status == Status::Fail && SUSPECTS.contains(&change.metric.as_str()))
}

/// Pairs until a look decides, the looks end or the budget does. Says how far it came.
async fn measure(
    head: &mut Side,
    base: &mut Side,
    reference: &Reference,
    plan: Plan,
    used: &mut BaselineUse,
    around: Around<'_>,
) -> String {
    // The head's server has been under load for a while, and the other one has not: both begin anew.
    head.go_down().await;
    let limit = head.contract().evidence.budget.of(plan);
    let mut duo = Duo::new(head, base, around);
    let answer = pairs(&mut duo, reference, limit, around).await;
    base.end(around.interrupt).await;
    used.confirmation = base.measured().confirm().iter().map(RecordStep::of).collect();
    if let Err(failure) = store(base.folder(), &base.result(None)) {
        head.stop_for(Stop::Storage { detail: failure.text() });
    }
    answer
}

async fn pairs(duo: &mut Duo<'_>, reference: &Reference, limit: Duration, around: Around<'_>) -> String {
    let load = reference.load();
    let Some(margin) = duo.head().contract().baseline.as_ref().map(|rules| rules.margin) else {
        return "the loss was not confirmed: the contract names no margin".to_owned();
    };
    let most = LOOKS[LOOKS.len() - 1] as u32;
    for place in 0..most {
        let contract = duo.head().contract();
        let cost = contract.traffic.trial_time(load) * 2;
        if spent(duo) + cost > limit {
            return format!("the loss is not confirmed by more than {place} pairs: the budget is used up");
        }
        let seed = reference.seed(contract, place);
        if let Err(failure) = duo.pair(load, seed, Part::Confirm).await {
            return format!("the loss was not confirmed: {}", failure.text());
        }
        if around.interrupt.token().is_cancelled() || !duo.goes_on() || !duo.is_whole() {
            return format!("the loss is not confirmed by more than {place} pairs: one of the endpoints is gone");
        }
        let (base, head) = (trials(duo.base(), load), trials(duo.head(), load));
        let counted = base.len().min(head.len());
        if LOOKS.contains(&counted) && compare::confirm(reference, &base, &head, margin).status != Status::Unknown {
            return format!("the suspected loss was looked at with {counted} pairs of trials");
        }
    }
    format!("the suspected loss was looked at with {most} pairs of trials, which do not decide")
}

fn trials(side: &Side, load: Load) -> Vec<RecordTrial> {
    let steps = side.measured().confirm();
    steps.iter().filter(|step| step.load == load).flat_map(|step| RecordStep::of(step).trials).collect()
}

/// Time under load of both endpoints together.
fn spent(duo: &Duo<'_>) -> Duration {
    let nanos = |side: &Side| -> u64 { side.measured().tried().iter().map(|tried| tried.record.took_ns).sum() };
    Duration::from_nanos(nanos(duo.head()).saturating_add(nanos(duo.base())))
}
