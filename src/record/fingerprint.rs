//! Under which circumstances something was measured, and which commit was served.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The circumstances of a run by name, in the three parts that a comparison treats differently. A circumstance that is not known
/// is absent; a user's own keys stand beside those that were found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fingerprint {
    /// What two results must have in common, or else they are not compared.
    pub must_match: BTreeMap<String, String>,
    /// What a change may change: the difference that is under test.
    pub under_test: BTreeMap<String, String>,
    /// What is only noted.
    pub noted: BTreeMap<String, String>,
}

/// Where a result comes from: what was served, and which run of which workflow measured it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// The commit that was served, as 40 or 64 hexadecimal digits; `null` outside a repository.
    pub commit: Option<String>,
    /// Whether files that git knows were changed since that commit; `null` where that is not known.
    pub changed_files: Option<bool>,
    /// The commit that the workflow itself ran at, where it is another: on a pull request the merge that GitHub makes for it.
    pub workflow_commit: Option<String>,
    /// The branch or tag.
    pub branch: Option<String>,
    /// Whether that branch is the repository's default one; `null` where that is not known.
    pub is_default_branch: Option<bool>,
    /// What started the workflow: `push`, `schedule`, `pull_request`, …
    pub event: Option<String>,
    /// The repository, as `owner/name`.
    pub repository: Option<String>,
    /// The workflow run.
    pub run_id: Option<String>,
    /// The attempt of that run.
    pub run_attempt: Option<String>,
    /// Where the workflow run is shown.
    pub run_url: Option<String>,
}
