//! One whole run: endpoint up, probes, trials, probes, endpoint down; everything measured ends in a [`RunResult`].

use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use jiff::Timestamp;
use serde::Serialize;

use super::exit::Failure;
use super::interrupt::Interrupt;
use super::prepare::{Source, build_workload, choose_port, headers_of_pages};
use super::probes::{Probes, When};
use super::progress::Teller;
use super::sampling::Sampling;
use super::usage::{Payloads, Plain, leave_out};
use super::warm::{Warm, warm_up};
use crate::compare::Reference;
use crate::contract::{Contract, Plan};
use crate::drive::{Clock, Lane, Pool, Progress, Target, TrialRun, open_file_limit, run_trial};
use crate::endpoint::Running;
use crate::judge::conclude;
use crate::judge::planning::forecast;
use crate::probe::Context;
use crate::record::{
    AuditRecord, BaselineUse, BudgetRecord, Completeness, Fingerprint, Hopeless, Origin, RESULT_SCHEMA, Readiness,
    RequestLog, RunFolder, RunResult, Stop, summarise_trial,
};
use crate::report::cost;
use crate::schedule::{PlannedTrial, TrialShape};
use crate::search::{Campaign, Measured, Next, Part};
use crate::units::{Digest, Load};

/// A run that is about to begin.
pub(super) struct Run {
    contract: Contract,
    source: Source,
    lane: Arc<Lane>,
    plain: Option<Plain>,
    plan: Plan,
    audit: Option<AuditRecord>,
    used: Option<BaselineUse>,
    folder: RunFolder,
    started: Timestamp,
}

/// `plan.json`: one trial that the plan may make.
#[derive(Serialize)]
struct PlanLine {
    trial: u32,
    seed: u64,
    load: Load,
    schedule_digest: Digest,
}

impl Run {
    /// Reads everything that the contract names and makes the run's folder. Nothing is started yet. `used` is what the run is
    /// compared with.
    pub(super) fn prepare(
        source: Source,
        plan: Plan,
        audit: Option<AuditRecord>,
        used: Option<BaselineUse>,
        runs: &Path,
    ) -> Result<Self, Failure> {
        let mut contract = source.loaded.contract.clone();
        choose_port(&mut contract)?;
        let Payloads { workload, plain } = build_workload(&contract, &source.folder)?;
        let mut target = Target::new(&contract.endpoint).map_err(|error| Failure::usage(error.to_string()))?;
        target.mask_also(&headers_of_pages(&contract.stability, &contract.resources));
        let started = Timestamp::now();
        let folder =
            RunFolder::create(runs, &format!("{}-{}", started.strftime("%Y%m%dT%H%M%SZ"), slug(&contract.name)))?;
        folder.write("contract.yaml", source.text.as_bytes())?;
        let listed = Campaign::new(&contract, plan).listed();
        let lines: Vec<PlanLine> = listed
            .iter()
            .map(|t| PlanLine { trial: t.trial, seed: t.seed, load: t.load, schedule_digest: t.schedule_digest() })
            .collect();
        folder.write("plan.json", crate::report::json(&lines).as_bytes())?;
        let clock = Clock::start();
        let keep = workload.cases().iter().map(|_| AtomicU32::new(contract.samples.keep)).collect();
        let run_id = format!("goodput-{}", started.as_millisecond());
        let lane = Lane { clock, target, pool: Pool::new(clock), workload, limits: contract.slo.request, run_id, keep };
        Ok(Self { contract, source, lane: Arc::new(lane), plain, plan, audit, used, folder, started })
    }

    /// The run's folder.
    pub(super) fn folder(&self) -> &RunFolder {
        &self.folder
    }

    /// Carries the run out. Whatever happens in it is part of the result; only what makes a result impossible is a failure.
    pub(super) async fn carry_out(&mut self, interrupt: &Interrupt) -> Result<RunResult, Failure> {
        open_file_limit();
        let teller = Teller::new();
        teller.say(&format!("goodput: {} against {}", self.contract.name, self.contract.endpoint.url));
        teller.say(&format!("goodput: {}", cost(&forecast(&self.contract, self.plan))));
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
        let context = self.context(&warm);
        let (fingerprint, origin) = self.circumstances();
        let mut state = State {
            measured: Measured::default(),
            probes: Probes::new(&self.contract.stability, &context),
            sampling: Sampling::start(&self.contract.resources, &context)?,
            stop: None,
        };
        if warm.record.ready == Readiness::Ready {
            let used = self.used.as_ref();
            let reference = used.and_then(|used| Reference::of(&self.contract, used, fingerprint.as_ref()));
            let campaign = Campaign::new(&self.contract, self.plan).against(reference);
            self.measure(&campaign, &Around { warm: &warm, teller: &teller, interrupt }, &mut state).await;
        }
        // Results that cannot be written are a failure of our own, which a signal does not excuse.
        if let (Some(number), None | Some(Stop::Signal { .. } | Stop::EndpointDown { .. })) =
            (interrupt.signal(), &state.stop)
        {
            state.stop = Some(Stop::Signal { number });
        }
        let in_trouble = matches!(state.stop, Some(Stop::EndpointDown { .. })) || state.probes.any_broke();
        let endpoint = warm.stop(self.lane.target.secrets(), in_trouble).await;
        let campaign = Campaign::new(&self.contract, self.plan);
        let mut result = RunResult {
            schema: RESULT_SCHEMA.to_owned(),
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            name: self.contract.name.clone(),
            started_at: self.started.to_string(),
            finished_at: Timestamp::now().to_string(),
            contract: self.source.loaded.value.clone(),
            contract_digest: self.source.loaded.digest.clone(),
            plan: self.plan,
            budget: BudgetRecord::default(),
            plan_digest: campaign.digest(),
            workload_digest: self.lane.workload.digest().clone(),
            fingerprint,
            origin,
            endpoint,
            audit: self.audit.clone(),
            stopped: state.stop,
            steps: state.measured.steps(&campaign.loads()),
            searches: state.measured.searches(),
            curve: state.measured.curve(),
            baseline: self.used.clone(),
            against: state.measured.against(),
            confirm: state.measured.confirm(),
            comparison: None,
            capacity: None,
            probes: state.probes.into_records(),
            completeness: Completeness::default(),
            verdict: None,
        };
        conclude(&self.contract, &mut result);
        Ok(result)
    }

    /// Under which circumstances the endpoint that now runs is measured, and what it serves.
    fn circumstances(&self) -> (Option<Fingerprint>, Origin) {
        (None, Origin::default())
    }

    /// Probes, all trials, probes again. Returns early when the run is stopped; `state` says why.
    async fn measure(&self, campaign: &Campaign<'_>, around: &Around<'_>, state: &mut State) {
        let Around { teller, interrupt, .. } = *around;
        self.ask(&mut state.probes, When::Before, interrupt).await;
        for lost in state.probes.lost_before() {
            teller.say(&format!("goodput: {lost}"));
        }
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
        while !interrupt.token().is_cancelled() {
            let (planned, part) = match campaign.next(&state.measured.tried()) {
                Next::Trial(planned, part) => (planned, part),
                Next::Done => break,
                Next::OutOfTime => {
                    teller.say("the rest of the plan does not fit into its budget");
                    break;
                }
            };
            let (mut run, returned, stop) = self.trial(planned, part, around, log, &mut state.sampling).await;
            log = returned;
            let samples = state.sampling.end(&planned, &mut run.facts, self.lane.target.secrets()).await;
            state.stop = stop
                .or_else(|| self.keep("samples.jsonl", &run.kept))
                .or_else(|| self.keep("resources.jsonl", &samples));
            run.facts.health.beyond_audit = self.audit.as_ref().is_some_and(|audit| audit.is_exceeded_by(planned.load));
            run.facts.unstable = self.ask(&mut state.probes, When::Trial(planned.trial), interrupt).await;
            let record = summarise_trial(&self.contract.slo, &run.facts, &run.accumulator);
            if record.is_void() {
                teller.say(&format!("{}: the load generator did not keep its plan", planned.load));
            }
            state.measured.add(part, planned.load, record, run.accumulator);
            if state.stop.is_some() {
                break;
            }
        }
        state.probes.end();
    }

    /// One trial, ended early by a signal, by the endpoint's end or by a full disk.
    async fn trial(
        &self,
        planned: PlannedTrial,
        part: Part,
        around: &Around<'_>,
        log: RequestLog,
        sampling: &mut Sampling,
    ) -> (TrialRun, RequestLog, Option<Stop>) {
        let Around { warm, teller, interrupt } = *around;
        let cancel = interrupt.token().child_token();
        let progress = Arc::new(Progress::default());
        let hopeless = match (part, planned.shape) {
            (Part::Search, TrialShape::Open { counts, .. }) => Some(Hopeless::new(&self.contract.slo, counts.window)),
            _ => None,
        };
        let mut trial = pin!(run_trial(&self.lane, &planned, &progress, log, &cancel, hopeless));
        let mut follow = pin!(teller.follow(planned, part, Arc::clone(&progress)));
        let mut lost = pin!(warm.lost());
        let mut start = pin!(progress.start_ns());
        let (mut started, mut stop) = (false, None);
        let (run, log) = loop {
            tokio::select! {
                done = &mut trial => break done,
                () = &mut follow => {}
                start_ns = &mut start, if !started => {
                    started = true;
                    sampling.begin(&planned, self.lane.clock.instant(start_ns));
                }
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

    /// Appends what a trial left beside its requests; a failure stops the run like any other failure to write.
    fn keep<T: Serialize>(&self, file: &str, lines: &[T]) -> Option<Stop> {
        if lines.is_empty() {
            return None;
        }
        let written = self.folder.append_lines(file, lines);
        written.err().map(|error| Stop::Storage { detail: error.to_string() })
    }

    /// What probes know of the run.
    fn context(&self, warm: &Warm) -> Context {
        Context {
            folder: self.source.folder.clone(),
            endpoint: warm.running.as_ref().map(Running::pid),
            port: self.contract.endpoint.url.port_or_known_default().unwrap_or_default(),
        }
    }

    /// Asks every stability probe once, all at the same time, and names the rows that broke since they were last asked.
    async fn ask(&self, probes: &mut Probes, when: When, interrupt: &Interrupt) -> Vec<String> {
        let secrets = self.lane.target.secrets();
        let lines = probes.ask(when, interrupt, |failure| secrets.mask(failure).into_owned()).await;
        // The readings themselves are in the result; a full disk shows itself there.
        drop(self.folder.append_lines("probes.jsonl", &lines));
        probes.broke()
    }
}

/// What is around every trial of a run.
struct Around<'a> {
    warm: &'a Warm,
    teller: &'a Teller,
    interrupt: &'a Interrupt,
}

/// What a run has so far.
struct State {
    measured: Measured,
    probes: Probes,
    sampling: Sampling,
    stop: Option<Stop>,
}

/// A name fit for a folder.
fn slug(name: &str) -> String {
    let slug: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    let short: String = slug.trim_matches('-').chars().take(40).collect();
    if short.is_empty() { "run".to_owned() } else { short }
}
