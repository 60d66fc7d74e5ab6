//! Containers as one reply shows them, and what that means against what was answered before.
//!
//! A container that does not run restarts no more, so that its counters stand still and would pass. Whatever makes a
//! sighting doubtful therefore makes a reading without an answer. One thing outranks that: a number that rose says that
//! something happened, and a failed reading would hide it. Then all is answered, and the doubt becomes part of `since`,
//! where it shows as a start anew.

use std::collections::BTreeMap;

use super::Answer;
use crate::record::Series;

/// One container.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sighting {
    /// Whose the number is.
    pub(super) of: String,
    /// Since when it counts.
    pub(super) since: String,
    /// The number.
    pub(super) value: f64,
    /// Why the number alone must not pass.
    pub(super) doubt: Option<String>,
}

/// The numbers that were answered last, by their owner.
#[derive(Debug, Default)]
pub(super) struct Answered(BTreeMap<String, f64>);

impl Answered {
    /// Whether nothing was answered yet.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The answer to what was seen.
    ///
    /// # Errors
    /// When something is doubtful and nothing rose, is doubtful and was never answered before, or is listed twice.
    pub(super) fn answer(&mut self, seen: Vec<Sighting>) -> Answer {
        let before = |sighting: &Sighting| self.0.get(&sighting.of).copied();
        let rose = |sighting: &Sighting| !self.is_empty() && sighting.value > before(sighting).unwrap_or_default();
        let has_risen = seen.iter().any(rose);
        let hides = |sighting: &&Sighting| sighting.doubt.is_some() && !(has_risen && before(sighting).is_some());
        if let Some(doubt) = seen.iter().find(hides).and_then(|sighting| sighting.doubt.clone()) {
            return Err(doubt);
        }
        let numbers: BTreeMap<String, f64> = seen.iter().map(|seen| (seen.of.clone(), seen.value)).collect();
        if numbers.len() < seen.len() {
            return Err("a container is listed twice".to_owned());
        }
        self.0 = numbers;
        Ok(seen.into_iter().map(series).collect())
    }
}

fn series(seen: Sighting) -> Series {
    let since = match seen.doubt {
        Some(doubt) => format!("{}; {doubt}", seen.since),
        None => seen.since,
    };
    Series { of: seen.of, since: Some(since), value: seen.value }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sighting(of: &str, value: f64, doubt: Option<&str>) -> Sighting {
        Sighting { of: of.to_owned(), since: "id".to_owned(), value, doubt: doubt.map(str::to_owned) }
    }

    fn told(of: &str, since: &str, value: f64) -> Series {
        Series { of: of.to_owned(), since: Some(since.to_owned()), value }
    }

    #[test]
    fn a_container_that_stands_still_is_no_answer() {
        let mut answered = Answered::default();
        assert_eq!(answered.answer(vec![sighting("a", 3.0, Some("a is paused"))]), Err("a is paused".to_owned()));
        assert_eq!(answered.answer(vec![sighting("a", 3.0, None)]), Ok(vec![told("a", "id", 3.0)]));
        assert_eq!(answered.answer(vec![sighting("a", 3.0, Some("a is paused"))]), Err("a is paused".to_owned()));
    }

    #[test]
    fn a_rise_is_answered_even_where_something_stands_still_and_that_shows_as_a_start_anew() {
        let mut answered = Answered::default();
        assert!(answered.answer(vec![sighting("a", 0.0, None), sighting("b", 0.0, None)]).is_ok());
        let seen = vec![sighting("a", 1.0, Some("a waits")), sighting("b", 0.0, Some("b waits"))];
        let answer = answered.answer(seen.clone());
        assert_eq!(answer, Ok(vec![told("a", "id; a waits", 1.0), told("b", "id; b waits", 0.0)]));
        assert_eq!(answered.answer(seen), Err("a waits".to_owned()), "it rose no further");
    }

    #[test]
    fn a_doubtful_newcomer_has_nothing_that_it_could_differ_from() {
        let mut answered = Answered::default();
        assert!(answered.answer(vec![sighting("a", 0.0, None)]).is_ok());
        let seen = vec![sighting("a", 1.0, None), sighting("b", 0.0, Some("b waits"))];
        assert_eq!(answered.answer(seen), Err("b waits".to_owned()));
    }

    #[test]
    fn an_owner_answers_once() {
        let twice = vec![sighting("a", 0.0, None), sighting("a", 1.0, None)];
        assert_eq!(Answered::default().answer(twice), Err("a container is listed twice".to_owned()));
    }
}
