//! `goodput init`: a contract, its cases and a workflow to start from.

mod server;

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use url::Url;

pub(super) use server::Server;

use super::cli::InitArguments;
use super::exit::{Exit, Failure, writing_hint};
use super::gate::print;
use crate::contract::parse;
use crate::report::plain;

const CONTRACT: &str = include_str!("contract.yaml");
const CASES: &str = include_str!("../../../examples/quickstart/cases.json");
const WORKFLOW: &str = include_str!("../../../examples/workflows/pull-request.yml");

/// The line of the example workflow in whose place a server is installed.
const PLACE_OF_SERVER: &str = "      # goodput init: the server is installed here\n";

/// Hosts that are the runner itself.
const LOCAL: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

/// The most characters of a model's name.
const LONGEST_MODEL: usize = 200;

/// Writes the files, and none of them where one is there already.
pub(super) fn init(arguments: &InitArguments) -> Result<Exit, Failure> {
    let files = files(arguments)?;
    let paths: Vec<PathBuf> = files.iter().map(|(name, _)| arguments.folder.join(name)).collect();
    let taken: Vec<String> = paths.iter().filter(|path| path.exists()).map(|path| path.display().to_string()).collect();
    if !taken.is_empty() {
        return Err(Failure::usage(format!(
            "nothing was written, because this is there already: {}",
            taken.join(", ")
        ))
        .hint("move it away, or write elsewhere with `--folder`"));
    }
    for (path, (_, text)) in paths.iter().zip(&files) {
        write(path, text)?;
    }
    let server = arguments.server;
    let mut told: Vec<String> =
        paths.iter().map(|path| format!("wrote {}", plain(&path.display().to_string()))).collect();
    if !arguments.folder.join(".git").exists() {
        told.push("this is not the root of a git repository; GitHub reads workflows only from there".to_owned());
    }
    let is_local = arguments.url.as_ref().and_then(Url::host_str).is_none_or(|host| LOCAL.contains(&host));
    let runner = if is_local { "a runner that has the server" } else { "a runner that reaches the server" };
    told.push(format!(
        "\nNext:\n  1. look through the contract: model, loads and limits are a start for {}, not yours yet\n  \
         2. goodput validate                        what is sent, how long it takes, and what that can decide\n  \
         3. goodput smoke .goodput/contract.yaml    a few requests, before any load\n  \
         4. goodput gate                            the verdict\n  \
         5. in the workflow, name the Action's repository and release in `uses`, and {runner} in `runs-on`\n  \
         6. commit the files: the workflow answers in every pull request",
        server.title()
    ));
    print(&(told.join("\n") + "\n"))?;
    Ok(Exit::Pass)
}

/// Names below the folder, and what goes there.
fn files(arguments: &InitArguments) -> Result<[(&'static str, String); 4], Failure> {
    let server = arguments.server;
    let model = arguments.model.as_deref().unwrap_or(server.model());
    let is_command = model.contains("${{");
    if model.trim().is_empty()
        || model.chars().count() > LONGEST_MODEL
        || model.chars().any(char::is_control)
        || is_command
    {
        return Err(Failure::usage(
            "the model's name is empty, too long, no text of one line, or an expression of a workflow",
        )
        .hint("name it as the server does, as in `--model Qwen/Qwen2.5-0.5B-Instruct`"));
    }
    let contract = contract(server, model, arguments.url.as_ref());
    // What is written is read once as a contract, so that no model's name can make one that is none.
    parse(&contract, Path::new(".goodput"))
        .map_err(|faults| Failure::contract(&faults, "the contract that would be written", &contract))?;
    let setup = if arguments.url.is_some() { String::new() } else { server.steps(model) };
    Ok([
        (".goodput/contract.yaml", contract),
        (".goodput/cases.json", CASES.to_owned()),
        (".goodput/.gitignore", "runs/\naudit.json\ncalibration.json\n".to_owned()),
        (".github/workflows/goodput.yml", WORKFLOW.replacen(PLACE_OF_SERVER, &setup, 1)),
    ])
}

/// The contract of a server, as text.
fn contract(server: Server, model: &str, url: Option<&Url>) -> String {
    let launch = if url.is_some() { String::new() } else { server.launch(model) };
    let url = url.map_or_else(|| server.url().to_owned(), |url| whole(server, url));
    CONTRACT
        .replacen("{title}", server.title(), 1)
        .replacen("{name}", server.name(), 1)
        .replacen("{url}", &quoted(&url), 1)
        .replacen("{protocol}", server.protocol().name(), 1)
        .replacen("{launch}", &launch, 1)
        .replacen("{resources}", server.resources(), 1)
        .replacen("{model}", &quoted(model), 1)
}

/// The address of the requests; one that names the server alone gets the server's path.
fn whole(server: Server, url: &Url) -> String {
    let mut url = url.clone();
    if let Some(usual) = Url::parse(server.url()).ok().filter(|_| url.path() == "/" && url.query().is_none()) {
        url.set_path(usual.path());
    }
    url.into()
}

/// A text as YAML: what JSON quotes, YAML reads as the same.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let written = || -> std::io::Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        OpenOptions::new().write(true).create_new(true).open(path)?.write_all(text.as_bytes())
    };
    written().map_err(|error| {
        Failure::internal(format!("failed to write {}: {error}", path.display()))
            .hint(writing_hint(error.kind()).replace("--runs", "--folder"))
    })
}
