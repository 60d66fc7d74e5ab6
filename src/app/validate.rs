//! `goodput validate`: checks a contract and prints its plan.

use super::cli::{PlanFormat, ValidateArguments};
use super::exit::{Exit, Failure};
use super::gate::{color, print, width};
use super::prepare::{build_workload, read_contract};
use crate::contract::Plan;
use crate::judge::planning::forecast;
use crate::report::{self, PlanReport};
use crate::search::Campaign;

pub(super) fn validate(arguments: &ValidateArguments) -> Result<Exit, Failure> {
    let source = read_contract(&arguments.contract, "validate")?;
    let contract = &source.loaded.contract;
    let workload = build_workload(contract, &source.folder)?.workload;
    let plan: Plan = arguments.plan.into();
    let report = PlanReport {
        name: contract.name.clone(),
        cases: workload.cases().len(),
        forecast: forecast(contract, plan),
        plan_digest: Campaign::new(contract, plan).digest(),
        workload_digest: workload.digest().clone(),
    };
    match arguments.output_format {
        PlanFormat::Table => print(&report::plan(&report, width(), color()))?,
        PlanFormat::Json => print(&report::json(&report))?,
    }
    Ok(Exit::Pass)
}
