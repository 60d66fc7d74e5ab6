//! The wire corpus in process, and what must hold for any bytes and any cut of them.

use proptest::prelude::*;

use self::wire::Case;
use super::*;
use crate::audio::{Encoding, PcmFormat};
use crate::schedule::Words;

#[path = "../../tests/support/wire.rs"]
pub(super) mod wire;

const MS: u64 = 1_000_000;

/// A reply to be read: its writes with their time, and how it ended.
pub(super) struct Reply {
    pub(super) protocol: Protocol,
    pub(super) head: Option<ReplyHead>,
    /// Writes of a body; of a WebSocket, whole messages.
    pub(super) writes: Vec<(u64, Vec<u8>)>,
    pub(super) end: (u64, ReplyEnd),
}

impl Reply {
    fn of(case: &Case) -> Self {
        let protocol = Protocol::from_name(&case.adapter).expect("a dialect that is read");
        let head = case.status.map(|status| ReplyHead {
            status,
            content_type: case.header("content-type"),
            content_encoding: case.header("content-encoding"),
            retry_after: case.header("retry-after"),
            date: case.header("date"),
        });
        // Frames that make up no message by themselves are put together by the driver.
        let is_message =
            |write: &&wire::Write| ["", "text", "binary"].contains(&write.op.as_str()) && write.fin != Some(false);
        let messages: Vec<_> = case.chunks.iter().filter(is_message).collect();
        let close = case.chunks.iter().find(|write| write.op == "close");
        assert_eq!(messages.len() + usize::from(close.is_some()), case.chunks.len(), "{} has other frames", case.id);
        let writes: Vec<_> = messages.iter().map(|write| (write.at_ms * MS, write.bytes())).collect();
        let last = writes.last().map_or(0, |(at_ns, _)| *at_ns);
        let ends_at = case.ends_at_ms.map_or(last, |at_ms| at_ms * MS);
        let end = match (close, case.ends.as_str(), case.framing.as_str()) {
            (Some(close), _, _) => (close.at_ms * MS, ReplyEnd::Closed(close.code, close.reason.clone())),
            (None, "hang", _) => (last + 1_000 * MS, ReplyEnd::TimedOut("idle")),
            (None, "clean", _) | (None, "truncated", "eof") => (ends_at, ReplyEnd::Complete),
            (None, "truncated", _) => (ends_at, ReplyEnd::Broken("closed before the body was complete".to_owned())),
            (None, "reset", _) => (ends_at, ReplyEnd::Broken("connection reset".to_owned())),
            (None, other, _) => panic!("unknown end {other:?}"),
        };
        Self { protocol, head, writes, end }
    }

    pub(super) fn read(&self) -> RequestTrace {
        self.read_in(|_| usize::MAX)
    }

    /// Reads every write in pieces whose lengths `length` gives; a piece has the time of its write.
    fn read_in(&self, length: impl FnMut(usize) -> usize) -> RequestTrace {
        self.read_by(ReplyReader::new(self.protocol, true), length)
    }

    pub(super) fn read_by(&self, mut reader: ReplyReader, mut length: impl FnMut(usize) -> usize) -> RequestTrace {
        if let Some(head) = &self.head {
            reader.head(head.clone());
        }
        let mut decided = false;
        let upgraded = self.protocol == Protocol::OpenaiRealtime && self.head.as_ref().is_some_and(|h| h.status == 101);
        for (at_ns, bytes) in &self.writes {
            if upgraded {
                let progress = reader.frame(*at_ns, bytes);
                assert!(progress.decided || !decided, "a decided reply stays decided");
                decided = progress.decided;
                continue;
            }
            let mut rest = &bytes[..];
            loop {
                let (piece, left) = rest.split_at(length(rest.len()).min(rest.len()));
                let progress = reader.bytes(*at_ns, piece);
                assert!(progress.decided || !decided, "a decided reply stays decided");
                decided = progress.decided;
                rest = left;
                if rest.is_empty() {
                    break;
                }
            }
        }
        let (at_ns, end) = self.end.clone();
        reader.finish(at_ns, end)
    }
}

/// A trace without what depends on how the bytes were cut into writes.
fn uncut(mut trace: RequestTrace) -> RequestTrace {
    trace.warnings.retain(|warning| *warning != Warning::Coalesced);
    RequestTrace { output_writes: 0, first_output_write: None, first_answer_write: None, ..trace }
}

#[test]
fn every_case_is_concluded_as_the_corpus_says() {
    let cases = Case::all();
    assert_eq!(cases.len(), 96, "the corpus has 96 cases");
    let differences: Vec<_> = cases.iter().flat_map(|case| case.differences(&Reply::of(case).read(), &[])).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn no_case_depends_on_how_its_bytes_are_cut() {
    for case in Case::all() {
        let reply = Reply::of(&case);
        let expected = uncut(reply.read());
        assert_eq!(uncut(reply.read_in(|_| 1)), expected, "{} byte by byte", case.id);
        for seed in 0..20 {
            let mut words = Words::new(seed, 7);
            let found = uncut(reply.read_in(|left| 1 + words.next_below(left.clamp(1, 400) as u64) as usize));
            assert_eq!(found, expected, "{} cut with seed {seed}", case.id);
        }
    }
}

/// Reads `body` as one write of a complete reply.
pub(super) fn read(protocol: Protocol, content_type: &str, body: &[u8]) -> RequestTrace {
    let head = ReplyHead { status: 200, content_type: Some(content_type.to_owned()), ..ReplyHead::default() };
    let writes = vec![(10 * MS, body.to_vec())];
    Reply { protocol, head: Some(head), writes, end: (20 * MS, ReplyEnd::Complete) }.read()
}

fn stream(body: &str) -> RequestTrace {
    read(Protocol::OpenaiChat, "text/event-stream", body.as_bytes())
}

const DELTA: &str = r#"{"choices":[{"delta":{"content":"x"}}]}"#;
const STOP: &str = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#;
const USAGE: &str = r#"{"choices":[],"usage":{"prompt_tokens":2,"completion_tokens":1}}"#;

/// Outcome and warnings of a chat stream.
#[track_caller]
fn check(body: &str, outcome: Outcome, warnings: &[Warning]) {
    let trace = stream(body);
    assert_eq!((trace.outcome, &trace.warnings[..]), (outcome, warnings), "{body}\n{:?}", trace.error);
}

#[test]
fn oddities_are_flagged_and_faults_are_not_excused() {
    use Outcome::{EmptyOutput, Ok, ProtocolError, StreamError, TruncatedStream};
    let (d, s, u) = (format!("data: {DELTA}\n\n"), format!("data: {STOP}\n\n"), format!("data: {USAGE}\n\n"));
    let done = "data: [DONE]\n\n";
    check(&format!("{d}{s}{u}{done}"), Ok, &[]);
    check(&format!("{d}{s}{u}{done}{d}"), Ok, &[Warning::DataAfterDone]);
    check(&format!("{d}data: ping\n\n{s}{u}{done}"), Ok, &[Warning::NonjsonKeepalive]);
    check(&format!("{d}data: null\n\ndata: []\n\ndata:\n\nevent: ping\ndata: {{\n\n{s}{u}{done}"), Ok, &[]);
    check(&format!("{d}data: content\":\"lost\"}}}}]}}{{\n\n{s}{u}{done}"), ProtocolError, &[]);
    check(&format!("{d}{s}{u}data: [DONE]"), Ok, &[Warning::ImplicitEventBoundary]);
    check(
        &format!("data: {DELTA}\ndata: {STOP}\ndata: {USAGE}\ndata: [DONE]\n"),
        Ok,
        &[Warning::ImplicitEventBoundary],
    );
    check(&format!("{d}data: {{\"choices\":[{{\"del"), TruncatedStream, &[]);
    check("data: {\"choices\":[{\"del", TruncatedStream, &[]);
    check(&format!("{d}error: {{\"code\":500,\"message\":\"gone\"}}\n\n{done}"), StreamError, &[]);
    check(&format!("{d}{{\"error\":{{\"message\":\"gone\"}}}}\n"), StreamError, &[]);
    check(&format!("{d}{s}{u}data: {{\"error\":\"late\"}}\n\n{done}"), StreamError, &[]);
    check(&format!("data: {{\"error\":\"early\"}}\n\n{d}{s}{u}{done}"), StreamError, &[]);
    check(
        &format!("{d}data: {{\"choices\":[{{\"error\":{{\"message\":\"gone\"}}}}]}}\n\n{done}"),
        StreamError,
        &[Warning::Coalesced; 0],
    );
    check(
        &format!("{d}{s}data: {{\"usage\":{{\"prompt_tokens\":2,\"completion_tokens\":0}}}}\n\n{done}"),
        Ok,
        &[Warning::UsageContradiction],
    );
    check(r#"{"error":{"message":"as JSON"}}"#, StreamError, &[]);
    check(r#"[{"error":{"message":"in a list"}}]"#, StreamError, &[]);
    check("upstream connect error", ProtocolError, &[]);
    check("<html>", ProtocolError, &[]);
    check(done, EmptyOutput, &[]);
    check(
        "data: {\"choices\":[{\"delta\":{\"content\":\"\\ud83d\"}}]}\n\ndata: [DONE]\n\n",
        Ok,
        &[Warning::NoFinishReason, Warning::NoUsage, Warning::InvalidUtf8],
    );
}

#[test]
fn a_choice_that_was_not_finished_is_cut() {
    let other = "data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"y\"}}]}\n\n";
    let trace = stream(&format!("data: {DELTA}\n\n{other}data: {STOP}\n\n"));
    assert_eq!((trace.outcome, trace.truncated), (Outcome::TruncatedStream, Some(true)));
}

#[test]
fn a_complete_reply_stays_complete_however_the_transport_ends() {
    let body = format!("data: {DELTA}\n\ndata: {STOP}\n\ndata: {USAGE}\n\n");
    for (end, warnings) in [
        (ReplyEnd::Broken("reset".to_owned()), &[Warning::NoDone, Warning::HttpFraming][..]),
        (ReplyEnd::TimedOut("idle"), &[Warning::NoDone]),
        (ReplyEnd::Cancelled, &[Warning::NoDone]),
    ] {
        let mut reader = ReplyReader::new(Protocol::OpenaiChat, false);
        reader.head(ReplyHead {
            status: 200,
            content_type: Some("text/event-stream".to_owned()),
            ..ReplyHead::default()
        });
        let progress = reader.bytes(MS, body.as_bytes());
        assert_eq!(progress, Progress { messages: 3, decided: false });
        let trace = reader.finish(2 * MS, end);
        assert_eq!((trace.outcome, &trace.warnings[..], trace.texts), (Outcome::Ok, warnings, None));
    }
}

#[test]
fn a_reply_that_did_not_complete_ends_as_the_transport_did() {
    let delta = format!("data: {DELTA}\n\n");
    for (end, outcome) in [
        (ReplyEnd::Complete, Outcome::TruncatedStream),
        (ReplyEnd::Broken("reset".to_owned()), Outcome::TruncatedStream),
        (ReplyEnd::TimedOut("total"), Outcome::Timeout),
        (ReplyEnd::Cancelled, Outcome::Cancelled),
    ] {
        for (status, outcome) in [(200, outcome), (500, Outcome::HttpError)] {
            let mut reader = ReplyReader::new(Protocol::OpenaiChat, false);
            reader.head(ReplyHead { status, ..ReplyHead::default() });
            reader.bytes(MS, delta.as_bytes());
            assert_eq!(reader.finish(2 * MS, end.clone()).outcome, outcome, "{status} {end:?}");
        }
        let without_head = ReplyReader::new(Protocol::OpenaiChat, false).finish(MS, end.clone());
        let expected = match outcome {
            Outcome::TruncatedStream => Outcome::NoResponse,
            other => other,
        };
        assert_eq!((without_head.outcome, without_head.status), (expected, None));
    }
}

/// A busy client reads several writes at once, one after the other: their gaps say nothing of the server.
#[test]
fn outputs_that_were_read_at_one_instant_are_coalesced() {
    let [delta, end] = [format!("data: {DELTA}\n\n"), format!("data: {STOP}\n\ndata: {USAGE}\n\ndata: [DONE]\n\n")];
    for (instants, coalesced) in [([10, 10, 10], true), ([10, 10, 11], false)] {
        let mut reader = ReplyReader::new(Protocol::OpenaiChat, false);
        let content_type = Some("text/event-stream".to_owned());
        reader.head(ReplyHead { status: 200, content_type, ..ReplyHead::default() });
        for at in instants {
            reader.bytes(at * MS, delta.as_bytes());
        }
        reader.bytes(12 * MS, end.as_bytes());
        let trace = reader.finish(13 * MS, ReplyEnd::Complete);
        assert_eq!((trace.outcome, trace.output_chunks), (Outcome::Ok, 3));
        assert_eq!(trace.warnings.contains(&Warning::Coalesced), coalesced, "{instants:?}");
    }
}

#[test]
fn heads_that_promise_something_else_are_refused() {
    let compressed = ReplyHead { status: 200, content_encoding: Some("gzip".to_owned()), ..ReplyHead::default() };
    let mut reader = ReplyReader::new(Protocol::OpenaiChat, false);
    reader.head(compressed);
    assert!(reader.bytes(MS, b"\x1f\x8b\x08").decided);
    let trace = reader.finish(MS, ReplyEnd::Complete);
    assert_eq!(trace.outcome, Outcome::ProtocolError);
    assert_eq!(trace.error.as_deref(), Some("compressed body (gzip), although none was asked for"));
    for (protocol, content_type, body, outcome) in [
        (Protocol::OpenaiChatJson, "text/event-stream", "data: {}\n\n", Outcome::ProtocolError),
        (Protocol::OpenaiChatJson, "application/json", "data: {}\n\n", Outcome::ProtocolError),
        (Protocol::OpenaiChatJson, "application/json", "{\"status\":\"fine\"}", Outcome::ProtocolError),
        (Protocol::OpenaiChatJson, "application/json", "{\"choices\":[]}", Outcome::EmptyOutput),
        (Protocol::OpenaiChatJson, "application/json", " \n", Outcome::EmptyOutput),
        (Protocol::OpenaiChatJson, "application/json", "{\"error\":\"no\"}", Outcome::StreamError),
        (Protocol::OpenaiChatJson, "application/json", "[1]", Outcome::ProtocolError),
        (Protocol::OpenaiChat, "application/x-ndjson", "{}\n{}\n", Outcome::ProtocolError),
    ] {
        assert_eq!(read(protocol, content_type, body.as_bytes()).outcome, outcome, "{content_type} {body}");
    }
}

#[test]
fn many_events_in_one_write_are_counted_and_bounded() {
    let count = limits::GAPS + 3;
    let body = format!("data: {DELTA}\n\n").repeat(count);
    let trace = stream(&format!("{body}data: {STOP}\n\ndata: [DONE]\n\n"));
    assert_eq!((trace.outcome, trace.output_chunks as usize, trace.output_writes), (Outcome::Ok, count, 1));
    assert_eq!((trace.chunk_gaps_ns.len(), trace.texts.map(|t| t.text.len())), (limits::GAPS, Some(count)));
}

#[test]
fn a_hostile_index_or_nesting_is_no_harm() {
    let far = r#"data: {"choices":[{"index":4000000000,"delta":{"content":"x","tool_calls":[{"index":4000000000,"function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}]}"#;
    let trace = stream(&format!("{far}\n\ndata: [DONE]\n\n"));
    assert_eq!((trace.outcome, trace.output_chunks), (Outcome::Ok, 1));
    let deep = "[".repeat(100_000);
    for body in [
        format!("data: {{\"x\":{deep}\n\n"),
        format!("data: {{\"choices\":{deep}\n\n"),
        deep.clone(),
        format!("{{\"error\":{deep}"),
    ] {
        assert_eq!(stream(&body).outcome, Outcome::ProtocolError);
    }
}

/// 16-bit mono at 8 kHz, with 4 bytes of samples announced.
const WAV_HEADER: &[u8] =
    b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0data\x04\0\0\0";

/// The format that a contract may declare.
const DECLARED: PcmFormat = PcmFormat { encoding: Encoding::G711Ulaw, sample_rate: 8_000, channels: 1 };

/// Pieces of event streams, JSON and sound that are put together at random, and plain noise.
fn hostile_body() -> impl Strategy<Value = Vec<u8>> {
    let delta = format!("data: {DELTA}\n\n").into_bytes();
    let stop = format!("data: {STOP}\n").into_bytes();
    let piece = prop_oneof![
        4 => Just(delta),
        2 => Just(stop),
        1 => Just(b"data: [DONE]\n\n".to_vec()),
        2 => Just(b"{\"message\":{\"content\":\"x\"},\"done\":false}\n".to_vec()),
        1 => Just(b"{\"response\":\"\",\"done\":true,\"eval_count\":1}".to_vec()),
        1 => prop::sample::select(vec![
            &b"\n"[..], b"\r", b"\r\n", b"data:", b"data: ", b"event: error\n", b"event", b":", b": c\r", b"{", b"}", b"[DONE]",
            b"\"error\":", b"\xef\xbb\xbf", b"\xff", b"\xe2\x98", b"<", b"[", b" ", b"\\ud83d", b"null", b"error: {\"a\":1}\n",
            b"{\"error\":\"e\"}\n", b"{\"choices\":[{\"message\":{\"content\":\"hi\"}}]}",
        ]).prop_map(<[u8]>::to_vec),
        2 => prop::sample::select(vec![
            WAV_HEADER, b"RIFF\0\0\0\0WAVE", b"data\x02\0\0\0", b"fmt \x01\0\0\0", b"LIST\x03\0\0\0", b"ID3", b"OggS", b"\xff\xfb\x90",
            b"\0\0\0\0", b"{\"text\":\"hi\"}", b"data: {\"type\":\"transcript.text.delta\",\"delta\":\"x\"}\n\n",
            b"data: {\"type\":\"transcript.text.done\",\"text\":\"x\"}\n\n",
        ]).prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(any::<u8>(), 0..8),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_bytes_give_the_same_conclusions_for_any_cut(
        body in hostile_body(),
        lengths in prop::collection::vec(1usize..40, 1..8),
        protocol in prop::sample::select(Protocol::ALL.to_vec()),
        status in prop::sample::select(vec![200u16, 200, 200, 503]),
        content_type in prop::sample::select(vec![None, Some("text/event-stream"), Some("application/json"), Some("application/x-ndjson"), Some("text/html"), Some("audio/wav"), Some("audio/pcm;rate=8000"), Some("application/octet-stream")]),
        declared in prop::option::of(Just(DECLARED)),
        end in prop::sample::select(vec![
            ReplyEnd::Complete, ReplyEnd::Broken("reset".to_owned()), ReplyEnd::TimedOut("idle"), ReplyEnd::Cancelled,
        ]),
    ) {
        let head = ReplyHead { status, content_type: content_type.map(str::to_owned), ..ReplyHead::default() };
        let reply = Reply { protocol, head: Some(head), writes: vec![(MS, body)], end: (2 * MS, end) };
        let mut lengths = lengths.into_iter().cycle();
        let reader = || ReplyReader::new(protocol, true).with_audio(declared);
        let cut = reply.read_by(reader(), |_| lengths.next().unwrap_or(1));
        prop_assert_eq!(uncut(cut), uncut(reply.read_by(reader(), |_| usize::MAX)));
    }
}
