//! `goodput gate`: the main job.

use std::io::{ErrorKind, Write, stdout};
use std::path::Path;

use tokio::runtime::Runtime;

use super::audit::audit_for_gate;
use super::calibrate::calibration_for_gate;
use super::cli::{GateArguments, OutputFormat};
use super::comparison::{Wanted, compared_with};
use super::exit::{Exit, Failure, writing_hint};
use super::interrupt::Interrupt;
use super::prepare::{Source, read_contract};
use super::run::Run;
use crate::baseline::unfit;
use crate::contract::Plan;
use crate::drive::raise_priority;
use crate::record::{BaselineRecord, RunFolder, RunResult, Stop};
use crate::report::{self, plain};

pub(super) fn gate(arguments: &GateArguments) -> Result<Exit, Failure> {
    let source = read_contract(&arguments.contract, "gate")?;
    let base = arguments.pair.as_deref().map(|base| read_pair(base, &source)).transpose()?;
    let audit = audit_for_gate(arguments.audit.as_deref())?;
    let calibration = calibration_for_gate(arguments.calibration.as_deref())?;
    let runtime = runtime()?;
    runtime.block_on(async {
        let interrupt = Interrupt::listen()?;
        let plan = arguments.plan.into();
        let wanted = Wanted {
            file: &arguments.contract,
            plan,
            base: arguments.base.as_deref(),
            record: arguments.baseline.as_deref(),
            is_paired: base.is_some(),
        };
        let used = compared_with(&source, wanted).await?;
        let run = Run::prepare(source, plan, audit, used, &arguments.runs)?;
        let mut run = run.calibrated(calibration);
        if let Some(base) = base {
            run = run.beside(base);
        }
        let result = run.carry_out(&interrupt).await?;
        let stored = store(run.folder(), &result);
        let printed = print(&report_as(&result, arguments.output_format));
        if stored.is_ok() {
            drop(writeln!(std::io::stderr(), "goodput: written to {}", run.folder().path().display()));
            if is_to_be_kept(&result) {
                drop(writeln!(std::io::stderr(), "goodput: {}", plain(&keeping(&result, run.folder()))));
            }
        }
        conclude(&result, &interrupt, stored.and(printed))
    })
}

/// The contract of the endpoint without the change. With which margin the two are compared is said before they are measured.
fn read_pair(path: &Path, source: &Source) -> Result<Source, Failure> {
    if source.loaded.contract.baseline.is_none() {
        return Err(Failure::usage(
            "`--pair` compares two endpoints, and the contract does not say which loss still passes",
        )
        .hint("add `baseline: { margin: 5% }` to the contract"));
    }
    read_contract(path, "gate CONTRACT --pair")
}

/// The runtime that carries load and everything else.
pub(super) fn runtime() -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .on_thread_start(raise_priority)
        .build()
        .map_err(|error| Failure::internal(format!("failed to start: {error}")))
}

/// Whether later runs are to be compared with a run.
fn is_to_be_kept(result: &RunResult) -> bool {
    result.plan == Plan::Baseline && result.fingerprint.is_some()
}

/// How a run becomes a baseline, or why it cannot.
fn keeping(result: &RunResult, folder: &RunFolder) -> String {
    match unfit(&BaselineRecord::of(result)) {
        None => format!("keep it as a baseline: `goodput baseline save {}`", folder.path().display()),
        Some(reason) => format!("it cannot be kept as a baseline: it {reason}"),
    }
}

/// Writes a result, its summary and, of a run that later ones are to be compared with, its record into its folder.
pub(super) fn store(folder: &RunFolder, result: &RunResult) -> Result<(), Failure> {
    folder.write("result.json", report::json(result).as_bytes())?;
    folder.write("summary.md", report::markdown(result).as_bytes())?;
    if is_to_be_kept(result) {
        folder.write("baseline.json", report::json(&BaselineRecord::of(result)).as_bytes())?;
    }
    Ok(())
}

/// The exit code: a signal and a failure of our own are told from the verdict, which is written all the same.
fn conclude(result: &RunResult, interrupt: &Interrupt, told: Result<(), Failure>) -> Result<Exit, Failure> {
    if let Some(Stop::Storage { detail }) = &result.stopped {
        return Err(Failure::internal(detail.clone()).hint(writing_hint(ErrorKind::StorageFull)));
    }
    told?;
    if let Some(number) = interrupt.signal() {
        return Ok(Exit::Signal(number));
    }
    Ok(result.verdict.as_ref().map_or(Exit::Internal, Exit::of_verdict))
}

/// The result in the form asked for.
pub(super) fn report_as(result: &RunResult, format: OutputFormat) -> String {
    match format {
        OutputFormat::Table => report::terminal(result, width(), color()),
        OutputFormat::Markdown => report::markdown(result),
        OutputFormat::Json => report::json(result),
    }
}

/// Width of the terminal, or of `COLUMNS`, or 100.
pub(super) fn width() -> usize {
    const DEFAULT: usize = 100;
    let columns = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let measured = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    columns.or_else(measured).unwrap_or(DEFAULT).clamp(60, 200)
}

/// Whether standard output is a terminal that wants colours (`NO_COLOR`, `CLICOLOR_FORCE` and `TERM` are honoured).
pub(super) fn color() -> bool {
    anstream::AutoStream::choice(&stdout()) != anstream::ColorChoice::Never
}

/// Prints to standard output; a reader that has gone away is no failure, a full disk is.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    let mut output = stdout().lock();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::internal(format!("failed to write to standard output: {error}"))
                .hint("free space where it goes, or send it elsewhere"))
        }
        _ => Ok(()),
    }
}
