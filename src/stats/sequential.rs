//! Limits for looking at a trial more than once, with the error spent in proportion to the requests seen (method,
//! section 6, "looking twice").

use super::beta::binomial_probability;

/// The limits of each look; the two sides are planned apart, so each error holds whether or not the other side stops.
#[derive(Debug, Clone, PartialEq)]
pub struct SequentialPlan {
    /// The most violations that PASS at each look; `None` where not even none does.
    pub pass_at_most: Vec<Option<u64>>,
    /// Chance of a wrong PASS at the exact budget.
    pub pass_error: f64,
    /// The fewest violations that FAIL at each look; `None` where no count does.
    pub fail_at_least: Vec<Option<u64>>,
    /// Chance of a wrong FAIL at the exact budget.
    pub fail_error: f64,
}

/// The plan for looks at ascending numbers of requests; time grows with the square of the expected violations.
pub fn sequential_plan(looks: &[u64], budget: f64, alpha: f64) -> SequentialPlan {
    let (pass_at_most, pass_error) = spend(looks, budget, alpha, pass_limit);
    let (fail_at_least, fail_error) = spend(looks, budget, alpha, fail_limit);
    SequentialPlan { pass_at_most, pass_error, fail_at_least, fail_error }
}

/// Walks the distribution of the violations from look to look; `limit` cuts off what is decided there.
fn spend(
    looks: &[u64],
    budget: f64,
    alpha: f64,
    limit: fn(&mut [f64], f64) -> (Option<u64>, f64),
) -> (Vec<Option<u64>>, f64) {
    let planned = looks.last().copied().unwrap_or(0);
    let most = relevant_violations(planned, budget);
    let mut open = vec![1.0];
    let (mut limits, mut spent, mut seen) = (Vec::new(), 0.0, 0);
    for &look in looks {
        open = convolve(&open, look.saturating_sub(seen), budget, most);
        seen = look;
        let (at, used) = limit(&mut open, alpha * look as f64 / planned as f64 - spent);
        spent += used;
        limits.push(at);
    }
    (limits, spent)
}

/// A count that is not exceeded but with a chance far below any level that is tested.
fn relevant_violations(n: u64, budget: f64) -> usize {
    let mean = n as f64 * budget;
    (mean + 12.0 * mean.sqrt() + 40.0).min(n as f64) as usize
}

/// The distribution after `more` further requests, up to `most` violations.
fn convolve(open: &[f64], more: u64, budget: f64, most: usize) -> Vec<f64> {
    let step: Vec<f64> = (0..=more.min(most as u64)).map(|k| binomial_probability(more, k, budget)).collect();
    let mut sum = vec![0.0; (open.len() + step.len() - 1).min(most + 1)];
    for (i, chance) in open.iter().enumerate() {
        for (slot, probability) in sum[i.min(most)..].iter_mut().zip(&step) {
            *slot += chance * probability;
        }
    }
    sum
}

/// Takes the fewest violations away while their chance fits into `allowed`.
fn pass_limit(open: &mut [f64], allowed: f64) -> (Option<u64>, f64) {
    let (taken, used) = take_while_allowed(open.iter_mut(), allowed);
    ((taken as u64).checked_sub(1), used)
}

/// Takes the most violations away while their chance fits into `allowed`.
fn fail_limit(open: &mut [f64], allowed: f64) -> (Option<u64>, f64) {
    let count = open.len();
    let (taken, used) = take_while_allowed(open.iter_mut().rev(), allowed);
    ((taken > 0).then_some((count - taken) as u64), used)
}

fn take_while_allowed<'a>(chances: impl Iterator<Item = &'a mut f64>, allowed: f64) -> (usize, f64) {
    let (mut taken, mut used) = (0, 0.0);
    for chance in chances {
        if used + *chance > allowed {
            break;
        }
        used += *chance;
        *chance = 0.0;
        taken += 1;
    }
    (taken, used)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn limits_and_errors_match_the_reference() {
        let file: Value =
            serde_json::from_str(include_str!("../../tests/fixtures/reference/percentile_evidence.json")).unwrap();
        let counts = |v: &Value| v.as_array().unwrap().iter().map(Value::as_u64).collect::<Vec<_>>();
        for case in file["group_sequential"].as_array().unwrap() {
            let looks: Vec<u64> = counts(&case["looks"]).into_iter().flatten().collect();
            let plan = sequential_plan(&looks, case["budget"].as_f64().unwrap(), case["alpha"].as_f64().unwrap());
            assert_eq!(plan.pass_at_most, counts(&case["pass_if_violations_at_most"]), "{case}");
            assert_eq!(plan.fail_at_least, counts(&case["fail_if_violations_at_least"]), "{case}");
            assert!((plan.pass_error - case["pass_error"].as_f64().unwrap()).abs() < 1e-8, "{plan:?}");
            assert!((plan.fail_error - case["fail_error"].as_f64().unwrap()).abs() < 1e-8, "{plan:?}");
        }
    }
}
