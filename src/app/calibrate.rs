//! `goodput baseline calibrate`: one endpoint against itself, which says how often the gate itself would be wrong.

use std::path::Path;

use super::cli::{CalibrateArguments, DEFAULT_CALIBRATION, PlanFormat};
use super::exit::{Exit, Failure};
use super::gate::{color, print, store, width};
use super::interrupt::Interrupt;
use super::pair::Duo;
use super::prepare::read_contract;
use super::progress::Teller;
use super::run::{Around, Side};
use crate::compare::{calibrate as calibration_of, differences, pair_looks};
use crate::contract::Plan;
use crate::drive::open_file_limit;
use crate::record::{Calibration, RecordStep, RunFolder, write_whole};
use crate::report::{calibration, json};
use crate::search::Part;
use crate::units::Share;

/// Carries the calibration out: pairs at every listed load, and what they tell.
pub(super) async fn calibrate(arguments: &CalibrateArguments) -> Result<Exit, Failure> {
    let source = read_contract(&arguments.contract, "baseline calibrate")?;
    let Some(margin) = source.loaded.contract.baseline.as_ref().map(|rules| rules.margin) else {
        return Err(Failure::usage("the contract does not say which loss still passes, which is what is calibrated")
            .hint("add `baseline: { margin: 5% }` to the contract"));
    };
    let interrupt = Interrupt::listen()?;
    open_file_limit();
    let mut head = Side::prepare(
        source.clone(),
        Plan::Check,
        None,
        |_, started| {
            let name = format!("{}-calibration", started.strftime("%Y%m%dT%H%M%SZ"));
            Ok(RunFolder::create(&arguments.runs, &name)?)
        },
        "",
    )?;
    let folder = RunFolder::create(head.folder().path(), "base")?;
    let mut base = Side::prepare(source, Plan::Check, None, |_, _| Ok(folder), "base ")?;
    let teller = Teller::new();
    let around = Around { teller: &teller, interrupt: &interrupt };
    let measured = pairs(&mut head, &mut base, arguments.pairs, around).await;
    base.end(&interrupt).await;
    head.end(&interrupt).await;
    for side in [&base, &head] {
        store(side.folder(), &side.result(None))?;
    }
    if let Some(number) = interrupt.signal() {
        return Ok(Exit::Signal(number));
    }
    if !measured? {
        return Err(Failure::internal("the endpoint did not stay up through all pairs, so nothing is calibrated")
            .hint(format!("what it did is in {}", head.folder().path().display())));
    }
    let found = found(&base, &head, margin);
    write(&arguments.output, &found)?;
    print(&match arguments.output_format {
        PlanFormat::Table => calibration(&found, width(), color()),
        PlanFormat::Json => json(&found),
    })?;
    teller.say(&format!("goodput: written to {}", arguments.output.display()));
    Ok(Exit::Pass)
}

/// So many pairs at every listed load; which load comes first moves on, so that none is always the one that meets a warm machine.
/// Whether all were made.
async fn pairs(head: &mut Side, base: &mut Side, pairs: u32, around: Around<'_>) -> Result<bool, Failure> {
    let mut loads = head.contract().traffic.loads();
    let seed = head.contract().workload.seed;
    let mut duo = Duo::new(head, base, around);
    for place in 0..pairs {
        for load in &loads {
            duo.pair(*load, seed.wrapping_add(u64::from(place)), Part::Step).await?;
            if !duo.goes_on() || !duo.is_whole() || around.interrupt.token().is_cancelled() {
                return Ok(false);
            }
        }
        loads.rotate_left(1);
    }
    Ok(true)
}

fn found(base: &Side, head: &Side, margin: Share) -> Calibration {
    let contract = head.contract();
    let loads = contract.traffic.loads();
    let [of_base, of_head] = [base, head]
        .map(|side| -> Vec<RecordStep> { side.measured().steps(&loads).iter().map(RecordStep::of).collect() });
    let differences = differences(None, &of_base, &of_head);
    let must_match = head.fingerprint().map(|found| found.must_match.clone()).unwrap_or_default();
    calibration_of(&differences, margin, &pair_looks(contract), contract.workload.seed, must_match)
}

fn write(path: &Path, found: &Calibration) -> Result<(), Failure> {
    let unwritable = |error: String| {
        Failure::internal(format!("failed to write the calibration {}: {error}", path.display()))
            .hint("name a file that can be written with `--output`")
    };
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(|error| unwritable(error.to_string()))?;
    }
    write_whole(path, json(found).as_bytes()).map_err(|error| unwritable(error.to_string()))
}

/// What was found on this machine before: the file named, or the usual one where it is.
pub(super) fn calibration_for_gate(named: Option<&Path>) -> Result<Option<Calibration>, Failure> {
    let path = named.unwrap_or(Path::new(DEFAULT_CALIBRATION));
    if named.is_none() && !path.exists() {
        return Ok(None);
    }
    let read = std::fs::read(path)
        .map_err(|error| error.to_string())
        .and_then(|text| serde_json::from_slice(&text).map_err(|error| format!("it is no calibration: {error}")));
    match read {
        Ok(found) => Ok(Some(found)),
        Err(error) if named.is_some() => {
            Err(Failure::usage(format!("failed to read the calibration {}: {error}", path.display()))
                .hint("write a new one with `goodput baseline calibrate`, or leave `--calibration` out"))
        }
        Err(error) => {
            Teller::new().say(&format!("goodput: {}: {error}; the calibration is not used", path.display()));
            Ok(None)
        }
    }
}
