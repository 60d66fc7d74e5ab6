//! The requests of one trial, from their arrival at the model to their record.

use std::collections::VecDeque;

use crate::contract::RequestLimits;
use crate::observe::{Outcome, OutputKind};
use crate::record::{Hopeless, RequestRecord, TrialAccumulator, grade};
use crate::schedule::{Schedule, Segment};
use crate::simulate::engine::{Emission, Engine, Job, LengthSource};
use crate::simulate::faults::{Ending, FaultScript, ServerFault};
use crate::simulate::profile::{Profile, PromptTokens};

/// The status of a refusal where the profile names none.
const UNAVAILABLE: u16 = 503;

/// What is known of one request under way.
#[derive(Debug, Clone, Copy)]
struct Flight {
    prompt_tokens: u32,
    output_tokens: u32,
    ending: Ending,
    has_usage: bool,
    first_ns: Option<u64>,
    ended: bool,
}

impl Flight {
    /// Tokens after which its client has seen the end of the reply, whatever that is.
    fn tokens_seen(&self) -> u32 {
        match self.ending {
            Ending::Complete => self.output_tokens,
            // The head of a reply waits for its first token.
            Ending::Error(after) | Ending::Cut(after) | Ending::Reset(after) => after.clamp(1, self.output_tokens),
        }
    }

    fn outcome(&self) -> Outcome {
        match self.ending {
            Ending::Complete => Outcome::Ok,
            Ending::Error(_) => Outcome::StreamError,
            Ending::Cut(_) | Ending::Reset(_) => Outcome::TruncatedStream,
        }
    }
}

/// What a trial left behind.
#[derive(Debug)]
pub(super) struct Flown {
    pub(super) accumulator: TrialAccumulator,
    pub(super) given_up: bool,
    /// From its start to the end of its last request.
    pub(super) took_ns: u64,
}

/// One trial under way.
pub(super) struct Flights<'a> {
    trial: u32,
    profile: &'a Profile,
    schedule: &'a Schedule,
    limits: RequestLimits,
    hopeless: Option<Hopeless>,
    engine: Engine,
    script: FaultScript,
    lengths: LengthSource,
    /// Stalls to come, by time.
    stalls: VecDeque<(u64, u64)>,
    /// By arrival, as far as they have come.
    flights: Vec<Flight>,
    emissions: Vec<Emission>,
    accumulator: TrialAccumulator,
    /// Requests of the window with an outcome.
    decided: u64,
    is_hopeless: bool,
    last_ns: u64,
}

impl<'a> Flights<'a> {
    pub(super) fn new(
        trial: u32,
        profile: &'a Profile,
        schedule: &'a Schedule,
        limits: RequestLimits,
        hopeless: Option<Hopeless>,
    ) -> Self {
        let script = FaultScript::new(profile);
        let stalls = script.timed().into_iter().filter_map(|(at_ns, fault)| match fault {
            ServerFault::Stall(length_ns) => Some((at_ns, length_ns)),
            ServerFault::Restart(_) | ServerFault::Exit(_) => None,
        });
        let mut engine = Engine::new(profile);
        // A reply that a fault ends early ends with a token in its middle.
        if profile.faults.is_empty() {
            engine.tell_ends_only();
        }
        Self {
            trial,
            profile,
            schedule,
            limits,
            hopeless,
            engine,
            stalls: stalls.collect(),
            script,
            lengths: LengthSource::new(profile),
            flights: Vec::with_capacity(schedule.arrivals().len()),
            emissions: Vec::new(),
            accumulator: TrialAccumulator::default(),
            decided: 0,
            is_hopeless: false,
            last_ns: 0,
        }
    }

    /// Sends every arrival at its time until the window is decided or cannot hold any more, and waits for what is open.
    pub(super) fn fly(mut self, window: u64) -> Flown {
        for (index, arrival) in self.schedule.arrivals().iter().enumerate() {
            if let Some(before_ns) = arrival.offset_ns.checked_sub(1) {
                self.advance(before_ns);
            }
            if self.decided >= window || self.is_hopeless {
                break;
            }
            self.arrive(index, arrival.offset_ns);
        }
        self.advance(u64::MAX - 1);
        let given_up = self.is_hopeless && self.decided < window;
        Flown { accumulator: self.accumulator, given_up, took_ns: self.last_ns }
    }

    fn arrive(&mut self, index: usize, at_ns: u64) {
        let treatment = self.script.strike(index as u64 + 1, at_ns);
        let drawn = self.lengths.next_lengths();
        for fault in &treatment.server {
            if let ServerFault::Stall(length_ns) = fault {
                self.advance(at_ns);
                self.engine.stall(at_ns, *length_ns);
            }
        }
        let flight = Flight {
            prompt_tokens: drawn.prompt.unwrap_or_else(|| prompt_tokens(self.profile)),
            output_tokens: drawn.output.unwrap_or(self.profile.output_tokens.get()),
            ending: treatment.ending,
            has_usage: !treatment.no_usage,
            first_ns: None,
            ended: false,
        };
        self.flights.push(flight);
        let job = Job { id: index as u64, prompt_tokens: flight.prompt_tokens, output_tokens: flight.output_tokens };
        if let Some((status, _)) = treatment.refuse {
            self.refused(index, at_ns, status);
        } else if self.engine.arrive(at_ns, job).is_err() {
            let status = self.profile.queue.map_or(UNAVAILABLE, |queue| queue.status);
            self.refused(index, at_ns, status);
        }
    }

    /// Lets everything happen up to and at `to_ns`, one instant after the other, so that a reply that ends early frees its
    /// place at once.
    fn advance(&mut self, to_ns: u64) {
        loop {
            let event = self.engine.next_event().filter(|at_ns| *at_ns <= to_ns);
            let stall = self.stalls.front().copied().filter(|(at_ns, _)| *at_ns <= to_ns);
            match (event, stall) {
                (Some(at_ns), stall) if stall.is_none_or(|(stall_ns, _)| at_ns <= stall_ns) => {
                    self.engine.advance(at_ns, &mut self.emissions);
                    self.take_emissions();
                }
                (_, Some((at_ns, length_ns))) => {
                    self.stalls.pop_front();
                    self.engine.advance(at_ns, &mut self.emissions);
                    self.engine.stall(at_ns, length_ns);
                }
                _ => break,
            }
        }
    }

    fn take_emissions(&mut self) {
        let mut emissions = std::mem::take(&mut self.emissions);
        for emission in emissions.drain(..) {
            let index = emission.id as usize;
            let Some(flight) = self.flights.get_mut(index).filter(|flight| !flight.ended) else { continue };
            flight.first_ns.get_or_insert(emission.at_ns);
            if emission.token + 1 >= flight.tokens_seen() {
                flight.ended = true;
                if !emission.last {
                    self.engine.cancel(emission.id);
                }
                self.ended(index, emission.at_ns);
            }
        }
        self.emissions = emissions;
    }

    /// A reply has come to its end.
    fn ended(&mut self, index: usize, at_ns: u64) {
        let flight = self.flights[index];
        let tokens = |count: u32| flight.has_usage.then(|| u64::from(count));
        let ok = flight.outcome() == Outcome::Ok;
        let record = RequestRecord {
            sent_ns: Some(self.schedule.arrivals()[index].offset_ns),
            first_output_ns: flight.first_ns,
            first_answer_ns: flight.first_ns,
            last_output_ns: Some(at_ns),
            outcome: flight.outcome(),
            status: Some(200),
            first_output_kind: Some(OutputKind::Content),
            output_chunks: Some(flight.tokens_seen()),
            input_tokens: tokens(flight.prompt_tokens).filter(|_| ok),
            output_tokens: tokens(flight.output_tokens).filter(|_| ok),
            truncated: Some(false),
            answerless: Some(false),
            ..self.blank(index, at_ns)
        };
        self.finished(record);
    }

    fn refused(&mut self, index: usize, at_ns: u64, status: u16) {
        self.flights[index].ended = true;
        let record = RequestRecord { sent_ns: Some(at_ns), status: Some(status), ..self.blank(index, at_ns) };
        self.finished(record);
    }

    /// A request that came to nothing.
    fn blank(&self, index: usize, finished_ns: u64) -> RequestRecord {
        let arrival = self.schedule.arrivals()[index];
        RequestRecord {
            trial: self.trial,
            arrival: index as u64,
            segment: arrival.segment,
            case: String::new(),
            scheduled_ns: arrival.offset_ns,
            speech_end_ns: None,
            sent_ns: None,
            first_output_ns: None,
            first_answer_ns: None,
            first_audio_ns: None,
            last_output_ns: None,
            finished_ns: Some(finished_ns),
            outcome: Outcome::HttpError,
            status: None,
            error: None,
            first_output_kind: None,
            output_chunks: None,
            chunk_gaps_ns: None,
            audio_ns: None,
            underrun_ns: None,
            input_tokens: None,
            output_tokens: None,
            reasoning_tokens: None,
            finish_reason: None,
            warnings: Vec::new(),
            truncated: None,
            answerless: None,
            good: None,
            missed: None,
        }
    }

    fn finished(&mut self, mut record: RequestRecord) {
        grade(&self.limits, &mut record);
        self.accumulator.push(&record);
        self.decided += u64::from(record.segment == Segment::Window);
        self.is_hopeless |= self.hopeless.as_mut().is_some_and(|hopeless| hopeless.push(&record));
        self.last_ns = self.last_ns.max(record.finished_ns.unwrap_or(0));
    }
}

/// Tokens of a prompt of one word.
fn prompt_tokens(profile: &Profile) -> u32 {
    match profile.prompt_tokens {
        PromptTokens::Fixed(tokens) => tokens,
        PromptTokens::PerWord(tokens) => tokens.ceil() as u32,
    }
}
