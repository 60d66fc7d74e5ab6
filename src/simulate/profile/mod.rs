//! Profiles of simulated endpoints: YAML or JSON to a [`Profile`] in which every number makes sense.

mod model;
mod text;
mod yaml;

pub use model::{
    Batch, Drawn, DrawnLengths, Fault, Model, Profile, PromptTokens, Queue, ServiceTime, Slots, What, When,
};
pub use text::{Nanos, SharePart};

/// A profile that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct ProfileError {
    /// Where: line and column, or the key.
    pub place: String,
    /// What is wrong and what to write instead.
    pub problem: String,
}

/// Reads a profile from YAML or JSON.
///
/// # Errors
/// The first fault: text that is not YAML, an unknown key, a value out of its bounds, a fault that never strikes.
pub fn parse_profile(text: &str) -> Result<Profile, ProfileError> {
    let profile: Profile = yaml::read(text)?;
    check(&profile)?;
    Ok(profile)
}

/// The JSON schema of a profile.
pub fn profile_schema() -> schemars::Schema {
    schemars::schema_for!(Profile)
}

fn fault_at(place: impl Into<String>, problem: impl Into<String>) -> ProfileError {
    ProfileError { place: place.into(), problem: problem.into() }
}

/// The most tokens that a reply may have, so that no request can ask for unbounded memory.
pub(super) const LONGEST_REPLY: u32 = 131_072;

/// The rules that concern more than one value, or that a type does not hold.
fn check(profile: &Profile) -> Result<(), ProfileError> {
    if profile.version != 1 {
        return Err(fault_at("version", format!("version {} is not known; write `version: 1`", profile.version)));
    }
    if let PromptTokens::PerWord(tokens) = profile.prompt_tokens
        && !(0.0..=1000.0).contains(&tokens)
    {
        return Err(fault_at("prompt_tokens.per_word", "not a number of tokens; write one between 0 and 1000"));
    }
    if profile.output_tokens.get() > LONGEST_REPLY {
        return Err(fault_at("output_tokens", format!("more than {LONGEST_REPLY} tokens; write fewer")));
    }
    check_drawn("lengths.prompt", profile.lengths.prompt)?;
    check_drawn("lengths.output", profile.lengths.output)?;
    if let Some(queue) = profile.queue {
        check_refusal("queue.status", queue.status)?;
    }
    if let Model::Slots(slots) = &profile.model {
        let paced = slots.first_token_after != Nanos(0) || slots.per_token != Nanos(0);
        if slots.service.is_some() && paced {
            return Err(fault_at(
                "model.service",
                "`service` is the whole service time; write either it or `first_token_after` and `per_token`",
            ));
        }
    }
    profile.faults.iter().enumerate().try_for_each(|(index, fault)| check_fault(index, fault))
}

fn check_drawn(place: &str, drawn: Option<Drawn>) -> Result<(), ProfileError> {
    match drawn {
        Some(Drawn::Uniform { from, to }) if from > to => {
            Err(fault_at(place, format!("from {from} to {to} is no range; write the shortest first")))
        }
        Some(Drawn::Uniform { to: longest, .. } | Drawn::Exponential(longest)) if longest.get() > LONGEST_REPLY => {
            Err(fault_at(place, format!("more than {LONGEST_REPLY} tokens; write fewer")))
        }
        _ => Ok(()),
    }
}

fn check_fault(index: usize, fault: &Fault) -> Result<(), ProfileError> {
    let place = |key: &str| format!("faults[{index}].{key}");
    let when = &fault.when;
    if *when == When::default() {
        return Err(fault_at(place("when"), "never strikes; write `every`, `at_request`, `share`, `from` or `for`"));
    }
    if let What::Refuse { status, .. } = fault.what {
        check_refusal(&place("what.status"), status)?;
    }
    let once = matches!(fault.what, What::Stall { .. } | What::Exit { .. } | What::Restart { .. });
    if once && !when.by_request() && when.length.is_some() {
        return Err(fault_at(
            place("when.for"),
            "this fault strikes once; write `from` alone, or count requests with `every`, `at_request` or `share`",
        ));
    }
    Ok(())
}

fn check_refusal(place: &str, status: u16) -> Result<(), ProfileError> {
    if (400..=599).contains(&status) {
        return Ok(());
    }
    Err(fault_at(place, format!("{status} is not a refusal; write a status from 400 to 599, as in 503")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_profile_is_read() {
        let profile = parse_profile(
            r#"
version: 1
name: small
seed: 7
model: { kind: batch, slots: 8, step_base: 14ms, step_per_request: 500us, prefill_per_token: 20us, kv_tokens: 4096, jitter: 5% }
queue: { limit: 20, status: 429 }
prompt_tokens: { per_word: 1.3 }
output_tokens: 64
tokens_per_chunk: 2
ready_after: 2s
faults:
  - { when: { every: 10 }, what: { kind: refuse, status: 429, retry_after: 1 } }
  - { when: { share: 5%, from: 1s, for: 2s }, what: { kind: cut_stream, after_tokens: 3 } }
  - { when: { at_request: 3 }, what: hang }
  - { when: { from: 5s }, what: { kind: stall, for: 2s } }
"#,
        )
        .expect("a profile");
        assert_eq!((profile.name.as_str(), profile.seed, profile.ready_after), ("small", 7, Nanos(2_000_000_000)));
        let Model::Batch(batch) = &profile.model else { panic!("a batch") };
        assert_eq!((batch.slots.get(), batch.step_base, batch.jitter.0.ppm()), (8, Nanos(14_000_000), 50_000));
        assert_eq!(profile.queue, Some(Queue { limit: 20, status: 429 }));
        assert_eq!(profile.faults[2].what, What::Hang);
        assert_eq!(profile.faults[3].what, What::Stall { length: Nanos(2_000_000_000) });
    }

    #[test]
    fn json_service_times_and_an_empty_text_are_profiles_too() {
        let profile =
            parse_profile(r#"{"model":{"kind":"slots","slots":1,"service":{"exponential":"100ms"}}}"#).expect("JSON");
        let Model::Slots(slots) = &profile.model else { panic!("slots") };
        assert_eq!(slots.service, Some(ServiceTime::Exponential(Nanos(100_000_000))));
        assert_eq!(parse_profile("# nothing\n").expect("defaults"), Profile::default());
    }

    #[test]
    fn every_fault_has_its_place_and_a_next_step() {
        for (text, expected) in [
            ("nam: x", "line 1, column 1: unknown key `nam`; did you mean `name`?"),
            (
                "seed: 1\nmodel:\n  kind: batch\n  slots: 8\n  step_base: 5",
                "line 5, column 14: invalid type: integer `5`, expected a duration as in `20ms`",
            ),
            (
                "model: { kind: batch, slots: 0 }",
                "line 1, column 30: invalid value: integer `0`, expected a nonzero u32",
            ),
            ("model: { kind: btch, slots: 1 }", "line 1, column 16: unknown kind `btch`; did you mean `batch`?"),
            ("model: { kind: batch }", "line 1, column 8: missing field `slots`"),
            ("model: { slots: 3 }", "line 1, column 8: `kind` is missing; write `kind:` with one of batch, slots"),
            (
                "model: { kind: slots, slots: 1, service: { fixd: 2s } }",
                "line 1, column 44: unknown kind `fixd`; did you mean `fixed`?",
            ),
            ("prompt_tokens: 4", "line 1, column 16: not one choice; write one of per_word, fixed and its value"),
            (
                "faults: [{ when: {}, what: hang }]",
                "faults[0].when: never strikes; write `every`, `at_request`, `share`, `from` or `for`",
            ),
            (
                "faults: [{ when: { every: 2 }, what: { kind: hang, for: 2s } }]",
                "line 1, column 52: unknown key `for`; `hang` takes none",
            ),
            (
                "queue: { limit: 2, status: 200 }",
                "queue.status: 200 is not a refusal; write a status from 400 to 599, as in 503",
            ),
            ("output_tokens: 200000", "output_tokens: more than 131072 tokens; write fewer"),
            (
                "lengths: { output: { uniform: { from: 7, to: 5 } } }",
                "lengths.output: from 7 to 5 is no range; write the shortest first",
            ),
            ("lengths: { prompt: { exponential: 200000 } }", "lengths.prompt: more than 131072 tokens; write fewer"),
            ("version: 2", "version: version 2 is not known; write `version: 1`"),
            ("seed: 1\nseed: 2", "line 2, column 1: duplicated key in mapping"),
            (
                "prompt_tokens: { per_word: .nan }",
                "prompt_tokens.per_word: not a number of tokens; write one between 0 and 1000",
            ),
            ("a: 1\n---\nb: 2", "line 3, column 1: a second document; a profile is one"),
        ] {
            assert_eq!(parse_profile(text).expect_err(text).to_string(), expected, "{text}");
        }
        let deep = format!("{}1", "[".repeat(50_000));
        assert!(parse_profile(&deep).is_err());
    }

    #[test]
    fn the_schema_accepts_what_the_parser_accepts() {
        let schema = serde_json::to_value(profile_schema()).expect("a schema");
        let validator = jsonschema::validator_for(&schema).expect("a valid schema");
        for (valid, profile) in [
            (true, serde_json::json!({ "model": { "kind": "batch", "slots": 8, "step_base": "14ms" } })),
            (true, serde_json::json!({ "faults": [{ "when": { "every": 2 }, "what": { "kind": "hang" } }] })),
            (true, serde_json::json!({ "prompt_tokens": { "fixed": 12 } })),
            (false, serde_json::json!({ "model": { "kind": "batch", "slots": 8, "step_base": 14 } })),
            (false, serde_json::json!({ "modle": {} })),
        ] {
            assert_eq!(validator.is_valid(&profile), valid, "{profile}");
        }
    }
}
