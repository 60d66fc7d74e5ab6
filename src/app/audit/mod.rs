//! `goodput audit`: up to which rate, and how exactly, the load generator can be trusted on this machine.

mod machine;
mod stage;
mod truth;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::cli::{AuditArguments, DEFAULT_AUDIT, PlanFormat};
use super::exit::{Exit, Failure};
use super::gate::{color, print, runtime, width};
use super::interrupt::Interrupt;
use super::progress::Teller;
use crate::drive::{Progress, open_file_limit};
use crate::record::{AUDIT_SCHEMA, AuditRecord, AuditTrial, read_audit, write_whole};
use crate::report;
use crate::schedule::{ArrivalProcess, PlannedTrial, TrialCounts, TrialShape};
use crate::search::Part;
use crate::units::{Load, Rate};
use machine::machine;
use stage::{RUN_ID, Stage, audited};
use truth::Heard;

/// The version of this tool.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The three parts of every trial: long enough for the connections to be there, and for the measured part to see whether the
/// generator falls behind.
const WARM_UP: Duration = Duration::from_millis(500);
const WINDOW: Duration = Duration::from_secs(3);
const DRAIN: Duration = Duration::from_millis(500);

/// How often a rate may be tried: what else the machine did at that moment must not decide alone.
const ATTEMPTS: usize = 2;

/// A trial, and the TTFTs that it measured.
type Audited = (AuditTrial, Heard);

pub(super) fn audit(arguments: &AuditArguments) -> Result<Exit, Failure> {
    let folder = arguments.output.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder {
        std::fs::create_dir_all(folder).map_err(|error| unwritable(&arguments.output, &error.to_string()))?;
    }
    runtime()?.block_on(async {
        let interrupt = Interrupt::listen()?;
        let started = Timestamp::now();
        let trials = match carry_out(arguments.to, &interrupt).await {
            // What ended because it was told to has no failure of its own.
            Ok(None) | Err(_) if interrupt.signal().is_some() => None,
            outcome => outcome?,
        };
        let Some(trials) = trials else {
            return Ok(interrupt.signal().map_or(Exit::Internal, Exit::Signal));
        };
        let record = AuditRecord {
            schema: AUDIT_SCHEMA.to_owned(),
            tool_version: VERSION.to_owned(),
            audited_at: started.to_string(),
            machine: machine(),
            trusted_rate: AuditRecord::trusted(&trials),
            trials,
        };
        write_whole(&arguments.output, report::json(&record).as_bytes())
            .map_err(|error| unwritable(&arguments.output, &error.to_string()))?;
        print(&match arguments.output_format {
            PlanFormat::Table => report::audit(&record, width(), color()),
            PlanFormat::Json => report::json(&record),
        })?;
        Teller::new().say(&format!("goodput: written to {}", arguments.output.display()));
        Ok(if record.trusted_rate.is_some() { Exit::Pass } else { Exit::Unknown })
    })
}

fn unwritable(path: &Path, error: &str) -> Failure {
    Failure::internal(format!("failed to write the audit {}: {error}", path.display()))
        .hint("name a file that can be written with `--output`")
}

/// Starts the endpoint, tries the rates and ends the endpoint; `None` when it was interrupted.
async fn carry_out(to: Rate, interrupt: &Interrupt) -> Result<Option<Vec<AuditTrial>>, Failure> {
    open_file_limit();
    let teller = Teller::new();
    teller.say(&format!("goodput: auditing the load generator up to {to}"));
    let stage = Stage::set(interrupt.token()).await?;
    let trouble = stage.trouble();
    let climbed = match &trouble {
        Some(_) => Ok(Vec::new()),
        None => climb(&stage, to, &teller, interrupt).await,
    };
    // The endpoint is ended before anything else is said or done.
    let truth = stage.strike().await;
    if let Some(detail) = trouble {
        return Err(Failure::internal(format!("the simulated endpoint did not start: {detail}")));
    }
    let (climbed, truth) = (climbed?, truth?);
    if interrupt.signal().is_some() {
        return Ok(None);
    }
    let with_error = |(number, (mut trial, heard)): (u32, Audited)| {
        trial.ttft_error = truth.errors(RUN_ID, number, &heard);
        if trial.faults.is_empty() && !trial.is_kept() {
            trial.faults.push("the true times of more than 1% of its requests are not known".to_owned());
        }
        trial
    };
    Ok(Some((0..).zip(climbed).map(with_error).collect()))
}

/// Tries one rate after the other until one was not kept as often as it may be tried.
async fn climb(stage: &Stage, to: Rate, teller: &Teller, interrupt: &Interrupt) -> Result<Vec<Audited>, Failure> {
    let mut made: Vec<Audited> = Vec::new();
    for rate in ladder(to) {
        let mut is_kept = false;
        for _ in 0..ATTEMPTS {
            let planned = plan(rate, made.len() as u32);
            let progress = Arc::new(Progress::default());
            let told = async {
                teller.follow("", planned, Part::Step, Arc::clone(&progress)).await;
                std::future::pending().await
            };
            let (record, heard) = tokio::select! {
                done = stage.trial(&planned, &progress, interrupt.token()) => done?,
                never = told => never,
            };
            if interrupt.token().is_cancelled() {
                return Ok(made);
            }
            let trial = audited(rate, &record);
            is_kept = trial.faults.is_empty();
            if !is_kept {
                teller.say(&format!("{rate}: {}", trial.faults.join("; ")));
            }
            made.push((trial, heard));
            if is_kept {
                break;
            }
        }
        if !is_kept {
            break;
        }
    }
    Ok(made)
}

fn plan(rate: Rate, trial: u32) -> PlannedTrial {
    let counts = TrialCounts::at(rate, WARM_UP, WINDOW, DRAIN);
    let shape = TrialShape::Open { process: ArrivalProcess::Constant, rate, counts };
    PlannedTrial { trial, seed: u64::from(trial), load: Load::RateMilli(rate), shape }
}

/// 50, 100, 200, 500, 1,000, … a second below `to`, and `to` itself, which is not below the first of them.
fn ladder(to: Rate) -> Vec<Rate> {
    let decades = (0..8).map(|power| 10u64.pow(power));
    let steps = decades.flat_map(|decade| [50, 100, 200].map(|step| step * decade));
    let below = steps.filter_map(|per_second| Rate::from_milli(per_second * 1_000)).filter(|rate| *rate < to);
    below.chain([to]).collect()
}

/// What an audit says of this machine, for a run of the gate: the one that is named, else the one at its usual place. One
/// that cannot be used is left out, and standard error says so.
///
/// # Errors
/// When a file that was named cannot be read.
pub(super) fn audit_for_gate(named: Option<&Path>) -> Result<Option<AuditRecord>, Failure> {
    let path = named.unwrap_or(Path::new(DEFAULT_AUDIT));
    if named.is_none() && !path.exists() {
        return Ok(None);
    }
    let why_not = match read_audit(path) {
        Ok(audit) => match audit.foreign_to(&machine(), VERSION) {
            None => {
                let reach = audit.trusted_rate.map_or_else(
                    || "trusts the load generator at no rate; run it again on an idle machine".to_owned(),
                    |rate| format!("trusts the load generator up to {rate}"),
                );
                Teller::new().say(&format!("goodput: {}: the audit of {} {reach}", path.display(), audit.audited_at));
                return Ok(Some(audit));
            }
            Some(difference) => format!("{}: {difference}", path.display()),
        },
        Err(error) if named.is_some() => {
            return Err(Failure::usage(error.to_string())
                .hint("write a new one with `goodput audit --output FILE`, or leave `--audit` out"));
        }
        Err(error) => error.to_string(),
    };
    Teller::new().say(&format!("goodput: {why_not}; the audit is not used; `goodput audit` writes a new one"));
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_rise_to_the_one_that_was_asked_for() {
        let steps = |to: &str| -> Vec<String> {
            ladder(Rate::parse(to).expect("a rate")).iter().map(ToString::to_string).collect()
        };
        assert_eq!(steps("4000/s"), ["50/s", "100/s", "200/s", "500/s", "1000/s", "2000/s", "4000/s"]);
        assert_eq!(steps("500/s"), ["50/s", "100/s", "200/s", "500/s"]);
        assert_eq!(
            (steps("50/s"), steps("50.5/s")),
            (vec!["50/s".to_owned()], vec!["50/s".to_owned(), "50.5/s".to_owned()])
        );
        assert_eq!(steps("1000000/s").last().map(String::as_str), Some("1000000/s"));
    }
}
