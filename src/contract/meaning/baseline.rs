//! With what a run is compared.

use std::collections::{BTreeMap, BTreeSet};

use super::Meaning;
use crate::contract::baseline::{BaselinePlan, FingerprintKeys, LatencyMargin, Pair, PairWhen, StoreSpec, Within};
use crate::contract::document::join;
use crate::contract::metric::RequestMetric;
use crate::contract::raw;
use crate::contract::schema::ShareText;
use crate::observe::Protocol;
use crate::units::Share;

const AT: &str = "/baseline";
/// The loss that passes when the contract does not say, and what can be written.
const DEFAULT_MARGIN_PPM: u32 = 50_000;
const MARGIN_PPM: std::ops::RangeInclusive<u32> = 1_000..=500_000;
/// How far behind a baseline may lie when the contract does not say.
const DEFAULT_WITHIN: Within = Within { commits: 50, days: 30 };
const DEFAULT_FILE: &str = "baseline.json";
const DEFAULT_BRANCH: &str = "goodput-baselines";
const DEFAULT_ARTIFACT: &str = "goodput-baseline";
const DEFAULT_PREFIX: &str = "goodput";
const DEFAULT_REGION: &str = "us-east-1";
/// What a key of a fingerprint may be longer than by no character.
const LONGEST_KEY: usize = 64;

impl Meaning<'_> {
    /// The part `baseline`; `None` when it is wrong, `Some(None)` when it is not written.
    pub(super) fn baseline(
        &mut self,
        written: Option<raw::Baseline>,
        protocol: Option<Protocol>,
    ) -> Option<Option<BaselinePlan>> {
        let Some(written) = written else {
            return (!self.refused.contains(AT)).then_some(None);
        };
        let margin = self.margin(written.margin.as_ref(), &join(AT, "margin"), true);
        let from = self.stores(written.from);
        let within = within(written.within.as_ref());
        let latency = self.latency(written.latency.unwrap_or_default());
        let keys = self.keys(written.fingerprint.unwrap_or_default());
        let pair = match written.pair {
            Some(pair) => self.pair(pair, protocol).map(Some),
            None => (!self.refused.contains(&join(AT, "pair"))).then_some(None),
        };
        if let (Some(from), Some(pair)) = (&from, &pair)
            && from.is_empty()
            && pair.as_ref().is_some_and(|pair| pair.when == PairWhen::Suspected)
        {
            let message = "a loss is suspected by a stored baseline only; write `from`, or `when: always`";
            self.fault(&join(AT, "pair/when"), message);
        }
        Some(Some(BaselinePlan {
            margin: margin?,
            from: from?,
            within,
            latency: latency?,
            fingerprint: keys?,
            release: written.release.map(|path| self.folder.join(path)),
            accepted: written.accepted.map(|path| self.folder.join(path)),
            pair: pair?,
        }))
    }

    fn margin(&mut self, written: Option<&ShareText>, pointer: &str, has_default: bool) -> Option<Share> {
        if has_default && !self.is_written(written, pointer) {
            return Share::from_ppm(DEFAULT_MARGIN_PPM);
        }
        let margin = self.share(written, pointer)?;
        if !MARGIN_PPM.contains(&margin.ppm()) {
            self.fault(pointer, format!("{margin} cannot be a margin; write 0.1% to 50%"));
            return None;
        }
        Some(margin)
    }

    fn stores(&mut self, written: Option<Vec<Option<raw::Store>>>) -> Option<Vec<StoreSpec>> {
        let pointer = join(AT, "from");
        if self.refused.contains(&pointer) {
            return None;
        }
        let mut stores = Vec::new();
        for (index, store) in written.unwrap_or_default().into_iter().enumerate() {
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

    fn store(&mut self, written: raw::Store, pointer: &str) -> Option<StoreSpec> {
        match written.name {
            Some(raw::StoreName::File) => return Some(StoreSpec::File(self.folder.join(DEFAULT_FILE))),
            Some(raw::StoreName::Branch) => return Some(StoreSpec::Branch(DEFAULT_BRANCH.to_owned())),
            Some(raw::StoreName::Artifact) => {
                return Some(StoreSpec::Artifact { name: DEFAULT_ARTIFACT.to_owned(), workflow: None });
            }
            None => {}
        }
        let raw::StoreDetails { file, branch, artifact, s3 } = written.details;
        let is_written = [
            self.is_written(file.as_ref(), &join(pointer, "file")),
            self.is_written(branch.as_ref(), &join(pointer, "branch")),
            self.is_written(artifact.as_ref(), &join(pointer, "artifact")),
            self.is_written(s3.as_ref(), &join(pointer, "s3")),
        ];
        if is_written.iter().filter(|written| **written).count() != 1 {
            self.fault(
                pointer,
                "write exactly one of `file`, `branch`, `artifact` and `s3`; list several places one by one",
            );
            return None;
        }
        if let Some(file) = file {
            return Some(StoreSpec::File(self.folder.join(file)));
        }
        if let Some(branch) = branch {
            return self.branch(branch, &join(pointer, "branch")).map(StoreSpec::Branch);
        }
        if let Some(artifact) = artifact {
            let name = artifact.name.unwrap_or_else(|| DEFAULT_ARTIFACT.to_owned());
            return Some(StoreSpec::Artifact { name, workflow: artifact.workflow });
        }
        let s3 = s3?;
        let endpoint_at = join(&join(pointer, "s3"), "endpoint");
        let endpoint = match s3.endpoint {
            Some(endpoint) => Some(self.http_url(&endpoint, &endpoint_at, &["http", "https"])?),
            None if self.refused.contains(&endpoint_at) => return None,
            None => None,
        };
        let prefix = s3.prefix.unwrap_or_else(|| DEFAULT_PREFIX.to_owned());
        Some(StoreSpec::S3 {
            bucket: s3.bucket?,
            prefix: prefix.trim_matches('/').to_owned(),
            region: s3.region.unwrap_or_else(|| DEFAULT_REGION.to_owned()),
            endpoint,
        })
    }

    /// A branch's name, by the rules that matter to a command line and to git.
    fn branch(&mut self, name: String, pointer: &str) -> Option<String> {
        let is_fine = !name.starts_with(['-', '/', '.'])
            && !name.ends_with(['/', '.'])
            && !name.contains("..")
            && !name.contains("//")
            && !name.ends_with(".lock")
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
        if is_fine {
            return Some(name);
        }
        self.fault(
            pointer,
            "not a branch's name; write letters, digits, `-`, `_`, `.` and `/`, as in `goodput-baselines`",
        );
        None
    }

    fn latency(&mut self, written: Vec<Option<raw::LatencyMargin>>) -> Option<Vec<LatencyMargin>> {
        let mut seen = BTreeSet::new();
        let mut margins = Vec::new();
        for (index, written) in written.into_iter().enumerate() {
            let at = join(&join(AT, "latency"), &index.to_string());
            margins.push(written.and_then(|written| self.latency_margin(&written, &at, &mut seen)));
        }
        margins.into_iter().collect()
    }

    fn latency_margin(
        &mut self,
        written: &raw::LatencyMargin,
        pointer: &str,
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
        let percentile = written.percentile?.0;
        if !seen.insert((metric, percentile)) {
            self.fault(pointer, "listed twice; write one margin for each percentile");
            return None;
        }
        Some(LatencyMargin { metric, percentile, margin: margin?, gates: written.gates.unwrap_or(false) })
    }

    fn keys(&mut self, written: raw::FingerprintKeys) -> Option<FingerprintKeys> {
        let at = join(AT, "fingerprint");
        let must_match = self.named(written.must_match, &join(&at, "must_match"));
        let under_test = self.named(written.under_test, &join(&at, "under_test"));
        let noted = self.named(written.noted, &join(&at, "noted"));
        Some(FingerprintKeys { must_match: must_match?, under_test: under_test?, noted: noted? })
    }

    fn named(
        &mut self,
        written: Option<BTreeMap<String, Option<String>>>,
        pointer: &str,
    ) -> Option<BTreeMap<String, String>> {
        let mut named = BTreeMap::new();
        for (key, value) in written.unwrap_or_default() {
            let at = join(pointer, &key);
            let is_name = !key.is_empty()
                && key.len() <= LONGEST_KEY
                && key.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
            if !is_name {
                self.fault_at_key(&at, "not a name; write lower-case letters, digits and `_`, as in `node_pool`");
                return None;
            }
            let value = self.plain_text(Some(value?), &at)?;
            named.insert(key, value);
        }
        Some(named)
    }

    fn pair(&mut self, written: raw::Pair, protocol: Option<Protocol>) -> Option<Pair> {
        let launch = self.launch(written.launch?, protocol, "/baseline/pair/launch")?;
        Some(Pair { launch, when: written.when.unwrap_or(PairWhen::Always) })
    }
}

fn within(written: Option<&raw::Within>) -> Within {
    let of = |value: Option<crate::contract::schema::Whole>, default: u32| {
        value.and_then(|value| u32::try_from(value.0).ok()).unwrap_or(default)
    };
    Within {
        commits: of(written.and_then(|within| within.commits), DEFAULT_WITHIN.commits),
        days: of(written.and_then(|within| within.days), DEFAULT_WITHIN.days),
    }
}
