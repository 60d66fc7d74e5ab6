//! What reading a reply costs: each dialect beside `serde_json` on the same JSON texts alone.
//!
//! `cargo bench --bench decode` runs every dialect, `cargo bench --bench decode -- openai-chat tgi` some. The replies are the
//! baseline cases of the wire corpus with one of their deltas repeated, read in pieces of 16 KiB (a WebSocket's message by
//! message). Sound holds no JSON, so that there is nothing to compare it with. The rounds alternate between the reader and
//! `serde_json`, and medians are shown, so that a busy machine is busy for both.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints, and one that cannot run has failed")]

use std::hint::black_box;
use std::time::Instant;

use goodput::observe::{Outcome, Protocol, ReplyEnd, ReplyHead, ReplyReader, RequestTrace};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

use self::wire::Case;

#[path = "../tests/support/wire.rs"]
#[expect(dead_code, reason = "what a case expects is held by tests")]
mod wire;

/// Deltas of a reply.
const DELTAS: usize = 20_000;
/// Bytes that are read at once.
const PIECE: usize = 16 << 10;
const ROUNDS: usize = 9;

/// The baseline case of each dialect, what ends its messages, and a text that only the repeated one holds.
const BASELINES: [(&str, &str, &str); 7] = [
    ("sse-baseline", "\n\n", "\" lamps\""),
    ("cmpl-baseline", "\n\n", "\" narrow\""),
    ("resp-baseline", "\n\n", "\"delta\":\" hill\""),
    ("anth-baseline", "\n\n", "\" dock\""),
    ("tgi-baseline", "\n\n", "\" rain\""),
    ("nd-chat-baseline", "\n", "\" warm\""),
    ("ws-baseline", "\n", "\" water\""),
];

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let cases = Case::all();
    let case = |id: &str| cases.iter().find(|case| case.id == id).unwrap();
    let mut replies: Vec<Reply> =
        BASELINES.iter().map(|(id, end, repeated)| Reply::stretched(case(id), end, repeated)).collect();
    replies.push(Reply::whole(case("json-baseline"), "Whole answer"));
    replies.push(Reply::transcription());
    replies.push(Reply::sound(case("audio-baseline")));
    println!("{DELTAS} deltas of each dialect in pieces of {} KiB, median of {ROUNDS} rounds", PIECE >> 10);
    println!("speed beside serde_json: 1.00 is as fast as parsing the same JSON texts to that type and nothing else\n");
    println!("{:<20} {:>8} {:>12} {:>10} {:>12}", "dialect", "MB/s", "events/s", "Value", "IgnoredAny");
    for reply in replies.iter().filter(|reply| wanted.is_empty() || wanted.iter().any(|n| n == reply.protocol.name())) {
        reply.measure();
    }
}

/// A reply and the JSON texts in it.
struct Reply {
    protocol: Protocol,
    head: ReplyHead,
    body: Vec<u8>,
    texts: Vec<String>,
    outputs: Option<u32>,
}

impl Reply {
    /// A stream in which the message that holds `repeated` comes again and again.
    fn stretched(case: &Case, end: &str, repeated: &str) -> Self {
        let body = text_of(case);
        let mut messages = Vec::new();
        for message in body.split_inclusive(end) {
            let times = if message.contains(repeated) { DELTAS } else { 1 };
            messages.extend(std::iter::repeat_n(message, times));
        }
        assert!(messages.len() > DELTAS, "{} has one message that is repeated", case.id);
        let outputs = case.expect["output_chunks"].as_u64().unwrap() as usize - 1 + DELTAS;
        Self::of(case, messages.concat().into_bytes(), Some(outputs as u32))
    }

    /// One body whose `repeated` text is long.
    fn whole(case: &Case, repeated: &str) -> Self {
        let long = "Whole \\\"answer\\\" ".repeat(DELTAS);
        Self::of(case, text_of(case).replace(repeated, &long).into_bytes(), Some(1))
    }

    /// Sound that goes on; its pieces are its outputs.
    fn sound(case: &Case) -> Self {
        let body: Vec<u8> = case.chunks.iter().flat_map(wire::Write::bytes).collect();
        Self::of(case, body.repeat(1_000), None)
    }

    /// The corpus has no transcription, so that one is written here.
    fn transcription() -> Self {
        let delta = "data: {\"type\":\"transcript.text.delta\",\"delta\":\" lamps\",\"logprobs\":null}\n\n";
        let usage = "\"usage\":{\"type\":\"tokens\",\"input_tokens\":9,\"output_tokens\":3,\"total_tokens\":12}";
        let done = format!("data: {{\"type\":\"transcript.text.done\",\"text\":\"lamps\",{usage}}}\n\n");
        let content_type = Some("text/event-stream".to_owned());
        let head = ReplyHead { status: 200, content_type, ..ReplyHead::default() };
        let body = (delta.repeat(DELTAS) + &done).into_bytes();
        Self::new(Protocol::OpenaiTranscription, head, body, Some(DELTAS as u32))
    }

    fn of(case: &Case, body: Vec<u8>, outputs: Option<u32>) -> Self {
        let status = case.status.unwrap();
        let head = ReplyHead { status, content_type: case.header("content-type"), ..ReplyHead::default() };
        Self::new(Protocol::from_name(&case.adapter).unwrap(), head, body, outputs)
    }

    fn new(protocol: Protocol, head: ReplyHead, body: Vec<u8>, outputs: Option<u32>) -> Self {
        let data = |line: &str| line.strip_prefix("data:").unwrap_or(line).trim().to_owned();
        let lines = std::str::from_utf8(&body).unwrap_or_default().lines();
        let texts = lines.map(data).filter(|text| text.starts_with('{')).collect();
        Self { protocol, head, body, texts, outputs }
    }

    fn measure(&self) {
        let mut seconds = [const { Vec::new() }; 3];
        for _ in 0..ROUNDS {
            seconds[0].push(timed(|| self.check(&self.read())));
            seconds[1].push(timed(|| self.parse::<Value>()));
            seconds[2].push(timed(|| self.parse::<IgnoredAny>()));
        }
        let ratio = |to: &[f64]| median(to.iter().zip(&seconds[0]).map(|(theirs, ours)| theirs / ours).collect());
        let ours = median(seconds[0].clone());
        print!("{:<20} {:>8.0}", self.protocol.name(), self.body.len() as f64 / 1e6 / ours);
        if self.texts.is_empty() {
            println!(" {:>12} {:>10} {:>12}", "–", "–", "–");
        } else {
            let events = self.texts.len() as f64 / ours;
            println!(" {events:>12.0} {:>10.2} {:>12.2}", ratio(&seconds[1]), ratio(&seconds[2]));
        }
    }

    fn read(&self) -> RequestTrace {
        let mut reader = ReplyReader::new(self.protocol, false);
        reader.head(self.head.clone());
        if self.protocol == Protocol::OpenaiRealtime {
            for (at_ns, message) in (0..).zip(&self.texts) {
                reader.frame(at_ns, message.as_bytes());
            }
            return reader.finish(1_000_000_000, ReplyEnd::Closed(Some(1000), String::new()));
        }
        for (at_ns, piece) in (0..).zip(self.body.chunks(PIECE)) {
            reader.bytes(at_ns, piece);
        }
        reader.finish(1_000_000_000, ReplyEnd::Complete)
    }

    /// A reader that gave up early would look fast.
    fn check(&self, trace: &RequestTrace) {
        assert_eq!(trace.outcome, Outcome::Ok, "{:?}", trace.error);
        match self.outputs {
            Some(outputs) => assert_eq!(trace.output_chunks, outputs),
            None => assert_eq!(trace.audio_bytes, self.body.len() as u64),
        }
    }

    fn parse<T: DeserializeOwned>(&self) {
        for text in &self.texts {
            black_box(serde_json::from_str::<T>(text).unwrap());
        }
    }
}

fn text_of(case: &Case) -> String {
    let mut bytes = Vec::new();
    for write in &case.chunks {
        bytes.extend(write.bytes());
        // The messages of a WebSocket have no end of their own.
        bytes.extend((!write.op.is_empty()).then_some(b'\n'));
    }
    String::from_utf8(bytes).unwrap()
}

fn timed(work: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    work();
    begun.elapsed().as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
