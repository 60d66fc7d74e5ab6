//! With what a run is compared, as it is written.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::{Launch, Metric};
use crate::contract::baseline::PairWhen;
use crate::contract::schema::{ShareText, Whole};

/// With what a run is compared, and which loss still passes.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::contract) struct Baseline {
    /// The largest loss of capacity and of goodput that still passes, from 0.1% to 50%.
    #[schemars(extend("default" = "5%"))]
    pub(in crate::contract) margin: Option<ShareText>,
    /// Where baselines are kept, asked in this order; the first that has a fitting one is taken.
    /// Without `pair` the file beside the contract.
    #[schemars(length(min = 1), extend("default" = ["file"], "examples" = [["artifact", "branch", "file"]]))]
    pub(in crate::contract) from: Option<Vec<Option<Store>>>,
    /// How far behind the base a baseline may lie.
    pub(in crate::contract) within: Option<Within>,
    /// Percentiles whose change is shown; those with `gates` can fail a run.
    #[schemars(length(min = 1))]
    pub(in crate::contract) latency: Option<Vec<Option<LatencyMargin>>>,
    /// Circumstances that only you know, by name.
    pub(in crate::contract) fingerprint: Option<FingerprintKeys>,
    /// The record of the anchored release, a file in the repository, relative to the contract's folder: slow decline is held against
    /// it, and `--plan release` compares with it.
    #[schemars(length(min = 1), extend("examples" = ["release.json"]))]
    pub(in crate::contract) release: Option<String>,
    /// The file of reviewed exceptions, relative to the contract's folder.
    #[schemars(length(min = 1), extend("examples" = ["accepted.yaml"]))]
    pub(in crate::contract) accepted: Option<String>,
    /// The endpoint without the change, to be run beside the one with it.
    pub(in crate::contract) pair: Option<Pair>,
}

/// The endpoint without the change: on the same machine and address, in turn with the one that has it, which must be launched too.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::contract) struct Pair {
    /// How it is started; everything else is as in `endpoint`.
    #[schemars(required)]
    pub(in crate::contract) launch: Option<Launch>,
    /// When it is run.
    #[schemars(extend("default" = "always"))]
    pub(in crate::contract) when: Option<PairWhen>,
}

/// How far behind the base a baseline may lie.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::contract) struct Within {
    /// Commits on the first-parent line.
    #[schemars(range(min = 0, max = 10_000), extend("default" = 50))]
    pub(in crate::contract) commits: Option<Whole>,
    /// Days.
    #[schemars(range(min = 1, max = 3_650), extend("default" = 30))]
    pub(in crate::contract) days: Option<Whole>,
}

/// A percentile whose change is shown.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::contract) struct LatencyMargin {
    /// What is measured: a metric of requests.
    #[schemars(required)]
    pub(in crate::contract) metric: Option<Metric>,
    /// The percentile.
    #[schemars(required)]
    pub(in crate::contract) percentile: Option<MarginPercentile>,
    /// The largest loss of speed that still passes, from 0.1% to 50%.
    #[schemars(required)]
    pub(in crate::contract) margin: Option<ShareText>,
    /// Whether it can fail a run; else it is only shown.
    #[schemars(extend("default" = false))]
    pub(in crate::contract) gates: Option<bool>,
}

/// A percentile that records keep of every trial.
#[derive(Debug, Clone, Copy)]
pub(in crate::contract) struct MarginPercentile(pub(in crate::contract) u8);

impl<'de> Deserialize<'de> for MarginPercentile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Whole::deserialize(deserializer).map(|whole| Self(u8::try_from(whole.0).unwrap_or(u8::MAX)))
    }
}

impl JsonSchema for MarginPercentile {
    fn schema_name() -> Cow<'static, str> {
        "MarginPercentile".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "title": "a percentile that records keep; write 50, 90, 95 or 99",
            "enum": [50, 90, 95, 99],
        })
    }
}

/// Circumstances that only you know, by name.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::contract) struct FingerprintKeys {
    /// What two results must have in common to be compared, as `{ node_pool: h100-a }`.
    pub(in crate::contract) must_match: Option<BTreeMap<String, Option<String>>>,
    /// What a change may change, as `{ engine_image: "vllm@sha256:…" }`.
    pub(in crate::contract) under_test: Option<BTreeMap<String, Option<String>>>,
    /// What is only noted.
    pub(in crate::contract) noted: Option<BTreeMap<String, Option<String>>>,
}

/// A place where baselines are kept: its name, or a mapping with exactly one key that says more.
#[derive(Debug, Default)]
pub(in crate::contract) struct Store {
    pub(in crate::contract) name: Option<StoreName>,
    pub(in crate::contract) details: StoreDetails,
}

impl<'de> Deserialize<'de> for Store {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        if value.is_string() {
            let name = serde_json::from_value(value).map_err(D::Error::custom)?;
            return Ok(Self { name: Some(name), details: StoreDetails::default() });
        }
        Ok(Self { name: None, details: serde_json::from_value(value).map_err(D::Error::custom)? })
    }
}

impl JsonSchema for Store {
    fn schema_name() -> Cow<'static, str> {
        "Store".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (name, details) = (generator.subschema_for::<StoreName>(), generator.subschema_for::<StoreDetails>());
        // The branch is chosen by form, so that a mistake is told about the form that was meant.
        json_schema!({
            "title": "a place where baselines are kept; write `artifact`, `branch` or `file`, or say more, as in `{ file: baseline.json }`",
            "type": ["string", "object"],
            "if": { "type": "string" },
            "then": name,
            "else": details,
        })
    }
}

/// A place where baselines are kept, with its usual settings.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(in crate::contract) enum StoreName {
    /// `baseline.json` beside the contract, as it is at the base commit.
    File,
    /// The branch `goodput-baselines`.
    Branch,
    /// The artifact `goodput-baseline` of a green run on the default branch.
    Artifact,
}

/// A place where baselines are kept: exactly one of the keys.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::contract) struct StoreDetails {
    /// A file in the repository, relative to the contract's folder, read as it is at the base commit.
    #[schemars(length(min = 1), extend("examples" = ["baseline.json"]))]
    pub(in crate::contract) file: Option<String>,
    /// A branch of its own on `origin`, one file a record.
    #[schemars(length(min = 1), extend("examples" = ["goodput-baselines"]))]
    pub(in crate::contract) branch: Option<String>,
    /// An artifact of a workflow run on GitHub.
    pub(in crate::contract) artifact: Option<Artifact>,
    /// A bucket of an S3-compatible object storage. Credentials come from the usual environment variables.
    pub(in crate::contract) s3: Option<Bucket>,
}

/// An artifact of a green workflow run on the default branch.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::contract) struct Artifact {
    /// The artifact's name.
    #[schemars(length(min = 1, max = 200), extend("default" = "goodput-baseline"))]
    pub(in crate::contract) name: Option<String>,
    /// The workflow's file name, when only its runs count.
    #[schemars(length(min = 1), extend("examples" = ["nightly.yml"]))]
    pub(in crate::contract) workflow: Option<String>,
}

/// A bucket of an S3-compatible object storage.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::contract) struct Bucket {
    /// The bucket.
    #[schemars(required, length(min = 1, max = 255))]
    pub(in crate::contract) bucket: Option<String>,
    /// What every key begins with.
    #[schemars(extend("default" = "goodput"))]
    pub(in crate::contract) prefix: Option<String>,
    /// The region.
    #[schemars(length(min = 1), extend("default" = "us-east-1"))]
    pub(in crate::contract) region: Option<String>,
    /// The storage's address, where it is not Amazon's.
    #[schemars(extend("examples" = ["https://storage.example:9000"]))]
    pub(in crate::contract) endpoint: Option<String>,
}
