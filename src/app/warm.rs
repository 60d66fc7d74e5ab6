//! Bringing the endpoint up: launch, readiness, and a request that really yields output.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::exit::Failure;
use super::usage::{Asking, Plain};
use crate::contract::{Endpoint, Launch, LaunchWhat};
use crate::drive::Lane;
use crate::endpoint::{
    LaunchSpec, NotReady, Running, Secrets, http_client, launch, mask_log, port_answers, wait_ready,
};
use crate::observe::Outcome;
use crate::record::{EndpointKind, EndpointRecord, Readiness, Stop};
use crate::units::format_duration;

/// Lines of a launched endpoint's log that go into the result when it fails.
const TAIL_LINES: usize = 20;

/// How often an external endpoint is asked before it is given up.
const EXTERNAL_ATTEMPTS: u32 = 3;

/// The pause between two attempts at a first output.
const PAUSE: Duration = Duration::from_millis(500);

/// An endpoint that this run may have started, and what is to be said of it.
#[derive(Debug)]
pub(super) struct Warm {
    /// The process group, when this run started one.
    pub(super) running: Option<Running>,
    /// For the result.
    pub(super) record: EndpointRecord,
    /// The server refuses to be asked for token counts, and answers without.
    pub(super) usage_refused: bool,
    /// Where the output of a launched endpoint goes.
    log: PathBuf,
}

impl Warm {
    /// Ends a launched endpoint, noting how it ended when it had ended before. What it wrote is kept without the secrets, its last
    /// lines also in the record where it was in trouble.
    pub(super) async fn stop(mut self, secrets: &Secrets, in_trouble: bool) -> EndpointRecord {
        if let Some(running) = self.running.take() {
            if let Some(exit) = running.exited() {
                self.record.exited = Some(exit.to_string());
            }
            if in_trouble || self.record.exited.is_some() || self.record.ready != Readiness::Ready {
                let tail = running.log_tail(TAIL_LINES);
                self.record.log_tail = tail.iter().map(|line| secrets.mask(line).into_owned()).collect();
            }
            running.stop().await;
            // A log that cannot be read any more holds nothing that could be found in it.
            drop(mask_log(&self.log, |line| secrets.mask(line).into_owned()));
        }
        self.record
    }

    /// Resolves when a launched endpoint has ended; never for one that somebody else started.
    pub(super) async fn lost(&self) -> Stop {
        match &self.running {
            Some(running) => Stop::EndpointDown { detail: format!("the endpoint {}", running.wait_exited().await) },
            None => std::future::pending().await,
        }
    }
}

/// Starts the endpoint if it is to be started, and asks until it yields output.
pub(super) async fn warm_up(
    endpoint: &Endpoint,
    lane: &Lane,
    plain: Option<&Plain>,
    folder: &Path,
    log: &Path,
    cancel: &CancellationToken,
) -> Result<Warm, Failure> {
    let begun = Instant::now();
    let mut warm = Warm { running: None, record: describe(endpoint), usage_refused: false, log: log.to_owned() };
    // What is wrong with the contract or the machine is told before anything is started.
    let client = http_client(endpoint.ca_file.as_deref(), endpoint.proxy.as_ref(), endpoint.http)
        .map_err(|error| Failure::usage(error.to_string()))?;
    if let Some(spec) = &endpoint.launch {
        refuse_taken_port(endpoint, cancel).await?;
        warm.running = match start(spec, endpoint, folder, log, cancel).await {
            Ok(running) => running,
            Err(detail) => {
                warm.record.ready = Readiness::NotReady { detail };
                return Ok(warm);
            }
        };
    }
    let mut asking = Asking::new(lane, plain);
    warm.record.ready = match wait(endpoint, &mut asking, &client, warm.running.as_ref(), cancel).await {
        Ok(()) => Readiness::Ready,
        Err(NotReadyYet::Cancelled) => Readiness::NotAsked,
        Err(NotReadyYet::Seen(detail)) if endpoint.launch.is_some() => Readiness::NotReady { detail },
        Err(NotReadyYet::Seen(detail)) => Readiness::Unreachable { detail },
    };
    if warm.record.ready == Readiness::Ready && endpoint.launch.is_some() {
        warm.record.ready_after_ns = Some(begun.elapsed().as_nanos() as u64);
    }
    warm.record.notices.extend(asking.into_notice());
    warm.usage_refused = !warm.record.notices.is_empty();
    lane.pool.clear();
    Ok(warm)
}

pub(super) fn describe(endpoint: &Endpoint) -> EndpointRecord {
    EndpointRecord {
        url: endpoint.url.to_string(),
        protocol: endpoint.protocol.name().to_owned(),
        kind: match endpoint.launch.as_ref().map(|launch| &launch.what) {
            None => EndpointKind::External,
            Some(LaunchWhat::Command(_)) => EndpointKind::Launched,
            Some(LaunchWhat::Simulate(_)) => EndpointKind::Simulated,
        },
        ready: Readiness::NotAsked,
        ready_after_ns: None,
        exited: None,
        log_tail: Vec::new(),
        notices: Vec::new(),
    }
}

/// A server left over from before would be taken for the one that is launched, and measured. That says nothing about the
/// change under test, so it is a mistake of whoever runs the command and no verdict.
async fn refuse_taken_port(endpoint: &Endpoint, cancel: &CancellationToken) -> Result<(), Failure> {
    let taken = tokio::select! {
        biased;
        () = cancel.cancelled() => false,
        taken = port_answers(&endpoint.url) => taken,
    };
    if !taken {
        return Ok(());
    }
    let authority = &endpoint.url[url::Position::BeforeHost..url::Position::AfterPort];
    Err(Failure::usage(format!(
        "something answers at {authority} already, where `endpoint.launch` is to start a server"
    ))
    .hint("stop it, or remove `launch` to measure it as it is"))
}

/// Starts the endpoint; `None` when `cancel` was called before. Once begun, the start is carried through, so that whoever
/// stops the run can wait for the whole group's end.
async fn start(
    spec: &Launch,
    endpoint: &Endpoint,
    folder: &Path,
    log: &Path,
    cancel: &CancellationToken,
) -> Result<Option<Running>, String> {
    if cancel.is_cancelled() {
        return Ok(None);
    }
    let program = std::env::current_exe().map_err(|error| format!("failed to find the program itself: {error}"))?;
    let command = match &spec.what {
        LaunchWhat::Command(command) => command.clone(),
        LaunchWhat::Simulate(profile) => {
            // The profile's path was resolved against the contract's folder, which is where the command will run.
            let profile = std::path::absolute(profile).unwrap_or_else(|_| profile.clone());
            let listen = &endpoint.url[url::Position::BeforeHost..url::Position::AfterPort];
            let text = |path: &Path| path.display().to_string();
            vec![
                text(&program),
                "simulate".to_owned(),
                text(&profile),
                "--listen".to_owned(),
                listen.replace("localhost", "127.0.0.1"),
            ]
        }
    };
    let spec = LaunchSpec {
        program,
        command,
        folder: folder.to_owned(),
        log: log.to_owned(),
        stop_within: spec.stop_within,
        environment: Vec::new(),
    };
    launch(spec).await.map(Some).map_err(|error| error.to_string())
}

/// Why there is no output yet.
enum NotReadyYet {
    Cancelled,
    Seen(String),
}

async fn wait(
    endpoint: &Endpoint,
    asking: &mut Asking<'_>,
    client: &reqwest::Client,
    running: Option<&Running>,
    cancel: &CancellationToken,
) -> Result<(), NotReadyYet> {
    let Some(spec) = &endpoint.launch else {
        return first_output(asking, EXTERNAL_ATTEMPTS, endpoint.timeout * EXTERNAL_ATTEMPTS, cancel).await;
    };
    let path = spec.ready_path.as_deref();
    match wait_ready(&endpoint.url, path, spec.ready_within, running, client, cancel).await {
        Ok(()) => {}
        Err(NotReady::Cancelled) => return Err(NotReadyYet::Cancelled),
        Err(other) => return Err(NotReadyYet::Seen(other.to_string())),
    }
    let ended = async {
        match running {
            Some(running) => running.wait_exited().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        exit = ended => Err(NotReadyYet::Seen(format!("the endpoint {exit} before a request yielded output"))),
        seen = first_output(asking, u32::MAX, spec.first_token_within, cancel) => seen,
    }
}

/// Asks with the first case until a request yields output, the attempts or the time are used up, or the answer is one that
/// asking again cannot change.
async fn first_output(
    asking: &mut Asking<'_>,
    attempts: u32,
    within: Duration,
    cancel: &CancellationToken,
) -> Result<(), NotReadyYet> {
    let begun = Instant::now();
    let deadline = begun.checked_add(within);
    let mut seen = String::new();
    for attempt in 0..attempts {
        let asked = asking.ask(attempt, cancel);
        let trace = match deadline {
            Some(deadline) => match tokio::time::timeout_at(deadline, asked).await {
                Ok(trace) => trace,
                Err(_) => break,
            },
            None => asked.await,
        };
        let permanent = matches!(trace.status, Some(400 | 401 | 403 | 405 | 413 | 415 | 422));
        match trace.outcome {
            Outcome::Ok => return Ok(()),
            Outcome::Cancelled => return Err(NotReadyYet::Cancelled),
            outcome => {
                let status = trace.status.map(|status| format!(" {status}")).unwrap_or_default();
                let error = trace.error.map(|error| format!(": {error}")).unwrap_or_default();
                let hint = trace.looks_like.map(|other| format!("; the reply looks like `{}`", other.name()));
                seen = format!("a request ended with {}{status}{error}{}", outcome.name(), hint.unwrap_or_default());
            }
        }
        if permanent || attempt + 1 == attempts {
            break;
        }
        tokio::select! {
            () = cancel.cancelled() => return Err(NotReadyYet::Cancelled),
            () = sleep(PAUSE) => {}
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            break;
        }
    }
    if seen.is_empty() {
        seen = "no request had an answer".to_owned();
    }
    let took = Duration::from_millis(begun.elapsed().as_millis() as u64);
    Err(NotReadyYet::Seen(format!("no output within {}; {seen}", format_duration(took.min(within)))))
}
