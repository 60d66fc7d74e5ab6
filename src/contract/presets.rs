//! Placeholder until the sets are merged.
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::source::{MetricsPage, Resource};

/// A ready-made set of resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(super) enum Preset {
    /// vLLM.
    Vllm,
    /// Process.
    Process,
}

impl Preset {
    pub(super) fn has_page(self) -> bool {
        self != Self::Process
    }
    pub(super) fn resources(self, _page: Option<&MetricsPage>, _every: Duration, _timeout: Duration) -> Vec<Resource> {
        Vec::new()
    }
}
