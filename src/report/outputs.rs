//! The few values that a workflow can go on with: one short text each, empty where something is not known, never 0.

use super::figures::load_that_must_hold;
use super::{change, checks};
use crate::judge::Status;
use crate::record::{RecordStep, RunResult};
use crate::units::Load;

/// The values by name, each on one line.
///
/// `verdict`: `PASS`, `FAIL` or `UNKNOWN`, also where the policy lets it through. `reason-codes`: the reasons of all rows that do
/// not pass, worst first, each once, with commas between. `goodput`: good requests per second at the load that must hold.
/// `capacity`: the highest load that held, in requests per second; of a closed loop none. `baseline-goodput`: the same of the
/// baseline as `goodput`, where the two may be compared. `delta`: the change of the capacity, or else of goodput, in per cent; a
/// loss is negative. `baseline-sha`: the commit that the baseline was measured at. Numbers are written so that JSON and the
/// expressions of a workflow can read them: `12.5`, `-3.2`.
pub fn outputs(result: &RunResult) -> Vec<(&'static str, String)> {
    let shown = |value: Option<f64>, decimals| value.map_or_else(String::new, |value| number(value, decimals));
    let verdict = result.verdict.as_ref().map_or("", |verdict| verdict.overall.word());
    let delta = change::main(result).and_then(|change| change.ratio).map(|ratio| 100.0 * (ratio - 1.0));
    vec![
        ("verdict", verdict.to_owned()),
        ("reason-codes", reasons(result).join(",")),
        ("goodput", shown(goodput(result), 3)),
        ("capacity", shown(capacity(result), 3)),
        ("baseline-goodput", shown(baseline_goodput(result), 3)),
        ("delta", shown(delta, 1)),
        ("baseline-sha", baseline_commit(result).unwrap_or_default()),
    ]
}

/// A number without the zeros at its end; one that is none gives nothing.
fn number(value: f64, decimals: i32) -> String {
    let scale = 10_f64.powi(decimals);
    let rounded = (value * scale).round() / scale;
    // Minus nothing is nothing.
    if rounded.is_finite() { (rounded + 0.0).to_string() } else { String::new() }
}

fn reasons(result: &RunResult) -> Vec<&'static str> {
    let mut codes = Vec::new();
    for check in checks::ordered(result).into_iter().filter(|check| check.status != Status::Pass) {
        let code = check.reason.code();
        if !codes.contains(&code) {
            codes.push(code);
        }
    }
    codes
}

fn goodput(result: &RunResult) -> Option<f64> {
    let at = load_that_must_hold(result)?;
    result.steps.iter().find(|step| step.load == at)?.goodput
}

/// The highest load that held, where it is known that nothing speaks against it.
fn capacity(result: &RunResult) -> Option<f64> {
    let capacity = result.capacity.as_ref().filter(|capacity| !capacity.changed)?;
    Some(capacity.holds_at?.rate()?.per_second())
}

fn baseline_goodput(result: &RunResult) -> Option<f64> {
    if result.comparison.as_ref()?.mismatches.is_empty() {
        let record = result.baseline.as_ref()?.record.as_ref()?;
        pooled_goodput(&record.steps, load_that_must_hold(result)?)
    } else {
        None
    }
}

/// Good requests of all trials at a load over the time of their windows, as a step has it.
fn pooled_goodput(steps: &[RecordStep], at: Load) -> Option<f64> {
    let trials = &steps.iter().find(|step| step.load == at)?.trials;
    let good: u64 = trials.iter().map(|trial| trial.good).sum::<Option<u64>>()?;
    let nanos: u64 = trials.iter().map(|trial| trial.window_ns).sum();
    (nanos > 0).then(|| good as f64 / (nanos as f64 / 1e9))
}

/// The commit of the baseline, where it is written as one.
fn baseline_commit(result: &RunResult) -> Option<String> {
    let commit = result.baseline.as_ref()?.record.as_ref()?.origin.commit.clone()?;
    let is_one = [40, 64].contains(&commit.len()) && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_one.then_some(commit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::RunResult;
    use crate::report::samples;

    fn of(result: &RunResult) -> Vec<String> {
        outputs(result).into_iter().map(|(_, value)| value).collect()
    }

    #[test]
    fn what_is_known_is_told_in_plain_numbers() {
        let names: Vec<&str> = outputs(&samples::pass()).into_iter().map(|(name, _)| name).collect();
        let expected = ["verdict", "reason-codes", "goodput", "capacity", "baseline-goodput", "delta", "baseline-sha"];
        assert_eq!(names, expected);
        assert_eq!(of(&samples::pass()), ["PASS", "", "19.933", "30", "", "", ""]);
        let reasons = "broken,counter_rose,interval_straddles_limit,probe_failed";
        assert_eq!(of(&samples::fail()), ["FAIL", reasons, "17.267", "10", "", "", ""]);
    }

    #[test]
    fn what_is_not_known_is_empty_and_never_zero() {
        assert_eq!(of(&samples::unknown()), ["UNKNOWN", "no_usage,generator_saturated", "", "", "", "", ""]);
        assert_eq!(of(&RunResult { verdict: None, ..samples::not_ready() }), [""; 7]);
        let closed = of(&samples::closed_loop());
        assert_eq!(closed, ["PASS", "", "118", "", "", "", ""], "clients are no requests per second");
    }

    #[test]
    fn a_comparison_is_told_with_its_baseline() {
        let commit = "0123456789abcdef0123456789abcdef01234567";
        // Three windows of 15 s with 299, 298 and 300 good requests.
        let goodput = "19.933";
        let found = of(&samples::loss());
        assert_eq!(found[4..], [goodput, "-12.3", commit]);
        let mut gain = samples::loss();
        for change in gain.comparison.iter_mut().flat_map(|found| &mut found.changes) {
            change.ratio = Some(1.0321);
        }
        assert_eq!(of(&gain)[5], "3.2");
        let mut hostile = samples::loss();
        if let Some(record) = hostile.baseline.as_mut().and_then(|used| used.record.as_mut()) {
            record.origin.commit = Some("x\n::set-output".to_owned());
        }
        assert_eq!(of(&hostile)[6], "");
    }

    #[test]
    fn numbers_can_be_read_by_json() {
        for (value, shown) in
            [(12.5, "12.5"), (20.0, "20"), (-0.04, "0"), (1e-9, "0"), (f64::NAN, ""), (f64::INFINITY, "")]
        {
            assert_eq!(number(value, 1), shown);
        }
        assert_eq!(number(1_000_000.0, 3), "1000000");
    }
}
