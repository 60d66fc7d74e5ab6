//! Which scripted faults strike a request: a pure function of its number, its time and the seed.

use std::num::NonZeroU32;

use super::profile::{Fault, Nanos, Profile, What, When};
use crate::schedule::Words;

/// The first of the streams that decide shares; every fault has its own.
const SHARE_STREAM: u64 = 32;

/// How a reply ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Ending {
    /// As the protocol asks.
    #[default]
    Complete,
    /// With an error event after so many tokens.
    Error(u32),
    /// With the end of the connection after so many tokens.
    Cut(u32),
    /// With a reset connection after so many tokens.
    Reset(u32),
}

/// What happens to one request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Treatment {
    /// Refused with this status and these seconds to wait.
    pub(super) refuse: Option<(u16, Option<u32>)>,
    /// Never answered.
    pub(super) hang: bool,
    /// How the reply ends.
    pub(super) ending: Ending,
    /// Bytes at a time and the interval between them.
    pub(super) trickle: Option<(NonZeroU32, Nanos)>,
    /// No token counts.
    pub(super) no_usage: bool,
    /// Tokens of reasoning before the answer.
    pub(super) reasoning_tokens: u32,
    /// Tokens in each event, where it differs from the profile's.
    pub(super) tokens_per_chunk: Option<NonZeroU32>,
    /// What happens to the whole server when this request arrives.
    pub(super) server: Vec<ServerFault>,
}

/// What happens to the whole server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerFault {
    /// No work progresses for so many nanoseconds.
    Stall(u64),
    /// It starts over and is not ready for so many nanoseconds.
    Restart(u64),
    /// It ends with this exit code.
    Exit(u8),
}

/// The script of a profile.
#[derive(Debug)]
pub(super) struct FaultScript {
    faults: Vec<(Fault, Option<Words>)>,
}

impl FaultScript {
    pub(super) fn new(profile: &Profile) -> Self {
        let faults = profile.faults.iter().zip(SHARE_STREAM..).map(|(fault, stream)| {
            let words = fault.when.share.map(|_| Words::new(profile.seed, stream));
            (fault.clone(), words)
        });
        Self { faults: faults.collect() }
    }

    /// What happens to the request with this number, counted from 1, that arrives `at_ns` after the start. Must be asked
    /// once for each request, in the order of the numbers.
    pub(super) fn strike(&mut self, number: u64, at_ns: u64) -> Treatment {
        let mut treatment = Treatment::default();
        for (fault, words) in &mut self.faults {
            // Each request takes its word, whether it decides or not, so that a window of time does not shift the others.
            let drawn = match (fault.when.share, words) {
                (Some(share), Some(words)) => words.next_below(1_000_000) < u64::from(share.0.ppm()),
                _ => true,
            };
            if drawn && strikes(&fault.when, &fault.what, number, at_ns) {
                treatment.add(&fault.what);
            }
        }
        treatment
    }

    /// What happens to the server by time alone: when, in nanoseconds since the start, and what; sorted.
    pub(super) fn timed(&self) -> Vec<(u64, ServerFault)> {
        let mut timed: Vec<(u64, ServerFault)> = self
            .faults
            .iter()
            .filter(|(fault, _)| !fault.when.by_request())
            .filter_map(|(fault, _)| Some((fault.when.from.unwrap_or_default().0, server_fault(&fault.what)?)))
            .collect();
        timed.sort_by_key(|(at_ns, _)| *at_ns);
        timed
    }
}

fn strikes(when: &When, what: &What, number: u64, at_ns: u64) -> bool {
    // What strikes the server by time alone is not repeated for each request of that time.
    if server_fault(what).is_some() && !when.by_request() {
        return false;
    }
    let from_ns = when.from.unwrap_or_default().0;
    when.every.is_none_or(|n| number.is_multiple_of(n.get()))
        && when.at_request.is_none_or(|k| number == k.get())
        && at_ns >= from_ns
        && when.length.is_none_or(|length| at_ns - from_ns < length.0)
}

fn server_fault(what: &What) -> Option<ServerFault> {
    match what {
        What::Stall { length } => Some(ServerFault::Stall(length.0)),
        What::Restart { length } => Some(ServerFault::Restart(length.0)),
        What::Exit { code } => Some(ServerFault::Exit(*code)),
        _ => None,
    }
}

impl Treatment {
    fn add(&mut self, what: &What) {
        match *what {
            What::Refuse { status, retry_after } => self.refuse = Some((status, retry_after)),
            What::Hang => self.hang = true,
            What::ErrorInStream { after_tokens } => self.ending = Ending::Error(after_tokens),
            What::CutStream { after_tokens } => self.ending = Ending::Cut(after_tokens),
            What::Reset { after_tokens } => self.ending = Ending::Reset(after_tokens),
            What::SlowLoris { bytes, every } => self.trickle = Some((bytes, every)),
            What::NoUsage => self.no_usage = true,
            What::Reasoning { tokens } => self.reasoning_tokens = tokens,
            What::Bursty { tokens } => self.tokens_per_chunk = Some(tokens),
            What::Stall { .. } | What::Restart { .. } | What::Exit { .. } => self.server.extend(server_fault(what)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::profile::parse_profile;

    fn script(faults: &str) -> FaultScript {
        FaultScript::new(&parse_profile(&format!("seed: 3\nfaults:\n{faults}")).expect("a profile"))
    }

    #[test]
    fn requests_are_struck_by_number_share_and_time() {
        let mut script = script(
            "  - { when: { every: 3 }, what: { kind: refuse, status: 429, retry_after: 2 } }\n\
             \x20 - { when: { at_request: 4 }, what: hang }\n\
             \x20 - { when: { from: 5s, for: 1s }, what: no_usage }\n\
             \x20 - { when: { share: 10% }, what: { kind: cut_stream, after_tokens: 2 } }\n\
             \x20 - { when: { at_request: 2 }, what: { kind: stall, for: 1s } }\n",
        );
        let second = 1_000_000_000;
        let struck: Vec<Treatment> = (1..=1_000).map(|number| script.strike(number, number * second)).collect();
        assert_eq!(struck[2].refuse, Some((429, Some(2))));
        assert_eq!(struck.iter().filter(|t| t.refuse.is_some()).count(), 333);
        assert_eq!(struck.iter().enumerate().filter(|(_, t)| t.hang).map(|(i, _)| i).collect::<Vec<_>>(), [3]);
        assert_eq!(struck.iter().enumerate().filter(|(_, t)| t.no_usage).map(|(i, _)| i).collect::<Vec<_>>(), [4]);
        assert_eq!(struck[1].server, [ServerFault::Stall(second)]);
        let cut = struck.iter().filter(|t| t.ending == Ending::Cut(2)).count();
        assert!((70..=130).contains(&cut), "{cut} of 1000 at 10 %");
    }

    #[test]
    fn what_time_alone_does_to_the_server_is_listed_once() {
        let mut script = script(
            "  - { when: { from: 9s }, what: { kind: restart, for: 2s } }\n\
             \x20 - { when: { from: 5s }, what: { kind: stall, for: 1s } }\n",
        );
        assert_eq!(
            script.timed(),
            [(5_000_000_000, ServerFault::Stall(1_000_000_000)), (9_000_000_000, ServerFault::Restart(2_000_000_000))]
        );
        assert_eq!(script.strike(1, 10_000_000_000), Treatment::default());
    }
}
