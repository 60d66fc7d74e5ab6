//! From a contract file to everything that can be known before anything is started.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::exit::Failure;
use super::simulate::whole;
use super::usage::{Payloads, Plain};
use crate::contract::{
    CaseSource, Contract, Endpoint, Header, Launch, LaunchWhat, Loaded, Resource, Source as ProbeSource, StabilityRow,
    parse,
};
use crate::simulate::read_profile;
use crate::workload::{Case, Sound, Workload, parse_cases};

/// A contract that was read, and where.
#[derive(Debug, Clone)]
pub(super) struct Source {
    /// The contract.
    pub(super) loaded: Loaded,
    /// Its text.
    pub(super) text: String,
    /// The folder that its relative paths start from.
    pub(super) folder: PathBuf,
}

/// Reads a contract and checks it by itself, with the profile that it names. `command` is the one that asks.
pub(super) fn read_contract(path: &Path, command: &str) -> Result<Source, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::usage(format!("failed to read the contract {}: {error}", path.display()))
            .hint(format!("name the contract: `goodput {command} path/to/contract.yaml`"))
    })?;
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    let loaded =
        parse(&text, &folder).map_err(|faults| Failure::contract(&faults, &path.display().to_string(), &text))?;
    if let Some(Launch { what: LaunchWhat::Simulate(profile), .. }) = &loaded.contract.endpoint.launch {
        // A slip in the profile says nothing about the change, so it must not end as an endpoint that cannot serve.
        read_profile(profile.clone()).map_err(|error| Failure::usage(whole(&error)))?;
    }
    Ok(Source { loaded, text, folder })
}

/// Reads the cases and fills the payload with each.
pub(super) fn build_workload(contract: &Contract, folder: &Path) -> Result<Payloads, Failure> {
    let (source, endpoint) = (&contract.workload, &contract.endpoint);
    let cases = match &source.cases {
        CaseSource::Inline(cases) => cases.clone(),
        CaseSource::File(path) => read_cases(path)?,
    };
    let template = source.template(&cases, |has| endpoint.default_payload(has));
    fill(&cases, template, endpoint, source.seed, folder)
}

/// Stands for the model's name where two workloads are held against each other.
const ANY_MODEL: &str = "$model";

/// Fills a payload template with every case, asking for token counts where the dialect can; and without, for a server that
/// refuses to be asked. Files of sound lie relative to `folder`.
pub(super) fn fill(
    cases: &[Case],
    mut template: serde_json::Value,
    endpoint: &Endpoint,
    seed: u64,
    folder: &Path,
) -> Result<Payloads, Failure> {
    let shape = endpoint.shape();
    let sounds = if shape.takes_sound() { read_sounds(cases, folder)? } else { BTreeMap::new() };
    let build = |template: &serde_json::Value, model: &str| {
        Workload::build(cases, template, model, seed, shape, &sounds).map_err(|faults| {
            let lines: Vec<String> = faults.iter().map(|fault| format!("payload{fault}")).collect();
            Failure::usage(format!("the payload cannot be filled:\n  {}", lines.join("\n  ")))
        })
    };
    let plain_template = template.clone();
    let plain = match endpoint.protocol.ask_for_usage(&mut template) {
        Some(wish) => Some(Plain { wish, workload: build(&plain_template, &endpoint.model)? }),
        None => None,
    };
    let comparable = build(&plain_template, ANY_MODEL)?.digest().clone();
    Ok(Payloads { workload: build(&template, &endpoint.model)?, plain, comparable })
}

/// Reads every file of sound that the cases name, once.
fn read_sounds(cases: &[Case], folder: &Path) -> Result<BTreeMap<String, Sound>, Failure> {
    let mut sounds = BTreeMap::new();
    for (case, written) in cases.iter().filter_map(|case| Some((case, case.audio()?))) {
        if sounds.contains_key(written) {
            continue;
        }
        let path = folder.join(written);
        let file = std::fs::read(&path).map_err(|error| {
            Failure::usage(format!("failed to read the sound {} of the case `{}`: {error}", path.display(), case.id))
                .hint("name a file in the case's field `audio`, relative to the contract's folder, or without a contract to the present one")
        })?;
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        sounds.insert(written.to_owned(), Sound::new(name, file.into()));
    }
    Ok(sounds)
}

/// Reads a file of cases.
pub(super) fn read_cases(path: &Path) -> Result<Vec<Case>, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::usage(format!("failed to read the cases {}: {error}", path.display()))
            .hint("name a JSON or JSON-lines file; `workload.cases` is relative to the contract's folder")
    })?;
    parse_cases(&text).map_err(|faults| {
        let lines: Vec<String> = faults.iter().map(|fault| format!("{}: {fault}", path.display())).collect();
        Failure::usage(format!("the cases cannot be used:\n  {}", lines.join("\n  ")))
    })
}

/// Port 0 of a simulated endpoint stands for one that is free now.
pub(super) fn choose_port(contract: &mut Contract) -> Result<(), Failure> {
    let simulated = matches!(contract.endpoint.launch, Some(Launch { what: LaunchWhat::Simulate(_), .. }));
    if !simulated || contract.endpoint.url.port() != Some(0) {
        return Ok(());
    }
    let port = free_port()?;
    // Port 0 stands for the endpoint's also where its own pages are asked: no other page may have it.
    let probes = contract.stability.iter_mut().filter_map(|row| row.probe.source_mut());
    let sources = probes.chain(contract.resources.iter_mut().map(|resource| &mut resource.probe.source));
    let pages = sources.filter_map(|source| Some(&mut source.page_mut()?.url)).filter(|url| url.port() == Some(0));
    for url in pages.chain([&mut contract.endpoint.url]) {
        url.set_port(Some(port)).map_err(|()| Failure::usage(format!("{url} cannot take a port")))?;
    }
    Ok(())
}

/// The headers with which pages of metrics are asked.
pub(super) fn headers_of_pages(stability: &[StabilityRow], resources: &[Resource]) -> Vec<Header> {
    let rows = stability.iter().filter_map(|row| row.probe.source());
    let pages = rows.chain(resources.iter().map(|resource| &resource.probe.source)).filter_map(ProbeSource::page);
    pages.flat_map(|page| page.headers.clone()).collect()
}

/// A port of this machine that nobody listens on now.
pub(super) fn free_port() -> Result<u16, Failure> {
    std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|error| Failure::internal(format!("failed to find a free port: {error}")))
}
