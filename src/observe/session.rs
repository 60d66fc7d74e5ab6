//! What the messages about a realtime session say of its sound, the client's and the server's, in both versions of the
//! protocol.

use serde::Deserialize;
use serde_json::Value;

use super::lenient::{Maybe, Number, Text};
use super::payload::REALTIME_AUDIO;
use crate::audio::{Encoding, PcmFormat};

/// A message about the session, as far as it tells formats of sound.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SessionEvent<'a> {
    #[serde(borrow)]
    r#type: Text<'a>,
    #[serde(borrow)]
    session: Maybe<Session<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Session<'a> {
    #[serde(borrow)]
    audio: Maybe<SessionAudio<'a>>,
    /// The names of the formats in the protocol's first version.
    #[serde(borrow)]
    input_audio_format: Text<'a>,
    #[serde(borrow)]
    output_audio_format: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SessionAudio<'a> {
    #[serde(borrow)]
    input: Maybe<Direction<'a>>,
    #[serde(borrow)]
    output: Maybe<Direction<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Direction<'a> {
    #[serde(borrow)]
    format: Maybe<Format<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Format<'a> {
    #[serde(borrow)]
    r#type: Text<'a>,
    rate: Number,
}

/// The formats of sound, of what is sent and of what comes back, that a client's event asks for; `None` where it is no
/// `session.update`, or names none that is known here.
pub fn session_formats(event: &Value) -> [Option<PcmFormat>; 2] {
    let event = SessionEvent::deserialize(event).unwrap_or_default();
    if event.r#type.get() == "session.update" { event.formats() } else { [None; 2] }
}

impl SessionEvent<'_> {
    /// The formats that it names, of what is sent and of what comes back.
    pub(super) fn formats(&self) -> [Option<PcmFormat>; 2] {
        let Some(session) = self.session.get() else { return [None; 2] };
        let audio = session.audio.get();
        let input = audio.and_then(|audio| audio.input.get());
        let output = audio.and_then(|audio| audio.output.get());
        [(input, &session.input_audio_format), (output, &session.output_audio_format)].map(|(direction, first_name)| {
            match direction.and_then(|direction| direction.format.get()) {
                Some(format) => named(format.r#type.get(), format.rate.get()),
                None => named(first_name.get(), None),
            }
        })
    }
}

/// The format of a name, at its usual rate where none is told.
fn named(name: &str, rate: Option<i64>) -> Option<PcmFormat> {
    let usual = match name {
        "audio/pcm" | "pcm16" => REALTIME_AUDIO,
        "audio/pcmu" | "g711_ulaw" => PcmFormat { encoding: Encoding::G711Ulaw, sample_rate: 8_000, channels: 1 },
        "audio/pcma" | "g711_alaw" => PcmFormat { encoding: Encoding::G711Alaw, sample_rate: 8_000, channels: 1 },
        _ => return None,
    };
    let sample_rate = match rate {
        Some(rate) => u32::try_from(rate).ok().filter(|rate| *rate > 0)?,
        None => usual.sample_rate,
    };
    Some(PcmFormat { sample_rate, ..usual })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_versions_of_a_session_name_the_formats_they_ask_for() {
        let format = |encoding, sample_rate| Some(PcmFormat { encoding, sample_rate, channels: 1 });
        let pcm = |rate| format(Encoding::Pcm16, rate);
        let ulaw = format(Encoding::G711Ulaw, 8_000);
        for (session, expected) in [
            (json!({}), [None, None]),
            (json!(null), [None, None]),
            (
                json!({ "audio": { "input": { "format": { "type": "audio/pcm", "rate": 16_000 } } } }),
                [pcm(16_000), None],
            ),
            (
                json!({ "audio": {
                    "input": { "format": { "type": "audio/pcmu" } },
                    "output": { "format": { "type": "audio/pcm" } },
                } }),
                [ulaw, pcm(24_000)],
            ),
            (json!({ "input_audio_format": "pcm16", "output_audio_format": "g711_ulaw" }), [pcm(24_000), ulaw]),
            (json!({ "input_audio_format": "g711_alaw" }), [format(Encoding::G711Alaw, 8_000), None]),
            (json!({ "audio": { "output": { "format": { "type": "audio/opus", "rate": 8_000 } } } }), [None, None]),
            (json!({ "audio": { "output": { "format": { "type": "audio/pcm", "rate": 0 } } } }), [None, None]),
            (json!({ "audio": { "output": { "format": { "type": "audio/pcm", "rate": -1 } } } }), [None, None]),
            (json!({ "audio": { "output": "pcm" }, "output_audio_format": 16 }), [None, None]),
        ] {
            let event = json!({ "type": "session.update", "session": session });
            assert_eq!(session_formats(&event), expected, "{event}");
        }
        let other = json!({ "type": "response.create", "session": { "input_audio_format": "pcm16" } });
        assert_eq!(session_formats(&other), [None, None]);
        assert_eq!(session_formats(&json!("session.update")), [None, None]);
    }
}
