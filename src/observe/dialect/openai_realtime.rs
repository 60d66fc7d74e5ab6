//! WebSocket `/v1/realtime`, one turn: the events of a response, text or sound, between those of the session. The names of
//! its first version (`response.text.delta`) and of the present one (`response.output_text.delta`) are read alike. The
//! response ends with `response.done`, and the first one ends the turn. What the session says of its sound is believed before
//! what the contract declares.

use serde::Deserialize;

use super::super::lenient::{Maybe, Number, Text};
use super::super::state::ReplyState;
use super::response::ResponseEvents;
use super::{Dialect, Framing, Message, json};
use crate::audio::{Encoding, PcmFormat};

/// The dialect.
#[derive(Debug, Default)]
pub(super) struct OpenaiRealtime {
    events: ResponseEvents,
}

impl Dialect for OpenaiRealtime {
    fn framing(&self) -> Framing {
        Framing::Frames
    }

    fn message(&mut self, message: Message<'_>, reply: &mut ReplyState) -> bool {
        json::read_event(message, reply, |kind, event, reply| {
            if matches!(kind, "session.created" | "session.updated")
                && let Some(format) = output_format(message.data)
            {
                reply.sound.know_pcm(format);
            }
            // The session, the conversation and the rate limits have messages of their own, which hold no output.
            self.events.read(kind, event, message.at_ns, reply) || !kind.is_empty()
        })
    }
}

/// A message about the session, as far as it tells the format of the sound that comes back.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SessionEvent<'a> {
    #[serde(borrow)]
    session: Maybe<Session<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Session<'a> {
    #[serde(borrow)]
    audio: Maybe<SessionAudio<'a>>,
    /// The name of the format in the protocol's first version.
    #[serde(borrow)]
    output_audio_format: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SessionAudio<'a> {
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

/// The format that a message about the session names; `None` where it names none that is known here.
fn output_format(data: &str) -> Option<PcmFormat> {
    let event: SessionEvent<'_> = serde_json::from_str(data).ok()?;
    let session = event.session.get()?;
    let format = session.audio.get().and_then(|audio| audio.output.get()).and_then(|output| output.format.get());
    let (name, rate) = match format {
        Some(format) => (format.r#type.get(), format.rate.get()),
        None => (session.output_audio_format.get(), None),
    };
    let (encoding, usual_rate) = match name {
        "audio/pcm" => (Encoding::Pcm16, None),
        "pcm16" => (Encoding::Pcm16, Some(24_000)),
        "audio/pcmu" | "g711_ulaw" => (Encoding::G711Ulaw, Some(8_000)),
        "audio/pcma" | "g711_alaw" => (Encoding::G711Alaw, Some(8_000)),
        _ => return None,
    };
    let sample_rate = u32::try_from(rate.or(usual_rate)?).ok().filter(|rate| *rate > 0)?;
    Some(PcmFormat { encoding, sample_rate, channels: 1 })
}
