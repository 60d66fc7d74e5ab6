//! The texts of a reply, kept where they were asked for and within a limit.

use super::limits;
use super::trace::{ReplyTexts, ToolCall};

/// Texts as they grow. What goes over the limit of all together is dropped.
#[derive(Debug)]
pub(super) struct Texts {
    kept: ReplyTexts,
    room: usize,
}

impl Default for Texts {
    fn default() -> Self {
        Self { kept: ReplyTexts::default(), room: limits::TEXT }
    }
}

impl Texts {
    /// A piece of the answer of `choice`.
    pub(super) fn content(&mut self, choice: usize, piece: &str) {
        let by_choice = &mut self.kept.by_choice;
        if by_choice.len() <= choice {
            by_choice.resize_with(choice + 1, String::new);
        }
        append(&mut by_choice[choice], piece, &mut self.room);
    }

    /// A piece of the first choice's reasoning.
    pub(super) fn reasoning(&mut self, piece: &str) {
        append(&mut self.kept.reasoning, piece, &mut self.room);
    }

    /// A piece of the first choice's refusal.
    pub(super) fn refusal(&mut self, piece: &str) {
        append(&mut self.kept.refusal, piece, &mut self.room);
    }

    /// A piece of the first choice's tool call `index`; without an index, a name begins another call.
    pub(super) fn tool_call(&mut self, index: Option<usize>, name: &str, arguments: &str) {
        let calls = &mut self.kept.tool_calls;
        let latest = if name.is_empty() { calls.len().saturating_sub(1) } else { calls.len() };
        let index = index.unwrap_or(latest);
        if index >= limits::INDICES {
            return;
        }
        if calls.len() <= index {
            calls.resize_with(index + 1, ToolCall::default);
        }
        append(&mut calls[index].name, name, &mut self.room);
        append(&mut calls[index].arguments, arguments, &mut self.room);
    }

    /// The texts; answers by choice only where there were several choices.
    pub(super) fn into_texts(mut self, several: bool) -> ReplyTexts {
        let first = self.kept.by_choice.first_mut();
        if several {
            self.kept.text = first.cloned().unwrap_or_default();
        } else {
            self.kept.text = first.map(std::mem::take).unwrap_or_default();
            self.kept.by_choice.clear();
        }
        self.kept
    }
}

/// Appends as much of `piece` as there is room for, cut between characters.
fn append(text: &mut String, piece: &str, room: &mut usize) {
    let end = piece.floor_char_boundary(*room);
    text.push_str(&piece[..end]);
    // Once something was dropped, nothing more is added: a text has no holes.
    *room = if end < piece.len() { 0 } else { *room - end };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_text_is_bounded_and_cut_between_characters() {
        let mut texts = Texts::default();
        texts.content(0, &"x".repeat(limits::TEXT - 1));
        texts.content(0, "é");
        texts.content(0, "y");
        texts.reasoning("z");
        let kept = texts.into_texts(false);
        assert_eq!((kept.text.len(), kept.text.ends_with('x'), kept.reasoning.as_str()), (limits::TEXT - 1, true, ""));
    }

    #[test]
    fn tool_calls_are_told_apart_with_and_without_index() {
        let mut texts = Texts::default();
        for (index, name, arguments) in [
            (None, "a", "{"),
            (None, "", "}"),
            (None, "b", "{}"),
            (Some(2), "c", ""),
            (Some(2), "", "[]"),
            (Some(999_999_999), "d", ""),
        ] {
            texts.tool_call(index, name, arguments);
        }
        let calls: Vec<_> = texts.into_texts(false).tool_calls.into_iter().map(|c| c.name + &c.arguments).collect();
        assert_eq!(calls, ["a{}", "b{}", "c[]"]);
    }
}
