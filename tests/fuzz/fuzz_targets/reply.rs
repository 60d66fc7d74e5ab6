//! Any reply of any dialect: no panic, bounded memory, and the same conclusions however its bytes are cut.
#![no_main]

use goodput::audio::{Encoding, PcmFormat};
use goodput::observe::{Outcome, Protocol, ReplyEnd, ReplyHead, ReplyReader, RequestTrace, Warning};
use libfuzzer_sys::fuzz_target;

/// Bytes in front of the body that say what kind of reply it is; `seeds.py` writes the same.
const CHOICES: usize = 8;

const CONTENT_TYPES: [Option<&str>; 8] = [
    None,
    Some("text/event-stream"),
    Some("application/json"),
    Some("application/x-ndjson"),
    Some("text/html"),
    Some("audio/wav"),
    Some("audio/pcm"),
    Some("text/plain; charset=utf-8"),
];

const STATUSES: [u16; 4] = [200, 101, 400, 503];

/// What a contract may say of sound without a container.
const FORMATS: [Option<PcmFormat>; 3] = [
    None,
    Some(PcmFormat { encoding: Encoding::Pcm16, sample_rate: 24_000, channels: 1 }),
    Some(PcmFormat { encoding: Encoding::G711Ulaw, sample_rate: 8_000, channels: 2 }),
];

fuzz_target!(|input: &[u8]| {
    let Some((choices, body)) = input.split_at_checked(CHOICES) else { return };
    let reply = Reply::of(choices, body);
    let whole = reply.read([body.len().max(1)].into_iter().cycle());
    assert_plausible(&whole, body.len());
    let lengths = choices[4..].iter().map(|length| 1 + usize::from(*length));
    let cut = reply.read(lengths.cycle());
    assert_eq!(without_writes(cut), without_writes(whole));
});

struct Reply<'a> {
    protocol: Protocol,
    declared: Option<PcmFormat>,
    head: ReplyHead,
    end: ReplyEnd,
    body: &'a [u8],
}

impl<'a> Reply<'a> {
    fn of(choices: &[u8], body: &'a [u8]) -> Self {
        let pick = |index: usize, of: usize| usize::from(choices[index]) % of;
        let head = ReplyHead {
            status: STATUSES[pick(2, STATUSES.len())],
            content_type: CONTENT_TYPES[pick(1, CONTENT_TYPES.len())].map(str::to_owned),
            ..ReplyHead::default()
        };
        let end = match pick(3, 6) {
            0 => ReplyEnd::Complete,
            1 => ReplyEnd::Broken("connection reset".to_owned()),
            2 => ReplyEnd::TimedOut("idle"),
            3 => ReplyEnd::Cancelled,
            4 => ReplyEnd::Closed(Some(1000), String::new()),
            _ => ReplyEnd::Closed(None, "going away".to_owned()),
        };
        let protocol = Protocol::ALL[pick(0, Protocol::ALL.len())];
        let declared = FORMATS[usize::from(choices[2]) / STATUSES.len() % FORMATS.len()];
        Self { protocol, declared, head, end, body }
    }

    /// Reads the body in pieces of these lengths, all at one instant; each line as a message where messages come whole.
    fn read(&self, mut lengths: impl Iterator<Item = usize>) -> RequestTrace {
        let mut reader = ReplyReader::new(self.protocol, true).with_audio(self.declared);
        reader.head(self.head.clone());
        let (mut rest, mut decided) = (self.body, false);
        while !rest.is_empty() {
            let (progress, left) = if self.protocol == Protocol::OpenaiRealtime {
                let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
                (reader.frame(1_000, &rest[..end]), rest.get(end + 1..).unwrap_or_default())
            } else {
                let (piece, left) = rest.split_at(lengths.next().unwrap_or(1).min(rest.len()));
                (reader.bytes(1_000, piece), left)
            };
            assert!(progress.decided || !decided, "a decided reply stays decided");
            (rest, decided) = (left, progress.decided);
        }
        reader.finish(2_000, self.end.clone())
    }
}

/// A trace without what depends on how the bytes were cut.
fn without_writes(mut trace: RequestTrace) -> RequestTrace {
    trace.warnings.retain(|warning| *warning != Warning::Coalesced);
    RequestTrace { output_writes: 0, first_output_write: None, first_answer_write: None, ..trace }
}

/// What holds of every reply, whatever came.
fn assert_plausible(trace: &RequestTrace, length: usize) {
    const MOST_GAPS: usize = 65_536;
    const MOST_TEXT: usize = 1 << 20;
    const MOST_ERROR: usize = 1_000;
    let chunks = trace.output_chunks as usize;
    assert!(chunks <= length, "no output without a byte of its own");
    assert_eq!(trace.chunk_gaps_ns.len(), chunks.saturating_sub(1).min(MOST_GAPS));
    assert_eq!(trace.first_output_ns.is_some(), chunks > 0);
    assert_eq!(trace.last_output_ns.is_some(), chunks > 0);
    assert_eq!(trace.first_output_kind.is_some(), chunks > 0);
    assert!(trace.first_answer_ns.is_none() || chunks > 0);
    assert!(trace.audio_bytes <= length as u64);
    assert!(trace.audio_bytes == 0 || trace.first_audio_ns.is_some());
    assert_eq!(trace.audio_ns.is_some(), trace.underrun_ns.is_some(), "both or none");
    assert!(trace.outcome != Outcome::Ok || (chunks > 0 && trace.error.is_none()));
    assert!(trace.outcome == Outcome::Ok || trace.outcome == Outcome::HttpError || has_reason(trace), "{trace:?}");
    assert!(trace.output_tokens.is_none() || trace.reasoning_tokens <= trace.output_tokens, "{trace:?}");
    assert!(trace.error.as_ref().is_none_or(|error| error.chars().count() <= MOST_ERROR));
    let texts = trace.texts.clone().unwrap_or_default();
    let calls: usize = texts.tool_calls.iter().map(|call| call.name.len() + call.arguments.len()).sum();
    let kept = texts.text.len() + texts.reasoning.len() + texts.refusal.len() + calls;
    assert!(kept <= MOST_TEXT, "{kept} bytes are kept");
    // The first choice stands in both.
    assert!(texts.by_choice.iter().map(String::len).sum::<usize>() <= MOST_TEXT);
}

/// Nobody is left without a word about what went wrong; what we ourselves stopped needs none.
fn has_reason(trace: &RequestTrace) -> bool {
    trace.error.as_ref().is_some_and(|error| !error.is_empty()) || trace.outcome == Outcome::Cancelled
}
