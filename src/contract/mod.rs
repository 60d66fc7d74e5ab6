//! From contract text to a [`Contract`]; all mistakes at once, each with its place.
//!
//! Text becomes a value with places (`document`), the value is held against the generated schema (`schema`, `explain`), what
//! the schema accepts is read into a mirror of the written form (`raw`), and that is given its meaning (`meaning`).

mod accepted;
mod baseline;
mod document;
mod explain;
mod fault;
mod meaning;
mod metric;
mod model;
mod presets;
mod raw;
mod scalar;
mod schema;
mod secrets;
mod source;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::Value;

pub use accepted::{AcceptedLoss, accepted_schema, parse_acceptances};
pub use baseline::*;
pub use fault::{Fault, render_faults};
pub use meaning::{LONGEST, MARGIN_PPM};
pub use metric::{MetricUnit, Objective, RequestLimits, RequestMetric};
pub use model::*;
pub use presets::Preset;
pub use schema::{MOST_REQUESTS, schema};
pub use source::*;

use crate::units::Digest;
use document::{Document, Node, Place};
use explain::{Refusal, Refused};
use schema::schema_of;

/// The most findings of the schema that are told; with so many nothing else is looked at.
const MOST_FINDINGS: usize = 1_000;

/// A contract that was read from text.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// What it means.
    pub contract: Contract,
    /// The contract as written, as JSON.
    pub value: Value,
    /// SHA-256 of the text.
    pub digest: Digest,
}

/// Reads a contract, YAML or JSON. Relative paths in it are joined to `folder`; no file is opened.
///
/// # Errors
/// Every fault of form and meaning that can be told, in no particular order; at a fault of YAML's syntax the reading ends.
pub fn parse(text: &str, folder: &Path) -> Result<Loaded, Vec<Fault>> {
    let Document { value, places, mut faults } =
        document::read(text, &document::CONTRACT).map_err(|fault| vec![fault])?;
    let (contract, found) = understand(&value, &places, folder);
    faults.extend(found);
    let contract = decide(contract, faults)?;
    Ok(Loaded { contract, value, digest: Digest::of(text.as_bytes()) })
}

/// The name in a contract's text, whatever else is wrong with it; `None` where none can be read.
pub fn name_in(text: &str) -> Option<String> {
    let document = document::read(text, &document::CONTRACT).ok()?;
    document.value.get("name")?.as_str().map(str::to_owned)
}

/// The line of a contract's text, from 1, in which the value at a JSON pointer stands; of what is not written, that of the nearest
/// thing around it. `None` where the text cannot be read.
pub fn line_of(text: &str, pointer: &str) -> Option<u32> {
    let document = document::read(text, &document::CONTRACT).ok()?;
    u32::try_from(document.places.place(pointer).line).ok().filter(|line| *line > 0)
}

/// Reads a contract that is kept as JSON, in `result.json`. Its faults have no line and column.
///
/// # Errors
/// Every fault of form and meaning.
pub fn from_value(value: &Value, folder: &Path) -> Result<Contract, Vec<Fault>> {
    let (contract, faults) = understand(value, &Node::default(), folder);
    decide(contract, faults)
}

fn decide(contract: Option<Contract>, faults: Vec<Fault>) -> Result<Contract, Vec<Fault>> {
    match contract {
        Some(contract) if faults.is_empty() => Ok(contract),
        // Every place that gives no value tells a fault; should one forget, the contract is refused all the same.
        None if faults.is_empty() => Err(vec![Place::default().fault("", "something required is missing")]),
        _ => Err(faults),
    }
}

/// The contract, as far as it could be understood, and every fault that the reading of its text did not tell.
fn understand(value: &Value, places: &Node, folder: &Path) -> (Option<Contract>, Vec<Fault>) {
    let found = read_as::<raw::Contract>(value, places, &schema());
    let Some(written) = found.written else { return (None, found.told) };
    let (contract, faults) = meaning::Meaning::new(places, folder, &found.refused).read(written);
    (contract, all_faults(faults, found.told, &found.values))
}

/// The faults of meaning, and those of form: what should not stand there at all needs no second fault about how it is written.
fn all_faults(mut faults: Vec<Fault>, told: Vec<Fault>, values: &BTreeSet<String>) -> Vec<Fault> {
    let misplaced: BTreeSet<String> = faults.iter().map(|fault| fault.pointer.clone()).collect();
    let is_second = |fault: &Fault| values.contains(&fault.pointer) && misplaced.contains(&fault.pointer);
    faults.extend(told.into_iter().filter(|fault| !is_second(fault)));
    faults
}

/// What was read of a value that was held against a schema.
struct Found<T> {
    /// What the schema leaves of it; `None` where nothing more can be told.
    written: Option<T>,
    /// Pointers to what was refused.
    refused: BTreeSet<String>,
    /// Those of them that are values.
    values: BTreeSet<String>,
    /// The faults of form.
    told: Vec<Fault>,
}

/// Holds a value against a schema and reads what is left of it.
fn read_as<T: DeserializeOwned>(value: &Value, places: &Node, schema: &Value) -> Found<T> {
    let mut found = Found { written: None, refused: BTreeSet::new(), values: BTreeSet::new(), told: Vec::new() };
    let refusals = match refusals(value, schema) {
        Ok(refusals) => refusals,
        Err(message) => {
            found.told.push(places.place("").fault("", message));
            return found;
        }
    };
    let mut rest = value.clone();
    for Refusal { pointer, message, refused: what } in refusals {
        take_out(&mut rest, &pointer, what);
        let at_key = what == Refused::Key || value.pointer(&pointer).is_some_and(Value::is_null);
        let place = if at_key { places.key_place(&pointer) } else { places.place(&pointer) };
        if !places.is_broken(&pointer) {
            found.told.push(place.fault(pointer.as_str(), message));
        }
        if what == Refused::Value {
            found.values.insert(pointer.clone());
        }
        if what != Refused::Nothing {
            found.refused.insert(pointer);
        }
    }
    if found.refused.contains("") || found.told.len() >= MOST_FINDINGS {
        return found;
    }
    match serde_json::from_value(rest) {
        Ok(written) => found.written = Some(written),
        Err(error) => found.told.push(places.place("").fault("", format!("cannot be read: {error}"))),
    }
    found
}

fn refusals(value: &Value, schema: &Value) -> Result<Vec<Refusal>, String> {
    let validator =
        jsonschema::validator_for(schema).map_err(|error| format!("internal: the schema does not compile: {error}"))?;
    let findings = validator.iter_errors(value);
    Ok(findings.flat_map(|finding| explain::explain(&finding, schema)).take(MOST_FINDINGS).collect())
}

/// Takes a refused part out, so that the rest can be read. Items of a list keep their index.
fn take_out(value: &mut Value, pointer: &str, what: Refused) {
    match what {
        Refused::Nothing => {}
        Refused::Value => {
            if let Some(part) = value.pointer_mut(pointer) {
                *part = Value::Null;
            }
        }
        Refused::Key => {
            let (parent, key) = pointer.rsplit_once('/').unwrap_or_default();
            let key = key.replace("~1", "/").replace("~0", "~");
            if let Some(map) = value.pointer_mut(parent).and_then(Value::as_object_mut) {
                map.swap_remove(&key);
            }
        }
    }
}
