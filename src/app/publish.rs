//! `goodput publish`, and what `goodput gate --publish` tells where a change is reviewed. Nothing here changes a verdict.

use std::any::Any;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::runtime::Runtime;

use super::cli::{CommentChoice, PublishArguments, PublishingOptions};
use super::exit::{Exit, Failure};
use super::gate::runtime;
use super::interrupt::Interrupt;
use super::judge::judged;
use super::prepare::{Source, read_contract};
use crate::compare::weakened;
use crate::contract::{from_value, name_in};
use crate::publish::{Context, Published, Subject, Wanted, When, publish as tell};
use crate::record::RunResult;
use crate::report::plain;

/// The most places named in which a contract asks for less.
const TOLD: usize = 5;

/// Tells a stored result.
pub(super) fn publish(arguments: &PublishArguments) -> Result<Exit, Failure> {
    let Some(publisher) = Publisher::of_environment(&arguments.publishing) else {
        return Err(Failure::usage("there is nobody to tell: this is no job of GitHub Actions")
            .hint("for other places, `summary.md`, `note.md` and `junit.xml` lie in the run's folder"));
    };
    let reviewed = arguments.contract.as_deref().map(|path| read_contract(path, "publish RESULT --contract"));
    let reviewed = reviewed.transpose()?;
    if publisher.context.follows_another_run() && reviewed.is_none() {
        return Err(Failure::usage("what another workflow run measured is the word of whoever wrote the change").hint(
            "name the contract of the base branch, with which it is held against: `--contract .goodput/contract.yaml`",
        ));
    }
    let runtime = runtime()?;
    let (result, mut remarks) = match told_of(&arguments.result, reviewed.as_ref()) {
        Ok(told) => told,
        Err(failure) => {
            // An older comment must not stand for what could not be told.
            if let Some(path) = &arguments.contract {
                publisher.failure(&runtime, path, &failure);
            }
            return Err(failure);
        }
    };
    if publisher.context.follows_another_run() {
        remarks.push(
            "Measured by a workflow run of the change itself: the verdict is what its figures yield, and nobody here saw them measured."
                .to_owned(),
        );
    }
    let folder = if arguments.result.is_dir() { Some(arguments.result.as_path()) } else { arguments.result.parent() };
    let file = arguments.contract.as_deref().zip(reviewed.as_ref()).map(|(path, source)| (path, source.text.as_str()));
    let exit = result.verdict.as_ref().map_or(Exit::Internal, Exit::of_verdict);
    let told = Told { folder, contract: file, exit, remarks };
    let published = publisher.run(&runtime, &result, told, None);
    if published.problems.is_empty() {
        return Ok(Exit::Pass);
    }
    Err(Failure::internal("not everything could be told; the lines above say what and why"))
}

/// A stored result that bears its verdict out, and what a reader must know of it.
fn told_of(path: &Path, reviewed: Option<&Source>) -> Result<(RunResult, Vec<String>), Failure> {
    let result = judged(path)?;
    let remarks = reviewed.map(|reviewed| held_against(&result, reviewed)).transpose()?;
    Ok((result, remarks.unwrap_or_default()))
}

/// How a result stands to the contract that reviewers know; the result itself names neither.
fn held_against(result: &RunResult, reviewed: &Source) -> Result<Vec<String>, Failure> {
    let contract = &reviewed.loaded.contract;
    if result.name != contract.name {
        return Err(Failure::usage(format!(
            "the result is of the contract `{}`, and the one that it is held against is `{}`",
            result.name, contract.name
        ))
        .hint("name the result's own contract with `--contract`"));
    }
    if result.contract == reviewed.loaded.value {
        return Ok(Vec::new());
    }
    let measured = from_value(&result.contract, &reviewed.folder)
        .map_err(|faults| Failure::contract(&faults, "the contract that was measured", ""))?;
    let asked = weakened(contract, &measured);
    let mut told: Vec<String> = asked.iter().take(TOLD).map(|less| less.what.clone()).collect();
    if asked.len() > TOLD {
        told.push(format!("and {} more", asked.len() - TOLD));
    }
    let what = if told.is_empty() {
        "though no limit asks for less: look at what it sends and where".to_owned()
    } else {
        format!("and asks for less: {}", told.join(", "))
    };
    Ok(vec![format!("The contract that was measured is not that of the base branch, {what}.")])
}

/// What is told with a result.
pub(super) struct Told<'a> {
    /// The folder with the run's files.
    pub(super) folder: Option<&'a Path>,
    /// The contract's file and its text.
    pub(super) contract: Option<(&'a Path, &'a str)>,
    pub(super) exit: Exit,
    pub(super) remarks: Vec<String>,
}

/// How long telling may take once the run was told to end: a runner kills a job that was cancelled soon.
const HASTE: Duration = Duration::from_secs(6);

/// Tells what runs found, as the options want it.
pub(super) struct Publisher {
    context: Context,
    options: PublishingOptions,
}

impl Publisher {
    /// The publisher of a job that runs here; `None` where there is nobody to tell.
    pub(super) fn of_environment(options: &PublishingOptions) -> Option<Self> {
        let context = Context::from_environment(&|name| std::env::var(name).ok());
        context.is_workflow().then(|| Self { context, options: options.clone() })
    }

    /// Tells a result. A signal ends the telling, and what was told until then stands.
    pub(super) fn run(
        &self,
        runtime: &Runtime,
        result: &RunResult,
        told: Told<'_>,
        interrupt: Option<&Interrupt>,
    ) -> Published {
        let path = told.contract.map(|(path, _)| self.in_repository(path));
        let contract = path.as_deref().zip(told.contract).map(|(path, (_, text))| (path, text));
        let subject = Subject::Run { result, folder: told.folder, contract };
        self.tell(runtime, &subject, told.exit, told.remarks, interrupt)
    }

    /// Tells that there is no result, and why.
    pub(super) fn failure(&self, runtime: &Runtime, contract: &Path, failure: &Failure) -> Published {
        let name = std::fs::read_to_string(contract).ok().and_then(|text| name_in(&text));
        let path = self.in_repository(contract);
        let name = name.unwrap_or_else(|| path.clone());
        let (message, faults) = (failure.told(), (path.as_str(), failure.places()));
        let subject = Subject::Failure { contract: &name, message: &message, faults };
        self.tell(runtime, &subject, failure.exit(), Vec::new(), None)
    }

    fn tell(
        &self,
        runtime: &Runtime,
        subject: &Subject<'_>,
        exit: Exit,
        remarks: Vec<String>,
        interrupt: Option<&Interrupt>,
    ) -> Published {
        let wanted = Wanted {
            comment: match self.options.comment.unwrap_or(CommentChoice::Always) {
                CommentChoice::Always => When::Always,
                CommentChoice::NotPass => When::NotPass,
                CommentChoice::Never => When::Never,
            },
            key: self.options.comment_key.clone(),
            check: self.options.check,
            remarks,
            exit_code: exit.code(),
        };
        // The runner reads what it is commanded from standard error as well, and standard output may be a machine's.
        let mut stderr = std::io::stderr();
        let telling = || Ok(runtime.block_on(hurried(tell(subject, &wanted, &self.context, &mut stderr), interrupt)));
        let published = without_panic(telling).unwrap_or_else(|failure| unpublished(&failure.told()));
        for line in published.written.iter().chain(&published.problems) {
            drop(writeln!(stderr, "goodput: {}", plain(line)));
        }
        published
    }

    /// A path as the repository knows it, where it lies in it.
    fn in_repository(&self, path: &Path) -> String {
        let whole = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let root = std::env::var_os("GITHUB_WORKSPACE").map(PathBuf::from);
        let inside = root.and_then(|root| whole(path).strip_prefix(whole(&root)).map(Path::to_owned).ok());
        inside.unwrap_or_else(|| path.to_owned()).display().to_string()
    }
}

/// Publishes until a signal comes, or where one came already for a short while.
async fn hurried(telling: impl Future<Output = Published>, interrupt: Option<&Interrupt>) -> Published {
    let Some(interrupt) = interrupt else { return telling.await };
    let is_late = interrupt.token().is_cancelled();
    let given_up = async {
        interrupt.token().cancelled().await;
        if is_late {
            tokio::time::sleep(HASTE).await;
        }
    };
    tokio::select! {
        published = telling => published,
        () = given_up => unpublished("not everything was published: the job was told to end"),
    }
}

fn unpublished(problem: &str) -> Published {
    Published { problems: vec![problem.to_owned()], ..Published::default() }
}

/// Does what may panic, and makes a failure of the tool out of it, which can be told.
pub(super) fn without_panic<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        Err(Failure::internal(format!("goodput itself is at fault: {}", said(panic.as_ref())))
            .hint("please report it, with what is printed above"))
    })
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it stopped")
}
