//! Which dialect a reply is written in, guessed from its beginning: for the hint that another protocol was meant.

use super::Protocol;
use super::reader::media_type;
use super::sound_body::is_container;

/// How much of a body's beginning is looked at, in bytes.
pub(super) const BEGINNING: usize = 4 << 10;

/// What tells a dialect: whether it comes as events, and pieces of JSON that all occur, written without blanks. Quotes
/// inside of JSON texts are escaped, so that no generated text can hold such a piece. The first line that fits decides.
const MARKS: [(Protocol, bool, &[&str]); 16] = [
    (Protocol::OpenaiTranscription, true, &[r#""type":"transcript.text."#]),
    (Protocol::OpenaiTranscription, true, &[r#""object":"transcription.chunk""#]),
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
    // Answers of these dialects that were not asked for as a stream.
    (Protocol::OpenaiResponses, false, &[r#""object":"response""#]),
    (Protocol::AnthropicMessages, false, &[r#""type":"message""#, r#""role":"assistant""#]),
    (Protocol::OpenaiTranscription, false, &[r#""task":"transcribe""#, r#""text":""#]),
];

/// The dialect that a reply seems to be written in, given its `Content-Type` and the first bytes of its body; `None` where
/// nothing tells.
pub fn looks_like(content_type: Option<&str>, first_bytes: &[u8]) -> Option<Protocol> {
    let beginning = String::from_utf8_lossy(&first_bytes[..first_bytes.len().min(BEGINNING)]);
    if is_container(first_bytes) {
        return Some(Protocol::OpenaiSpeech);
    }
    let text: String = beginning.chars().filter(|c| !c.is_whitespace() && *c != '\u{feff}').collect();
    if media_type(content_type).starts_with("audio/") && !text.starts_with(['{', '[', '<']) {
        return Some(Protocol::OpenaiSpeech);
    }
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
    let told = MARKS.iter().find(fits).map(|(protocol, _, _)| *protocol);
    let bare_text = !events && text.starts_with(r#"{"text":""#);
    told.or(bare_text.then_some(Protocol::OpenaiTranscription))
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
            (None, "{\"note\":\"say \\\"object\\\":\\\"chat.completion\\\"\"}", None),
            (None, "data: \"type\":\\\"response.\n\n", None),
            (Some("application/json"), "{\"status\":\"fine\"}", None),
            (Some("text/html"), "<html>{\"object\":\"chat.completion\"}", None),
            (Some("text/event-stream"), "", None),
            (Some("text/html"), "RIFF\u{1}\u{0}\u{0}\u{0}WAVEfmt ", Some(Protocol::OpenaiSpeech)),
            (Some("audio/pcm"), "\u{0}\u{1}", Some(Protocol::OpenaiSpeech)),
            (Some("audio/wav"), "{\"error\":\"no voice\"}", None),
            (None, "{ \"text\": \"hello\" }", Some(Protocol::OpenaiTranscription)),
            (
                None,
                "data: {\"type\":\"transcript.text.delta\",\"delta\":\"x\"}\n\n",
                Some(Protocol::OpenaiTranscription),
            ),
            (None, "{\"id\":\"r\",\"object\": \"response\",\"status\":\"completed\"}", Some(Protocol::OpenaiResponses)),
            (
                Some("application/json"),
                "{\"id\":\"m\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[]}",
                Some(Protocol::AnthropicMessages),
            ),
        ] {
            assert_eq!(looks_like(content_type, body.as_bytes()), expected, "{body}");
        }
    }
}
