//! What a run says, in sentences that need no table: the same in every format. The texts are not escaped yet.

use super::change;
use super::figures::{self, check_name, grouped, per_second};
use super::resources;
use crate::contract::Plan;
use crate::judge::{Check, Claim, Reason, Status};
use crate::record::{Binding, CapacityRecord, EndpointKind, Readiness, RunResult, StepRecord, Stop};
use crate::units::{Load, format_nanos};

/// The overall answer as a word; a result without verdict has none yet.
pub(super) fn overall(result: &RunResult) -> (Option<Status>, &'static str) {
    let status = result.verdict.as_ref().map(|verdict| verdict.overall);
    (status, status.map_or("NOT JUDGED", Status::word))
}

/// The sentences under the overall answer: what stopped the run, where capacity ends and by which limit, what failed and
/// what stayed open.
pub(super) fn sentences(result: &RunResult) -> Vec<String> {
    let mut sentences = Vec::new();
    sentences.extend(endpoint_trouble(&result.endpoint.ready));
    sentences.extend(result.stopped.as_ref().map(stop));
    sentences.extend(instability(result));
    if figures::is_closed_loop(result) {
        sentences.extend(throughput(result));
    }
    sentences.extend(if result.searches.is_empty() { capacity(result) } else { searched(result) });
    sentences.extend(change::sentences(result));
    sentences.extend(open_rows(result));
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
    let checks = result.verdict.iter().flat_map(|verdict| &verdict.checks);
    checks.filter_map(|check| {
        let is_so =
            matches!(check.reason, Reason::CounterRose | Reason::CounterReset | Reason::Restarted | Reason::Unhealthy);
        let note = check.note.as_ref().filter(|_| is_so)?;
        Some(format!("Not stable: `{}`, {}.", check.id, clause(note)))
    })
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

/// Where capacity ends, and by which limit.
fn capacity(result: &RunResult) -> Option<String> {
    let capacity = result.capacity.as_ref()?;
    let mut text = match (capacity.holds_at, capacity.breaks_at) {
        (Some(holds), Some(breaks)) => {
            let there = goodput_there(capacity);
            format!("{} at {holds}{there}; at {breaks} {}", held(result), breaking(result, capacity, breaks))
        }
        (Some(holds), None) => {
            // A comparison may have measured more.
            let is_highest = measured(result).last() == Some(holds) && result.against.is_empty();
            let edge = if is_highest { ", the highest load measured" } else { "" };
            format!("{} at {holds}{edge}{}{}", held(result), goodput_there(capacity), closest(capacity))
        }
        (None, Some(breaks)) => {
            let edge = if measured(result).next() == Some(breaks) { ", the lowest load measured" } else { "" };
            format!("Does not hold at {breaks}{edge}: {}", breaking(result, capacity, breaks))
        }
        (None, None) => "Whether any load holds was not decided".to_owned(),
    };
    text.push('.');
    text.push_str(doubts(capacity));
    Some(text)
}

/// Where the search found the capacity to end, how sure that is, and by which limit.
fn searched(result: &RunResult) -> Option<String> {
    let Some(capacity) = result.capacity.as_ref() else {
        return Some("The search for the capacity came to no end.".to_owned());
    };
    if capacity.changed {
        return Some(format!("Where the capacity lies is not known.{}", doubts(capacity)));
    }
    let requests = capacity.requests_per_trial.map_or_else(String::new, |n| format!(" of {} requests", grouped(n)));
    let sure = capacity.confidence.map_or_else(String::new, |confidence| format!("{confidence} confidence, "));
    let schedules = if capacity.seeds == 1 { "schedule" } else { "schedules" };
    let basis = format!("({sure}{} {schedules}{requests})", capacity.seeds);
    let there = goodput_there(capacity);
    let mut text = match (capacity.holds_at, capacity.breaks_at) {
        (Some(holds), Some(breaks)) => {
            format!(
                "The capacity lies between {holds}{there} and {breaks} {basis}; {}",
                breaking_at(result, capacity, breaks)
            )
        }
        (Some(holds), None) => {
            format!("The capacity is at least {holds}{there} {basis}: no schedule showed where it ends")
        }
        (None, Some(breaks)) => {
            format!(
                "The capacity is below {breaks} {basis}: none of the loads that were tried holds on every schedule; {}",
                breaking_at(result, capacity, breaks)
            )
        }
        (None, None) => format!("Where the capacity lies was not found {basis}"),
    };
    text.push('.');
    text.push_str(doubts(capacity));
    Some(text)
}

/// What breaks, with the load at which that was seen where it is not `load`.
fn breaking_at(result: &RunResult, capacity: &CapacityRecord, load: Load) -> String {
    let what = breaking(result, capacity, load);
    match capacity.binding.as_ref().filter(|binding| binding.broke && binding.load != load) {
        Some(binding) => format!("{what}, seen at {}", binding.load),
        None => what,
    }
}

/// What speaks against believing the figures.
fn doubts(capacity: &CapacityRecord) -> &'static str {
    match (capacity.changed, capacity.non_monotone) {
        (true, _) => {
            " The endpoint changed during the run: tried again at last, the first schedule broke twice below where all held."
        }
        (false, true) => " A higher load held again; that is not believed.",
        (false, false) => "",
    }
}

/// What was seen is no promise where the verdict leaves it open.
fn held(result: &RunResult) -> &'static str {
    match result.verdict.as_ref().map(|verdict| verdict.overall) {
        Some(Status::Unknown) => "Within the limits as far as was seen",
        _ => "Holds",
    }
}

/// The loads with a measured trial, ascending.
fn measured(result: &RunResult) -> impl DoubleEndedIterator<Item = Load> + '_ {
    result.steps.iter().filter(|step| !step.trials.is_empty()).map(|step| step.load)
}

fn goodput_there(capacity: &CapacityRecord) -> String {
    capacity.goodput.map_or_else(String::new, |goodput| format!(" (goodput {}/s)", per_second(Some(goodput))))
}

/// What breaks at `load`: the binding limit, or requests that pile up.
fn breaking(result: &RunResult, capacity: &CapacityRecord, load: Load) -> String {
    if let Some(binding) = capacity.binding.as_ref().filter(|binding| binding.broke && binding.n == 0) {
        return format!("`{}` broke while the load was on", binding.objective);
    }
    if let Some(binding) = capacity.binding.as_ref().filter(|binding| binding.broke) {
        return format!("{} breaks first ({})", check_name(&binding.objective), misses(binding));
    }
    let drifts = |step: &StepRecord| step.trials.iter().any(|trial| trial.drift.is_some_and(|drift| drift.drifting));
    let searched = result.searches.iter().flat_map(|search| &search.steps);
    if result.steps.iter().chain(searched).any(|step| step.load == load && drifts(step)) {
        "requests pile up".to_owned()
    } else {
        "the limits no longer hold".to_owned()
    }
}

/// What comes closest to breaking where nothing broke.
fn closest(capacity: &CapacityRecord) -> String {
    capacity.binding.as_ref().filter(|binding| !binding.broke).map_or_else(String::new, |binding| {
        format!("; {} comes closest to its limit ({})", check_name(&binding.objective), misses(binding))
    })
}

fn misses(binding: &Binding) -> String {
    let (violations, n) = (grouped(binding.violations), grouped(binding.n));
    match binding.objective.as_str() {
        "success_rate" => format!("{violations} of {n} requests failed"),
        "attainment" => format!("{violations} of {n} requests were not good"),
        _ => format!("{violations} of {n} requests missed it"),
    }
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
fn open_rows(result: &RunResult) -> Option<String> {
    let verdict = result.verdict.as_ref()?;
    let named = |status: Status| -> Vec<String> {
        verdict.checks.iter().filter(|check| check.status == status).map(name_with_reason).collect()
    };
    let (failed, unknown, accepted) = (named(Status::Fail), named(Status::Unknown), named(Status::Accepted));
    let mut parts = Vec::new();
    if !failed.is_empty() {
        parts.push(format!("Failed: {}.", listed(&failed)));
    }
    if !unknown.is_empty() {
        parts.push(format!("Not decided: {}.", listed(&unknown)));
    }
    if !accepted.is_empty() {
        parts.push(format!("Accepted by review: {}.", listed(&accepted)));
    }
    if verdict.overall == Status::Unknown && !verdict.unknown_blocks {
        parts.push("The policy does not let UNKNOWN block.".to_owned());
    }
    (!parts.is_empty()).then(|| parts.join(" "))
}

fn name_with_reason(check: &Check) -> String {
    let name = check_name(&check.id);
    if matches!(check.reason, Reason::Broken | Reason::Accepted) {
        name
    } else {
        format!("{name} ({})", check.reason.code())
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
    let of_steps = figures::trials(result).map(|(_, trial)| trial.seed);
    let seeds: Vec<u64> = of_steps.chain(result.searches.iter().map(|search| search.seed)).collect();
    let seeds = match (seeds.iter().min(), seeds.iter().max()) {
        (Some(low), Some(high)) if low == high => format!("seed {low}, "),
        (Some(low), Some(high)) => format!("seeds {low} to {high}, "),
        _ => String::new(),
    };
    format!(
        "{seeds}plan {}, workload {}, contract {}",
        result.plan_digest.short(),
        result.workload_digest.short(),
        result.contract_digest.short()
    )
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
