//! Bodies that are sound. Its beginning says what a body is, not its type alone: errors come under types of sound, and
//! sound under types of text.

use super::reader::media_type;
use super::state::ReplyState;
use super::stream::Stamp;
use super::trace::Warning;
use crate::audio::{Encoding, PcmFormat, WavReader};

/// How much of a body is looked at before it is settled what it is, in bytes.
const BEGINNING: usize = 64;

/// Fewer bytes than these may be samples as well as text.
const SHORTEST_TEXT: usize = 4;

/// Types of WAV files.
const WAV_TYPES: [&str; 4] = ["audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave"];

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
}

/// What the type of the body says of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Label {
    /// A container that cannot be mistaken.
    Wav,
    /// Any other sound.
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
            other if WAV_TYPES.contains(&other) => Label::Wav,
            other if other.starts_with("audio/") => Label::Sound,
            _ => Label::Other,
        };
        let raw = raw_format(&media_type, content_type.unwrap_or_default(), declared);
        let kind = Kind::Beginning { bytes: Vec::new(), pieces: Vec::new() };
        Self { label, raw, kind }
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
        if no_sound.is_none() && complete {
            reply.done();
        }
        no_sound
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
            (Some(Signature::Frame), Label::Wav | Label::Sound) => {}
            (None, Label::Sound) if bytes.len() < SHORTEST_TEXT || !is_text(&bytes) || self.is_quiet(&bytes) => {}
            (_, Label::Missing) if !is_text(&bytes) => {}
            _ => return Some(bytes),
        }
        if matches!(self.label, Label::Missing | Label::Other) {
            reply.warn(Warning::ContentType);
        }
        if let (Kind::Samples, Some(format)) = (&self.kind, self.raw) {
            reply.sound.know_pcm(format);
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
        match &mut self.kind {
            Kind::Samples => reply.sound_body(stamp, bytes),
            Kind::Wav(wav) => {
                let read = wav.read(bytes, |format, samples| {
                    reply.sound.know_wav(format);
                    reply.sound_body(stamp, samples);
                });
                if let Err(fault) = read {
                    reply.protocol_error(&fault.to_string());
                    self.kind = Kind::Unreadable;
                }
            }
            Kind::Beginning { .. } | Kind::Unreadable => {}
        }
    }

    /// Whether bytes that may be text are the near silence of G.711, some of whose codes are letters: the sixteen codes of
    /// its smallest segment lie in one row of the ASCII table, and no words do.
    fn is_quiet(&self, bytes: &[u8]) -> bool {
        let row = |byte: &u8| byte & 0xF0;
        self.raw.is_some_and(|raw| raw.encoding != Encoding::Pcm16)
            && bytes.windows(2).all(|two| row(&two[0]) == row(&two[1]))
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
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(fault) if fault.error_len().is_none() => std::str::from_utf8(&bytes[..fault.valid_up_to()]).unwrap_or(""),
        Err(_) => return false,
    };
    !text.chars().any(|c| c.is_control() && !c.is_ascii_whitespace())
}

/// The format of samples without a container: the parameters of the type come first (RFC 2586 for `audio/L16`), then what
/// the contract declares. A type that names an encoding other than of 16 bits has none that is known here.
fn raw_format(media_type: &str, content_type: &str, declared: Option<PcmFormat>) -> Option<PcmFormat> {
    if !RAW_TYPES.contains(&media_type) {
        return None;
    }
    let parameters = || {
        let pairs = content_type.split(';').skip(1).filter_map(|pair| pair.split_once('='));
        pairs.map(|(key, value)| (key.trim().to_ascii_lowercase(), value.trim().trim_matches('"').to_ascii_lowercase()))
    };
    let mut encoding = declared.filter(|_| media_type != "audio/l16").map_or(Encoding::Pcm16, |format| format.encoding);
    for (key, value) in parameters() {
        match is_16_bit(&key, &value) {
            Some(false) => return None,
            Some(true) => encoding = Encoding::Pcm16,
            None => {}
        }
    }
    let number = |name: &str| {
        let (_, value) = parameters().find(|(key, _)| key == name)?;
        value.parse::<u32>().ok().filter(|number| *number > 0)
    };
    let sample_rate = number("rate").or(declared.map(|declared| declared.sample_rate))?;
    let told = number("channels").and_then(|channels| u16::try_from(channels).ok());
    let channels = told.or(declared.map(|declared| declared.channels)).unwrap_or(1);
    Some(PcmFormat { encoding, sample_rate, channels })
}

/// Whether a parameter of a type says that samples are 16-bit integers; `None` where it says nothing of them.
fn is_16_bit(key: &str, value: &str) -> Option<bool> {
    const ENCODINGS: [&str; 12] =
        ["pcm", "lpcm", "pcm16", "pcm_16", "pcm-16", "pcm_s16le", "s16le", "s16", "int16", "i16", "l16", "linear16"];
    match key {
        "encoding" | "codec" | "codecs" | "format" | "sample_format" | "sample-format" => {
            Some(ENCODINGS.contains(&value))
        }
        "bits" | "bits_per_sample" | "bits-per-sample" | "bitdepth" | "bit_depth" | "bit-depth" => Some(value == "16"),
        _ => None,
    }
}
