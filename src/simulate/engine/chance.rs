//! Times and lengths that are left to chance, each from random words of a stream of its own.

use crate::schedule::Words;
use crate::simulate::profile::{Drawn, LONGEST_REPLY, Profile, ServiceTime};

/// The streams of lengths: those of the reference's engine with drawn lengths (method, section 3.1).
const OUTPUT_STREAM: u64 = 2;
const PROMPT_STREAM: u64 = 3;

/// A uniform number in [0, 1): the top 53 bits of a word, so that nothing is rounded.
fn uniform(word: u64) -> f64 {
    (word >> 11) as f64 / (1u64 << 53) as f64
}

/// An exponential time of the given mean from one random word, by inverse transform: `−ln(1 − u) · mean`.
fn exponential(word: u64, mean_ns: u64) -> u64 {
    (-(-uniform(word)).ln_1p() * mean_ns as f64) as u64
}

/// The service time of the next request.
pub(super) fn service_ns(service: ServiceTime, words: &mut Words) -> u64 {
    match service {
        ServiceTime::Fixed(time) => time.0,
        ServiceTime::Exponential(mean) => exponential(words.next_word(), mean.0),
        ServiceTime::Hyperexponential { short, long, long_share } => {
            let is_long = words.next_below(1_000_000) < u64::from(long_share.0.ppm());
            exponential(words.next_word(), if is_long { long.0 } else { short.0 })
        }
    }
}

/// Lengths of one request, in tokens; `None` where they are not drawn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lengths {
    /// Of its prompt.
    pub prompt: Option<u32>,
    /// Of its reply.
    pub output: Option<u32>,
}

/// Draws the lengths of requests, one word for each in the order in which they arrive.
#[derive(Debug)]
pub struct LengthSource {
    prompt: Option<(Drawn, Words)>,
    output: Option<(Drawn, Words)>,
}

impl LengthSource {
    /// The lengths of a profile, from the first request.
    pub fn new(profile: &Profile) -> Self {
        let source = |drawn: Option<Drawn>, stream| drawn.map(|drawn| (drawn, Words::new(profile.seed, stream)));
        Self {
            prompt: source(profile.lengths.prompt, PROMPT_STREAM),
            output: source(profile.lengths.output, OUTPUT_STREAM),
        }
    }

    /// Those of the next request.
    pub fn next_lengths(&mut self) -> Lengths {
        let next = |source: &mut Option<(Drawn, Words)>| source.as_mut().map(|(drawn, words)| length(*drawn, words));
        Lengths { prompt: next(&mut self.prompt), output: next(&mut self.output) }
    }
}

/// One length, at least 1 and at most [`LONGEST_REPLY`].
fn length(drawn: Drawn, words: &mut Words) -> u32 {
    match drawn {
        Drawn::Uniform { from, to } => {
            let span = u64::from(to.get() - from.get()) + 1;
            from.get() + words.next_below(span) as u32
        }
        Drawn::Exponential(mean) => {
            // Tokens are whole: the geometric distribution is the one without memory, and this is its mean exactly.
            let stays = (-1.0 / f64::from(mean.get())).ln_1p();
            let tokens = ((-uniform(words.next_word())).ln_1p() / stays).ceil();
            tokens.clamp(1.0, f64::from(LONGEST_REPLY)) as u32
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::simulate::profile::parse_profile;

    fn drawn(lengths: &serde_json::Value, count: usize) -> Vec<Lengths> {
        let profile = json!({ "seed": 1, "lengths": lengths });
        let mut source = LengthSource::new(&parse_profile(&profile.to_string()).expect("a profile"));
        (0..count).map(|_| source.next_lengths()).collect()
    }

    #[test]
    fn exponential_lengths_have_their_mean_and_no_memory() {
        let of = |mean: u32| -> Vec<u32> {
            drawn(&json!({ "output": { "exponential": mean } }), 40_000)
                .iter()
                .map(|one| one.output.expect("drawn"))
                .collect()
        };
        let lengths = of(400);
        let mean = lengths.iter().map(|l| f64::from(*l)).sum::<f64>() / 40_000.0;
        // Four standard errors of a geometric mean of 400.
        assert!((mean - 400.0).abs() < 4.0 * 400.0 / 200.0, "{mean}");
        let beyond = |tokens: u32| lengths.iter().filter(|l| **l > tokens).count() as f64;
        let (once, twice) = (beyond(300) / 40_000.0, beyond(600) / beyond(300));
        assert!((once - twice).abs() < 0.02, "{once} {twice}");
        assert!(of(1).iter().all(|length| *length == 1));
    }

    #[test]
    fn what_is_not_drawn_stays_as_it_was_asked() {
        let lengths = drawn(&json!({ "prompt": { "uniform": { "from": 5, "to": 7 } } }), 200);
        assert!(lengths.iter().all(|one| one.output.is_none() && (5..=7).contains(&one.prompt.unwrap_or(0))));
        assert_eq!(drawn(&json!({}), 1), [Lengths::default()]);
    }

    #[test]
    fn a_mixture_of_two_exponentials_has_their_mean() {
        let profile = json!({ "model": { "kind": "slots", "slots": 1,
            "service": { "hyperexponential": { "short": "50ms", "long": "550ms", "long_share": "10%" } } } });
        let profile = parse_profile(&profile.to_string()).expect("a profile");
        let crate::simulate::profile::Model::Slots(slots) = profile.model else { panic!("slots") };
        let mut words = Words::new(3, 16);
        let service = slots.service.expect("a service time");
        let mean = (0..40_000).map(|_| service_ns(service, &mut words) as f64).sum::<f64>() / 40_000.0;
        // 0.9 · 50 ms + 0.1 · 550 ms, with a standard deviation of 228 ms.
        assert!((mean / 1e6 - 100.0).abs() < 4.0 * 228.0 / 200.0, "{mean}");
    }
}
