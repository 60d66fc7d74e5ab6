//! Why a generation ended, in one vocabulary.

/// The normalised word for a server's finish reason: `stop`, `length`, `tool_calls`, `content_filter`, or the server's own
/// word where there is no common one.
pub(super) fn normalised(raw: &str) -> &str {
    const WORDS: [(&str, &[&str]); 4] = [
        (
            "stop",
            &[
                "stop",
                "eos",
                "eos_token",
                "end_turn",
                "end_of_turn",
                "stop_sequence",
                "stop_token",
                "complete",
                "completed",
            ],
        ),
        (
            "length",
            &[
                "length",
                "max_tokens",
                "max_output_tokens",
                "max_length",
                "model_length",
                "max_new_tokens",
                "model_context_window_exceeded",
            ],
        ),
        ("tool_calls", &["tool_calls", "tool_call", "tool_use"]),
        ("content_filter", &["content_filter", "content_filtered", "safety", "refusal"]),
    ];
    let known = WORDS.iter().find(|(_, words)| words.iter().any(|word| word.eq_ignore_ascii_case(raw)));
    known.map_or(raw, |(common, _)| common)
}

/// Whether the server gave up rather than the model finished.
pub(super) fn is_failure(raw: &str) -> bool {
    ["abort", "aborted", "error"].iter().any(|word| word.eq_ignore_ascii_case(raw))
}

/// Whether a normalised reason means that the answer was cut by a limit or a filter, or for a reason that was not given.
pub(super) fn is_cut(normalised: &str) -> bool {
    matches!(normalised, "length" | "content_filter" | "incomplete")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_normalised_and_unknown_ones_kept() {
        for (raw, word) in [
            ("stop", "stop"),
            ("EOS", "stop"),
            ("max_tokens", "length"),
            ("function_call", "function_call"),
            ("Odd", "Odd"),
        ] {
            assert_eq!(normalised(raw), word);
        }
        assert!(is_failure("abort") && !is_failure("stop") && is_cut("length") && !is_cut("stop"));
    }
}
