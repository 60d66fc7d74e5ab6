//! One endpoint under measurement: how it comes up, its trials one by one, and what they leave in a folder.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use jiff::Timestamp;
use serde::Serialize;

use crate::app::exit::Failure;
use crate::app::interrupt::Interrupt;
use crate::app::prepare::{Source, build_workload, choose_port, headers_of_pages};
use crate::app::probes::{Probes, When};
use crate::app::progress::Teller;
use crate::app::sampling::Sampling;
use crate::app::usage::{Payloads, Plain, leave_out};
use crate::app::warm::{Warm, describe, warm_up};
use crate::contract::{Contract, Plan};
use crate::drive::{Clock, Lane, Pool, Progress, Target, TrialRun, run_trial};
use crate::endpoint::{Running, http_client};
use crate::fingerprint::{fingerprint, origin};
use crate::judge::conclude;
use crate::probe::Context;
use crate::record::{
    AuditRecord, BaselineUse, BudgetRecord, Calibration, Completeness, EndpointRecord, Fingerprint, Hopeless, Origin,
    RESULT_SCHEMA, Readiness, RequestLog, RunFolder, RunResult, Stop, summarise_trial,
};
use crate::schedule::{PlannedTrial, TrialShape};
use crate::search::{Campaign, Measured, Part};
use crate::units::{Digest, Load};

/// One endpoint under measurement, with everything that it leaves.
pub(in crate::app) struct Side {
    contract: Contract,
    source: Source,
    lane: Arc<Lane>,
    plain: Option<Plain>,
    /// The workload's digest, whatever the model is called.
    comparable: Digest,
    plan: Plan,
    audit: Option<AuditRecord>,
    folder: RunFolder,
    started: Timestamp,
    /// What it is called where two are measured; leads what is told of it.
    label: &'static str,
    served: Option<Served>,
    /// It was started anew, and no trial was made since.
    is_fresh: bool,
    endpoint: Option<EndpointRecord>,
    fingerprint: Option<Fingerprint>,
    origin: Origin,
    calibration: Option<Calibration>,
    probes: Option<Probes>,
    measured: Measured,
    stop: Option<Stop>,
}

/// An endpoint that is up, or was to come up.
struct Served {
    warm: Warm,
    sampling: Sampling,
}

/// What is around everything that a run does.
#[derive(Clone, Copy)]
pub(in crate::app) struct Around<'a> {
    pub(in crate::app) teller: &'a Teller,
    pub(in crate::app) interrupt: &'a Interrupt,
}

/// `plan.json`: one trial that the plan may make.
#[derive(Serialize)]
struct PlanLine {
    trial: u32,
    seed: u64,
    load: Load,
    schedule_digest: Digest,
}

impl Side {
    /// Reads everything that the contract names and puts its plan into the folder. Nothing is started yet.
    pub(in crate::app) fn prepare(
        source: Source,
        plan: Plan,
        audit: Option<AuditRecord>,
        folder: impl FnOnce(&Contract, Timestamp) -> Result<RunFolder, Failure>,
        label: &'static str,
    ) -> Result<Self, Failure> {
        let mut contract = source.loaded.contract.clone();
        choose_port(&mut contract)?;
        let Payloads { workload, plain, comparable } = build_workload(&contract, &source.folder)?;
        let mut target = Target::new(&contract.endpoint).map_err(|error| Failure::usage(error.to_string()))?;
        target.mask_also(&headers_of_pages(&contract.stability, &contract.resources));
        let started = Timestamp::now();
        let folder = folder(&contract, started)?;
        folder.write("contract.yaml", source.text.as_bytes())?;
        let listed = Campaign::new(&contract, plan).listed();
        let lines: Vec<PlanLine> = listed
            .iter()
            .map(|t| PlanLine { trial: t.trial, seed: t.seed, load: t.load, schedule_digest: t.schedule_digest() })
            .collect();
        folder.write("plan.json", crate::report::json(&lines).as_bytes())?;
        let clock = Clock::start();
        let keep = workload.cases().iter().map(|_| AtomicU32::new(contract.samples.keep)).collect();
        let run_id = format!("goodput-{label}{}", started.as_millisecond());
        let lane = Lane { clock, target, pool: Pool::new(clock), workload, limits: contract.slo.request, run_id, keep };
        Ok(Self {
            contract,
            source,
            lane: Arc::new(lane),
            plain,
            comparable,
            plan,
            audit,
            folder,
            started,
            label,
            served: None,
            is_fresh: false,
            endpoint: None,
            fingerprint: None,
            origin: Origin::default(),
            calibration: None,
            probes: None,
            measured: Measured::default(),
            stop: None,
        })
    }

    pub(in crate::app) fn contract(&self) -> &Contract {
        &self.contract
    }

    pub(in crate::app) fn audit(&self) -> Option<&AuditRecord> {
        self.audit.as_ref()
    }

    pub(in crate::app) fn folder(&self) -> &RunFolder {
        &self.folder
    }

    pub(in crate::app) fn measured(&self) -> &Measured {
        &self.measured
    }

    pub(in crate::app) fn fingerprint(&self) -> Option<&Fingerprint> {
        self.fingerprint.as_ref()
    }

    pub(in crate::app) fn stopped(&self) -> Option<&Stop> {
        self.stop.as_ref()
    }

    /// Notes why no trial follows; the first reason stays.
    pub(in crate::app) fn stop_for(&mut self, stop: Stop) {
        self.stop.get_or_insert(stop);
    }

    /// How often the gate would be wrong on this machine, as it was found before.
    pub(in crate::app) fn set_calibration(&mut self, calibration: Option<Calibration>) {
        self.calibration = calibration;
    }

    /// Whether this process starts and stops the endpoint.
    pub(in crate::app) fn is_launched(&self) -> bool {
        self.contract.endpoint.launch.is_some()
    }

    /// Whether the endpoint is up, as far as is known.
    pub(in crate::app) fn is_up(&self) -> bool {
        self.served.is_some()
    }

    /// Whether it came up once, so that there may be evidence.
    pub(in crate::app) fn was_up(&self) -> bool {
        self.endpoint.is_some() || self.served.is_some()
    }

    /// Whether it was started anew for the trial that comes now.
    pub(in crate::app) fn take_fresh(&mut self) -> bool {
        std::mem::take(&mut self.is_fresh)
    }

    /// The number of its next trial.
    pub(in crate::app) fn next_number(&self) -> u32 {
        self.measured.tried().iter().map(|tried| tried.record.trial + 1).max().unwrap_or(0)
    }

    /// Brings the endpoint up, and asks it until it yields output. Whether it does; why not is part of the result.
    pub(in crate::app) async fn come_up(&mut self, around: Around<'_>) -> Result<bool, Failure> {
        let log = self.folder.file("endpoint.log");
        let (endpoint, cancel) = (&self.contract.endpoint, around.interrupt.token());
        let warm = warm_up(endpoint, &self.lane, self.plain.as_ref(), &self.source.folder, &log, cancel).await?;
        for notice in &warm.record.notices {
            around.teller.say(&format!("goodput: {}{notice}", self.label));
        }
        if warm.usage_refused {
            leave_out(&mut self.lane, self.plain.take())?;
        }
        let is_ready = warm.record.ready == Readiness::Ready;
        let context = self.context(&warm);
        let sampling = Sampling::start(&self.contract.resources, &context)?;
        self.is_fresh = warm.running.is_some();
        self.served = Some(Served { warm, sampling });
        match &mut self.probes {
            Some(probes) => probes.renew(&context),
            None => {
                self.probes = Some(Probes::new(&self.contract.stability, &context));
                if is_ready {
                    self.note_circumstances(around).await?;
                    self.ask_before(around).await;
                }
            }
        }
        Ok(is_ready)
    }

    /// Under which circumstances the endpoint that now runs is measured, and what it serves.
    async fn note_circumstances(&mut self, around: Around<'_>) -> Result<(), Failure> {
        // A page is asked for only where somebody reads what it says.
        if self.contract.baseline.is_some() || !self.label.is_empty() {
            self.ask_circumstances(around).await?;
        }
        // Variables tell of the change alone: where two endpoints are measured, only the change is what the workflow serves.
        let environment = |name: &str| std::env::var(name).ok();
        let nothing = |_: &str| None;
        let variable: &(dyn Fn(&str) -> Option<String> + Sync) =
            if self.label.is_empty() { &environment } else { &nothing };
        match origin(&self.source.folder, None, variable).await {
            Ok(origin) => self.origin = origin,
            Err(error) => around.teller.say(&format!("goodput: {error}")),
        }
        Ok(())
    }

    /// Asks the machine and the endpoint, unless the run is stopped meanwhile.
    async fn ask_circumstances(&mut self, around: Around<'_>) -> Result<(), Failure> {
        let endpoint = &self.contract.endpoint;
        let client = http_client(endpoint.ca_file.as_deref(), endpoint.proxy.as_ref(), endpoint.http)
            .map_err(|error| Failure::usage(error.to_string()))?;
        let (digest, secrets) = (&self.comparable, self.lane.target.secrets());
        let found = fingerprint(&self.contract, digest, &self.source.folder, &client, secrets);
        tokio::select! {
            biased;
            () = around.interrupt.token().cancelled() => return Ok(()),
            found = found => self.fingerprint = Some(found),
        }
        Ok(())
    }

    async fn ask_before(&mut self, around: Around<'_>) {
        self.ask(When::Before, around.interrupt).await;
        for lost in self.probes.iter().flat_map(Probes::lost_before) {
            around.teller.say(&format!("goodput: {}{lost}", self.label));
        }
    }

    /// Reads every stability probe once more before its next trial: something else had the machine.
    pub(in crate::app) async fn ask_anew(&mut self, around: Around<'_>) {
        let number = self.next_number();
        if number > 0 {
            self.ask(When::Anew(number), around.interrupt).await;
        }
    }

    /// Ends a launched endpoint; one that somebody else runs stays as it is.
    pub(in crate::app) async fn go_down(&mut self) {
        let Some(Served { warm, .. }) = self.served.take() else { return };
        let broke = self.probes.as_ref().is_some_and(Probes::any_broke);
        let in_trouble = matches!(self.stop, Some(Stop::EndpointDown { .. })) || broke;
        let record = warm.stop(self.lane.target.secrets(), in_trouble).await;
        self.endpoint = Some(match self.endpoint.take() {
            Some(before) => joined(before, record),
            None => record,
        });
    }

    /// No trial follows: notes a signal, and ends the endpoint.
    pub(in crate::app) async fn end(&mut self, interrupt: &Interrupt) {
        if let Some(probes) = &mut self.probes {
            probes.end();
        }
        // Results that cannot be written are a failure of our own, which a signal does not excuse.
        if let (Some(number), None | Some(Stop::Signal { .. } | Stop::EndpointDown { .. })) =
            (interrupt.signal(), &self.stop)
        {
            self.stop = Some(Stop::Signal { number });
        }
        self.go_down().await;
    }

    /// One trial with everything that belongs to it; [`Side::stopped`] tells whether others may follow.
    pub(in crate::app) async fn measure(&mut self, planned: PlannedTrial, part: Part, around: Around<'_>) {
        let log = match self.folder.request_log() {
            Ok(log) => log,
            Err(error) => return self.stop_for(Stop::Storage { detail: error.to_string() }),
        };
        let Some(mut served) = self.served.take() else { return };
        let (mut run, stop) = self.trial(planned, part, around, log, &mut served).await;
        let samples = served.sampling.end(&planned, &mut run.facts, self.lane.target.secrets()).await;
        self.served = Some(served);
        self.stop =
            stop.or_else(|| self.keep("samples.jsonl", &run.kept)).or_else(|| self.keep("resources.jsonl", &samples));
        run.facts.health.beyond_audit = self.audit.as_ref().is_some_and(|audit| audit.is_exceeded_by(planned.load));
        run.facts.unstable = self.ask(When::Trial(planned.trial), around.interrupt).await;
        let record = summarise_trial(&self.contract.slo, &run.facts, &run.accumulator);
        if record.is_void() {
            around.teller.say(&format!("{}{}: the load generator did not keep its plan", self.label, planned.load));
        }
        self.measured.add(part, planned.load, record, run.accumulator);
    }

    /// One trial, ended early by a signal, by the endpoint's end or by a full disk.
    async fn trial(
        &self,
        planned: PlannedTrial,
        part: Part,
        around: Around<'_>,
        log: RequestLog,
        Served { warm, sampling }: &mut Served,
    ) -> (TrialRun, Option<Stop>) {
        let cancel = around.interrupt.token().child_token();
        let progress = Arc::new(Progress::default());
        let hopeless = match (part, planned.shape) {
            (Part::Search, TrialShape::Open { counts, .. }) => Some(Hopeless::new(&self.contract.slo, counts.window)),
            _ => None,
        };
        let mut trial = pin!(run_trial(&self.lane, &planned, &progress, log, &cancel, hopeless));
        let mut follow = pin!(around.teller.follow(self.label, planned, part, Arc::clone(&progress)));
        let mut lost = pin!(warm.lost());
        let mut start = pin!(progress.start_ns());
        let (mut started, mut stop) = (false, None);
        let (run, _) = loop {
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
        (run, stop)
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
    async fn ask(&mut self, when: When, interrupt: &Interrupt) -> Vec<String> {
        let Some(probes) = &mut self.probes else { return Vec::new() };
        let secrets = self.lane.target.secrets();
        let lines = probes.ask(when, interrupt, |failure| secrets.mask(failure).into_owned()).await;
        let broke = probes.broke();
        // The readings themselves are in the result; a full disk shows itself there.
        drop(self.folder.append_lines("probes.jsonl", &lines));
        broke
    }

    /// Everything measured so far, with every conclusion drawn from it. `used` is what it is compared with.
    pub(in crate::app) fn result(&self, used: Option<BaselineUse>) -> RunResult {
        let campaign = Campaign::new(&self.contract, self.plan);
        let seen = || self.served.as_ref().map(|served| served.warm.record.clone());
        let endpoint = self.endpoint.clone().or_else(seen).unwrap_or_else(|| describe(&self.contract.endpoint));
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
            fingerprint: self.fingerprint.clone(),
            origin: self.origin.clone(),
            endpoint,
            audit: self.audit.clone(),
            stopped: self.stop.clone(),
            steps: self.measured.steps(&campaign.loads()),
            searches: self.measured.searches(),
            curve: self.measured.curve(),
            baseline: used,
            against: self.measured.against(),
            confirm: self.measured.confirm(),
            comparison: None,
            calibration: self.calibration.clone(),
            capacity: None,
            probes: self.probes.as_ref().map(Probes::records).unwrap_or_default(),
            completeness: Completeness::default(),
            verdict: None,
        };
        conclude(&self.contract, &mut result);
        result
    }
}

/// What is said of an endpoint that was started more than once: how it came up first, and the first trouble of all.
fn joined(before: EndpointRecord, later: EndpointRecord) -> EndpointRecord {
    let is_in_trouble = |record: &EndpointRecord| {
        record.exited.is_some() || matches!(record.ready, Readiness::NotReady { .. } | Readiness::Unreachable { .. })
    };
    match (is_in_trouble(&before), is_in_trouble(&later)) {
        (false, true) => EndpointRecord { ready_after_ns: before.ready_after_ns, notices: before.notices, ..later },
        (false, false) if before.log_tail.is_empty() => EndpointRecord { log_tail: later.log_tail, ..before },
        _ => before,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::EndpointKind;

    fn record(ready: Readiness, ready_after_ns: Option<u64>, exited: Option<&str>) -> EndpointRecord {
        EndpointRecord {
            url: "http://127.0.0.1:1/".to_owned(),
            protocol: "openai-chat".to_owned(),
            kind: EndpointKind::Launched,
            ready,
            ready_after_ns,
            exited: exited.map(str::to_owned),
            log_tail: Vec::new(),
            notices: Vec::new(),
        }
    }

    #[test]
    fn trouble_at_a_later_start_is_told_and_a_stopped_start_is_none() {
        let first = || record(Readiness::Ready, Some(7), None);
        assert_eq!(joined(first(), record(Readiness::Ready, Some(9), None)), first());
        assert_eq!(joined(first(), record(Readiness::NotAsked, None, None)), first());
        let failed = Readiness::NotReady { detail: "late".to_owned() };
        assert_eq!(joined(first(), record(failed.clone(), None, None)), record(failed, Some(7), None));
        let gone = record(Readiness::Ready, Some(9), Some("exited with code 1"));
        assert_eq!(joined(first(), gone.clone()).exited, gone.exited);
        assert_eq!(joined(gone.clone(), first()), gone);
    }
}
