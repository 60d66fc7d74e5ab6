//! Which dialect a reply is written in, guessed from its beginning: for the hint that another protocol was meant.

use super::Protocol;
use super::reader::media_type;

/// How much of a body's beginning is looked at, in bytes.
pub(super) const BEGINNING: usize = 4 << 10;

/// What tells a dialect: whether it comes as events, and pieces of JSON that all occur, written without blanks. Quotes
/// inside of JSON texts are escaped, so that no generated text can hold such a piece. The first line that fits decides.
const MARKS: [(Protocol, bool, &[&str]); 11] = [
    (Protocol::OpenaiResponses, true, &[r#""type":"response."#]),
    (Protocol::AnthropicMessages, true, &[r#""type":"message_start""#]),
    (Protocol::AnthropicMessages, true, &[r#""type":"content_block_"#]),
    (Protocol::Tgi, true, &[r#""token":{"#, r#""generated_text":"#]),
    (Protocol::OpenaiChat, true, &[r#""object":"chat.completion.chunk""#]),
    (Protocol::OpenaiChat, true, &[r#""choices":["#, r#""delta":"#]),
    (Protocol::OpenaiCompletions, true, &[r#""choices":["#, r#""text":""#]),
    (Protocol::Ollama, false, &[r#""message":{"#, r#""done":"#]),
    (Protocol::Ollama, false, &[r#""response":""#, r#""done":"#]),
    (Protocol::OpenaiChatJson, false, &[r#""object":"chat.completion""#]),
    (Protocol::OpenaiChatJson, false, &[r#""choices":["#, r#""message":{"#]),
];

/// The dialect that a reply seems to be written in, given its `Content-Type` and the first bytes of its body; `None` where
/// nothing tells.
pub fn looks_like(content_type: Option<&str>, first_bytes: &[u8]) -> Option<Protocol> {
    let beginning = String::from_utf8_lossy(&first_bytes[..first_bytes.len().min(BEGINNING)]);
    let text: String = beginning.chars().filter(|c| !c.is_whitespace() && *c != '\u{feff}').collect();
    // The bytes have the last word: many a proxy changes the type, and none the body.
    let events = match text.as_bytes().first()? {
        b'{' | b'[' => false,
        b'<' => return None,
        _ => {
            let begins = ["data:", "event:", "id:", "retry:", ":"].iter().any(|field| text.starts_with(field));
            begins || media_type(content_type) == "text/event-stream"
        }
    };
    let fits = |(_, as_events, pieces): &&(Protocol, bool, &[&str])| {
        *as_events == events && pieces.iter().all(|piece| text.contains(piece))
    };
    MARKS.iter().find(fits).map(|(protocol, _, _)| *protocol)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dialect_is_told_by_its_structure_and_not_by_what_was_generated() {
        for (content_type, body, expected) in [
            (None, "data: {\"choices\": [{\"delta\": {\"content\": \"x\"}}]}\n\n", Some(Protocol::OpenaiChat)),
            (None, "data: {\"choices\":[{\"text\":\"x\"}]}\n\n", Some(Protocol::OpenaiCompletions)),
            (Some("text/plain"), "{\"choices\":[{\"message\":{}}]}", Some(Protocol::OpenaiChatJson)),
            (Some("text/event-stream"), "{\"response\":\"x\",\"done\":false}\n", Some(Protocol::Ollama)),
            (
                Some("text/event-stream"),
                "odd: 1\ndata: {\"type\":\"message_start\"}\n\n",
                Some(Protocol::AnthropicMessages),
            ),
            (None, ": hello\n\ndata: {\"type\":\"response.created\",\"resp", Some(Protocol::OpenaiResponses)),
            (None, "{\"text\":\"say \\\"object\\\":\\\"chat.completion\\\"\"}", None),
            (None, "data: \"type\":\\\"response.\n\n", None),
            (Some("application/json"), "{\"status\":\"fine\"}", None),
            (Some("text/html"), "<html>{\"object\":\"chat.completion\"}", None),
            (Some("text/event-stream"), "", None),
        ] {
            assert_eq!(looks_like(content_type, body.as_bytes()), expected, "{body}");
        }
    }
}
