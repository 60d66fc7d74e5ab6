//! The command line: flags only.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use url::Url;

use super::init::Server;
use crate::contract::{MARGIN_PPM, Plan};
use crate::observe::Protocol;
use crate::units::{Rate, Share, parse_duration};

/// Where a contract is looked for when none is named.
pub(super) const DEFAULT_CONTRACT: &str = ".goodput/contract.yaml";

/// Where an audit of the load generator is kept when no other place is named.
pub(super) const DEFAULT_AUDIT: &str = ".goodput/audit.json";

/// Where a calibration of the comparison is kept when no other place is named.
pub(super) const DEFAULT_CALIBRATION: &str = ".goodput/calibration.json";

/// Can this LLM serving change ship? Measures SLO-qualified goodput and answers PASS, FAIL or UNKNOWN.
#[derive(Debug, Parser)]
#[command(name = "goodput", version, max_term_width = 100, after_help = EXIT_CODES)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 PASS, or UNKNOWN that the policy lets through · 1 FAIL · 2 bad usage or contract · \
    3 UNKNOWN · 70 the tool itself failed · 130, 143 interrupted, after writing what was measured";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// The main job: validate, smoke, run, judge, report. The exit code is the verdict.
    Gate(GateArguments),
    /// Checks a contract and prints its plan, and which objectives the plan can decide.
    Validate(ValidateArguments),
    /// Dry run before any load: proves that payload, reply, usage and every probe give data.
    Smoke(SmokeArguments),
    /// Computes the verdict again from stored evidence.
    Judge(JudgeArguments),
    /// Tells a stored result where a change is reviewed: comment, job summary, annotations and outputs.
    Publish(PublishArguments),
    /// Holds two stored runs against each other: what changed, with its interval, and their replies side by side.
    Compare(CompareArguments),
    /// Says up to which rate, and how exactly, the load generator can be trusted on this machine.
    Audit(AuditArguments),
    /// Stored results that runs are compared with: shows, keeps, promotes and lists them.
    Baseline(BaselineArguments),
    /// Runs the embedded simulated endpoint alone.
    Simulate(SimulateArguments),
    /// Prints a JSON Schema.
    Schema(SchemaArguments),
    /// Writes a contract, cases and a workflow to start from.
    Init(InitArguments),
    /// Holds a launched endpoint's process group and ends it when this process's standard input ends.
    #[command(hide = true)]
    Supervise(SuperviseArguments),
}

/// How a result is printed on standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum OutputFormat {
    /// Tables for a terminal.
    Table,
    /// GitHub-flavoured Markdown.
    Markdown,
    /// The whole result as JSON.
    Json,
    /// One test case a row, as JUnit writes them; UNKNOWN is an error.
    Junit,
}

/// What a run is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum PlanChoice {
    /// A pull request: judges the load that must hold, and tries every other listed load once.
    Check,
    /// A nightly run: the same, and the search for the capacity.
    Baseline,
    /// A release: judges the load that must hold and searches for the capacity; UNKNOWN always blocks.
    Release,
}

impl From<PlanChoice> for Plan {
    fn from(choice: PlanChoice) -> Self {
        match choice {
            PlanChoice::Check => Self::Check,
            PlanChoice::Baseline => Self::Baseline,
            PlanChoice::Release => Self::Release,
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct GateArguments {
    /// The contract.
    #[arg(default_value = DEFAULT_CONTRACT)]
    pub(super) contract: PathBuf,
    /// What the run is for.
    #[arg(long, value_enum, default_value_t = PlanChoice::Check)]
    pub(super) plan: PlanChoice,
    /// Folder in which the run's own folder is made.
    #[arg(long, value_name = "DIR", default_value = ".goodput/runs")]
    pub(super) runs: PathBuf,
    /// The contract of the endpoint without the change: both are measured in turn on this machine, and compared trial by trial.
    #[arg(long, value_name = "BASE_CONTRACT")]
    pub(super) pair: Option<PathBuf>,
    /// The revision that the change is compared with [default: what the CI's event says, else the default branch].
    #[arg(long, value_name = "REV")]
    pub(super) base: Option<String>,
    /// A baseline record to compare with, whatever the stores have: a file, or the folder of a run with `--plan baseline`.
    #[arg(long, value_name = "RECORD", conflicts_with = "pair")]
    pub(super) baseline: Option<PathBuf>,
    /// What `goodput audit` found on this machine [default: .goodput/audit.json, where there is one].
    #[arg(long, value_name = "FILE")]
    pub(super) audit: Option<PathBuf>,
    /// What `goodput baseline calibrate` found on this machine [default: .goodput/calibration.json, where there is one].
    #[arg(long, value_name = "FILE")]
    pub(super) calibration: Option<PathBuf>,
    /// What an UNKNOWN exits with: as the contract's policy says, 3, or 0; a release never lets one through.
    #[arg(long, value_enum, default_value_t = UnknownChoice::Contract)]
    pub(super) unknown: UnknownChoice,
    /// Tells the result where the change is reviewed, before the exit: comment, job summary, annotations, outputs.
    #[arg(long)]
    pub(super) publish: bool,
    #[command(flatten)]
    pub(super) publishing: PublishingOptions,
    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = OutputFormat::Table)]
    pub(super) output_format: OutputFormat,
}

/// What an UNKNOWN exits with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum UnknownChoice {
    /// As the contract's `policy.unknown` says.
    Contract,
    /// It blocks.
    Block,
    /// It does not, but in a release.
    Warn,
}

/// How a result is told.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct PublishingOptions {
    /// When the pull request gets a comment [default: always].
    #[arg(long, value_enum, value_name = "WHEN")]
    pub(super) comment: Option<CommentChoice>,
    /// Tells the comments of one contract apart, where several jobs run it.
    #[arg(long, value_name = "KEY")]
    pub(super) comment_key: Option<String>,
    /// Also writes a check run, which needs `checks: write`.
    #[arg(long)]
    pub(super) check: bool,
}

impl PublishingOptions {
    /// Whether one of them is written.
    pub(super) fn are_written(&self) -> bool {
        self.comment.is_some() || self.comment_key.is_some() || self.check
    }
}

/// When the pull request gets a comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum CommentChoice {
    /// Whatever the verdict is.
    Always,
    /// Unless the verdict is PASS; a comment that is there already is brought up to date all the same.
    NotPass,
    /// Not at all.
    Never,
}

#[derive(Debug, Args)]
pub(super) struct PublishArguments {
    /// A run's folder, or its `result.json`.
    pub(super) result: PathBuf,
    /// The contract as it is where nobody but reviewers can change it; the result is held against it.
    #[arg(long, value_name = "FILE")]
    pub(super) contract: Option<PathBuf>,
    #[command(flatten)]
    pub(super) publishing: PublishingOptions,
}

#[derive(Debug, Args)]
pub(super) struct InitArguments {
    /// The server that is measured.
    #[arg(long, value_enum)]
    pub(super) server: Server,
    /// The model, as the server names it [default: a small open one].
    #[arg(long, value_name = "NAME")]
    pub(super) model: Option<String>,
    /// Measures a server that runs already: the full URL of its requests. Without it the gate starts one.
    #[arg(long)]
    pub(super) url: Option<Url>,
    /// The repository's root.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(super) folder: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct ValidateArguments {
    /// The contract.
    #[arg(default_value = DEFAULT_CONTRACT)]
    pub(super) contract: PathBuf,
    /// The plan to describe.
    #[arg(long, value_enum, default_value_t = PlanChoice::Check)]
    pub(super) plan: PlanChoice,
    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = PlanFormat::Table)]
    pub(super) output_format: PlanFormat,
}

/// How a plan, a dry run or an audit is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum PlanFormat {
    /// Text for a terminal.
    Table,
    /// JSON.
    Json,
}

#[derive(Debug, Args)]
pub(super) struct JudgeArguments {
    /// A run's folder, or its `result.json`.
    pub(super) result: PathBuf,
    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = OutputFormat::Table)]
    pub(super) output_format: OutputFormat,
}

#[derive(Debug, Args)]
pub(super) struct CompareArguments {
    /// How it was: a run's folder, its `result.json`, or a baseline record.
    pub(super) base: PathBuf,
    /// How it is.
    pub(super) head: PathBuf,
    /// The largest loss of capacity and goodput that still passes [default: that of the second run's contract, else 5%].
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(super) margin: Option<Share>,
    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = PlanFormat::Table)]
    pub(super) output_format: PlanFormat,
}

#[derive(Debug, Args)]
pub(super) struct AuditArguments {
    /// The highest rate to try.
    #[arg(long, value_name = "RATE", value_parser = highest_rate, default_value = "4000/s")]
    pub(super) to: Rate,
    /// File for what was found; `gate` reads it from where it is by default.
    #[arg(long, value_name = "FILE", default_value = DEFAULT_AUDIT)]
    pub(super) output: PathBuf,
    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = PlanFormat::Table)]
    pub(super) output_format: PlanFormat,
}

#[derive(Debug, Args)]
pub(super) struct BaselineArguments {
    #[command(subcommand)]
    pub(super) action: BaselineAction,
}

#[derive(Debug, Subcommand)]
pub(super) enum BaselineAction {
    /// Says which record a run would be compared with now, from where, why, and what it holds.
    Show(ShowArguments),
    /// Keeps the record of a finished run where the contract has its baselines.
    Save(SaveArguments),
    /// Writes a record as the anchored release that slow decline is held against; a person commits it.
    Promote(PromoteArguments),
    /// Runs the contract's endpoint against itself: how often the gate is wrong on this machine, and which loss it can see.
    Calibrate(CalibrateArguments),
    /// Lists the records of a contract, newest first.
    History(HistoryArguments),
}

/// The endpoint against itself.
#[derive(Debug, Args)]
pub(super) struct CalibrateArguments {
    /// The contract.
    #[arg(default_value = DEFAULT_CONTRACT)]
    pub(super) contract: PathBuf,
    /// Pairs of trials at every listed load.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(2..=100))]
    pub(super) pairs: u32,
    /// Folder in which the run's own folder is made.
    #[arg(long, value_name = "DIR", default_value = ".goodput/runs")]
    pub(super) runs: PathBuf,
    /// File for what was found; `gate` reads it from where it is by default.
    #[arg(long, value_name = "FILE", default_value = DEFAULT_CALIBRATION)]
    pub(super) output: PathBuf,
    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = PlanFormat::Table)]
    pub(super) output_format: PlanFormat,
}

#[derive(Debug, Args)]
pub(super) struct ShowArguments {
    /// The contract.
    #[arg(default_value = DEFAULT_CONTRACT)]
    pub(super) contract: PathBuf,
    /// The commit, branch or tag that the change is based on [default: GOODPUT_BASE, what the CI system tells, or what git knows].
    #[arg(long, value_name = "REV")]
    pub(super) base: Option<String>,
    /// What the run would be for.
    #[arg(long, value_enum, default_value_t = PlanChoice::Check)]
    pub(super) plan: PlanChoice,
    /// Prints JSON.
    #[arg(long)]
    pub(super) json: bool,
}

/// A place of the contract's `baseline.from`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum StoreChoice {
    /// The file in the repository; a person commits it.
    File,
    /// The branch of records.
    Branch,
    /// `baseline.json` in the run's folder, for the step that uploads it.
    Artifact,
    /// The bucket.
    S3,
}

#[derive(Debug, Args)]
pub(super) struct SaveArguments {
    /// A run's folder, or its `result.json`.
    pub(super) result: PathBuf,
    /// The contract, which says where baselines are kept.
    #[arg(long, value_name = "FILE", default_value = DEFAULT_CONTRACT)]
    pub(super) contract: PathBuf,
    /// Where to keep it; repeatable [default: everywhere in the contract's `baseline.from`].
    #[arg(long, value_enum, value_name = "STORE", value_delimiter = ',')]
    pub(super) to: Vec<StoreChoice>,
    /// The commit that was served, where it is another than the run names.
    #[arg(long, value_name = "SHA")]
    pub(super) commit: Option<String>,
    /// Keeps a run that failed, as a loss that was accepted: later runs are then compared with it.
    #[arg(long)]
    pub(super) accept_failed: bool,
}

#[derive(Debug, Args)]
pub(super) struct PromoteArguments {
    /// A run's folder, its `result.json`, a record's file, or the beginning of the digest of a kept record.
    pub(super) what: String,
    /// The release's name.
    #[arg(long, value_name = "NAME")]
    pub(super) release: String,
    /// The contract.
    #[arg(long, value_name = "FILE", default_value = DEFAULT_CONTRACT)]
    pub(super) contract: PathBuf,
    /// File to write [default: the contract's `baseline.release`].
    #[arg(long, value_name = "FILE")]
    pub(super) to: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct HistoryArguments {
    /// The contract.
    #[arg(default_value = DEFAULT_CONTRACT)]
    pub(super) contract: PathBuf,
    /// The most records to list.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) most: u32,
    /// Prints JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct SimulateArguments {
    /// The profile of the simulated endpoint; a small default without one.
    pub(super) profile: Option<PathBuf>,
    /// Address and port to listen on; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8000")]
    pub(super) listen: SocketAddr,
    /// File for the endpoint's own log of true times, one JSON object a request.
    #[arg(long, value_name = "FILE")]
    pub(super) log: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct SchemaArguments {
    /// Whose schema.
    #[arg(value_enum, default_value_t = SchemaKind::Contract)]
    pub(super) kind: SchemaKind,
}

/// What a schema describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum SchemaKind {
    /// The contract.
    Contract,
    /// `result.json`.
    Result,
    /// A line of `requests.jsonl`.
    Request,
    /// `audit.json`.
    Audit,
    /// A baseline record.
    Baseline,
    /// The file of reviewed exceptions.
    Accepted,
    /// A profile of the simulated endpoint.
    Profile,
}

#[derive(Debug, Args)]
pub(super) struct SuperviseArguments {
    #[arg(long)]
    pub(super) stop_within_ms: u64,
    #[arg(long)]
    pub(super) log: PathBuf,
    #[arg(last = true, required = true)]
    pub(super) command: Vec<String>,
}

/// With a contract, everything comes from there; without one, from these flags.
#[derive(Debug, Args)]
pub(super) struct SmokeArguments {
    /// The contract; not with `--url`.
    #[arg(conflicts_with = "url")]
    pub(super) contract: Option<PathBuf>,
    /// The endpoint's full URL.
    #[arg(long, requires = "protocol")]
    pub(super) url: Option<String>,
    /// The dialect of requests and replies.
    #[arg(long, visible_alias = "adapter", value_parser = protocol, requires = "url")]
    pub(super) protocol: Option<Protocol>,
    /// The model's name, for `$model`.
    #[arg(long, default_value = "default", requires = "url")]
    pub(super) model: String,
    /// The prompt to send.
    #[arg(long, conflicts_with = "cases", requires = "url")]
    pub(super) prompt: Option<String>,
    /// A JSON or JSON-lines file of cases, sent in their order.
    #[arg(long, value_name = "FILE", requires = "url")]
    pub(super) cases: Option<PathBuf>,
    /// A JSON file with the payload template; the protocol's own without it.
    #[arg(long, value_name = "FILE", requires = "url")]
    pub(super) payload_template: Option<PathBuf>,
    /// The `max_tokens` of cases that name none.
    #[arg(long, value_name = "N", requires = "url")]
    pub(super) max_tokens: Option<u32>,
    /// Clients that ask at the same time.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) clients: u32,
    /// Requests that each client sends, one after the other; with several cases, at least as many as send each once.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(super) rounds: Option<u32>,
    /// Longest life of a request.
    #[arg(long, value_parser = duration, default_value = "120s", requires = "url")]
    pub(super) timeout: Duration,
    /// Longest silence between two messages of a reply.
    #[arg(long, value_parser = duration, default_value = "30s", requires = "url")]
    pub(super) idle_timeout: Duration,
    /// A request header from an environment variable, `NAME=env:VARIABLE`, or `NAME=env:VARIABLE:PREFIX`; repeatable.
    #[arg(long, value_name = "NAME=env:VARIABLE", requires = "url")]
    pub(super) header: Vec<String>,
    /// PEM file of certificates to trust besides the system's.
    #[arg(long, value_name = "FILE", requires = "url")]
    pub(super) ca_file: Option<PathBuf>,
    /// File for the requests' records, texts included, as JSON.
    #[arg(long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = PlanFormat::Table)]
    pub(super) output_format: PlanFormat,
}

fn protocol(name: &str) -> Result<Protocol, String> {
    Protocol::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = Protocol::ALL.iter().map(|p| p.name()).collect();
        format!("not a protocol; write one of {}", names.join(", "))
    })
}

/// A window of an audit needs enough requests to see a P99 in.
fn highest_rate(text: &str) -> Result<Rate, String> {
    match Rate::parse(text).map_err(|error| error.to_string())? {
        rate if rate.milli() < 50_000 => Err("an audit begins at 50/s; write that or more".to_owned()),
        rate => Ok(rate),
    }
}

/// A margin, within what a contract may write.
fn share(text: &str) -> Result<Share, String> {
    match Share::parse(text).map_err(|error| error.to_string())? {
        share if !MARGIN_PPM.contains(&share.ppm()) => Err(format!("{share} cannot be a margin; write 0.1% to 50%")),
        share => Ok(share),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    match parse_duration(text).map_err(|error| error.to_string())? {
        Duration::ZERO => Err("a limit of zero leaves no time".to_owned()),
        duration => Ok(duration),
    }
}
