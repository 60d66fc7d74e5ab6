//! Reviewed exceptions, as they are written.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::contract::schema::{ChangeRow, CommitText, DateText, ShareText, Whole};

/// Losses that a reviewer accepted, each by its row of the verdict, with a reason and a last day.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "goodput accepted losses")]
pub(in crate::contract) struct Acceptances {
    /// The version of the format: 1.
    #[expect(dead_code, reason = "the schema holds it to the one version that there is")]
    #[schemars(required, extend("const" = crate::contract::schema::VERSION))]
    pub(in crate::contract) version: Option<Whole>,
    /// The losses; an empty list accepts none.
    #[schemars(required, length(max = 1_000))]
    pub(in crate::contract) accepted: Option<Vec<Option<AcceptedLoss>>>,
}

/// One named loss that may be.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::contract) struct AcceptedLoss {
    /// The row of the verdict.
    #[schemars(required)]
    pub(in crate::contract) row: Option<ChangeRow>,
    /// Why the loss is accepted.
    #[schemars(required, length(min = 1, max = 500))]
    pub(in crate::contract) reason: Option<String>,
    /// The first day on which it no longer holds.
    #[schemars(required)]
    pub(in crate::contract) expires: Option<DateText>,
    /// The largest loss that it covers, from 0.1% to 90%; every row of a change needs one.
    pub(in crate::contract) at_most: Option<ShareText>,
    /// The commit that the baseline was measured at, or its beginning: against another baseline it does not hold.
    pub(in crate::contract) baseline: Option<CommitText>,
    /// Who accepted it.
    #[schemars(length(min = 1, max = 200))]
    pub(in crate::contract) by: Option<String>,
}
