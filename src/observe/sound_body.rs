//! Bodies that are sound. Its beginning says what a body is, not its type alone: errors come under types of sound, and
//! sound under types of text.

use super::limits;
use super::reader::media_type;
use super::state::ReplyState;
use super::stream::Stamp;
use super::trace::Warning;
use crate::audio::{Encoding, PcmFormat, WavReader};

/// How much of a body is looked at before it is settled what it is, in bytes.
const BEGINNING: usize = 64;

/// Types of sound without a container.
const RAW_TYPES: [&str; 7] =
    ["audio/pcm", "audio/x-pcm", "audio/raw", "audio/l16", "audio/basic", "application/octet-stream", ""];

/// A body that should be sound.
#[derive(Debug)]
pub(super) struct SoundBody {
    label: Label,
    /// The format of samples that come without a container, where the type, or else the contract, tells it.
    raw: Option<PcmFormat>,
    kind: Kind,
    /// What came under a type of sound and begins as JSON does, as long as it may be a message.
    suspect: Option<Vec<u8>>,
}

/// What the type of the body says of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Label {
    Sound,
    Missing,
    Other,
}

/// What a body is.
#[derive(Debug)]
enum Kind {
    /// Not settled yet: its beginning, and the writes that it came in.
    Beginning { bytes: Vec<u8>, pieces: Vec<(Stamp, usize)> },
    /// A WAV file.
    Wav(WavReader),
    /// Samples, or an encoding that is not looked into.
    Samples,
    /// It cannot be read on.
    Unreadable,
}

/// What a beginning shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signature {
    Wav,
    /// FLAC, Ogg, or MPEG with a tag.
    Encoded,
    /// The synchronisation of an MPEG or AAC frame, which samples may begin with as well.
    Frame,
}

impl SoundBody {
    /// A body of this type that has not begun. `declared`: the format of sound without a container, by the contract.
    pub(super) fn new(content_type: Option<&str>, declared: Option<PcmFormat>) -> Self {
        let media_type = media_type(content_type);
        let label = match media_type.as_str() {
            "" => Label::Missing,
            "application/octet-stream" => Label::Sound,
            other if other.starts_with("audio/") => Label::Sound,
            _ => Label::Other,
        };
        let raw = raw_format(&media_type, content_type.unwrap_or_default(), declared);
        let kind = Kind::Beginning { bytes: Vec::new(), pieces: Vec::new() };
        Self { label, raw, kind, suspect: None }
    }

    /// Takes a write. Gives back what came so far once that turns out to be no sound; then nothing more is to be given.
    pub(super) fn push(&mut self, bytes: &[u8], stamp: Stamp, reply: &mut ReplyState) -> Option<Vec<u8>> {
        let Kind::Beginning { bytes: beginning, pieces } = &mut self.kind else {
            self.read(bytes, stamp, reply);
            return None;
        };
        if bytes.is_empty() {
            return None;
        }
        let (head, rest) = bytes.split_at((BEGINNING - beginning.len()).min(bytes.len()));
        beginning.extend_from_slice(head);
        pieces.push((stamp, head.len()));
        if beginning.len() < BEGINNING {
            return None;
        }
        if let Some(mut no_sound) = self.settle(reply) {
            no_sound.extend_from_slice(rest);
            return Some(no_sound);
        }
        self.read(rest, stamp, reply);
        None
    }

    /// Nothing more will come. Gives back what came if that is no sound.
    pub(super) fn end(mut self, complete: bool, reply: &mut ReplyState) -> Option<Vec<u8>> {
        let no_sound = self.settle(reply);
        if no_sound.is_some() || !complete {
            return no_sound;
        }
        let is_json =
            |bytes: &Vec<u8>| serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(bytes).is_ok();
        if let Some(json) = self.suspect.take().filter(is_json) {
            reply.forget_sound();
            return Some(json);
        }
        reply.done();
        None
    }

    /// Decides by the beginning what the body is, and reads that.
    fn settle(&mut self, reply: &mut ReplyState) -> Option<Vec<u8>> {
        let Kind::Beginning { bytes, pieces } = &mut self.kind else { return None };
        let (bytes, pieces) = (std::mem::take(bytes), std::mem::take(pieces));
        self.kind = Kind::Samples;
        if bytes.is_empty() {
            return None;
        }
        match (signature(&bytes), self.label) {
            (Some(Signature::Wav), _) => self.kind = Kind::Wav(WavReader::default()),
            (Some(Signature::Encoded), _) | (Some(Signature::Frame), Label::Other) => self.raw = None,
            (_, Label::Sound) => {
                let begins_as_json = bytes.trim_ascii_start().starts_with(b"{");
                self.suspect = begins_as_json.then(Vec::new);
            }
            (_, Label::Missing) if !is_text(&bytes) => {}
            (_, Label::Missing | Label::Other) => return Some(bytes),
        }
        if self.label != Label::Sound {
            reply.warn(Warning::ContentType);
        }
        if let (Kind::Samples, Some(format)) = (&self.kind, self.raw) {
            reply.sound.is_pcm(format);
        }
        let mut rest = &bytes[..];
        for (stamp, length) in pieces {
            let (piece, behind) = rest.split_at(length);
            rest = behind;
            self.read(piece, stamp, reply);
        }
        None
    }

    fn read(&mut self, bytes: &[u8], stamp: Stamp, reply: &mut ReplyState) {
        if let Some(suspect) = &mut self.suspect {
            suspect.extend_from_slice(bytes);
            self.suspect = self.suspect.take().filter(|suspect| suspect.len() <= limits::ERROR_BODY);
        }
        match &mut self.kind {
            Kind::Samples => reply.sound_body(stamp, bytes),
            Kind::Wav(wav) => match wav.samples(bytes) {
                Ok(samples) => {
                    if reply.sound.bytes == 0
                        && let Some(format) = wav.format()
                    {
                        reply.sound.is_wav(format);
                    }
                    reply.sound_body(stamp, samples);
                }
                Err(fault) => {
                    reply.protocol_error(&fault.to_string());
                    self.kind = Kind::Unreadable;
                }
            },
            Kind::Beginning { .. } | Kind::Unreadable => {}
        }
    }
}

/// Whether bytes begin as a file of sound does, beyond doubt.
pub(super) fn is_container(bytes: &[u8]) -> bool {
    matches!(signature(bytes), Some(Signature::Wav | Signature::Encoded))
}

fn signature(bytes: &[u8]) -> Option<Signature> {
    match bytes {
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => Some(Signature::Wav),
        [b'R', b'F', b'6', b'4', _, _, _, _, b'W', b'A', b'V', b'E', ..] => Some(Signature::Wav),
        [b'f', b'L', b'a', b'C', ..] | [b'O', b'g', b'g', b'S', ..] | [b'I', b'D', b'3', ..] => {
            Some(Signature::Encoded)
        }
        [0xFF, second, ..] if second & 0xE0 == 0xE0 => Some(Signature::Frame),
        _ => None,
    }
}

/// Whether a beginning can be text: UTF-8, but for a character that is cut at its end, and no control characters.
fn is_text(bytes: &[u8]) -> bool {
    let valid = match std::str::from_utf8(bytes) {
        Ok(_) => true,
        Err(fault) => fault.error_len().is_none(),
    };
    valid && !bytes.iter().any(|byte| byte.is_ascii_control() && !byte.is_ascii_whitespace())
}

/// The format of samples without a container: the parameters of the type come first (RFC 2586 for `audio/L16`), then what
/// the contract declares.
fn raw_format(media_type: &str, content_type: &str, declared: Option<PcmFormat>) -> Option<PcmFormat> {
    if !RAW_TYPES.contains(&media_type) {
        return None;
    }
    let parameter = |name: &str| {
        let pairs = content_type.split(';').skip(1).filter_map(|pair| pair.split_once('='));
        let value = pairs.filter(|(key, _)| key.trim().eq_ignore_ascii_case(name)).map(|(_, value)| value).next()?;
        value.trim().trim_matches('"').parse::<u32>().ok().filter(|number| *number > 0)
    };
    let Some(sample_rate) = parameter("rate") else { return declared };
    let encoding = match declared {
        Some(declared) if media_type != "audio/l16" => declared.encoding,
        _ => Encoding::Pcm16,
    };
    let told = parameter("channels").and_then(|channels| u16::try_from(channels).ok());
    let channels = told.or(declared.map(|declared| declared.channels)).unwrap_or(1);
    Some(PcmFormat { encoding, sample_rate, channels })
}
