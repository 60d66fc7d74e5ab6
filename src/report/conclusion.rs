//! What a run says, in sentences that need no table: the same in every format. The texts are not escaped yet.

use super::figures::{self, check_name, grouped, per_second};
use super::{capacity, change, resources};
use crate::contract::Plan;
use crate::judge::{Check, Claim, Reason, Status};
use crate::record::{EndpointKind, Readiness, RunResult, StepRecord, Stop};
use crate::units::{Load, format_nanos};

/// The overall answer as a word; a result without verdict has none yet.
pub(super) fn overall(result: &RunResult) -> (Option<Status>, &'static str) {
    let status = result.verdict.as_ref().map(|verdict| verdict.overall);
    (status, status.map_or("NOT JUDGED", Status::word))
}

/// The sentences under the overall answer: what stopped the run, what failed and what stayed open, where capacity ends and by
/// which limit, and what changed.
pub(super) fn sentences(result: &RunResult) -> Vec<String> {
    let mut sentences = Vec::new();
    sentences.extend(endpoint_trouble(&result.endpoint.ready));
    sentences.extend(result.stopped.as_ref().map(stop));
    sentences.extend(instability(result));
    sentences.extend(open_rows(result));
    if figures::is_closed_loop(result) {
        sentences.extend(throughput(result));
    }
    sentences.extend(capacity::sentence(result));
    sentences.extend(change::sentences(result));
    sentences
}

/// What kind of figures these are, where a reader could take them for more than they are.
pub(super) fn labels(result: &RunResult) -> Vec<&'static str> {
    let mut labels = Vec::new();
    if result.endpoint.kind == EndpointKind::Simulated {
        labels.push("simulated endpoint: these figures are those of a simulation");
    }
    if figures::is_closed_loop(result) {
        labels.push("closed loop: maximum throughput; not an offered load");
    }
    labels
}

/// What broke of the system itself, before anything is said of its speed: the figures describe a system that failed.
fn instability(result: &RunResult) -> impl Iterator<Item = String> + '_ {
    /// The table has them all.
    const SHOWN: usize = 4;
    let checks = result.verdict.iter().flat_map(|verdict| &verdict.checks);
    let told = checks.filter_map(|check| {
        let is_so =
            matches!(check.reason, Reason::CounterRose | Reason::CounterReset | Reason::Restarted | Reason::Unhealthy);
        let note = check.note.as_ref().filter(|_| is_so)?;
        Some(format!("Not stable: `{}`, {}.", check.id, clause(note)))
    });
    told.take(SHOWN)
}

fn endpoint_trouble(ready: &Readiness) -> Option<String> {
    match ready {
        Readiness::Ready | Readiness::NotAsked => None,
        Readiness::NotReady { detail } => Some(format!("The endpoint did not become ready: {}.", clause(detail))),
        Readiness::Unreachable { detail } => Some(format!("The endpoint could not be reached: {}.", clause(detail))),
    }
}

fn stop(stop: &Stop) -> String {
    match stop {
        Stop::Signal { number: 2 } => "Stopped by SIGINT before the plan was done.".to_owned(),
        Stop::Signal { number: 15 } => "Stopped by SIGTERM before the plan was done.".to_owned(),
        Stop::Signal { number } => format!("Stopped by signal {number} before the plan was done."),
        Stop::EndpointDown { detail } => format!("The endpoint went away during the run: {}.", clause(detail)),
        Stop::Storage { detail } => format!("The results could not be written: {}.", clause(detail)),
    }
}

/// A text from elsewhere, as the end of a sentence.
fn clause(text: &str) -> &str {
    text.trim().trim_end_matches('.')
}

/// What a closed loop reached with the clients that the contract names, else with the most that were measured.
fn throughput(result: &RunResult) -> Option<String> {
    let wanted = figures::load_that_must_hold(result);
    let with_figures = || result.steps.iter().filter(|step| step.completed.is_some());
    let step = with_figures().find(|step| Some(step.load) == wanted).or_else(|| with_figures().next_back())?;
    let tokens = step
        .output_tokens_per_second
        .map_or_else(String::new, |tokens| format!(" with {} output tokens/s", per_second(Some(tokens))));
    Some(format!("{} complete {} requests/s{tokens}.", step.load, per_second(step.completed)))
}

/// The rows that are not PASS, by name, and what the policy makes of an UNKNOWN.
fn open_rows(result: &RunResult) -> Vec<String> {
    let Some(verdict) = &result.verdict else { return Vec::new() };
    let told = [(Status::Fail, "Failed"), (Status::Unknown, "Not decided"), (Status::Accepted, "Accepted by review")];
    let mut sentences = Vec::new();
    for (status, what) in told {
        let rows: Vec<&Check> = verdict.checks.iter().filter(|check| check.status == status).collect();
        // That all limits do not hold together is said by the one that does not.
        let is_said = |check: &Check| check.id == TOGETHER && rows.iter().any(|other| is_objective(other));
        let names: Vec<String> =
            rows.iter().filter(|check| !is_said(check)).map(|check| name_with_reason(check)).collect();
        if !names.is_empty() {
            let at = figures::load_that_must_hold(result).filter(|_| status == Status::Fail && is_objective(rows[0]));
            let at = at.map_or_else(String::new, |load| format!("at {load} "));
            sentences.push(format!("{what}: {at}{}.", listed(&names)));
        }
    }
    if verdict.overall == Status::Unknown && !verdict.unknown_blocks {
        sentences.push("The policy does not let UNKNOWN block.".to_owned());
    }
    sentences
}

/// The row that asks for all limits on one schedule.
const TOGETHER: &str = "all_limits";

/// Whether a row is one of the objectives, which are judged at the load that must hold.
fn is_objective(check: &Check) -> bool {
    let is_other = [TOGETHER, "capacity"].contains(&check.id.as_str()) || check.id.ends_with("_change");
    check.claim.is_some() && !is_other
}

/// The name of a row and why it does not pass: what was seen in place of its limit, else the reason.
fn name_with_reason(check: &Check) -> String {
    /// Figures longer than this are left to the table.
    const SHORT: usize = 32;
    let name = check_name(&check.id);
    let shown = |figure: &Option<String>| figure.clone().filter(|figure| figure.chars().count() <= SHORT);
    // What follows a comma is the same in other words.
    let observed = check.observed.as_ref().map(|text| text.split(", ").next().unwrap_or_default().to_owned());
    match (check.reason, shown(&observed).zip(shown(&check.limit))) {
        (Reason::Broken, Some((observed, limit))) => match limit.strip_prefix("≥ -") {
            Some(margin) => format!("{name} ({observed}, and at most {margin} may be lost)"),
            None => format!("{name} ({observed}, not {limit})"),
        },
        (Reason::Broken | Reason::Accepted, _) => name,
        _ => format!("{name} ({})", check.reason.code()),
    }
}

/// The first few names, and how many more there are: the table has them all.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 4;
    let mut text = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(" and {} more", names.len() - SHOWN));
    }
    text
}

/// What was planned and measured, and how far the load generator can be trusted.
pub(super) fn quality(result: &RunResult) -> Vec<String> {
    let cells = &result.completeness;
    let mut lines = vec![
        format!("measured {} of {} cells{}", grouped(cells.measured), grouped(cells.planned), spent(result)),
        load_generator(result),
    ];
    lines.extend(floor_left_out(result));
    lines.extend(audited(result));
    lines.extend(unanswered(result));
    lines.extend(resources::missing(result));
    let told = result.steps.iter().flat_map(StepRecord::told);
    let warnings = figures::tally(told.flat_map(|trial| &trial.window.warnings));
    if !warnings.is_empty() {
        let texts = warnings.iter().map(|(warning, count)| format!("{} {}", code_of(warning), grouped(*count)));
        lines.push(format!("warnings in replies: {}", texts.collect::<Vec<_>>().join(", ")));
    }
    lines
}

/// What would have been watched of an endpoint of this machine and cannot be: a row that was never answered is none.
fn unanswered(result: &RunResult) -> impl Iterator<Item = String> + '_ {
    let checks = || result.verdict.iter().flat_map(|verdict| &verdict.checks);
    let is_row = move |name: &str| checks().any(|check| check.id == name);
    result.probes.iter().filter(move |probe| probe.automatic && !is_row(&probe.name)).filter_map(|probe| {
        let failure = probe.before.as_ref()?.failure.as_ref()?;
        Some(format!("{} is not watched here: {failure}", check_name(&probe.name)))
    })
}

/// A floor of the capacity that the plan did not ask about must not be taken for one that holds.
fn floor_left_out(result: &RunResult) -> Option<String> {
    let floor = result.contract.pointer("/slo/capacity/at_least")?.as_str()?;
    let checks = result.verdict.iter().flat_map(|verdict| &verdict.checks);
    let is_row = checks.into_iter().any(|check| check.id == "capacity");
    (!is_row && result.plan == Plan::Check)
        .then(|| format!("the least capacity, {floor}, is asked for by the plans baseline and release alone"))
}

/// The plan and the time that it took of its budget.
fn spent(result: &RunResult) -> String {
    let budget = result.budget;
    if budget.limit_ns == 0 {
        return String::new();
    }
    let (spent, limit) = (figures::long_time(budget.spent_ns), figures::long_time(budget.limit_ns));
    format!(" (plan {}, {spent} under load of at most {limit})", result.plan.name())
}

/// What the endpoint would not have, as whole sentences.
pub(super) fn notices(result: &RunResult) -> impl Iterator<Item = String> + '_ {
    result.endpoint.notices.iter().map(|notice| format!("notice: {notice}"))
}

/// The published code of a value that is published as a text.
pub(super) fn code_of(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
}

fn load_generator(result: &RunResult) -> String {
    let made = || result.steps.iter().flat_map(|step| step.generated().into_iter().map(|trial| (step.load, trial)));
    let worst =
        made().filter_map(|(load, trial)| Some((trial.health.send_lag?.p99_ns?, load))).max_by_key(|(lag, _)| *lag);
    let lag = worst.map_or_else(
        || "send lag not measured".to_owned(),
        |(lag, load)| format!("send lag p99 {} at worst, at {load}", format_nanos(lag)),
    );
    let mut faulty: Vec<String> =
        made().filter(|(_, trial)| trial.is_void()).map(|(load, _)| load.to_string()).collect();
    faulty.dedup();
    match (figures::trials(result).next(), faulty.is_empty()) {
        (None, _) => "load generator: nothing was sent".to_owned(),
        (_, true) => format!("load generator kept its plan: {lag}"),
        (_, false) => format!("load generator did not keep its plan at {}: {lag}", listed(&faulty)),
    }
}

/// How far the load generator was audited. That it was not is worth a line only where a load asks more of it than any machine
/// gives.
fn audited(result: &RunResult) -> Option<String> {
    const EASY: f64 = 100.0;
    let Some(audit) = &result.audit else {
        let hard = |load: Load| load.rate().is_some_and(|rate| rate.per_second() > EASY);
        let asked = figures::trials(result).any(|(load, _)| hard(load));
        return asked.then(|| "load generator not audited on this machine (`goodput audit`)".to_owned());
    };
    let Some(trusted) = audit.trusted_rate else {
        return Some("load generator audited: it kept no rate on this machine".to_owned());
    };
    let error = figures::load_that_must_hold(result).and_then(|load| Some((load, audit.ttft_error_p99_ns(load)?)));
    let error = error
        .map(|(load, nanos)| format!("; at {load} its TTFTs are at most {} too long, at P99", format_nanos(nanos)))
        .unwrap_or_default();
    Some(format!("load generator audited up to {trusted} on this machine{error}"))
}

/// What a reader needs to repeat the run.
pub(super) fn identity(result: &RunResult) -> String {
    let digests = digests(result).map(|(name, digest)| format!("{name} {digest}"));
    seeds(result).into_iter().chain(digests).collect::<Vec<_>>().join(", ")
}

/// The seeds of all trials.
pub(super) fn seeds(result: &RunResult) -> Option<String> {
    let of_steps = figures::trials(result).map(|(_, trial)| trial.seed);
    let seeds: Vec<u64> = of_steps.chain(result.searches.iter().map(|search| search.seed)).collect();
    let (low, high) = (seeds.iter().min()?, seeds.iter().max()?);
    Some(if low == high { format!("seed {low}") } else { format!("seeds {low} to {high}") })
}

/// The digests of what was done, shortened.
pub(super) fn digests(result: &RunResult) -> [(&'static str, &str); 3] {
    let [plan, workload, contract] = [&result.plan_digest, &result.workload_digest, &result.contract_digest];
    [("plan", plan.short()), ("workload", workload.short()), ("contract", contract.short())]
}

/// By which tool and when the run was made.
pub(super) fn origin(result: &RunResult) -> String {
    format!("goodput {}, {} to {}", result.tool_version, result.started_at, result.finished_at)
}

/// What the statistical rows claim, one line for the rows that claim the same.
pub(super) fn claims(result: &RunResult) -> Vec<String> {
    let mut lines: Vec<(String, Vec<String>)> = Vec::new();
    for check in result.verdict.iter().flat_map(|verdict| &verdict.checks) {
        let Some(claim) = check.claim else { continue };
        let mut text = format!("{} ({})", code_of(&claim), meaning(claim));
        text.extend(check.method.iter().map(|method| format!(", {method}")));
        text.extend(check.confidence.iter().map(|confidence| format!(" at {confidence}")));
        let name = check_name(&check.id);
        match lines.iter_mut().find(|(known, _)| *known == text) {
            Some((_, names)) => names.push(name),
            None => lines.push((text, vec![name])),
        }
    }
    lines.into_iter().map(|(text, names)| format!("{text}: {}", names.join(", "))).collect()
}

fn meaning(claim: Claim) -> &'static str {
    match claim {
        Claim::ThisRun => "on this schedule",
        Claim::TypicalRun => "a typical run of this length",
        Claim::LongRun => "in steady state",
    }
}
