//! Bytes of a message to text that can be read as JSON.

use std::borrow::Cow;

use memchr::memchr;

use super::state::ReplyState;
use super::trace::Warning;

/// The text of a whole message, with U+FFFD for what is no character: bytes that are not UTF-8, and escapes of half a
/// surrogate pair, which some servers send when a token ends inside a character. Either is flagged.
pub(super) fn text<'a>(bytes: &'a [u8], reply: &mut ReplyState) -> Cow<'a, str> {
    let decoded = String::from_utf8_lossy(bytes);
    let repaired = lone_surrogates(&decoded);
    if matches!(decoded, Cow::Owned(_)) || !repaired.is_empty() {
        reply.warn(Warning::InvalidUtf8);
    }
    if repaired.is_empty() {
        return decoded;
    }
    let mut text = decoded.into_owned();
    for at in repaired {
        text.replace_range(at..at + 6, "\\ufffd");
    }
    Cow::Owned(text)
}

/// Where `\uD800` to `\uDFFF` stand alone in a JSON text.
fn lone_surrogates(json: &str) -> Vec<usize> {
    let bytes = json.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(next) = memchr(b'\\', &bytes[at..]) {
        at += next;
        let length = match unit(bytes, at) {
            Some(0xD800..=0xDBFF) if matches!(unit(bytes, at + 6), Some(0xDC00..=0xDFFF)) => 12,
            Some(0xD800..=0xDFFF) => {
                found.push(at);
                6
            }
            Some(_) => 6,
            None => 2,
        };
        at = (at + length).min(bytes.len());
    }
    found
}

/// The UTF-16 unit of the `\u` escape at `at`.
fn unit(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0, |unit, digit| Some(unit << 4 | u16::try_from(char::from(*digit).to_digit(16)?).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_character_is_replaced_and_flagged() {
        for (bytes, expected) in [
            (&b"{\"a\":\"caf\xc3\xa9 \\ud83d\\ude00 \\\\ud83d \\n\"}"[..], None),
            (b"a\xffb", Some("a\u{fffd}b")),
            (b"\\ud83d", Some("\\ufffd")),
            (b"\\ud83d\\n\\ude00", Some("\\ufffd\\n\\ufffd")),
            (b"\\uD83D\\uD83D\\uDE00", Some("\\ufffd\\uD83D\\uDE00")),
            (b"\\ud83", None),
            (b"\\", None),
        ] {
            let mut reply = ReplyState::default();
            let text = text(bytes, &mut reply).into_owned();
            assert_eq!(text, expected.unwrap_or(&String::from_utf8_lossy(bytes)));
            let warnings = reply.conclude(0, &super::super::ReplyEnd::Cancelled).warnings;
            assert_eq!(warnings, if expected.is_some() { vec![Warning::InvalidUtf8] } else { vec![] }, "{text}");
        }
    }
}
