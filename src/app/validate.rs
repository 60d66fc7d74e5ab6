//! `goodput validate`: checks a contract and prints its plan.

use super::cli::{PlanFormat, ValidateArguments};
use super::exit::{Exit, Failure};
use super::gate::{color, print, width};
use super::prepare::{build_workload, read_contract};
use crate::contract::{Contract, Objective};
use crate::judge::planning::{ObjectivePlan, decidability};
use crate::report::{self, ObjectiveRow, PlanReport, PlanStep};
use crate::schedule::TrialShape;
use crate::search::Campaign;
use crate::workload::Workload;

pub(super) fn validate(arguments: &ValidateArguments) -> Result<Exit, Failure> {
    let source = read_contract(&arguments.contract, "validate")?;
    let contract = &source.loaded.contract;
    let workload = build_workload(contract, &source.folder)?.workload;
    let report = describe(contract, &workload, &Campaign::new(contract, arguments.plan.into()));
    match arguments.output_format {
        PlanFormat::Table => print(&report::plan(&report, width(), color()))?,
        PlanFormat::Json => print(&report::json(&report))?,
    }
    Ok(Exit::Pass)
}

fn describe(contract: &Contract, workload: &Workload, campaign: &Campaign<'_>) -> PlanReport {
    let mut steps: Vec<PlanStep> = campaign
        .listed()
        .iter()
        .map(|planned| PlanStep {
            load: planned.load,
            must_hold: planned.load == contract.slo.at,
            requests: match planned.shape {
                TrialShape::Open { counts, .. } => Some(counts),
                TrialShape::Closed(_) => None,
            },
            load_time_ns: planned.load_time().as_nanos() as u64,
        })
        .collect();
    steps.sort_by_key(|step| step.load);
    PlanReport {
        name: contract.name.clone(),
        total_requests: steps.iter().map(|step| step.requests.map(|counts| counts.total())).sum(),
        total_time_ns: steps.iter().map(|step| step.load_time_ns).sum(),
        plan_digest: campaign.digest(),
        workload_digest: workload.digest().clone(),
        cases: workload.cases().len(),
        objectives: contract.slo.objectives.iter().zip(decidability(contract)).map(|(o, p)| row(o, p)).collect(),
        steps,
    }
}

fn row(objective: &Objective, plan: ObjectivePlan) -> ObjectiveRow {
    ObjectiveRow {
        id: plan.id,
        limit: objective.limit_text(),
        requests: plan.requests,
        smallest_sample: Some(plan.smallest_pass),
        reached: plan.can_pass,
        note: (!plan.notes.is_empty()).then(|| plan.notes.join("; ")),
    }
}
