//! The scene of an audit: the driver, and the simulated endpoint in a process of its own.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::truth::{Heard, Truth};
use crate::app::exit::Failure;
use crate::app::prepare::{build_workload, free_port};
use crate::app::warm::{Warm, warm_up};
use crate::contract::{Contract, from_value};
use crate::drive::{Clock, Lane, Pool, Progress, Target, run_trial};
use crate::observe::Outcome;
use crate::record::{AuditTrial, Readiness, RunFolder, TrialRecord, summarise_trial};
use crate::schedule::PlannedTrial;
use crate::units::Rate;

/// Leads the name of every request.
pub(super) const RUN_ID: &str = "audit";

/// What the endpoint does: nobody waits for a place, and the first token comes after a time that is known.
const PROFILE: &str =
    "version: 1\nname: audit\nmodel: { kind: slots, slots: 1000000, first_token_after: 20ms, per_token: 5ms }\n";
/// Tokens of a reply, each an event of its own.
const TOKENS: u32 = 4;

/// A folder that goes when it is no longer needed.
#[derive(Debug)]
struct Folder(RunFolder);

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed lies among other temporary files.
        drop(std::fs::remove_dir_all(self.0.path()));
    }
}

/// The driver and the endpoint that it is audited against.
#[derive(Debug)]
pub(super) struct Stage {
    contract: Contract,
    lane: Arc<Lane>,
    warm: Warm,
    folder: Folder,
}

impl Stage {
    /// Starts the endpoint and waits until it yields output.
    pub(super) async fn set(cancel: &CancellationToken) -> Result<Self, Failure> {
        let folder = Folder(RunFolder::create(&std::env::temp_dir(), "goodput-audit").map_err(|error| {
            Failure::internal(error.to_string()).hint("name a folder that can be written in TMPDIR")
        })?);
        folder.0.write("profile.yaml", PROFILE.as_bytes())?;
        let contract = contract(&folder.0)?;
        let workload = build_workload(&contract, folder.0.path())?.workload;
        let target = Target::new(&contract.endpoint).map_err(|error| Failure::internal(error.to_string()))?;
        let clock = Clock::start();
        let keep = workload.cases().iter().map(|_| AtomicU32::new(0)).collect();
        let limits = contract.slo.request;
        let run_id = RUN_ID.to_owned();
        let lane = Arc::new(Lane { clock, target, pool: Pool::new(clock), workload, limits, run_id, keep });
        let log = folder.0.file("endpoint.log");
        let warm = warm_up(&contract.endpoint, &lane, None, folder.0.path(), &log, cancel).await?;
        Ok(Self { contract, lane, warm, folder })
    }

    /// Why there is nothing to audit against; `None` when the endpoint is there or nobody wants it any more.
    pub(super) fn trouble(&self) -> Option<String> {
        match &self.warm.record.ready {
            Readiness::Ready | Readiness::NotAsked => None,
            Readiness::NotReady { detail } | Readiness::Unreachable { detail } => Some(detail.clone()),
        }
    }

    /// One trial through the real driver, summarised by the rules that every trial is.
    pub(super) async fn trial(
        &self,
        planned: &PlannedTrial,
        progress: &Arc<Progress>,
        cancel: &CancellationToken,
    ) -> Result<(TrialRecord, Heard), Failure> {
        let (run, heard) = run_trial(&self.lane, planned, progress, Heard::default(), cancel, None).await;
        if let Some(detail) = run.endpoint_lost {
            return Err(Failure::internal(format!("the simulated endpoint went away: {detail}")));
        }
        Ok((summarise_trial(&self.contract.slo, &run.facts, &run.accumulator), heard))
    }

    /// Ends the endpoint and reads what it noted of every request.
    pub(super) async fn strike(self) -> Result<Truth, Failure> {
        self.warm.stop(self.lane.target.secrets(), false).await;
        Truth::read(&self.folder.0.file("served.jsonl"))
    }
}

/// What a trial says of the generator. How true its times are is known when the endpoint has ended.
pub(super) fn audited(rate: Rate, record: &TrialRecord) -> AuditTrial {
    let health = &record.health;
    let mut faults = health.faults.clone();
    let ok = record.window.outcomes.get(&Outcome::Ok).copied().unwrap_or(0);
    if u128::from(ok) * 1_000 < u128::from(record.window.scheduled) * 999 {
        faults.push(format!("only {ok} of {} requests ended ok, below 99.9%", record.window.scheduled));
    }
    AuditTrial {
        rate,
        due: health.due,
        sent: health.sent,
        dispatch_lag: health.dispatch_lag,
        ttft_error: None,
        cpu_share: health.cpu_share,
        faults,
    }
}

/// A contract like any other, so that nothing is audited but what measures in earnest.
fn contract(folder: &RunFolder) -> Result<Contract, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::internal(format!("failed to find the program itself: {error}")))?;
    let text = |path: &Path| path.display().to_string();
    let (profile, log) = (folder.file("profile.yaml"), folder.file("served.jsonl"));
    let address = format!("127.0.0.1:{}", free_port()?);
    let value = json!({
        "version": 1,
        "name": "audit",
        "endpoint": {
            "url": format!("http://{address}/v1/chat/completions"),
            "protocol": "openai-chat",
            "model": "audit",
            "timeout": "10s",
            "launch": {
                "command": [text(&program), "simulate", text(&profile), "--listen", address, "--log", text(&log)],
                "ready": { "path": "/health", "within": "30s", "first_token_within": "30s" },
                "stop_within": "10s"
            }
        },
        "workload": { "cases": [{ "id": "audit", "prompt": "How long does this take?", "max_tokens": TOKENS }] },
        "traffic": { "model": "constant", "loads": ["50/s"], "trial": { "requests": 100 } },
        "slo": { "objectives": [{ "metric": "success_rate", "at_least": "100%" }], "at_load": "50/s" }
    });
    from_value(&value, folder.path()).map_err(|faults| {
        let lines: Vec<String> = faults.iter().map(|fault| format!("{}: {}", fault.pointer, fault.message)).collect();
        Failure::internal(format!("the audit's own contract cannot be used:\n  {}", lines.join("\n  ")))
    })
}
