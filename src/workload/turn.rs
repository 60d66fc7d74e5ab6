//! A payload as the events of one turn over a WebSocket. An event that holds `$audio` is sent once for every piece of the
//! sound, each when that piece could have been captured; what follows it is due at the end of speech.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::Value;

use super::content::AUDIO;
use super::{Case, Samples, Sound, TemplateError, render};
use crate::audio::PcmFormat;

/// How much sound one event carries. Callers' devices send such pieces.
const PIECE_NS: u64 = 100_000_000;

/// One turn, ready to be sent. Each event is a JSON text.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Turn {
    /// Due at once.
    pub before: Arc<[Bytes]>,
    /// The pieces of sound.
    pub speech: Arc<[Piece]>,
    /// Due at the end of speech; without sound at once.
    pub after: Arc<[Bytes]>,
}

/// A piece of sound as an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// When its last sample has been spoken, in nanoseconds since the beginning of speech: not before that it can be sent.
    pub due_ns: u64,
    /// The event.
    pub event: Bytes,
}

impl Turn {
    /// How long the speech lasts; `None` for a turn without sound.
    pub fn speech_ns(&self) -> Option<u64> {
        self.speech.last().map(|piece| piece.due_ns)
    }

    /// All events in their order.
    pub fn events(&self) -> impl Iterator<Item = &Bytes> {
        self.before.iter().chain(self.speech.iter().map(|piece| &piece.event)).chain(self.after.iter())
    }

    /// The events for people, one a line, without the sound.
    pub(super) fn shown(&self) -> String {
        let text = |event: &Bytes| String::from_utf8_lossy(event).into_owned();
        let mut lines: Vec<String> = self.before.iter().map(text).collect();
        if let Some(speech_ns) = self.speech_ns() {
            let (pieces, seconds) = (self.speech.len(), speech_ns as f64 / 1e9);
            lines.push(format!("({pieces} events with {seconds:.1} s of sound, sent as it is spoken)"));
        }
        lines.extend(self.after.iter().map(text));
        lines.join("\n")
    }
}

/// The events of a turn, filled but for the sound.
#[derive(Debug)]
pub(super) struct Filled {
    before: Vec<Bytes>,
    /// What stands before and behind the sound in its event.
    around: Option<(String, String)>,
    after: Vec<Bytes>,
}

/// Stands for the sound while the rest of its event is filled; no file has such a name.
const SENTINEL: &str = "\0audio";

/// Fills the events of a template with one case.
///
/// # Errors
/// All faults at once: no list of events, an event that is none, several with sound, a placeholder that cannot be filled.
pub(super) fn filled(template: &Value, case: &Case, model: &str) -> Result<Filled, Vec<TemplateError>> {
    let fault =
        |pointer: &str, problem: &str| TemplateError { pointer: pointer.to_owned(), problem: problem.to_owned() };
    let Some(events) = template.get("events").and_then(Value::as_array).filter(|events| !events.is_empty()) else {
        let problem = "the payload of a turn is `events: [ … ]`, the list of events that the client sends";
        return Err(vec![fault("", problem)]);
    };
    let mut silent = case.clone();
    if let Some(audio) = silent.fields.get_mut(AUDIO) {
        *audio = SENTINEL.into();
    }
    let (mut turn, mut faults) = (Filled { before: vec![], around: None, after: vec![] }, vec![]);
    for (index, event) in events.iter().enumerate() {
        let pointer = format!("/events/{index}");
        if event.get("type").and_then(Value::as_str).is_none_or(|kind| kind.is_empty() || kind == "$audio") {
            faults.push(fault(&pointer, "an event is a mapping with a `type`, as in `{ type: response.create }`"));
            continue;
        }
        let text = match render(event, &silent, model) {
            Ok(value) => value.to_string(),
            Err(found) => {
                let below = |found: TemplateError| TemplateError { pointer: pointer.clone() + &found.pointer, ..found };
                faults.extend(found.into_iter().map(below));
                continue;
            }
        };
        match text.split_once("\"\\u0000audio\"") {
            Some((_, after)) if turn.around.is_some() || after.contains("\"\\u0000audio\"") => {
                faults.push(fault(&pointer, "the turn's sound is sent once, as one value of one event"))
            }
            Some((before, after)) => turn.around = Some((before.to_owned(), after.to_owned())),
            None if turn.around.is_some() => turn.after.push(text.into()),
            None => turn.before.push(text.into()),
        }
    }
    if turn.around.is_none() {
        turn.after = std::mem::take(&mut turn.before);
    }
    if faults.is_empty() { Ok(turn) } else { Err(faults) }
}

/// The turn of one case, its sound cut into pieces.
///
/// # Errors
/// As [`filled`], and sound that is missing or not of the format in which it is to be sent.
pub(super) fn build(
    template: &Value,
    case: &Case,
    model: &str,
    format: PcmFormat,
    sound: Option<&Sound>,
) -> Result<Turn, Vec<TemplateError>> {
    let filled = filled(template, case, model)?;
    let speech = match &filled.around {
        None => Vec::new(),
        Some(around) => {
            let samples = samples(case, format, sound)
                .map_err(|problem| vec![TemplateError { pointer: String::new(), problem }])?;
            pieces(samples, around)
        }
    };
    Ok(Turn { before: filled.before.into(), speech: speech.into(), after: filled.after.into() })
}

fn samples<'a>(case: &Case, format: PcmFormat, sound: Option<&'a Sound>) -> Result<&'a Samples, String> {
    let sound = sound.ok_or_else(|| format!("the case `{}` has no sound", case.id))?;
    let Some(samples) = &sound.samples else {
        return Err(format!(
            "the sound `{}` of the case `{}` is no WAV file of 16-bit or G.711 samples; convert it, as in \
             `ffmpeg -i {} -ar {} -ac {} speech.wav`",
            sound.name, case.id, sound.name, format.sample_rate, format.channels
        ));
    };
    if samples.format != format {
        return Err(format!(
            "the sound `{}` of the case `{}` is {}, and the endpoint is sent {}; convert it, or declare `endpoint.audio.input`",
            sound.name, case.id, samples.format, format
        ));
    }
    if samples.bytes.is_empty() {
        return Err(format!("the sound `{}` of the case `{}` is empty", sound.name, case.id));
    }
    Ok(samples)
}

fn pieces(samples: &Samples, (before, after): &(String, String)) -> Vec<Piece> {
    let frame = samples.format.bytes_per_frame();
    let frames = u64::from(samples.format.sample_rate) * PIECE_NS / 1_000_000_000;
    let bytes_per_piece = frame * frames.max(1);
    let mut spoken = 0;
    samples
        .bytes
        .chunks(bytes_per_piece as usize)
        .map(|piece| {
            spoken += piece.len() as u64;
            let event = format!("{before}\"{}\"{after}", STANDARD.encode(piece));
            Piece { due_ns: samples.format.duration_ns(spoken), event: event.into() }
        })
        .collect()
}
