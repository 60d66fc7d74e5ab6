//! `goodput schema`: the schemas that editors and other tools read.

use super::cli::{SchemaArguments, SchemaKind};
use super::exit::{Exit, Failure};
use super::gate::print;
use crate::{contract, record, report, simulate};

pub(super) fn schema(arguments: &SchemaArguments) -> Result<Exit, Failure> {
    let schema = match arguments.kind {
        SchemaKind::Contract => contract::schema(),
        SchemaKind::Result => record::result_schema().into(),
        SchemaKind::Request => record::request_schema().into(),
        SchemaKind::Profile => simulate::profile_schema().into(),
    };
    print(&report::json(&schema));
    Ok(Exit::Pass)
}
