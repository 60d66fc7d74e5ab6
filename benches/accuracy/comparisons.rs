//! How often a comparison with a baseline is right, where the true slowdown is known.

use std::collections::BTreeMap;
use std::fmt::Write;

use goodput::compare::{Reference, confirm};
use goodput::judge::Status;
use goodput::record::{BaselineUse, Change, RecordTrial};
use goodput::schedule::{PlannedTrial, TrialCounts};
use goodput::search::Part;
use goodput::simulate::rehearse_trial;
use goodput::units::Load;

use crate::page::{error, percent, range};
use crate::queues::{Nightly, Queue, changes, five_percent};
use crate::{Setting, WINDOWS};

/// Plain queues and continuous batching.
pub(crate) const COMPARED: [&str; 4] = ["q-05", "q-07", "q-09", "q-10"];
/// Standard deviation of the logarithm by which all times of a trial differ from those of the next, in percent.
const NOISES: [u32; 3] = [0, 1, 3];
/// By how much the change makes everything slower, in thousandths. 1.053 is the margin of 5 %.
const SLOWDOWNS: [u32; 6] = [950, 1_000, 1_020, 1_053, 1_100, 1_200];
/// The slowdown on the margin.
const MARGIN: u32 = 1_053;

/// What comparisons of one figure said.
#[derive(Default, Clone, Copy)]
struct Tally {
    made: u64,
    pass: u64,
    fail: u64,
    trials: u64,
}

impl Tally {
    fn add(&mut self, change: &Change) {
        self.made += 1;
        self.pass += u64::from(change.status == Status::Pass);
        self.fail += u64::from(change.status == Status::Fail);
        self.trials += u64::from(change.head_trials);
    }

    fn passed(&self) -> f64 {
        percent(self.pass, self.made)
    }

    fn failed(&self) -> f64 {
        percent(self.fail, self.made)
    }
}

/// The figures of one comparison.
#[derive(Default, Clone, Copy)]
struct Tallies {
    /// The capacity against the stored curve.
    capacity: Tally,
    /// The goodput at the load that must hold, against stored trials.
    goodput: Tally,
    /// The goodput at the capacity, pair by pair.
    goodput_in_pairs: Tally,
    /// The capacity, pair by pair along the stored curve.
    capacity_in_pairs: Tally,
}

/// Everything that was compared, by setting, noise and slowdown.
#[derive(Default)]
pub(crate) struct Compared {
    cells: BTreeMap<(Setting, u32, u32), Tallies>,
    /// Nights behind each of them.
    nights: u64,
    /// Nights whose curve was of no use.
    flat: u64,
}

impl Compared {
    pub(crate) fn extend(&mut self, other: Self) {
        self.cells.extend(other.cells);
        self.nights = self.nights.max(other.nights);
        self.flat += other.flat;
    }

    fn over_settings(&self, window: u64, noise: u32, slowdown: u32) -> Vec<&Tallies> {
        COMPARED.iter().map(|id| &self.cells[&((*id, window), noise, slowdown)]).collect()
    }
}

/// Nightly runs of one setting, and changes of each slowdown after every one of them.
pub(crate) fn compared((id, window): Setting, nights: u64) -> Compared {
    let counts = TrialCounts { warm_up: 300, window, drain: 200 };
    let mut found = Compared { nights, ..Compared::default() };
    for noise in NOISES {
        for night in 1..=nights {
            let night = Nightly::new(Queue::new(id), counts, 3_000_000 + 1_000 * night, f64::from(noise) / 100.0);
            let used = BaselineUse { record: Some(night.record.clone()), ..BaselineUse::default() };
            let reference =
                Reference::of(&night.contract, &used, None).filter(|of| matches!(of, Reference::Shift { .. }));
            found.flat += u64::from(reference.is_none());
            let now = reference.as_ref().map(|reference| trials(&night, reference, 1_000, 20_000));
            for slowdown in SLOWDOWNS {
                let cell = found.cells.entry(((id, window), noise, slowdown)).or_default();
                let factor = f64::from(slowdown) / 1e3;
                let result = night.change(factor);
                cell.capacity.add(changes(&result, "capacity")[0]);
                cell.goodput.add(changes(&result, "goodput")[0]);
                if let Some((reference, now)) = reference.as_ref().zip(now.as_ref()) {
                    let Load::RateMilli(at) = reference.load() else { continue };
                    let pairs = night.change_in_pairs(at, factor);
                    cell.goodput_in_pairs.add(changes(&pairs, "goodput")[0]);
                    let head = trials(&night, reference, slowdown, 30_000);
                    cell.capacity_in_pairs.add(&confirm(reference, now, &head, five_percent().margin));
                }
            }
        }
    }
    found
}

/// Eight trials at the baseline's capacity, numbered from `first` so that their noise is their own.
fn trials(night: &Nightly, reference: &Reference, slowdown: u32, first: u32) -> Vec<RecordTrial> {
    let load = reference.load();
    let trial = |place: u32| {
        let seed = reference.seed(&night.contract, place);
        let planned = PlannedTrial { trial: first + place, seed, load, shape: night.contract.traffic.shape(load) };
        let stage = night.stage(&planned, f64::from(slowdown) / 1e3);
        RecordTrial::of(&rehearse_trial(&night.contract.slo, &planned, Part::Confirm, stage).unwrap().0)
    };
    (0..8).map(trial).collect()
}

/// The part of the page about comparisons.
pub(crate) fn section(page: &mut String, compared: &Compared) {
    let nights = compared.nights;
    let _ = write!(
        page,
        "
## Comparisons

{nights} nightly runs of each of {}, each searched and its headrooms measured around the capacity, and after every one of them changes that take so many times as long for everything.
The margin is 5 %, so that 1.053 lies on it, or 0.03 % beyond, which a machine without noise can tell. `capacity_change` is judged by the load shift at 3, 5 and 8 trials. Stated are 5 % a side on the margin by the levels of the looks, and up
to 16 % PASS and 9 % FAIL on the queues that the method was tried on; elsewhere less. Mean over the scenarios, and the least and the most of them, in percent.
A percentage over {nights} comparisons has a standard error of up to {:.1} points; near 5 % it is {:.1}. Of all {} nights {} had a curve too flat to be read:
there a load that the margin allows must hold.

| requests | noise | slowdown | PASS | FAIL | UNKNOWN | trials |
|---|---|---|---|---|---|---|
",
        COMPARED.join(", "),
        error(50.0, nights),
        error(5.0, nights),
        nights * (COMPARED.len() * WINDOWS.len() * NOISES.len()) as u64,
        compared.flat,
    );
    for window in WINDOWS {
        for noise in NOISES {
            for slowdown in SLOWDOWNS {
                let of: Vec<&Tallies> = compared.over_settings(window, noise, slowdown);
                let show =
                    |value: fn(&Tally) -> f64| range(&of.iter().map(|of| value(&of.capacity)).collect::<Vec<_>>());
                let trials = of.iter().map(|of| of.capacity.trials as f64 / of.capacity.made as f64).sum::<f64>();
                let _ = writeln!(
                    page,
                    "| {window} | {noise} % | ×{:.3} | {} | {} | {} | {:.1} |",
                    f64::from(slowdown) / 1e3,
                    show(Tally::passed),
                    show(Tally::failed),
                    show(|tally| 100.0 - tally.passed() - tally.failed()),
                    trials / of.len() as f64,
                );
            }
        }
    }
    wrong(page, compared);
    others(page, compared);
}

/// The wrong answers: FAIL of what is equal or 2 % slower, PASS of what is 10 % slower, and both on the margin.
fn wrong(page: &mut String, compared: &Compared) {
    page.push_str(
        "
Wrong answers of `capacity_change` by scenario, in percent: FAIL of an equal change (false red) and of one that is 2 % slower, PASS and FAIL on the margin, PASS of one that
is 10 % slower.

| scenario | requests | noise | FAIL ×1.000 | FAIL ×1.020 | PASS ×1.053 | FAIL ×1.053 | PASS ×1.100 |
|---|---|---|---|---|---|---|---|
",
    );
    for id in COMPARED {
        for window in WINDOWS {
            for noise in NOISES {
                let of = |slowdown: u32| &compared.cells[&((id, window), noise, slowdown)].capacity;
                let _ = writeln!(
                    page,
                    "| {id} | {window} | {noise} % | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} |",
                    of(1_000).failed(),
                    of(1_020).failed(),
                    of(MARGIN).passed(),
                    of(MARGIN).failed(),
                    of(1_100).passed(),
                );
            }
        }
    }
}

/// The figures beside the capacity.
fn others(page: &mut String, compared: &Compared) {
    page.push_str(
        "
The other figures, PASS / FAIL in percent over all scenarios: the goodput at the load that must hold (0.6 of the capacity, where it hardly moves) against stored trials by ranks;
and with both endpoints side by side the goodput at the baseline's capacity in five pairs, and the capacity along the stored curve in 3 to 8 pairs, which also holds where the
machine is not as fast as it was that night. A goodput that passes is no wrong answer: at its capacity an endpoint that is 10 % slower may still serve nearly every request in time.

| requests | noise | slowdown | goodput, stored | goodput, in pairs | capacity, in pairs |
|---|---|---|---|---|---|
",
    );
    for window in WINDOWS {
        for noise in NOISES {
            for slowdown in SLOWDOWNS {
                let of = compared.over_settings(window, noise, slowdown);
                let show = |tally: fn(&Tallies) -> Tally| {
                    let (pass, fail, made) = of
                        .iter()
                        .map(|of| tally(of))
                        .fold((0, 0, 0), |sum, tally| (sum.0 + tally.pass, sum.1 + tally.fail, sum.2 + tally.made));
                    format!("{:.1} / {:.1}", percent(pass, made), percent(fail, made))
                };
                let _ = writeln!(
                    page,
                    "| {window} | {noise} % | ×{:.3} | {} | {} | {} |",
                    f64::from(slowdown) / 1e3,
                    show(|of| of.goodput),
                    show(|of| of.goodput_in_pairs),
                    show(|of| of.capacity_in_pairs),
                );
            }
        }
    }
}
