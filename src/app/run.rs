//! One whole run: endpoint up, probes, trials, probes, endpoint down; everything measured ends in a [`RunResult`].

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use super::exit::Failure;
use super::interrupt::Interrupt;
use super::prepare::{Source, build_workload, choose_port, plan};
use super::progress::Teller;
use super::usage::{Payloads, Plain, leave_out};
use super::warm::{Warm, warm_up};
use crate::contract::{Contract, StabilityProbe, StabilityRow};
use crate::drive::{Clock, Lane, Pool, Progress, Target, TrialRun, open_file_limit, run_trial};
use crate::judge::conclude;
use crate::probe;
use crate::record::{
    Completeness, ProbeKind, ProbeRecord, RESULT_SCHEMA, Readiness, Reading, RequestLog, RunFolder, RunResult,
    StepRecord, Stop, TrialAccumulator, TrialRecord, summarise_step, summarise_trial,
};
use crate::schedule::{PlannedTrial, plan_digest};
use crate::units::{Digest, Load};

/// How long a probe may still take behind the load once the run was interrupted.
const PATIENCE: Duration = Duration::from_secs(5);

/// The trials of each load, measured.
type Measured = BTreeMap<Load, Vec<(TrialRecord, TrialAccumulator)>>;

/// A run that is about to begin.
pub(super) struct Run {
    contract: Contract,
    source: Source,
    lane: Arc<Lane>,
    plain: Option<Plain>,
    trials: Vec<PlannedTrial>,
    folder: RunFolder,
    started: Timestamp,
}

/// `plan.json`: one planned trial.
#[derive(Serialize)]
struct PlanLine {
    trial: u32,
    seed: u64,
    load: Load,
    schedule_digest: Digest,
}

impl Run {
    /// Reads everything that the contract names and makes the run's folder. Nothing is started yet.
    pub(super) fn prepare(source: Source, runs: &Path) -> Result<Self, Failure> {
        let mut contract = source.loaded.contract.clone();
        choose_port(&mut contract)?;
        let Payloads { workload, plain } = build_workload(&contract, &source.folder)?;
        let target = Target::new(&contract.endpoint).map_err(|error| Failure::usage(error.to_string()))?;
        let trials = plan(&contract);
        let started = Timestamp::now();
        let folder =
            RunFolder::create(runs, &format!("{}-{}", started.strftime("%Y%m%dT%H%M%SZ"), slug(&contract.name)))?;
        folder.write("contract.yaml", source.text.as_bytes())?;
        let lines: Vec<PlanLine> = trials
            .iter()
            .map(|t| PlanLine { trial: t.trial, seed: t.seed, load: t.load, schedule_digest: t.schedule_digest() })
            .collect();
        folder.write("plan.json", crate::report::json(&lines).as_bytes())?;
        let clock = Clock::start();
        let keep = workload.cases().iter().map(|_| AtomicU32::new(contract.samples.keep)).collect();
        let run_id = format!("goodput-{}", started.as_millisecond());
        let lane = Lane { clock, target, pool: Pool::new(clock), workload, limits: contract.slo.request, run_id, keep };
        Ok(Self { contract, source, lane: Arc::new(lane), plain, trials, folder, started })
    }

    /// The run's folder.
    pub(super) fn folder(&self) -> &RunFolder {
        &self.folder
    }

    /// Carries the run out. Whatever happens in it is part of the result; only what makes a result impossible is a failure.
    pub(super) async fn carry_out(&mut self, interrupt: &Interrupt) -> Result<RunResult, Failure> {
        open_file_limit();
        let teller = Teller::new(self.trials.len());
        teller.say(&format!("goodput: {} against {}", self.contract.name, self.contract.endpoint.url));
        let log = self.folder.file("endpoint.log");
        let cancel = interrupt.token();
        let endpoint = &self.contract.endpoint;
        let warm = warm_up(endpoint, &self.lane, self.plain.as_ref(), &self.source.folder, &log, cancel).await?;
        for notice in &warm.record.notices {
            teller.say(&format!("goodput: {notice}"));
        }
        if warm.usage_refused {
            leave_out(&mut self.lane, self.plain.take())?;
        }
        let mut state = State { measured: Measured::new(), probes: self.unread_probes(), stop: None };
        if warm.record.ready == Readiness::Ready {
            self.measure(&warm, &teller, interrupt, &mut state).await;
        }
        // Results that cannot be written are a failure of our own, which a signal does not excuse.
        if let (Some(number), None | Some(Stop::Signal { .. } | Stop::EndpointDown { .. })) =
            (interrupt.signal(), &state.stop)
        {
            state.stop = Some(Stop::Signal { number });
        }
        let endpoint = warm.stop(self.lane.target.secrets()).await;
        let mut result = RunResult {
            schema: RESULT_SCHEMA.to_owned(),
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            name: self.contract.name.clone(),
            started_at: self.started.to_string(),
            finished_at: Timestamp::now().to_string(),
            contract: self.source.loaded.value.clone(),
            contract_digest: self.source.loaded.digest.clone(),
            plan_digest: plan_digest(&self.trials),
            workload_digest: self.lane.workload.digest().clone(),
            fingerprint: None,
            endpoint,
            stopped: state.stop,
            steps: steps(&self.contract, state.measured),
            capacity: None,
            probes: state.probes,
            completeness: Completeness::default(),
            verdict: None,
        };
        conclude(&self.contract, &mut result);
        Ok(result)
    }

    /// Probes, all trials, probes again. Returns early when the run is stopped; `state` says why.
    async fn measure(&self, warm: &Warm, teller: &Teller, interrupt: &Interrupt, state: &mut State) {
        self.probe_all(When::Before, &mut state.probes, interrupt).await;
        if interrupt.token().is_cancelled() {
            return;
        }
        let mut log = match self.folder.request_log() {
            Ok(log) => log,
            Err(error) => {
                state.stop = Some(Stop::Storage { detail: error.to_string() });
                return;
            }
        };
        let mut waiting: VecDeque<PlannedTrial> = self.trials.iter().copied().collect();
        let mut next_trial = self.trials.len() as u32;
        let mut number = 0;
        while let Some(planned) = waiting.pop_front() {
            if interrupt.token().is_cancelled() {
                break;
            }
            number += 1;
            let (run, returned, stop) = self.trial(planned, number, warm, teller, interrupt, log).await;
            log = returned;
            state.stop = stop.or_else(|| self.keep_replies(&run));
            let record = summarise_trial(&self.contract.slo, &run.facts, &run.accumulator);
            let void = record.complete && !record.health.faults.is_empty();
            let trials = state.measured.entry(planned.load).or_default();
            trials.push((record, run.accumulator));
            if state.stop.is_some() {
                break;
            }
            // A void trial is repeated once, with its own seed (method, section 4).
            if void && trials.len() == 1 {
                teller.say(&format!("{}: the load generator did not keep its plan; once more", planned.load));
                waiting.push_front(PlannedTrial { trial: next_trial, ..planned });
                next_trial += 1;
                number -= 1;
            }
        }
        self.probe_all(When::After, &mut state.probes, interrupt).await;
    }

    /// One trial, ended early by a signal, by the endpoint's end or by a full disk.
    async fn trial(
        &self,
        planned: PlannedTrial,
        number: usize,
        warm: &Warm,
        teller: &Teller,
        interrupt: &Interrupt,
        log: RequestLog,
    ) -> (TrialRun, RequestLog, Option<Stop>) {
        let cancel = interrupt.token().child_token();
        let progress = Arc::new(Progress::default());
        let mut trial = pin!(run_trial(&self.lane, &planned, &progress, log, &cancel));
        let mut follow = pin!(teller.follow(planned, number, Arc::clone(&progress)));
        let mut lost = pin!(warm.lost());
        let mut stop = None;
        let (run, log) = loop {
            tokio::select! {
                done = &mut trial => break done,
                () = &mut follow => {}
                seen = &mut lost, if stop.is_none() => {
                    stop = Some(seen);
                    cancel.cancel();
                }
            }
        };
        if let Some(detail) = &run.endpoint_lost {
            stop = stop.or(Some(Stop::EndpointDown { detail: detail.clone() }));
        }
        if let Some(error) = &run.storage_failure {
            let detail = format!("failed to write {}: {error}", self.folder.file("requests.jsonl").display());
            stop = Some(Stop::Storage { detail });
        }
        (run, log, stop)
    }

    /// Writes kept replies; a failure stops the run like any other failure to write.
    fn keep_replies(&self, run: &TrialRun) -> Option<Stop> {
        if run.kept.is_empty() {
            return None;
        }
        let written = self.folder.append_lines("samples.jsonl", &run.kept);
        written.err().map(|error| Stop::Storage { detail: error.to_string() })
    }

    fn unread_probes(&self) -> Vec<ProbeRecord> {
        self.contract.stability.iter().map(unread).collect()
    }

    /// Asks every probe once. After the load they are asked even when the run was interrupted, because their answers are
    /// evidence; but one that keeps an interrupted run waiting is left without an answer, and those behind it too.
    async fn probe_all(&self, when: When, probes: &mut [ProbeRecord], interrupt: &Interrupt) {
        for (row, record) in self.contract.stability.iter().zip(probes) {
            let mut reading = tokio::select! {
                biased;
                () = out_of_patience(when, interrupt) => return,
                reading = probe::read(&row.probe, &self.source.folder) => reading,
            };
            let secrets = self.lane.target.secrets();
            reading.failure = reading.failure.map(|failure| secrets.mask(&failure).into_owned());
            let line = ProbeLine { name: &row.name, when, reading: reading.clone() };
            // The reading itself is in the result; a full disk shows itself there.
            drop(self.folder.append_lines("probes.jsonl", &[line]));
            match when {
                When::Before => record.before = Some(reading),
                When::After => record.after = Some(reading),
            }
        }
    }
}

/// What a run has so far.
struct State {
    measured: Measured,
    probes: Vec<ProbeRecord>,
    stop: Option<Stop>,
}

/// When a probe was asked.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum When {
    Before,
    After,
}

/// Resolves when a probe of an interrupted run is no longer waited for.
async fn out_of_patience(when: When, interrupt: &Interrupt) {
    interrupt.token().cancelled().await;
    if when == When::After {
        tokio::time::sleep(PATIENCE).await;
    }
}

/// A line of `probes.jsonl`.
#[derive(Serialize)]
struct ProbeLine<'a> {
    name: &'a str,
    when: When,
    reading: Reading,
}

fn unread(row: &StabilityRow) -> ProbeRecord {
    let (kind, max_increase) = match &row.probe {
        StabilityProbe::Counter { max_increase, .. } => (ProbeKind::Counter, Some(*max_increase)),
        StabilityProbe::ExitCode { .. } => (ProbeKind::ExitCode, None),
    };
    ProbeRecord { name: row.name.clone(), kind, max_increase, before: None, after: None }
}

/// One step for each load of the contract, measured or not.
pub(super) fn steps(contract: &Contract, mut measured: Measured) -> Vec<StepRecord> {
    let loads = contract.traffic.loads().into_iter();
    loads.map(|load| summarise_step(load, &measured.remove(&load).unwrap_or_default(), None)).collect()
}

/// A name fit for a folder.
fn slug(name: &str) -> String {
    let slug: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    let short: String = slug.trim_matches('-').chars().take(40).collect();
    if short.is_empty() { "run".to_owned() } else { short }
}
