//! From what is written to what it means. All faults of meaning are collected; nothing stops at the first.

mod baseline;
mod endpoint;
mod evidence;
mod headers;
mod resources;
mod slo;
mod sources;
mod stability;
mod stores;
mod traffic;
mod workload;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

pub use baseline::MARGIN_PPM;

use super::document::{Node, join};
use super::fault::{Fault, printable};
use super::model::{Contract, Policy, Samples, UnknownPolicy};
use super::raw;
use super::schema::{DurationText, RateText, ShareText};
use crate::observe::Protocol;
use crate::units::{Rate, Share, UnitError, format_duration, parse_duration};

/// The longest duration that a contract may name. A week is longer than any run that a change can wait for, and keeps every
/// sum of nanoseconds far from its end.
pub const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);
/// Replies kept of each case when the contract does not say.
const DEFAULT_KEEP: u32 = 5;

/// Reads one contract: where faults go, and what was refused before.
pub(super) struct Meaning<'a> {
    places: &'a Node,
    folder: &'a Path,
    /// Pointers to what was refused by form; its absence is no fault of its own and its default does not apply.
    refused: &'a BTreeSet<String>,
    faults: Vec<Fault>,
}

/// What the parts of a contract need to know of each other; `None` where it is not known for a fault told elsewhere.
#[derive(Debug, Clone, Copy)]
struct Known {
    protocol: Option<Protocol>,
    traffic: Option<raw::TrafficModel>,
    timeout: Option<Duration>,
}

impl<'a> Meaning<'a> {
    pub(super) fn new(places: &'a Node, folder: &'a Path, refused: &'a BTreeSet<String>) -> Self {
        Self { places, folder, refused, faults: Vec::new() }
    }

    /// The contract, when nothing is missing, and every fault of meaning.
    pub(super) fn read(mut self, written: raw::Contract) -> (Option<Contract>, Vec<Fault>) {
        let contract = self.contract(written);
        (contract, self.faults)
    }

    fn contract(&mut self, written: raw::Contract) -> Option<Contract> {
        let name = self.plain_text(written.name, "/name");
        let endpoint = written.endpoint.unwrap_or_default();
        let known = Known {
            protocol: endpoint.protocol.as_ref().and_then(|name| Protocol::from_name(&name.0)),
            traffic: written.traffic.as_ref().and_then(|traffic| traffic.model),
            timeout: self.above_zero(endpoint.timeout.as_ref(), "/endpoint/timeout", endpoint::DEFAULT_TIMEOUT),
        };
        let endpoint = self.endpoint(endpoint, known);
        let workload = written.workload.and_then(|workload| self.workload(workload, known.protocol, endpoint.as_ref()));
        let resources = self.resources(written.resources.unwrap_or_default(), endpoint.as_ref());
        let (slo, limit) = written.slo.map_or((None, None), |slo| self.slo(slo, known, resources.as_deref()));
        let at = slo.as_ref().map(|slo| slo.at);
        let how = written.traffic.unwrap_or_default();
        let traffic = self.traffic(&how, at, limit.or(known.timeout), limit);
        let evidence = self.evidence(&how, at, traffic.as_ref());
        self.reachable(slo.as_ref(), traffic.as_ref(), evidence.as_ref());
        let stability = self.stability(written.stability.unwrap_or_default(), slo.as_ref(), endpoint.as_ref());
        let baseline = self.baseline(written.baseline, known, endpoint.as_ref());
        Some(Contract {
            name: name?,
            endpoint: endpoint?,
            workload: workload?,
            traffic: traffic?,
            evidence: evidence?,
            slo: slo?,
            stability: stability?,
            resources: resources?,
            baseline: baseline?,
            samples: samples(written.samples),
            policy: policy(written.policy),
        })
    }

    /// Tells a fault at the value.
    fn fault(&mut self, pointer: &str, message: impl Into<String>) {
        self.faults.push(self.places.place(pointer).fault(pointer, message));
    }

    /// Tells a fault at the key that the pointer ends with, for keys that should not be there.
    fn fault_at_key(&mut self, pointer: &str, message: impl Into<String>) {
        self.faults.push(self.places.key_place(pointer).fault(pointer, message));
    }

    /// Whether something is written at `pointer`, be it right or wrong.
    fn is_written<T>(&self, value: Option<&T>, pointer: &str) -> bool {
        value.is_some() || self.refused.contains(pointer)
    }

    fn unit<T>(&mut self, read: Result<T, UnitError>, pointer: &str) -> Option<T> {
        match read {
            Ok(value) => Some(value),
            Err(error) => {
                self.fault(pointer, printable(&error.to_string()));
                None
            }
        }
    }

    /// A written duration; `None` when it is absent or wrong.
    fn duration(&mut self, written: Option<&DurationText>, pointer: &str) -> Option<Duration> {
        let duration = self.unit(parse_duration(&written?.0), pointer)?;
        if duration > LONGEST {
            self.fault(pointer, format!("longer than a week; write at most `{}`", format_duration(LONGEST)));
            return None;
        }
        Some(duration)
    }

    /// A written duration above zero, or the default; `None` only when it is wrong.
    fn above_zero(&mut self, written: Option<&DurationText>, pointer: &str, default: Duration) -> Option<Duration> {
        if !self.is_written(written, pointer) {
            return Some(default);
        }
        self.limit(written, pointer)
    }

    /// A written duration above zero.
    fn limit(&mut self, written: Option<&DurationText>, pointer: &str) -> Option<Duration> {
        let duration = self.duration(written, pointer)?;
        if duration.is_zero() {
            self.fault(pointer, "zero can never be met; write a duration above zero");
            return None;
        }
        Some(duration)
    }

    fn rate(&mut self, written: Option<&RateText>, pointer: &str) -> Option<Rate> {
        self.unit(Rate::parse(&written?.0), pointer)
    }

    fn share(&mut self, written: Option<&ShareText>, pointer: &str) -> Option<Share> {
        self.unit(Share::parse(&written?.0), pointer)
    }

    /// A text of one line that shows something.
    fn plain_text(&mut self, written: Option<String>, pointer: &str) -> Option<String> {
        let text = written?;
        if text.trim().is_empty() {
            self.fault(pointer, "the text is blank; write something to be recognised by");
            return None;
        }
        if text.chars().any(char::is_control) {
            self.fault(pointer, "the text holds control characters; write it on one line without them");
            return None;
        }
        Some(text)
    }

    /// The arguments of a command, none of them a secret.
    fn command(&mut self, written: Option<Vec<Option<String>>>, pointer: &str) -> Option<Vec<String>> {
        let command: Vec<String> = written?.into_iter().collect::<Option<_>>()?;
        if command.first().is_none_or(|program| program.trim().is_empty()) {
            self.fault(&join(pointer, "0"), "the program's name is blank; write what is to be started");
            return None;
        }
        let arguments: Vec<&str> = command.iter().map(String::as_str).collect();
        if let Some(index) = super::secrets::in_command(&arguments) {
            let message = "looks like a secret; let the command take it from its environment, which it inherits, \
                as in `[sh, -c, 'exec program --api-key \"$API_KEY\"']`";
            self.fault(&join(pointer, &index.to_string()), message);
            return None;
        }
        Some(command)
    }
}

fn samples(written: Option<raw::Samples>) -> Samples {
    let keep = written.and_then(|samples| samples.keep);
    Samples { keep: keep.and_then(|keep| u32::try_from(keep.0).ok()).unwrap_or(DEFAULT_KEEP) }
}

fn policy(written: Option<raw::Policy>) -> Policy {
    let of = |written: Option<raw::UnknownPolicy>, default| match written {
        None => default,
        Some(raw::UnknownPolicy::Block) => UnknownPolicy::Block,
        Some(raw::UnknownPolicy::Warn) => UnknownPolicy::Warn,
    };
    let (unknown, missing) = written.map_or((None, None), |policy| (policy.unknown, policy.missing_baseline));
    Policy { unknown: of(unknown, UnknownPolicy::Block), missing_baseline: of(missing, UnknownPolicy::Warn) }
}
