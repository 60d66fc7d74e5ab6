//! `goodput schema`: the schemas that editors and other tools read.

use super::cli::{SchemaArguments, SchemaKind};
use super::exit::{Exit, Failure};
use super::gate::print;
use crate::{contract, record, report, simulate};

pub(super) fn schema(arguments: &SchemaArguments) -> Result<Exit, Failure> {
    let text = match arguments.kind {
        SchemaKind::Contract => report::json(&contract::schema()),
        SchemaKind::Accepted => report::json(&contract::accepted_schema()),
        SchemaKind::Result => report::json(&record::result_schema()),
        SchemaKind::Request => report::json(&record::request_schema()),
        SchemaKind::Audit => report::json(&record::audit_schema()),
        SchemaKind::Baseline => report::json(&record::baseline_schema()),
        SchemaKind::Profile => report::json(&simulate::profile_schema()),
    };
    print(&text)?;
    Ok(Exit::Pass)
}
