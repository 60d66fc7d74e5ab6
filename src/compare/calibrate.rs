//! How often the gate would be wrong on this machine, from runs of one endpoint against itself.

use std::collections::BTreeMap;

use super::confirm::log_ratios;
use super::figures::goodput_logs;
use super::reference::Reference;
use crate::record::{Calibration, CalibrationRow, RecordStep};
use crate::schedule::Words;
use crate::stats::{Decision, LEAST_RATIO_DEVIATION, RatioRule, clipped};
use crate::units::{Load, Share};

/// Comparisons that are drawn.
const DRAWN: usize = 2_000;
/// The stream of random words that they are drawn from.
const STREAM: u64 = 6;
/// The share of comparisons that must fail for a drop to be detected.
const DETECTED: f64 = 0.8;
/// The largest drop that is looked for.
const LARGEST: f64 = 0.5;
/// Pairs below which drawing from them tells little.
const LEAST_PAIRS: usize = 8;

/// One figure of pairs of trials of one endpoint: logarithms of the second over the first.
#[derive(Debug, Clone, PartialEq)]
pub struct Differences {
    /// `capacity` or `goodput`.
    pub metric: String,
    /// The load; `None` for the capacity.
    pub load: Option<Load>,
    /// The logarithms, one for each pair.
    pub values: Vec<f64>,
}

/// The differences between two sides that were measured in pairs: of the capacity where there is a curve to read it from, and of the
/// goodput at every load. A load at which something is not known has none.
pub fn differences(reference: Option<&Reference>, base: &[RecordStep], head: &[RecordStep]) -> Vec<Differences> {
    let mut found = Vec::new();
    let pairs = || base.iter().filter_map(|base| Some((base, head.iter().find(|head| head.load == base.load)?)));
    if let Some(reference @ Reference::Shift { .. }) = reference
        && let Some((base, head)) = pairs().find(|(base, _)| base.load == reference.load())
    {
        let values = log_ratios(reference, &base.trials, &head.trials);
        found.push(Differences { metric: "capacity".to_owned(), load: None, values });
    }
    for (base, head) in pairs() {
        let Some((of_base, of_head)) = goodput_logs(base).zip(goodput_logs(head)) else { continue };
        let of_seed = |seed: u64| of_head.iter().find(|(other, _)| *other == seed).map(|(_, log)| *log);
        let values = of_base.iter().filter_map(|(seed, log)| Some(of_seed(*seed)? - log)).collect();
        found.push(Differences { metric: "goodput".to_owned(), load: Some(base.load), values });
    }
    found
}

/// What the gate would say on this machine: for each figure, of 2,000 comparisons drawn from the differences and put through the
/// gate's own rule how many fail though nothing differs, and the smallest drop that fails in 80 % of them.
///
/// Which of two equal endpoints is called the base is arbitrary, so every difference counts with both signs; the true ratio of what
/// is drawn is 1. Equal arguments give equal answers.
pub fn calibrate(
    differences: &[Differences],
    margin: Share,
    looks: &[u32],
    seed: u64,
    must_match: BTreeMap<String, String>,
) -> Calibration {
    let rule = RatioRule::new(looks, margin.fraction());
    let rows = differences.iter().zip(0..).map(|(of, index)| row(of, &rule, margin, Words::new(seed, STREAM + index)));
    Calibration { must_match, margin, looks: looks.to_vec(), rows: rows.collect() }
}

fn row(of: &Differences, rule: &RatioRule, margin: Share, mut words: Words) -> CalibrationRow {
    let pairs = of.values.len();
    let mut row = CalibrationRow {
        metric: of.metric.clone(),
        load: of.load,
        pairs: pairs as u32,
        deviation: None,
        false_red: None,
        undecided: None,
        smallest_drop: None,
        note: None,
    };
    if pairs < 2 {
        row.note = Some("fewer than two pairs tell nothing".to_owned());
        return row;
    }
    let squares: f64 = of.values.iter().map(|value| value * value).sum();
    let deviation = (squares / pairs as f64).sqrt();
    let drawn: Vec<Vec<f64>> = (0..DRAWN)
        .map(|_| {
            let mut one = || {
                let value = of.values[words.next_below(pairs as u64) as usize];
                if words.next_below(2) == 0 { value } else { -value }
            };
            (0..rule.most()).map(|_| one()).collect()
        })
        .collect();
    // The gate holds the shifts of a capacity to three margins, and no other figure.
    let most = of.load.is_none().then_some(margin);
    let failing = |drop: f64| share_of(&drawn, rule, most, drop, Decision::Fail);
    row.deviation = Some(deviation);
    row.false_red = Share::from_ppm((failing(0.0) * 1e6).round() as u32);
    row.undecided = Share::from_ppm((share_of(&drawn, rule, most, 0.0, Decision::Undecided) * 1e6).round() as u32);
    row.smallest_drop = smallest_drop(failing);
    row.note = doubt(pairs, deviation);
    row
}

/// The share of the drawn comparisons with a decision, were the head's figure smaller by `drop`.
fn share_of(drawn: &[Vec<f64>], rule: &RatioRule, most: Option<Share>, drop: f64, wanted: Decision) -> f64 {
    let shifted = |values: &Vec<f64>| -> Vec<f64> {
        let one = |value: &f64| value + (-drop).ln_1p();
        values.iter().map(one).map(|value| most.map_or(value, |margin| clipped(value, margin.fraction()))).collect()
    };
    let is_so = |values: &&Vec<f64>| rule.look(&shifted(values)).is_some_and(|look| look.decision == wanted);
    drawn.iter().filter(is_so).count() as f64 / drawn.len() as f64
}

/// The smallest drop that is detected, to a tenth of a per cent; `None` beyond a half.
fn smallest_drop(failing: impl Fn(f64) -> f64) -> Option<Share> {
    if failing(LARGEST) < DETECTED {
        return None;
    }
    let (mut low, mut high) = (0.0, LARGEST);
    while high - low > 1e-3 {
        let middle = 0.5 * (low + high);
        if failing(middle) < DETECTED { low = middle } else { high = middle }
    }
    Share::from_ppm((high * 1e6).round() as u32)
}

/// How far the answer can be trusted.
fn doubt(pairs: usize, deviation: f64) -> Option<String> {
    let mut doubts = Vec::new();
    if pairs < LEAST_PAIRS {
        doubts.push(format!("{pairs} pairs tell little of rare differences; {LEAST_PAIRS} are the least that do"));
    }
    if deviation < LEAST_RATIO_DEVIATION {
        doubts.push("the pairs differ by less than 0.2 %, and the gate reckons with 0.2 %".to_owned());
    }
    (!doubts.is_empty()).then(|| doubts.join("; "))
}
