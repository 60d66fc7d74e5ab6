//! With what a run is compared.

use std::collections::{BTreeMap, BTreeSet};

use super::stores;
use super::{Known, Meaning};
use crate::contract::baseline::{BaselinePlan, FingerprintKeys, LatencyMargin, Pair, PairWhen, StoreSpec, Within};
use crate::contract::document::join;
use crate::contract::metric::RequestMetric;
use crate::contract::model::{Endpoint, LaunchWhat};
use crate::contract::schema::ShareText;
use crate::contract::{raw, secrets};
use crate::units::Share;

const AT: &str = "/baseline";
/// The margins that a contract may write, in parts per million.
pub const MARGIN_PPM: std::ops::RangeInclusive<u32> = 1_000..=500_000;
/// The longest name and value of a circumstance, in characters.
const LONGEST_KEY: usize = 64;
const LONGEST_VALUE: usize = 200;
/// Names of circumstances that the contract itself gives, and how others of them begin.
const CONTRACT_KEYS: [&str; 12] = [
    "http",
    "idle_timeout",
    "input_audio",
    "output_audio",
    "protocol",
    "requests",
    "schedule",
    "seed",
    "timeout",
    "tool",
    "traffic",
    "workload",
];
const CONTRACT_STARTS: [&str; 2] = ["objective_", "request_"];

impl Meaning<'_> {
    /// The part `baseline`; `None` when it is wrong, `Some(None)` when it is not written.
    pub(super) fn baseline(
        &mut self,
        written: Option<raw::Baseline>,
        known: Known,
        endpoint: Option<&Endpoint>,
    ) -> Option<Option<BaselinePlan>> {
        let Some(written) = written else {
            return (!self.refused.contains(AT)).then_some(None);
        };
        let margin = self.margin(written.margin.as_ref(), &join(AT, "margin"), true);
        let has_pair = self.is_written(written.pair.as_ref(), &join(AT, "pair"));
        let waits_for_loss = written.pair.as_ref().is_some_and(|pair| pair.when == Some(PairWhen::Suspected));
        if waits_for_loss && !self.is_written(written.from.as_ref(), &join(AT, "from")) {
            let message = "a loss is suspected by a stored baseline only; write `from`, or `when: always`";
            self.fault(&join(&join(AT, "pair"), "when"), message);
        }
        let from = self.stores(written.from, has_pair);
        let within = within(written.within.as_ref());
        let latency = self.latency(written.latency.unwrap_or_default(), known);
        let keys = self.keys(written.fingerprint.unwrap_or_default());
        let release = self.optional_file(written.release, &join(AT, "release"));
        let accepted = self.optional_file(written.accepted, &join(AT, "accepted"));
        let pair = match written.pair {
            Some(pair) => self.pair(pair, known, endpoint).map(Some),
            None => (!has_pair).then_some(None),
        };
        Some(Some(BaselinePlan {
            margin: margin?,
            from: from?,
            within,
            latency: latency?,
            fingerprint: keys?,
            release: release?,
            accepted: accepted?,
            pair: pair?,
        }))
    }

    fn margin(&mut self, written: Option<&ShareText>, pointer: &str, has_default: bool) -> Option<Share> {
        if has_default && !self.is_written(written, pointer) {
            return Some(BaselinePlan::default().margin);
        }
        let margin = self.share(written, pointer)?;
        if !MARGIN_PPM.contains(&margin.ppm()) {
            self.fault(pointer, format!("{margin} cannot be a margin; write 0.1% to 50%"));
            return None;
        }
        Some(margin)
    }

    /// The stores; without `from` the file beside the contract, unless there is a pair to be compared with.
    fn stores(&mut self, written: Option<Vec<Option<raw::Store>>>, has_pair: bool) -> Option<Vec<StoreSpec>> {
        let pointer = join(AT, "from");
        if self.refused.contains(&pointer) {
            return None;
        }
        let Some(written) = written else {
            let file = (!has_pair).then(|| StoreSpec::File(self.folder.join(stores::DEFAULT_FILE)));
            return Some(file.into_iter().collect());
        };
        let mut stores = Vec::new();
        for (index, store) in written.into_iter().enumerate() {
            let at = join(&pointer, &index.to_string());
            let store = store.and_then(|store| self.store(store, &at));
            if let Some(store) = &store
                && stores.contains(&Some(store.clone()))
            {
                self.fault(&at, "listed twice; every place is asked once");
            }
            stores.push(store);
        }
        stores.into_iter().collect()
    }

    fn latency(&mut self, written: Vec<Option<raw::LatencyMargin>>, known: Known) -> Option<Vec<LatencyMargin>> {
        let mut seen = BTreeSet::new();
        let mut margins = Vec::new();
        for (index, written) in written.into_iter().enumerate() {
            let at = join(&join(AT, "latency"), &index.to_string());
            margins.push(written.and_then(|written| self.latency_margin(&written, &at, known, &mut seen)));
        }
        margins.into_iter().collect()
    }

    fn latency_margin(
        &mut self,
        written: &raw::LatencyMargin,
        pointer: &str,
        known: Known,
        seen: &mut BTreeSet<(RequestMetric, u8)>,
    ) -> Option<LatencyMargin> {
        let margin = self.margin(written.margin.as_ref(), &join(pointer, "margin"), false);
        let Some(metric) = written.metric?.of_requests() else {
            self.fault(
                &join(pointer, "metric"),
                "not a metric of requests; goodput and capacity have the `margin` above",
            );
            return None;
        };
        let fits = self.fits_protocol(metric, known, &join(pointer, "metric"));
        let percentile = written.percentile?.0;
        if !seen.insert((metric, percentile)) {
            self.fault(pointer, "listed twice; write one margin for each percentile");
            return None;
        }
        let margin = LatencyMargin { metric, percentile, margin: margin?, gates: written.gates.unwrap_or(false) };
        fits.then_some(margin)
    }

    fn keys(&mut self, written: raw::FingerprintKeys) -> Option<FingerprintKeys> {
        let at = join(AT, "fingerprint");
        let mut seen = BTreeSet::new();
        let must_match = self.named(written.must_match, &join(&at, "must_match"), &mut seen);
        let under_test = self.named(written.under_test, &join(&at, "under_test"), &mut seen);
        let noted = self.named(written.noted, &join(&at, "noted"), &mut seen);
        Some(FingerprintKeys { must_match: must_match?, under_test: under_test?, noted: noted? })
    }

    fn named(
        &mut self,
        written: Option<BTreeMap<String, Option<String>>>,
        pointer: &str,
        seen: &mut BTreeSet<String>,
    ) -> Option<BTreeMap<String, String>> {
        let mut named = Some(BTreeMap::new());
        for (key, value) in written.unwrap_or_default() {
            let at = join(pointer, &key);
            let fine = self.is_fine_name(&key, &at, seen);
            let value = value.and_then(|value| self.circumstance(&key, value, &at));
            named = match (named, value) {
                (Some(mut named), Some(value)) if fine => {
                    named.insert(key, value);
                    Some(named)
                }
                _ => None,
            };
        }
        named
    }

    /// Whether a circumstance may have this name; told where not.
    fn is_fine_name(&mut self, key: &str, pointer: &str, seen: &mut BTreeSet<String>) -> bool {
        let is_name = !key.is_empty()
            && key.len() <= LONGEST_KEY
            && key.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        let fault = if !is_name {
            "not a name; write lower-case letters, digits and `_`, as in `node_pool`"
        } else if CONTRACT_KEYS.contains(&key) || CONTRACT_STARTS.iter().any(|start| key.starts_with(start)) {
            // Else a contract could declare that two workloads are alike.
            "this name is filled in from the contract itself; write another"
        } else if !seen.insert(key.to_owned()) {
            "this name is written in two parts; keep it in one"
        } else {
            return true;
        };
        self.fault_at_key(pointer, fault);
        false
    }

    /// What is known of a circumstance; it is shown in every report.
    fn circumstance(&mut self, key: &str, written: String, pointer: &str) -> Option<String> {
        let value = self.plain_text(Some(written), pointer)?;
        if secrets::name_says_so(key) || secrets::value_looks_so(&value) {
            self.fault(pointer, "looks like a secret, and every report shows it; remove it");
            return None;
        }
        if value.chars().count() > LONGEST_VALUE {
            self.fault(pointer, format!("the text is too long; write at most {LONGEST_VALUE} characters"));
            return None;
        }
        Some(value)
    }

    /// The endpoint without the change. It takes the place of the one with the change, at the same address, so that one must be
    /// stopped before the other starts; and it must differ from it, or every change would be compared with itself and pass.
    fn pair(&mut self, written: raw::Pair, known: Known, endpoint: Option<&Endpoint>) -> Option<Pair> {
        let at = join(AT, "pair");
        let launch_at = join(&at, "launch");
        let launch = self.launch(written.launch?, known.protocol, &launch_at);
        if let Some(endpoint) = endpoint {
            let Some(own) = &endpoint.launch else {
                let message = "the endpoint without the change is started where the one with it runs, so that one must be stopped \
                    before; start it by `endpoint.launch` too";
                self.fault_at_key(&at, message);
                return None;
            };
            let launch = launch.as_ref()?;
            if own.what == launch.what {
                let message = "starts the same as `endpoint.launch`, so the change would be compared with itself; start what serves \
                    without the change";
                self.fault_at_key(&launch_at, message);
                return None;
            }
            if endpoint.url.port() == Some(0) && matches!(launch.what, LaunchWhat::Command(_)) {
                let message =
                    "a command cannot take the free port that port 0 in `endpoint.url` means; write the port there";
                self.fault_at_key(&launch_at, message);
                return None;
            }
        }
        Some(Pair { launch: launch?, when: written.when.unwrap_or(PairWhen::Always) })
    }
}

fn within(written: Option<&raw::Within>) -> Within {
    let of = |value: Option<crate::contract::schema::Whole>, default: u32| {
        value.and_then(|value| u32::try_from(value.0).ok()).unwrap_or(default)
    };
    Within {
        commits: of(written.and_then(|within| within.commits), Within::default().commits),
        days: of(written.and_then(|within| within.days), Within::default().days),
    }
}
