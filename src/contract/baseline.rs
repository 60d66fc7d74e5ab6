//! What the part `baseline` of a contract means.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use super::metric::RequestMetric;
use super::model::Launch;
use crate::units::Share;

/// The loss of capacity and goodput that passes where the contract does not say.
const DEFAULT_MARGIN_PPM: u32 = 50_000;

/// With what a run is compared, and which loss still passes.
#[derive(Debug, Clone, PartialEq)]
pub struct BaselinePlan {
    /// The largest loss of capacity and of goodput that still passes.
    pub margin: Share,
    /// Where baselines are kept, asked in this order.
    pub from: Vec<StoreSpec>,
    /// How far behind the base a baseline may lie.
    pub within: Within,
    /// Percentiles whose change is shown, or can fail a run.
    pub latency: Vec<LatencyMargin>,
    /// Circumstances that only the user knows.
    pub fingerprint: FingerprintKeys,
    /// The file of the anchored release's record, joined to the contract's folder.
    pub release: Option<PathBuf>,
    /// The file of reviewed exceptions, joined to the contract's folder.
    pub accepted: Option<PathBuf>,
    /// The endpoint without the change.
    pub pair: Option<Pair>,
}

/// What holds where the contract does not say, and nothing to compare with.
impl Default for BaselinePlan {
    fn default() -> Self {
        Self {
            margin: Share::from_ppm(DEFAULT_MARGIN_PPM).unwrap_or(Share::ONE),
            from: Vec::new(),
            within: Within::default(),
            latency: Vec::new(),
            fingerprint: FingerprintKeys::default(),
            release: None,
            accepted: None,
            pair: None,
        }
    }
}

/// A place where baselines are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreSpec {
    /// A file in the repository, joined to the contract's folder.
    File(PathBuf),
    /// A branch of its own, one file a record.
    Branch(String),
    /// An artifact of a green workflow run on the default branch.
    Artifact {
        /// The artifact's name.
        name: String,
        /// The workflow's file name, when only its runs count.
        workflow: Option<String>,
    },
    /// A bucket of an S3-compatible object storage.
    S3 {
        /// The bucket.
        bucket: String,
        /// What every key begins with; no slash at either end.
        prefix: String,
        /// The region.
        region: String,
        /// The storage's address, where it is not Amazon's.
        endpoint: Option<Url>,
    },
}

impl StoreSpec {
    /// Its name in contracts and records.
    pub fn name(&self) -> &'static str {
        match self {
            Self::File(_) => "file",
            Self::Branch(_) => "branch",
            Self::Artifact { .. } => "artifact",
            Self::S3 { .. } => "s3",
        }
    }
}

/// How far behind the base a baseline may lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Within {
    /// Commits on the first-parent line.
    pub commits: u32,
    /// Days.
    pub days: u32,
}

impl Default for Within {
    fn default() -> Self {
        Self { commits: 50, days: 30 }
    }
}

/// A percentile whose change is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatencyMargin {
    /// What is measured.
    pub metric: RequestMetric,
    /// The percentile: 50, 90, 95 or 99.
    pub percentile: u8,
    /// The largest loss of speed that still passes.
    pub margin: Share,
    /// Whether it can fail a run.
    pub gates: bool,
}

/// Circumstances that only the user knows, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FingerprintKeys {
    /// What two results must have in common to be compared.
    pub must_match: BTreeMap<String, String>,
    /// What a change may change.
    pub under_test: BTreeMap<String, String>,
    /// What is only noted.
    pub noted: BTreeMap<String, String>,
}

/// The endpoint without the change.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// How it is started.
    pub launch: Launch,
    /// When it is run.
    pub when: PairWhen,
}

/// When the endpoint without the change is run beside the one with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum PairWhen {
    /// In every run, in place of a stored baseline.
    Always,
    /// Only to confirm a loss that the comparison with a stored baseline suspects.
    Suspected,
}
