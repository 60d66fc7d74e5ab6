//! `goodput smoke`: a dry run before any load.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::join_all;
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::task::JoinSet;
use url::Url;

use super::cli::{PlanFormat, SmokeArguments};
use super::exit::{Exit, Failure};
use super::gate::{color, print, runtime, width};
use super::interrupt::Interrupt;
use super::prepare::{build_workload, choose_port, fill, headers_of_pages, read_cases, read_contract};
use super::usage::{Asking, Payloads, Plain, is_refusal, leave_out};
use super::warm::warm_up;
use crate::contract::{
    Endpoint, Header, HeaderSource, HttpVersion, Objective, RequestLimits, RequestMetric, Resource, StabilityProbe,
    StabilityRow,
};
use crate::drive::{Clock, Lane, Order, Pool, Target, exchange};
use crate::endpoint::Running;
use crate::judge::Status;
use crate::observe::{Outcome, Protocol, REALTIME_AUDIO, Warning};
use crate::probe::{Context, Prober};
use crate::record::grade::{Measure, grade, measure};
use crate::record::{Readiness, Reading, RequestRecord};
use crate::report::{self, ProbeAnswer, SmokeReport, SmokeRequest, SmokeSent};
use crate::schedule::Segment;
use crate::workload::Case;

/// Without `--rounds` every case is sent once, but no more than so many.
const MOST_BY_DEFAULT: usize = 10;

/// What is smoked: from a contract or from flags.
struct Subject {
    endpoint: Endpoint,
    payloads: Payloads,
    limits: RequestLimits,
    /// The metrics that a limit or an objective is about.
    asked: BTreeSet<RequestMetric>,
    watched: Watched,
    folder: PathBuf,
}

/// What is read of the system under test besides its replies.
#[derive(Default)]
struct Watched {
    stability: Vec<StabilityRow>,
    resources: Vec<Resource>,
    /// The resources that a limit is about.
    limited: BTreeSet<String>,
}

/// A finished request with its texts: an entry of `--output`.
#[derive(Serialize)]
struct Smoked {
    #[serde(flatten)]
    record: RequestRecord,
    text: String,
    reasoning: String,
    #[serde(skip)]
    looks_like: Option<Protocol>,
}

/// The file of `--output`.
#[derive(Serialize)]
struct SmokeOutput<'a> {
    requests: &'a [Smoked],
}

pub(super) fn smoke(arguments: &SmokeArguments) -> Result<Exit, Failure> {
    let subject = match (&arguments.url, &arguments.contract) {
        (Some(url), _) => from_flags(arguments, url)?,
        (None, contract) => from_contract(contract.as_deref())?,
    };
    runtime()?.block_on(async {
        let interrupt = Interrupt::listen()?;
        let (report, smoked) = carry_out(subject, arguments, &interrupt).await?;
        match arguments.output_format {
            PlanFormat::Table => print(&report::smoke(&report, width(), color()))?,
            PlanFormat::Json => print(&report::json(&report))?,
        }
        if let Some(path) = &arguments.output {
            std::fs::write(path, report::json(&SmokeOutput { requests: &smoked }))
                .map_err(|error| Failure::internal(format!("failed to write {}: {error}", path.display())))?;
        }
        Ok(match (interrupt.signal(), report.overall()) {
            (Some(number), _) => Exit::Signal(number),
            (None, Status::Pass | Status::Accepted) => Exit::Pass,
            (None, Status::Fail) => Exit::Fail,
            (None, Status::Unknown) => Exit::Unknown,
        })
    })
}

/// Asks every probe once: what a row of the verdict needs, and what is sampled besides.
async fn probe_all(watched: &Watched, context: &Context, mask: impl Fn(String) -> String) -> Vec<ProbeAnswer> {
    let rows = watched.stability.iter().map(|row| async move {
        let reading = Prober::stability(&row.probe, context).read().await;
        let is_exit_code = matches!(row.probe, StabilityProbe::ExitCode { .. });
        ProbeAnswer { name: row.name.clone(), needed: !row.automatic, is_exit_code, ..answer(reading) }
    });
    let resources = watched.resources.iter().map(|resource| async move {
        let reading = Prober::new(&resource.probe, resource.across, context).read().await;
        ProbeAnswer {
            name: resource.name.clone(),
            value: reading.value.map(|value| value * resource.scale),
            unit: Some(resource.unit),
            needed: watched.limited.contains(&resource.name),
            ..answer(reading)
        }
    });
    let (rows, resources) = tokio::join!(join_all(rows), join_all(resources));
    let masked = |answer: ProbeAnswer| ProbeAnswer {
        failure: answer.failure.map(&mask),
        of: answer.of.into_iter().map(&mask).collect(),
        ..answer
    };
    rows.into_iter().chain(resources).map(masked).collect()
}

/// What a probe read, still without its name.
fn answer(reading: Reading) -> ProbeAnswer {
    ProbeAnswer {
        name: String::new(),
        value: reading.value,
        unit: None,
        of: reading.series.into_iter().map(|series| series.of).filter(|of| !of.is_empty()).collect(),
        failure: reading.failure,
        needed: false,
        is_exit_code: false,
    }
}

fn from_contract(path: Option<&Path>) -> Result<Subject, Failure> {
    let source = read_contract(path.unwrap_or(Path::new(super::cli::DEFAULT_CONTRACT)), "smoke")?;
    let mut contract = source.loaded.contract;
    choose_port(&mut contract)?;
    let payloads = build_workload(&contract, &source.folder)?;
    let objectives = contract.slo.objectives.iter().filter_map(Objective::limit);
    let asked = contract.slo.request.set().chain(objectives).map(|(metric, _)| metric).collect();
    Ok(Subject {
        endpoint: contract.endpoint,
        payloads,
        limits: contract.slo.request,
        asked,
        watched: Watched {
            stability: contract.stability,
            resources: contract.resources,
            limited: contract.slo.resources.into_iter().map(|limit| limit.resource).collect(),
        },
        folder: source.folder,
    })
}

fn from_flags(arguments: &SmokeArguments, url: &str) -> Result<Subject, Failure> {
    let protocol = arguments.protocol.unwrap_or(Protocol::OpenaiChat);
    let endpoint = Endpoint {
        url: parse_url(url, protocol)?,
        protocol,
        model: arguments.model.clone(),
        headers: arguments.header.iter().map(|header| parse_header(header)).collect::<Result<_, _>>()?,
        timeout: arguments.timeout,
        idle_timeout: arguments.idle_timeout,
        http: HttpVersion::Auto,
        ca_file: arguments.ca_file.clone(),
        proxy: None,
        input_audio: (protocol == Protocol::OpenaiRealtime).then_some(REALTIME_AUDIO),
        output_audio: (protocol == Protocol::OpenaiRealtime).then_some(REALTIME_AUDIO),
        launch: None,
    };
    let mut cases = match (&arguments.cases, &arguments.prompt) {
        (Some(path), _) => read_cases(path)?,
        (None, prompt) => {
            let prompt = prompt.as_deref().unwrap_or("Say hello in one short sentence.");
            let fields = Map::from_iter([("prompt".to_owned(), Value::from(prompt))]);
            vec![Case { id: "prompt".to_owned(), fields }]
        }
    };
    if let Some(max_tokens) = arguments.max_tokens {
        for case in &mut cases {
            case.fields.entry("max_tokens").or_insert_with(|| max_tokens.into());
        }
    }
    let template = match &arguments.payload_template {
        Some(path) => read_template(path)?,
        None => endpoint.default_payload(|field| cases.iter().any(|case| case.fields.contains_key(field))),
    };
    Ok(Subject {
        payloads: fill(&cases, template, &endpoint, 0, Path::new("."))?,
        endpoint,
        limits: RequestLimits::default(),
        asked: BTreeSet::new(),
        watched: Watched::default(),
        folder: PathBuf::from("."),
    })
}

fn parse_url(text: &str, protocol: Protocol) -> Result<Url, Failure> {
    // What is no URL is not repeated: it may hold credentials all the same.
    let url = Url::parse(text).map_err(|error| {
        Failure::usage(format!("--url: not a URL: {error}"))
            .hint("write it in full, as in `--url http://127.0.0.1:8000/v1/chat/completions`")
    })?;
    let socket = protocol == Protocol::OpenaiRealtime && matches!(url.scheme(), "ws" | "wss");
    if !socket && !matches!(url.scheme(), "http" | "https") {
        return Err(Failure::usage(format!("--url: `{}` is neither http nor https", url.scheme())));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Failure::usage("--url: holds credentials, which would end up in files and logs").hint(
            "put them into an environment variable and name it: --header \"Authorization=env:VARIABLE:Basic \"",
        ));
    }
    Ok(url)
}

/// `NAME=env:VARIABLE` or `NAME=env:VARIABLE:PREFIX`.
fn parse_header(text: &str) -> Result<Header, Failure> {
    let form = "write NAME=env:VARIABLE, as in `--header Authorization=env:TOKEN:\"Bearer \"`";
    let (name, source) =
        text.split_once('=').ok_or_else(|| Failure::usage(format!("--header: `{text}` has no `=`")).hint(form))?;
    let Some(source) = source.strip_prefix("env:") else {
        // The value may be a secret, so it is not repeated.
        return Err(Failure::usage(format!(
            "--header: the value of `{name}` is written out; secrets belong in variables"
        ))
        .hint(form));
    };
    let (variable, prefix) = source.split_once(':').unwrap_or((source, ""));
    let value = HeaderSource::Environment { variable: variable.to_owned(), prefix: prefix.to_owned() };
    Ok(Header { name: name.trim().to_ascii_lowercase(), value })
}

fn read_template(path: &Path) -> Result<Value, Failure> {
    let fault =
        |problem: String| Failure::usage(format!("failed to read the payload template {}: {problem}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| fault(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| fault(error.to_string()))
}

async fn carry_out(
    subject: Subject,
    arguments: &SmokeArguments,
    interrupt: &Interrupt,
) -> Result<(SmokeReport, Vec<Smoked>), Failure> {
    let mut target = Target::new(&subject.endpoint).map_err(|error| Failure::usage(error.to_string()))?;
    target.mask_also(&headers_of_pages(&subject.watched.stability, &subject.watched.resources));
    let Payloads { workload, mut plain, .. } = subject.payloads;
    let clock = Clock::start();
    let mut lane = Arc::new(Lane {
        clock,
        target,
        pool: Pool::new(clock),
        workload,
        limits: subject.limits,
        run_id: format!("goodput-smoke-{}", std::process::id()),
        keep: Vec::new(),
    });
    let (mut notices, mut problems, mut smoked) = (Vec::new(), Vec::new(), Vec::new());
    let log = std::env::temp_dir().join(format!("{}.log", lane.run_id));
    let launched = match subject.endpoint.launch {
        None => None,
        Some(_) => {
            let (endpoint, folder) = (&subject.endpoint, &subject.folder);
            Some(warm_up(endpoint, &lane, plain.as_ref(), folder, &log, interrupt.token()).await?)
        }
    };
    if let Some(warm) = &launched {
        notices.clone_from(&warm.record.notices);
        if warm.usage_refused {
            leave_out(&mut lane, plain.take())?;
        }
        if let Readiness::NotReady { detail } = &warm.record.ready {
            problems.push(format!("the endpoint is not ready: {detail}"));
        }
    }
    if problems.is_empty() {
        smoked = ask_all(&lane, arguments, interrupt).await;
        if let Some(notice) = refusal_of_usage(&lane, plain.as_ref(), &smoked, interrupt).await {
            notices.push(notice);
            leave_out(&mut lane, plain.take())?;
            smoked = ask_all(&lane, arguments, interrupt).await;
        }
    }
    let sent = describe(&subject.endpoint, &lane);
    let mut report = SmokeReport { sent, requests: vec![], probes: vec![], notices, problems, unproven: vec![] };
    let context = Context {
        folder: subject.folder.clone(),
        endpoint: launched.as_ref().and_then(|warm| warm.running.as_ref()).map(Running::pid),
        port: subject.endpoint.url.port_or_known_default().unwrap_or_default(),
    };
    let mask = |failure: String| lane.target.secrets().mask(&failure).into_owned();
    report.probes = tokio::select! {
        answers = probe_all(&subject.watched, &context, mask) => answers,
        () = interrupt.token().cancelled() => Vec::new(),
    };
    if let Some(warm) = launched {
        let record = warm.stop(lane.target.secrets(), false).await;
        report.problems.extend(record.log_tail.iter().map(|line| format!("endpoint log: {line}")));
        drop(std::fs::remove_file(&log));
    }
    report.requests = smoked.iter().map(shown).collect();
    conclude(&mut report, &subject.endpoint, &subject.asked);
    Ok((report, smoked))
}

/// What is to be told where a server that nobody warmed up refused every request, and answers one that does not ask for token
/// counts.
async fn refusal_of_usage(
    lane: &Lane,
    plain: Option<&Plain>,
    smoked: &[Smoked],
    interrupt: &Interrupt,
) -> Option<String> {
    if plain.is_none() || smoked.is_empty() || !smoked.iter().all(|smoked| is_refusal(smoked.record.status)) {
        return None;
    }
    let mut asking = Asking::new(lane, plain);
    asking.ask(0, interrupt.token()).await;
    asking.into_notice()
}

fn describe(endpoint: &Endpoint, lane: &Lane) -> SmokeSent {
    const EXCERPT: usize = 2_000;
    let body = lane.workload.cases().first().map(|case| case.content.shown(EXCERPT)).unwrap_or_default();
    let method = if endpoint.protocol == Protocol::OpenaiRealtime { "WebSocket" } else { "POST" };
    SmokeSent {
        line: format!("{method} {}", endpoint.url),
        protocol: endpoint.protocol.name().to_owned(),
        headers: lane.target.shown_headers(&lane.workload.cases()[0].content),
        body: lane.target.secrets().mask(&body).into_owned(),
    }
}

async fn ask_all(lane: &Arc<Lane>, arguments: &SmokeArguments, interrupt: &Interrupt) -> Vec<Smoked> {
    let clients = arguments.clients;
    let cases = lane.workload.cases().len();
    let by_default = cases.min(MOST_BY_DEFAULT).div_ceil(clients as usize) as u32;
    let rounds = arguments.rounds.unwrap_or(by_default);
    let next = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..clients {
        let (lane, next, cancel) = (Arc::clone(lane), Arc::clone(&next), interrupt.token().clone());
        tasks.spawn(async move {
            let mut smoked = Vec::new();
            for _ in 0..rounds {
                if cancel.is_cancelled() {
                    break;
                }
                smoked.push(ask(&lane, next.fetch_add(1, Ordering::Relaxed), &cancel).await);
            }
            smoked
        });
    }
    let mut all: Vec<Smoked> = tasks.join_all().await.into_iter().flatten().collect();
    all.sort_by_key(|smoked| smoked.record.arrival);
    all
}

async fn ask(lane: &Lane, arrival: u64, cancel: &tokio_util::sync::CancellationToken) -> Smoked {
    let cases = lane.workload.cases();
    let case = &cases[arrival as usize % cases.len()];
    let due_ns = lane.clock.now_ns();
    let order = Order::of(case, format!("{}-{arrival}", lane.run_id), due_ns, true);
    let mut exchange = exchange(&lane.pool, &lane.target, lane.clock, order, cancel).await;
    let texts = exchange.trace.texts.take().unwrap_or_default();
    let mask = |text: &str| lane.target.secrets().mask(text).into_owned();
    let (text, reasoning) = (mask(&texts.text), mask(&texts.reasoning));
    let looks_like = exchange.trace.looks_like;
    let mut record = exchange.into_record(0, 0, arrival, Segment::Window, &case.id, due_ns);
    grade(&lane.limits, &mut record);
    Smoked { record, text, reasoning, looks_like }
}

fn shown(smoked: &Smoked) -> SmokeRequest {
    let record = &smoked.record;
    let since_begin = |at: Option<u64>| at?.checked_sub(record.begins_ns());
    SmokeRequest {
        case: record.case.clone(),
        outcome: record.outcome,
        status: record.status,
        error: record.error.clone(),
        first_output_kind: record.first_output_kind,
        first_output_ns: since_begin(record.first_output_ns),
        first_answer_ns: since_begin(record.first_answer_ns),
        first_audio_ns: since_begin(record.first_audio_ns),
        e2e_ns: since_begin(record.last_output_ns),
        audio_ns: record.audio_ns,
        rtf_ppm: match measure(record, RequestMetric::Rtf) {
            Measure::Measured(ratio) => Some(ratio),
            _ => None,
        },
        underrun_ns: record.underrun_ns,
        input_tokens: record.input_tokens,
        output_tokens: record.output_tokens,
        output_chunks: record.output_chunks,
        finish_reason: record.finish_reason.clone(),
        text: Some(smoked.text.clone()).filter(|text| !text.is_empty()),
        warnings: record.warnings.clone(),
        looks_like: smoked.looks_like.map(|protocol| protocol.name().to_owned()),
    }
}

/// The protocol that was meant, as far as the reply tells, or else the path that was refused.
fn protocol_hint(request: &SmokeRequest, endpoint: &Endpoint) -> Option<String> {
    if let Some(name) = &request.looks_like {
        return Some(format!("; the reply looks like `{name}`: set the protocol to that"));
    }
    let asked = match endpoint.protocol {
        Protocol::OpenaiChatJson => Protocol::OpenaiChat,
        protocol => protocol,
    };
    let usual = Protocol::usual_at(endpoint.url.path()).filter(|usual| *usual != asked)?;
    let refused = matches!(request.outcome, Outcome::HttpError | Outcome::ProtocolError);
    refused.then(|| format!("; at a path like `{}` most servers speak `{}`", endpoint.url.path(), usual.name()))
}

/// What was proven not to work, and what could not be proven.
fn conclude(report: &mut SmokeReport, endpoint: &Endpoint, asked: &BTreeSet<RequestMetric>) {
    let (mut problems, mut unproven) = (Vec::new(), Vec::new());
    for request in &report.requests {
        let status = request.status.map(|status| format!(" {status}")).unwrap_or_default();
        let error = request.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
        let said = format!(
            "case `{}` ended with {}{status}{error}{}",
            request.case,
            request.outcome.name(),
            protocol_hint(request, endpoint).unwrap_or_default()
        );
        match request.outcome {
            Outcome::Ok => {}
            // Nobody was there to prove anything.
            Outcome::ConnectError | Outcome::NoResponse | Outcome::Unsent | Outcome::Cancelled => unproven.push(said),
            _ => problems.push(said),
        }
    }
    let without_counts = |r: &SmokeRequest| {
        r.outcome == Outcome::Ok && (r.output_tokens.is_none() || r.warnings.contains(&Warning::UsageContradiction))
    };
    let asks_for = |needs: fn(RequestMetric) -> bool| asked.iter().any(|metric| needs(*metric));
    if asks_for(RequestMetric::needs_usage) && report.requests.iter().any(without_counts) {
        unproven.push("the reply holds no usable token counts, so every limit on tpot will be UNKNOWN".to_owned());
    }
    let without_duration = |r: &SmokeRequest| r.outcome == Outcome::Ok && r.audio_ns.is_none();
    if asks_for(RequestMetric::needs_audio_duration) && report.requests.iter().any(without_duration) {
        unproven.push(
            "it is not known how long the sound lasts, so every limit on rtf and underrun will be UNKNOWN; \
             ask for wav, or declare the format in `endpoint.audio`"
                .to_owned(),
        );
    }
    if report.requests.is_empty() && report.problems.is_empty() {
        unproven.push("no request was sent".to_owned());
    }
    for probe in report.probes.iter().filter(|probe| probe.needed) {
        if let Some(failure) = &probe.failure {
            unproven.push(format!("the probe `{}` gives nothing: {failure}", probe.name));
        }
    }
    let is_unhealthy = |probe: &&ProbeAnswer| probe.is_exit_code && probe.value.is_some_and(|code| code.abs() > 0.0);
    for probe in report.probes.iter().filter(is_unhealthy) {
        problems.push(format!("the health check `{}` exits with code {}", probe.name, probe.value.unwrap_or_default()));
    }
    report.problems.extend(problems);
    report.unproven.extend(unproven);
}
