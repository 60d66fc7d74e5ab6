//! The endpoint without the change, measured beside the one with it: on the same machine, trial by trial, in turn.

mod confirm;
mod duo;

pub(super) use confirm::confirm;
pub(super) use duo::{Duo, Which};

use super::exit::Failure;
use super::gate::store;
use super::prepare::Source;
use super::run::{Around, Side};
use crate::contract::{Launch, LaunchWhat, PairWhen, Plan, parse};
use crate::judge::{Reason, Status};
use crate::record::{Asked, BaselineRecord, BaselineUse, Chosen, Missing, RunFolder, RunResult, Stop, VALIDITY, Why};
use crate::report::json;
use crate::search::{Campaign, Next, Part};
use crate::units::Digest;

/// The store's name in records.
const STORE: &str = "pair";
/// Characters of a launch command that are told.
const LONGEST_PLACE: usize = 200;

/// The endpoint without the change, before it is measured.
pub(super) struct Beside {
    source: Source,
    when: PairWhen,
    /// The contract is another one, named on the command line.
    is_named: bool,
}

impl Beside {
    /// What a contract names itself: the same contract with another launch.
    pub(super) fn of(source: &Source) -> Result<Option<Self>, Failure> {
        let Some(pair) = source.loaded.contract.baseline.as_ref().and_then(|plan| plan.pair.as_ref()) else {
            return Ok(None);
        };
        let mut value = source.loaded.value.clone();
        let launch = value.pointer("/baseline/pair/launch").cloned().unwrap_or_default();
        if let Some(endpoint) = value.pointer_mut("/endpoint").and_then(serde_json::Value::as_object_mut) {
            endpoint.insert("launch".to_owned(), launch);
        }
        if let Some(baseline) = value.pointer_mut("/baseline").and_then(serde_json::Value::as_object_mut) {
            baseline.shift_remove("pair");
        }
        // JSON is YAML, so that the folder of this endpoint holds a contract that can be read again.
        let text = json(&value);
        let loaded = parse(&text, &source.folder)
            .map_err(|faults| Failure::contract(&faults, "the contract with `baseline.pair.launch` in place", &text))?;
        let source = Source { loaded, text, folder: source.folder.clone() };
        Ok(Some(Self { source, when: pair.when, is_named: false }))
    }

    /// The endpoint of another contract.
    pub(super) fn named(source: Source) -> Self {
        Self { source, when: PairWhen::Always, is_named: true }
    }

    pub(super) fn when(&self) -> PairWhen {
        self.when
    }

    /// Makes its folder inside that of the run, and its plan.
    fn side(&self, head: &Side, plan: Plan) -> Result<Side, Failure> {
        let (run, audit) = (head.folder().path(), head.audit().cloned());
        Side::prepare(self.source.clone(), plan, audit, |_, _| Ok(RunFolder::create(run, "base")?), "base ")
    }

    /// Where it runs or how it is launched, for people.
    fn place(&self) -> String {
        let endpoint = &self.source.loaded.contract.endpoint;
        let place = match endpoint.launch.as_ref() {
            Some(Launch { what: LaunchWhat::Command(command), .. }) => format!("launched by `{}`", command.join(" ")),
            Some(Launch { what: LaunchWhat::Simulate(profile), .. }) => format!("simulated by {}", profile.display()),
            None => endpoint.url[..url::Position::AfterPath].to_owned(),
        };
        place.chars().take(LONGEST_PLACE).collect()
    }
}

/// What the run is compared with once nothing of a pair can be measured.
fn nothing(used: Option<BaselineUse>, reason: Reason, note: String) -> BaselineUse {
    let asked = Asked { store: STORE.to_owned(), answer: note.clone() };
    let mut used =
        BaselineUse { record: None, chosen: None, missing: Some(Missing { reason, note }), ..used.unwrap_or_default() };
    used.asked.push(asked);
    used
}

/// Carries a run out whose every trial at a listed load is made at both endpoints. Without the other endpoint the run goes on
/// alone: that nothing can be compared is part of its result.
pub(super) async fn measure_pairs(
    head: &mut Side,
    beside: Beside,
    used: Option<BaselineUse>,
    plan: Plan,
    around: Around<'_>,
) -> Result<RunResult, Failure> {
    let mut base = match prepare(head, &beside, plan) {
        Ok(base) => base,
        Err((reason, note)) => {
            around.teller.say(&format!("goodput: {note}"));
            let used = nothing(used, reason, note);
            if head.come_up(around).await? {
                alone(head, plan, around).await;
            }
            head.end(around.interrupt).await;
            return Ok(head.result(Some(used)));
        }
    };
    let mut duo = Duo::new(head, &mut base, around);
    let measured = turns(&mut duo, plan, around).await;
    base.end(around.interrupt).await;
    head.end(around.interrupt).await;
    measured?;
    let base_result = base.result(None);
    if let Err(failure) = store(base.folder(), &base_result) {
        head.stop_for(Stop::Storage { detail: failure.text() });
    }
    let used = used_of(&base_result, used, &beside);
    Ok(head.result(Some(used)))
}

/// The other endpoint, or why it cannot be measured beside this one.
fn prepare(head: &Side, beside: &Beside, plan: Plan) -> Result<Side, (Reason, String)> {
    let listed = |contract| -> Vec<(u64, Digest)> {
        let trials = Campaign::new(contract, plan).listed().into_iter();
        trials.map(|trial| (trial.seed, trial.schedule_digest())).collect()
    };
    if listed(head.contract()) != listed(&beside.source.loaded.contract) {
        let note = "the endpoint without the change was not measured: its contract plans other trials; give both the same \
                    `traffic` and `workload.seed`";
        return Err((Reason::FingerprintMismatch, note.to_owned()));
    }
    beside.side(head, plan).map_err(|failure| {
        (Reason::NotMeasured, format!("the endpoint without the change was not measured: {}", failure.text()))
    })
}

/// The plan at one endpoint, compared with nothing.
async fn alone(head: &mut Side, plan: Plan, around: Around<'_>) {
    while !around.interrupt.token().is_cancelled() && head.stopped().is_none() {
        match Campaign::new(head.contract(), plan).next(&head.measured().tried()) {
            Next::Trial(planned, part) => head.measure(planned, part, around).await,
            Next::Done | Next::OutOfTime => break,
        }
    }
}

/// Turn by turn until the plan is done, the run is stopped or the time is up.
async fn turns(duo: &mut Duo<'_>, plan: Plan, around: Around<'_>) -> Result<(), Failure> {
    while !around.interrupt.token().is_cancelled() && duo.goes_on() {
        match duo.next(plan) {
            Next::Trial(planned, Part::Step) => duo.pair(planned.load, planned.seed, Part::Step).await?,
            Next::Trial(planned, part) => duo.one(Which::Head, planned.load, planned.seed, part).await?,
            Next::Done => break,
            Next::OutOfTime => {
                around.teller.say("the rest of the plan does not fit into its budget");
                break;
            }
        }
    }
    Ok(())
}

/// With what the run was compared: the other endpoint's own result, or why it is none.
fn used_of(base: &RunResult, used: Option<BaselineUse>, beside: &Beside) -> BaselineUse {
    let mut used = used.unwrap_or_default();
    if beside.is_named && used.base_contract.is_none() {
        used.base_contract = Some(base.contract.clone());
    }
    if let Some((reason, note)) = hindrance(base) {
        return nothing(Some(used), reason, note);
    }
    let place = beside.place();
    let answer = format!("measured beside the change: {place}");
    used.asked.push(Asked { store: STORE.to_owned(), answer });
    let chosen = Chosen { store: STORE.to_owned(), place, why: Why::Paired, age_s: 0 };
    BaselineUse { record: Some(BaselineRecord::of(base)), chosen: Some(chosen), missing: None, ..used }
}

/// What keeps the other endpoint's result from being evidence.
fn hindrance(base: &RunResult) -> Option<(Reason, String)> {
    let checks = base.verdict.iter().flat_map(|verdict| &verdict.checks);
    let row = checks.into_iter().find(|row| VALIDITY.contains(&row.id.as_str()) && row.status != Status::Pass)?;
    let why = row.note.as_deref().unwrap_or(row.reason.code());
    Some((row.reason, format!("the endpoint without the change is no evidence ({}): {why}", row.id)))
}
