//! `goodput gate`: the main job.

use std::io::{ErrorKind, Write, stdout};
use std::path::{Path, PathBuf};

use tokio::runtime::Runtime;

use super::audit::audit_for_gate;
use super::calibrate::calibration_for_gate;
use super::cli::{GateArguments, OutputFormat, UnknownChoice};
use super::comparison::{Wanted, compared_with};
use super::exit::{Exit, Failure, writing_hint};
use super::interrupt::Interrupt;
use super::prepare::{Source, read_contract};
use super::publish::{Publisher, Told, without_panic};
use super::run::Run;
use crate::baseline::unfit;
use crate::contract::Plan;
use crate::drive::raise_priority;
use crate::judge::Status;
use crate::publish::{end_group, group};
use crate::record::{BaselineRecord, RunFolder, RunResult, Stop};
use crate::report::{self, plain};

pub(super) fn gate(arguments: &GateArguments) -> Result<Exit, Failure> {
    if !arguments.publish {
        if arguments.publishing.are_written() {
            return Err(Failure::usage("how a result is told is said, and not that it is").hint("add `--publish`"));
        }
        return run(arguments, &runtime()?, false)?.outcome;
    }
    let Some(publisher) = Publisher::of_environment(&arguments.publishing) else {
        drop(writeln!(
            std::io::stderr(),
            "goodput: this is no job of GitHub Actions: the run's folder holds what there is to tell"
        ));
        return run(arguments, &runtime()?, false)?.outcome;
    };
    let runtime = runtime()?;
    let ran = match without_panic(|| run(arguments, &runtime, true)) {
        Ok(ran) => ran,
        Err(failure) => {
            publisher.failure(&runtime, &arguments.contract, &failure);
            return Err(failure);
        }
    };
    let told = Told {
        folder: Some(&ran.folder),
        contract: Some((arguments.contract.as_path(), ran.text.as_str())),
        exit: ran.outcome.as_ref().map_or_else(Failure::exit, |exit| *exit),
        remarks: ran.remarks,
    };
    publisher.run(&runtime, &ran.result, told, Some(&ran.interrupt));
    // Who ends the job while it is told ends it; the verdict is in the run's folder.
    ran.interrupt.signal().map_or(ran.outcome, |number| Ok(Exit::Signal(number)))
}

/// A run that came to its end, and how it ends the process.
struct Ran {
    result: RunResult,
    folder: PathBuf,
    /// The contract's text.
    text: String,
    /// What a reader must know of the exit code.
    remarks: Vec<String>,
    outcome: Result<Exit, Failure>,
    interrupt: Interrupt,
}

/// Everything but what is told elsewhere. What fails before there is a result is a failure. A workflow folds the run's log.
fn run(arguments: &GateArguments, runtime: &Runtime, in_workflow: bool) -> Result<Ran, Failure> {
    let source = read_contract(&arguments.contract, "gate")?;
    if arguments.baseline.is_some() && source.loaded.contract.baseline.is_none() {
        return Err(Failure::usage(
            "`--baseline` names a record to compare with, and the contract asks for no comparison",
        )
        .hint("add `baseline: { margin: 5% }` to the contract"));
    }
    let text = source.text.clone();
    let base = arguments.pair.as_deref().map(|base| read_pair(base, &source)).transpose()?;
    let audit = audit_for_gate(arguments.audit.as_deref())?;
    let calibration = calibration_for_gate(arguments.calibration.as_deref())?;
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
        let mut stderr = std::io::stderr();
        if in_workflow {
            drop(group(&mut stderr, "The run as it goes"));
        }
        let carried_out = run.carry_out(&interrupt).await;
        if in_workflow {
            drop(end_group(&mut stderr));
        }
        let result = carried_out?;
        let stored = store(run.folder(), &result);
        let printed = print(&report_as(&result, arguments.output_format));
        if stored.is_ok() {
            let folder = plain(&run.folder().path().display().to_string());
            drop(writeln!(std::io::stderr(), "goodput: written to {folder}"));
            if is_to_be_kept(&result) {
                drop(writeln!(std::io::stderr(), "goodput: {}", plain(&keeping(&result, run.folder()))));
            }
        }
        let outcome = conclude(&result, &interrupt, arguments.unknown, stored.and(printed));
        let remarks = remarks(&result, arguments.unknown);
        Ok(Ran { folder: run.folder().path().to_owned(), result, text, remarks, outcome, interrupt })
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
    folder.write("note.md", report::note(result).as_bytes())?;
    folder.write("junit.xml", report::junit(result).as_bytes())?;
    if is_to_be_kept(result) {
        folder.write("baseline.json", report::json(&BaselineRecord::of(result)).as_bytes())?;
    }
    Ok(())
}

/// The exit code: a signal and a failure of our own are told from the verdict, which is written all the same.
fn conclude(
    result: &RunResult,
    interrupt: &Interrupt,
    unknown: UnknownChoice,
    told: Result<(), Failure>,
) -> Result<Exit, Failure> {
    if let Some(Stop::Storage { detail }) = &result.stopped {
        return Err(Failure::internal(detail.clone()).hint(writing_hint(ErrorKind::StorageFull)));
    }
    told?;
    if let Some(number) = interrupt.signal() {
        return Ok(Exit::Signal(number));
    }
    let exit = result.verdict.as_ref().map_or(Exit::Internal, Exit::of_verdict);
    Ok(match overruled(result, unknown) {
        Some(true) => Exit::Unknown,
        Some(false) => Exit::Pass,
        None => exit,
    })
}

/// Whether an UNKNOWN blocks, where the command line says otherwise than the verdict. A release is never let through.
fn overruled(result: &RunResult, unknown: UnknownChoice) -> Option<bool> {
    let verdict = result.verdict.as_ref().filter(|verdict| verdict.overall == Status::Unknown)?;
    match unknown {
        UnknownChoice::Block if !verdict.unknown_blocks => Some(true),
        UnknownChoice::Warn if verdict.unknown_blocks && result.plan != Plan::Release => Some(false),
        _ => None,
    }
}

/// What the command line makes of the verdict, in words.
fn remarks(result: &RunResult, unknown: UnknownChoice) -> Vec<String> {
    let said = match overruled(result, unknown) {
        Some(true) => "UNKNOWN blocks here, whatever the contract's policy: the command line says `--unknown block`.",
        Some(false) => {
            "UNKNOWN does not block here, though it does by the contract's policy: the command line says `--unknown warn`."
        }
        None => return Vec::new(),
    };
    vec![said.to_owned()]
}

/// The result in the form asked for.
pub(super) fn report_as(result: &RunResult, format: OutputFormat) -> String {
    match format {
        OutputFormat::Table => report::terminal(result, width(), color()),
        OutputFormat::Markdown => report::markdown(result),
        OutputFormat::Json => report::json(result),
        OutputFormat::Junit => report::junit(result),
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
