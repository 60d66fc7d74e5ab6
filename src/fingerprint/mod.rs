//! Under which circumstances a run is made: the machine, the endpoint and the commit that is served.
//!
//! Whatever cannot be found out is absent: nothing here fails a run or guesses.

mod endpoint;
mod github;
mod gitlab;
mod machine;
mod origin;
mod pages;
mod repository;

use std::collections::BTreeMap;
use std::path::Path;

pub use endpoint::endpoint;
pub use machine::{Machine, machine};
pub use origin::{OriginError, origin};

use crate::contract::Contract;
use crate::endpoint::Secrets;
use crate::record::{Fingerprint, contract_part};
use crate::units::Digest;

/// The longest value that is kept, in characters.
const LONGEST: usize = 200;

/// The whole fingerprint of a run. Asked once the endpoint is ready and before any load: its own pages are asked too.
pub async fn fingerprint(
    contract: &Contract,
    workload_digest: &Digest,
    folder: &Path,
    client: &reqwest::Client,
    secrets: &Secrets,
) -> Fingerprint {
    let machine = Machine::of_this(folder);
    let (of_machine, of_endpoint) =
        tokio::join!(machine::machine(&contract.endpoint, &machine), endpoint(&contract.endpoint, client, secrets));
    let mut fingerprint = of_machine;
    fingerprint.must_match.extend(contract_part(contract, workload_digest));
    // What requests ask for; a server's own name for what it serves says more, and stands beside it.
    add(&mut fingerprint.under_test, "asked_model", plain(&contract.endpoint.model));
    fingerprint.under_test.extend(of_endpoint);
    if let Some(plan) = &contract.baseline {
        add_keys(&mut fingerprint, &plan.fingerprint);
    }
    fingerprint
}

/// What is known before the endpoint is there: this machine, and what only the user knows. By it one of several records of a
/// commit is chosen.
pub async fn beforehand(contract: &Contract, folder: &Path) -> Fingerprint {
    let mut fingerprint = machine::machine(&contract.endpoint, &Machine::of_this(folder)).await;
    if let Some(plan) = &contract.baseline {
        add_keys(&mut fingerprint, &plan.fingerprint);
    }
    fingerprint
}

/// Adds what only the user knows. A name that was found too is the user's then, in the part where it was written.
fn add_keys(fingerprint: &mut Fingerprint, keys: &crate::contract::FingerprintKeys) {
    let Fingerprint { must_match, under_test, noted } = fingerprint;
    for key in keys.must_match.keys().chain(keys.under_test.keys()).chain(keys.noted.keys()) {
        for part in [&mut *must_match, &mut *under_test, &mut *noted] {
            part.remove(key);
        }
    }
    must_match.extend(keys.must_match.clone());
    under_test.extend(keys.under_test.clone());
    noted.extend(keys.noted.clone());
}

/// A text from outside on one line, without control characters and not too long; `None` where it says nothing.
fn plain(text: &str) -> Option<String> {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let line = line.trim();
    let cut = if line.chars().nth(LONGEST).is_some() { "…" } else { "" };
    let short: String = line.chars().take(LONGEST).collect();
    (!line.is_empty()).then(|| format!("{short}{cut}"))
}

/// Adds an entry where there is something to say.
fn add(part: &mut BTreeMap<String, String>, key: &str, value: Option<String>) {
    if let Some(value) = value {
        part.insert(key.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::FingerprintKeys;

    fn part(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
        entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn keys_of_the_user_win_in_the_part_where_they_are_written() {
        let mut found = Fingerprint {
            must_match: part(&[("gpu", "NVIDIA H100"), ("cpu", "A")]),
            under_test: part(&[("engine_version", "0.11.0")]),
            noted: part(&[("memory", "64 GiB")]),
        };
        let keys = FingerprintKeys {
            must_match: part(&[("memory", "64 GiB at least"), ("node_pool", "a")]),
            under_test: part(&[("gpu", "any")]),
            noted: part(&[("rack", "7")]),
        };
        add_keys(&mut found, &keys);
        let expected = Fingerprint {
            must_match: part(&[("cpu", "A"), ("memory", "64 GiB at least"), ("node_pool", "a")]),
            under_test: part(&[("engine_version", "0.11.0"), ("gpu", "any")]),
            noted: part(&[("rack", "7")]),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn texts_from_outside_are_short_and_on_one_line() {
        assert_eq!(plain(" a\nb\u{1b}[31m "), Some("a b [31m".to_owned()));
        assert_eq!(plain(" \n"), None);
        assert_eq!(plain(&"é".repeat(300)), Some(format!("{}…", "é".repeat(200))));
    }
}
