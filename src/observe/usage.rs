//! Token counts, by the server's own `usage` alone.

use serde::Deserialize;

use super::lenient::{Maybe, Number};

/// A `usage` object as the OpenAI dialects and their relatives write it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct UsageBody {
    prompt_tokens: Number,
    completion_tokens: Number,
    input_tokens: Number,
    output_tokens: Number,
    total_tokens: Number,
    reasoning_tokens: Number,
    cached_tokens: Number,
    prompt_cache_hit_tokens: Number,
    prompt_tokens_details: Maybe<Details>,
    completion_tokens_details: Maybe<Details>,
    input_tokens_details: Maybe<Details>,
    output_tokens_details: Maybe<Details>,
    input_token_details: Maybe<Details>,
    output_token_details: Maybe<Details>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Details {
    cached_tokens: Number,
    reasoning_tokens: Number,
}

/// The counts of one `usage` object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Usage {
    /// Prompt tokens, cached ones included.
    pub(super) input: Option<i64>,
    /// Completion tokens.
    pub(super) output: Option<i64>,
    /// Prompt and completion tokens together.
    pub(super) total: Option<i64>,
    /// Reasoning tokens.
    pub(super) reasoning: Option<i64>,
    /// Cached prompt tokens.
    pub(super) cached: Option<i64>,
}

/// What the counts mean for the trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tokens {
    pub(super) input: Option<u64>,
    pub(super) output: Option<u64>,
    pub(super) reasoning: Option<u64>,
    pub(super) cached: Option<u64>,
    /// Some of the counts cannot be true.
    pub(super) contradiction: bool,
}

impl UsageBody {
    /// The counts; `None` when the object holds neither prompt nor completion tokens and so says nothing.
    pub(super) fn counts(&self) -> Option<Usage> {
        let detail = |of: &Maybe<Details>, pick: fn(&Details) -> Number| of.get().and_then(|d| pick(d).get());
        let (cached, reasoning) = (|d: &Details| d.cached_tokens, |d: &Details| d.reasoning_tokens);
        let usage = Usage {
            input: self.prompt_tokens.get().or(self.input_tokens.get()),
            output: self.completion_tokens.get().or(self.output_tokens.get()),
            total: self.total_tokens.get(),
            reasoning: detail(&self.completion_tokens_details, reasoning)
                .or_else(|| detail(&self.output_tokens_details, reasoning))
                .or_else(|| detail(&self.output_token_details, reasoning))
                .or(self.reasoning_tokens.get()),
            cached: detail(&self.prompt_tokens_details, cached)
                .or_else(|| detail(&self.input_tokens_details, cached))
                .or_else(|| detail(&self.input_token_details, cached))
                .or(self.prompt_cache_hit_tokens.get())
                .or(self.cached_tokens.get()),
        };
        (usage.input.is_some() || usage.output.is_some()).then_some(usage)
    }
}

impl Usage {
    /// Reads the counts next to what was seen. Reasoning is part of the completion, unless the total shows that it comes on
    /// top; no completion tokens next to output is unknown; a negative count is unknown, and so are counts that cannot be
    /// true together, for nobody can tell which of them is wrong.
    pub(super) fn tokens(self, has_output: bool) -> Tokens {
        let sum = |parts: [Option<i64>; 2]| parts[0].and_then(|a| a.checked_add(parts[1]?));
        let plain = sum([self.input, self.output]);
        let on_top = sum([plain, self.reasoning]).is_some_and(|sum| Some(sum) == self.total && Some(sum) != plain);
        let output = if on_top { sum([self.output, self.reasoning]) } else { self.output };
        let none_seen = has_output && output == Some(0);
        let negative =
            [self.input, self.output, self.total, self.reasoning, self.cached].into_iter().flatten().any(|n| n < 0);
        let more = |part: Option<i64>, whole: Option<i64>| part.zip(whole).is_some_and(|(part, whole)| part > whole);
        let reasoning_over = more(self.reasoning, output);
        let cached_over = more(self.cached, self.input);
        let sum_over = more(plain, self.total);
        let count =
            |number: Option<i64>, doubtful: bool| number.and_then(|n| u64::try_from(n).ok()).filter(|_| !doubtful);
        Tokens {
            input: count(self.input, cached_over || sum_over),
            output: count(output, none_seen || reasoning_over || sum_over),
            reasoning: count(self.reasoning, reasoning_over),
            cached: count(self.cached, cached_over),
            contradiction: none_seen || negative || reasoning_over || cached_over || sum_over,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Input, output, reasoning, cached and whether the counts contradict each other, next to output.
    #[track_caller]
    fn check(json: &str, expected: Option<[Option<u64>; 4]>, contradiction: bool) {
        let body: UsageBody = serde_json::from_str(json).unwrap_or_default();
        let tokens = body.counts().map(|usage| usage.tokens(true));
        assert_eq!(tokens.map(|t| [t.input, t.output, t.reasoning, t.cached]), expected, "{json}");
        assert_eq!(tokens.is_some_and(|t| t.contradiction), contradiction, "{json}");
    }

    #[test]
    fn counts_are_read_under_all_their_names() {
        check(
            r#"{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}"#,
            Some([Some(7), Some(3), None, None]),
            false,
        );
        check(r#"{"input_tokens":7,"output_tokens":3.0}"#, Some([Some(7), Some(3), None, None]), false);
        check(
            r#"{"prompt_tokens":40,"completion_tokens":45,"total_tokens":85,"prompt_tokens_details":{"cached_tokens":32},
                "completion_tokens_details":{"reasoning_tokens":42}}"#,
            Some([Some(40), Some(45), Some(42), Some(32)]),
            false,
        );
        check(r#"{"prompt_tokens":7,"completion_tokens":null}"#, Some([Some(7), None, None, None]), false);
        for nothing in ["{}", r#"{"total_tokens":4}"#, r#"{"prompt_tokens":"7","completion_tokens":2.5}"#] {
            check(nothing, None, false);
        }
    }

    #[test]
    fn reasoning_comes_on_top_only_when_the_total_shows_it() {
        let body = |total: u32| {
            format!(
                r#"{{"prompt_tokens":10,"completion_tokens":5,"total_tokens":{total},
                    "completion_tokens_details":{{"reasoning_tokens":4}}}}"#
            )
        };
        check(&body(15), Some([Some(10), Some(5), Some(4), None]), false);
        check(&body(19), Some([Some(10), Some(9), Some(4), None]), false);
        check(&body(25), Some([Some(10), Some(5), Some(4), None]), false);
    }

    #[test]
    fn counts_that_cannot_be_true_are_unknown_and_flagged() {
        check(r#"{"prompt_tokens":7,"completion_tokens":0}"#, Some([Some(7), None, None, None]), true);
        check(r#"{"prompt_tokens":7,"completion_tokens":-1}"#, Some([Some(7), None, None, None]), true);
        check(r#"{"prompt_tokens":7,"completion_tokens":3,"total_tokens":9}"#, Some([None; 4]), true);
        check(
            r#"{"prompt_tokens":7,"completion_tokens":3,"reasoning_tokens":4,"cached_tokens":8}"#,
            Some([None; 4]),
            true,
        );
        check(
            r#"{"prompt_tokens":7,"completion_tokens":3,"reasoning_tokens":4,"cached_tokens":6}"#,
            Some([Some(7), None, None, Some(6)]),
            true,
        );
    }
}
