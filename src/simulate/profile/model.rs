//! What a profile says: the service model, the queue, the shape of replies and the scripted faults.

use std::num::{NonZeroU32, NonZeroU64};

use schemars::JsonSchema;
use serde::Deserialize;

use super::text::{Nanos, SharePart};

/// A simulated endpoint. Every key has a default; the whole default serves at once and without limit worth naming.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Profile {
    /// The version of this format: 1.
    pub version: u32,
    /// The name under which `/v1/models` lists the model; requests may name any.
    pub name: String,
    /// The seed of everything that is left to chance: jitter, exponential service, shares of faults, texts.
    pub seed: u64,
    /// How requests are served.
    pub model: Model,
    /// How many may wait, and what the others get. Without it everyone may wait.
    pub queue: Option<Queue>,
    /// How prompt tokens are counted.
    pub prompt_tokens: PromptTokens,
    /// Tokens of a reply whose request names no `max_tokens`.
    pub output_tokens: NonZeroU32,
    /// Lengths that are drawn for each request, in place of what it says.
    pub lengths: DrawnLengths,
    /// Tokens in one event of a stream.
    pub tokens_per_chunk: NonZeroU32,
    /// How long after its start the endpoint answers 503, as a server that loads its weights does.
    pub ready_after: Nanos,
    /// What goes wrong, and when.
    pub faults: Vec<Fault>,
}

impl Default for Profile {
    fn default() -> Self {
        Self {
            version: 1,
            name: "simulated".to_owned(),
            seed: 0,
            model: Model::Batch(Batch {
                slots: NonZeroU32::MIN.saturating_add(1_023),
                step_base: Nanos(0),
                step_per_request: Nanos(0),
                prefill_per_token: Nanos(0),
                kv_tokens: None,
                jitter: SharePart::default(),
            }),
            queue: None,
            prompt_tokens: PromptTokens::PerWord(1.0),
            output_tokens: NonZeroU32::MIN.saturating_add(31),
            lengths: DrawnLengths::default(),
            tokens_per_chunk: NonZeroU32::MIN,
            ready_after: Nanos(0),
            faults: Vec::new(),
        }
    }
}

impl Profile {
    /// The same endpoint with every time of its model multiplied by `factor`, as a slower or faster machine would have it.
    pub fn slowed(mut self, factor: f64) -> Self {
        let times: Vec<&mut Nanos> = match &mut self.model {
            Model::Batch(batch) => {
                vec![&mut batch.step_base, &mut batch.step_per_request, &mut batch.prefill_per_token]
            }
            Model::Slots(slots) => {
                let service = match &mut slots.service {
                    None => Vec::new(),
                    Some(ServiceTime::Fixed(time) | ServiceTime::Exponential(time)) => vec![time],
                    Some(ServiceTime::Hyperexponential { short, long, .. }) => vec![short, long],
                };
                [&mut slots.first_token_after, &mut slots.per_token].into_iter().chain(service).collect()
            }
        };
        times.into_iter().for_each(|time| time.0 = (time.0 as f64 * factor).round() as u64);
        self
    }
}

/// How requests are served.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(tag = "kind")]
pub enum Model {
    /// Continuous batching: all admitted requests take each step together, and a step takes longer the more there are.
    Batch(Batch),
    /// Independent servers: each request has one for itself. With one token per reply this is a textbook queue.
    Slots(Slots),
}

/// Continuous batching. A step takes `step_base + step_per_request · n + prefill_per_token · (prompt tokens admitted in it)`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// Requests in the batch at once.
    pub slots: NonZeroU32,
    /// The part of a step that does not depend on the batch.
    #[serde(default)]
    pub step_base: Nanos,
    /// What each request in the batch adds to a step.
    #[serde(default)]
    pub step_per_request: Nanos,
    /// What each prompt token adds to the step in which its request is admitted.
    #[serde(default)]
    pub prefill_per_token: Nanos,
    /// The size of the key-value cache in tokens; a request reserves its prompt and its longest reply. Unlimited if absent.
    #[serde(default)]
    pub kv_tokens: Option<NonZeroU64>,
    /// The largest share by which chance shortens or lengthens a step.
    #[serde(default)]
    pub jitter: SharePart,
}

/// Independent servers.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Slots {
    /// Requests served at once.
    pub slots: NonZeroU32,
    /// From the start of service to the first token.
    #[serde(default)]
    pub first_token_after: Nanos,
    /// From each token to the next.
    #[serde(default)]
    pub per_token: Nanos,
    /// The whole service time, in place of the two above: the first token comes at its start, the last at its end, the
    /// others evenly between; a reply of one token comes at the end.
    #[serde(default)]
    pub service: Option<ServiceTime>,
    /// The largest share by which chance shortens or lengthens each of these times.
    #[serde(default)]
    pub jitter: SharePart,
}

/// A service time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ServiceTime {
    /// The same for every request.
    Fixed(Nanos),
    /// Exponential with this mean.
    Exponential(Nanos),
    /// One of two exponential times: most requests are short, and some are long.
    Hyperexponential {
        /// The mean of the short ones.
        short: Nanos,
        /// The mean of the long ones.
        long: Nanos,
        /// The share of the long ones.
        long_share: SharePart,
    },
}

/// Lengths that the seed draws for each request in order of arrival, so that no two need be alike.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DrawnLengths {
    /// Tokens of its prompt, whatever its words are.
    pub prompt: Option<Drawn>,
    /// Tokens of its reply; its `max_tokens` still cuts it.
    pub output: Option<Drawn>,
}

/// How a length is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Drawn {
    /// Every length between two, both included, is equally likely.
    Uniform {
        /// The shortest.
        from: NonZeroU32,
        /// The longest.
        to: NonZeroU32,
    },
    /// Exponential with this mean, in whole tokens.
    Exponential(NonZeroU32),
}

/// The waiting room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Queue {
    /// Requests that may wait; with all slots taken and as many waiting, the next is refused.
    pub limit: u32,
    /// The status of a refusal.
    #[serde(default = "unavailable")]
    pub status: u16,
}

/// How prompt tokens are counted.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PromptTokens {
    /// Tokens for each word of the prompt, rounded up.
    PerWord(f64),
    /// The same number for every prompt.
    Fixed(u32),
}

/// One scripted fault.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// When it strikes.
    pub when: When,
    /// What happens.
    pub what: What,
}

/// When a fault strikes: all that is written must hold, and something must be written. Requests are counted from 1 since
/// the start, time from the moment the endpoint listens.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct When {
    /// Every n-th request.
    pub every: Option<NonZeroU64>,
    /// The k-th request.
    pub at_request: Option<NonZeroU64>,
    /// This share of the requests, by the seed.
    pub share: Option<SharePart>,
    /// From this time on.
    pub from: Option<Nanos>,
    /// For so long.
    #[serde(rename = "for")]
    pub length: Option<Nanos>,
}

/// What happens.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[schemars(tag = "kind")]
pub enum What {
    /// No work progresses for a while; what is in service is suspended and resumes.
    Stall {
        /// How long.
        #[serde(rename = "for")]
        length: Nanos,
    },
    /// The request is refused.
    Refuse {
        /// With this status.
        #[serde(default = "unavailable")]
        status: u16,
        /// And these seconds in `Retry-After`.
        #[serde(default)]
        retry_after: Option<u32>,
    },
    /// An error event inside the stream.
    ErrorInStream {
        /// After so many tokens.
        after_tokens: u32,
    },
    /// The connection is closed in the middle of the stream.
    CutStream {
        /// After so many tokens.
        after_tokens: u32,
    },
    /// The connection is reset.
    Reset {
        /// After so many tokens.
        #[serde(default)]
        after_tokens: u32,
    },
    /// The bytes of the stream trickle.
    SlowLoris {
        /// So many bytes at a time.
        #[serde(default = "eight")]
        bytes: NonZeroU32,
        /// At this interval.
        #[serde(default = "twenty_milliseconds")]
        every: Nanos,
    },
    /// No token counts, even when asked for.
    NoUsage,
    /// The reply begins with reasoning.
    Reasoning {
        /// Of so many tokens.
        tokens: u32,
    },
    /// Several tokens in each event.
    Bursty {
        /// So many.
        tokens: NonZeroU32,
    },
    /// The request is accepted and never answered.
    Hang,
    /// The process ends.
    Exit {
        /// With this exit code.
        #[serde(default = "one")]
        code: u8,
    },
    /// The server starts over: connections are dropped, counters begin at zero, and it is not ready for a while.
    Restart {
        /// How long it is not ready.
        #[serde(rename = "for")]
        length: Nanos,
    },
}

fn unavailable() -> u16 {
    503
}

fn eight() -> NonZeroU32 {
    NonZeroU32::MIN.saturating_add(7)
}

fn twenty_milliseconds() -> Nanos {
    Nanos(20_000_000)
}

fn one() -> u8 {
    1
}

impl When {
    /// Whether requests trigger it; otherwise time alone does.
    pub fn by_request(&self) -> bool {
        self.every.is_some() || self.at_request.is_some() || self.share.is_some()
    }
}
