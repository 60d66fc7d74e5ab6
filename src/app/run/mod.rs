//! One whole run: endpoint up, probes, trials, probes, endpoint down; everything measured ends in a [`RunResult`].

mod side;

use std::path::Path;

pub(super) use side::{Around, Side};

use super::exit::Failure;
use super::interrupt::Interrupt;
use super::pair::{Beside, confirm, measure_pairs};
use super::prepare::Source;
use super::progress::Teller;
use crate::compare::Reference;
use crate::contract::{PairWhen, Plan};
use crate::drive::open_file_limit;
use crate::judge::planning::forecast;
use crate::record::{AuditRecord, BaselineUse, Calibration, RunFolder, RunResult};
use crate::report::cost;
use crate::search::{Campaign, Next};

/// A run that is about to begin.
pub(super) struct Run {
    head: Side,
    /// The endpoint without the change, where one is named.
    base: Option<Beside>,
    used: Option<BaselineUse>,
    plan: Plan,
}

impl Run {
    /// Reads everything that the contract names and makes the run's folder. Nothing is started yet. `used` is what the run is
    /// compared with.
    pub(super) fn prepare(
        source: Source,
        plan: Plan,
        audit: Option<AuditRecord>,
        used: Option<BaselineUse>,
        runs: &Path,
    ) -> Result<Self, Failure> {
        let base = Beside::of(&source)?;
        let head = Side::prepare(
            source,
            plan,
            audit,
            |contract, started| {
                let name = format!("{}-{}", started.strftime("%Y%m%dT%H%M%SZ"), slug(&contract.name));
                Ok(RunFolder::create(runs, &name)?)
            },
            "",
        )?;
        Ok(Self { head, base, used, plan })
    }

    /// The same, with the endpoint of this contract measured beside its own, in place of one that the contract itself names.
    pub(super) fn beside(self, base: Source) -> Self {
        Self { base: Some(Beside::named(base)), ..self }
    }

    /// The same, with what `goodput baseline calibrate` found on this machine.
    pub(super) fn calibrated(mut self, calibration: Option<Calibration>) -> Self {
        self.head.set_calibration(calibration);
        self
    }

    /// The run's folder.
    pub(super) fn folder(&self) -> &RunFolder {
        self.head.folder()
    }

    /// Carries the run out. Whatever happens in it is part of the result; only what makes a result impossible is a failure.
    pub(super) async fn carry_out(&mut self, interrupt: &Interrupt) -> Result<RunResult, Failure> {
        open_file_limit();
        let teller = Teller::new();
        let around = Around { teller: &teller, interrupt };
        let contract = self.head.contract();
        teller.say(&format!("goodput: {} against {}", contract.name, contract.endpoint.url));
        teller.say(&format!("goodput: {}", cost(&forecast(contract, self.plan))));
        if let Some(base) = self.base.take_if(|base| base.when() == PairWhen::Always) {
            return measure_pairs(&mut self.head, base, self.used.take(), self.plan, around).await;
        }
        if self.head.come_up(around).await? {
            self.measure(around).await;
            if let (Some(base), Some(used)) = (self.base.take(), &mut self.used) {
                confirm(&mut self.head, base, used, self.plan, around).await;
            }
        }
        self.head.end(interrupt).await;
        Ok(self.head.result(self.used.take()))
    }

    /// Every trial of the plan; ends early when the run is stopped.
    async fn measure(&mut self, around: Around<'_>) {
        let used = self.used.as_ref();
        let of = |used| Reference::of(self.head.contract(), used, self.head.fingerprint());
        let reference = used.and_then(of);
        while !around.interrupt.token().is_cancelled() && self.head.stopped().is_none() {
            let campaign = Campaign::new(self.head.contract(), self.plan).against(reference.clone());
            match campaign.next(&self.head.measured().tried()) {
                Next::Trial(planned, part) => self.head.measure(planned, part, around).await,
                Next::Done => break,
                Next::OutOfTime => {
                    around.teller.say("the rest of the plan does not fit into its budget");
                    break;
                }
            }
        }
    }
}

/// A name fit for a folder.
fn slug(name: &str) -> String {
    let slug: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    let short: String = slug.trim_matches('-').chars().take(40).collect();
    if short.is_empty() { "run".to_owned() } else { short }
}
