//! Turns of a realtime session, beyond what the wire corpus holds.

use proptest::prelude::*;

use super::corpus_tests::Reply;
use super::voice_tests::{MS, PCM, read};
use super::{Outcome, OutputKind, Protocol, ReplyEnd, ReplyHead, ReplyReader, RequestTrace, Warning};

/// A turn whose messages come 10 ms after each other, with a declared format, and which then breaks off.
fn turn(messages: &[&str]) -> RequestTrace {
    let writes: Vec<_> = (1..).map(|at| 10 * at).zip(messages.iter().map(|message| message.as_bytes())).collect();
    read(Protocol::OpenaiRealtime, (101, None), Some(PCM), &writes, ReplyEnd::Broken("reset".to_owned()))
}

/// An event with sound, in base64.
fn audio(kind: &str, base64: &str) -> String {
    format!(r#"{{"type":"{kind}","response_id":"r","item_id":"i","output_index":0,"delta":"{base64}"}}"#)
}

fn done(response: &str) -> String {
    format!(r#"{{"type":"response.done","response":{{"object":"realtime.response",{response}}}}}"#)
}

const USAGE: &str = r#""usage":{"total_tokens":40,"input_tokens":21,"output_tokens":19,
    "input_token_details":{"cached_tokens":8,"audio_tokens":13},"output_token_details":{"text_tokens":4,"audio_tokens":15}}"#;

#[test]
fn a_spoken_turn_is_its_sound_and_the_text_of_it() {
    let completed = done(&format!(r#""status":"completed",{USAGE}"#));
    for (sound, transcript) in [
        ("response.output_audio.delta", "response.output_audio_transcript.delta"),
        ("response.audio.delta", "response.audio_transcript.delta"),
    ] {
        let second = "AQAB".repeat(160); // 480 bytes
        let trace = turn(&[
            r#"{"type":"session.created","session":{"object":"realtime.session"}}"#,
            r#"{"type":"input_audio_buffer.committed"}"#,
            r#"{"type":"conversation.item.input_audio_transcription.failed","error":{"message":"unclear"}}"#,
            r#"{"type":"response.created","response":{"status":"in_progress"}}"#,
            r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"message","role":"assistant"}}"#,
            &format!(r#"{{"type":"{transcript}","delta":"Hello"}}"#),
            &audio(sound, &second),
            r#"{"type":"something.new","delta":"none of ours"}"#,
            "",
            &audio(sound, ""),
            &audio(sound, "AQABAA=="),
            r#"{"type":"response.output_audio_transcript.done","transcript":"Hello"}"#,
            r#"{"type":"response.output_audio.done"}"#,
            &completed,
            r#"{"type":"rate_limits.updated","rate_limits":[]}"#,
            &audio(sound, &second),
        ]);
        assert_eq!((trace.outcome, &trace.warnings[..], trace.error), (Outcome::Ok, &[Warning::HttpFraming][..], None));
        assert_eq!((trace.first_output_ns, trace.first_output_kind), (Some(60 * MS), Some(OutputKind::Content)));
        assert_eq!((trace.first_audio_ns, trace.first_output_write), (Some(70 * MS), Some(5)));
        assert_eq!((trace.output_chunks, &trace.chunk_gaps_ns[..]), (3, &[10 * MS, 40 * MS][..]));
        // 480 + 4 bytes; the second piece came 40 ms after the first, which lasts 10 ms.
        assert_eq!((trace.audio_bytes, trace.underrun_ns), (484, Some(30 * MS)));
        assert_eq!(trace.audio_ns, Some(484 * 1_000_000_000 / 48_000));
        let counts = [trace.input_tokens, trace.output_tokens, trace.cached_tokens, trace.reasoning_tokens];
        assert_eq!(counts, [Some(21), Some(19), Some(8), None]);
        let texts = trace.texts.unwrap_or_default();
        assert_eq!((texts.text.as_str(), trace.finish_reason.as_deref()), ("Hello", Some("stop")));
        assert_eq!((trace.finish_reason_raw.as_deref(), trace.done_seen), (Some("completed"), true));
        assert_eq!((trace.truncated, trace.close_code), (Some(false), None));
    }
}

#[test]
fn a_turn_ends_as_its_response_says() {
    use Outcome::{EmptyOutput, Ok, ProtocolError, StreamError, TruncatedStream};
    let text = r#"{"type":"response.output_text.delta","delta":"x"}"#;
    let later = done(r#""status":"failed""#);
    for (messages, outcome, finish, error) in [
        (vec![done(&format!(r#""status":"completed",{USAGE}"#)), later], Ok, Some("stop"), None),
        (
            vec![done(r#""status":"incomplete","status_details":{"reason":"max_output_tokens"}"#)],
            Ok,
            Some("length"),
            None,
        ),
        (
            vec![done(r#""status":"incomplete","status_details":{"reason":"content_filter"}"#)],
            Ok,
            Some("content_filter"),
            None,
        ),
        (
            vec![done(r#""status":"failed","status_details":{"type":"failed","error":{"code":"x","message":"gone"}}"#)],
            StreamError,
            None,
            Some("gone"),
        ),
        (
            vec![done(r#""status":"cancelled","status_details":{"type":"cancelled","reason":"turn_detected"}"#)],
            StreamError,
            None,
            Some("turn_detected"),
        ),
        (
            vec![r#"{"type":"error","error":{"type":"server_error","message":"gone"}}"#.into()],
            StreamError,
            None,
            Some("gone"),
        ),
        (vec![audio("response.audio.delta", "not base64!")], ProtocolError, None, Some("base64")),
        (vec![audio("response.audio.delta", "AAAA=")], ProtocolError, None, Some("base64")),
        (vec![r#"{"type":"response.output"#.into()], ProtocolError, None, Some("JSON")),
        (vec![], TruncatedStream, None, Some("reset")),
    ] {
        let messages: Vec<&str> = [text].into_iter().chain(messages.iter().map(String::as_str)).collect();
        let trace = turn(&messages);
        assert_eq!((trace.outcome, trace.finish_reason.as_deref()), (outcome, finish), "{messages:?}");
        let told = error.is_none_or(|words| trace.error.as_deref().is_some_and(|error| error.contains(words)));
        assert!(told, "{messages:?} {:?}", trace.error);
        assert_eq!(
            trace.truncated,
            match outcome {
                Ok => Some(finish != Some("stop")),
                TruncatedStream => Some(true),
                _ => None,
            }
        );
    }
    assert_eq!(turn(&[&done(r#""status":"completed""#)]).outcome, EmptyOutput);
}

#[test]
fn a_response_without_a_final_status_does_not_end_as_one_that_was_completed() {
    let text = r#"{"type":"response.output_text.delta","delta":"x"}"#;
    for end in [
        r#"{"type":"response.done"}"#.to_owned(),
        r#"{"type":"response.done","response":null}"#.to_owned(),
        done(r#""id":"r""#),
        done(r#""status":"""#),
        done(r#""status":null"#),
    ] {
        let trace = turn(&[text, &end]);
        assert_eq!((trace.outcome, trace.finish_reason, trace.done_seen), (Outcome::Ok, None, true), "{end}");
        assert!(trace.warnings.contains(&Warning::NoFinishReason), "{end} {:?}", trace.warnings);
    }
    for status in ["in_progress", "queued", "exploded", "Completed"] {
        let trace = turn(&[text, &done(&format!(r#""status":"{status}",{USAGE}"#))]);
        assert_eq!((trace.outcome, trace.finish_reason), (Outcome::StreamError, None), "{status}");
        assert!(trace.error.is_some_and(|error| error.contains(status)), "{status}");
    }
}

#[test]
fn a_turn_may_call_a_function() {
    let trace = turn(&[
        r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","name":"f"}}"#,
        r#"{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{}"}"#,
        &done(r#""status":"completed""#),
    ]);
    assert_eq!((trace.outcome, trace.first_output_kind), (Outcome::Ok, Some(OutputKind::ToolCall)));
    let calls = trace.texts.unwrap_or_default().tool_calls;
    assert_eq!(calls.iter().map(|call| (&call.name[..], &call.arguments[..])).collect::<Vec<_>>(), [("f", "{}")]);
}

#[test]
fn sound_of_a_turn_in_no_declared_format_has_no_duration() {
    let (sound, done) = (audio("response.audio.delta", "AAAA"), done(r#""status":"completed""#));
    let writes = [(10, sound.as_bytes()), (20, done.as_bytes())];
    let read = |declared| read(Protocol::OpenaiRealtime, (101, None), declared, &writes, ReplyEnd::TimedOut("idle"));
    let trace = read(None);
    assert_eq!((trace.outcome, trace.audio_bytes, trace.audio_ns, trace.underrun_ns), (Outcome::Ok, 3, None, None));
    assert_eq!(trace.warnings, [Warning::NoUsage]);
    assert_eq!(read(Some(PCM)).warnings, [Warning::NoUsage, Warning::SilentAudio]);
}

#[test]
fn what_the_session_says_of_its_sound_is_believed() {
    let session = |kind: &str, session: &str| format!(r#"{{"type":"session.{kind}","session":{{{session}}}}}"#);
    let pcm = |rate: u32| format!(r#""audio":{{"output":{{"format":{{"type":"audio/pcm","rate":{rate}}}}}}}"#);
    let (sound, done) = (audio("response.output_audio.delta", &"AQAB".repeat(1_600)), done(r#""status":"completed""#));
    // 4800 bytes: 100 ms at the declared 24 kHz.
    for (before, after, expected_ms) in [
        (session("created", r#""id":"s""#), String::new(), 100),
        (session("created", &pcm(16_000)), String::new(), 150),
        (session("updated", &pcm(48_000)), String::new(), 50),
        (session("updated", r#""output_audio_format":"g711_ulaw""#), String::new(), 600),
        (session("updated", r#""audio":{"output":{"format":{"type":"audio/pcma"}}}"#), String::new(), 600),
        (session("updated", r#""audio":{"output":{"format":null}}"#), String::new(), 100),
        (session("updated", r#""audio":{"output":{"format":{"type":"audio/opus","rate":8000}}}"#), String::new(), 100),
        (session("updated", &pcm(0)), String::new(), 100),
        (session("updated", r#""audio":{"output":{"format":{"type":"audio/pcm"}}}"#), String::new(), 100),
        (session("created", r#""id":"s""#), session("updated", &pcm(8_000)), 100),
    ] {
        let after = if after.is_empty() { r#"{"type":"rate_limits.updated"}"#.to_owned() } else { after };
        let trace = turn(&[&before, &sound, &after, &done]);
        assert_eq!((trace.outcome, trace.audio_ns), (Outcome::Ok, Some(expected_ms * MS)), "{before} {after}");
    }
}

#[test]
fn a_web_socket_closes_with_a_code_until_the_turn_is_complete() {
    use Outcome::{Ok, StreamError, TruncatedStream};
    let text = r#"{"type":"response.text.delta","delta":"x"}"#;
    let done = done(&format!(r#""status":"completed",{USAGE}"#));
    for (end, outcome, code) in [
        (ReplyEnd::Closed(Some(1000), String::new()), TruncatedStream, Some(1000)),
        (ReplyEnd::Closed(None, String::new()), TruncatedStream, Some(1005)),
        (ReplyEnd::Closed(Some(1001), "going away".into()), StreamError, Some(1001)),
        (ReplyEnd::Closed(Some(4008), "session expired".into()), StreamError, Some(4008)),
        (ReplyEnd::Broken("reset".into()), TruncatedStream, Some(1006)),
        (ReplyEnd::TimedOut("idle"), Outcome::Timeout, None),
    ] {
        let cut = read(Protocol::OpenaiRealtime, (101, None), None, &[(1, text.as_bytes())], end.clone());
        assert_eq!((cut.outcome, cut.close_code), (outcome, code), "{end:?}");
        if let ReplyEnd::Closed(Some(code @ 1001..), reason) = &end {
            let error = cut.error.unwrap_or_default();
            assert!(error.contains(&code.to_string()) && error.contains(reason), "{error}");
        }
        let writes = [(1, text.as_bytes()), (2, done.as_bytes())];
        let whole = read(Protocol::OpenaiRealtime, (101, None), None, &writes, end.clone());
        assert_eq!((whole.outcome, whole.close_code), (Ok, None), "{end:?}");
        let refused = read(Protocol::OpenaiRealtime, (403, None), None, &[(1, b"no")], end.clone());
        assert_eq!((refused.outcome, refused.close_code), (Outcome::HttpError, None), "{end:?}");
    }
    let answered = [(1, &br#"{"object":"list"}"#[..])];
    let plain = read(Protocol::OpenaiRealtime, (200, Some("application/json")), None, &answered, ReplyEnd::Complete);
    assert_eq!(plain.outcome, Outcome::ProtocolError);
    let other = read(Protocol::OpenaiChat, (101, None), None, &[], ReplyEnd::Complete);
    assert_eq!(other.outcome, Outcome::HttpError);
}

#[test]
fn what_the_driver_refuses_is_against_the_protocol() {
    let mut reader = ReplyReader::new(Protocol::OpenaiRealtime, false);
    reader.head(ReplyHead { status: 101, ..ReplyHead::default() });
    assert!(!reader.frame(MS, br#"{"type":"response.text.delta","delta":"x"}"#).decided);
    reader.refuse("a frame is masked");
    assert!(reader.frame(MS, br#"{"type":"response.done"}"#).decided);
    let trace = reader.finish(MS, ReplyEnd::Closed(Some(1002), String::new()));
    // That the server closed with a code of failure is its own report, and comes first.
    assert_eq!((trace.outcome, trace.output_chunks), (Outcome::StreamError, 1));
    let mut reader = ReplyReader::new(Protocol::OpenaiRealtime, false);
    reader.head(ReplyHead { status: 101, ..ReplyHead::default() });
    assert!(reader.frame(MS, &vec![b' '; 17 << 20]).messages == 0);
    let mut long = vec![b' '; 17 << 20];
    long.extend(b"{}");
    assert!(reader.frame(MS, &long).decided);
    let trace = reader.finish(MS, ReplyEnd::Broken("gone".to_owned()));
    assert_eq!(
        (trace.outcome, trace.error.as_deref()),
        (Outcome::ProtocolError, Some("a message is longer than 16 MiB"))
    );
}

/// Messages of a session, broken ones and noise.
fn hostile_message() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => prop::sample::select(vec![
            &br#"{"type":"response.output_audio.delta","delta":"AAAA"}"#[..], br#"{"type":"response.text.delta","delta":"x"}"#,
            br#"{"type":"response.audio.delta","delta":"A"}"#, br#"{"type":"response.done","response":{"status":"completed"}}"#,
            br#"{"type":"response.done"}"#, br#"{"type":"error","error":{"message":"no"}}"#, br#"{"type":"session.created"}"#,
            b"", b" \n", b"{", b"[]", b"ping", b"\xff\0", b"null", b"{}", br#"{"error":"e"}"#,
        ]).prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(any::<u8>(), 0..40),
    ]
}

proptest! {
    #[test]
    fn any_messages_of_a_web_socket_are_read_and_only_a_finished_response_is_one(
        messages in prop::collection::vec(hostile_message(), 0..12),
        end in prop::sample::select(vec![
            ReplyEnd::Broken("reset".to_owned()), ReplyEnd::TimedOut("idle"), ReplyEnd::Cancelled, ReplyEnd::Complete,
            ReplyEnd::Closed(None, String::new()), ReplyEnd::Closed(Some(1000), String::new()), ReplyEnd::Closed(Some(4001), "late".to_owned()),
        ]),
    ) {
        let finished = messages.iter().any(|message| message.windows(13).any(|piece| piece == b"response.done"));
        let head = ReplyHead { status: 101, ..ReplyHead::default() };
        let writes = (1..).map(|at| at * MS).zip(messages).collect();
        let reply = Reply { protocol: Protocol::OpenaiRealtime, head: Some(head), writes, end: (99 * MS, end) };
        let trace = reply.read_by(ReplyReader::new(Protocol::OpenaiRealtime, true).with_audio(Some(PCM)), |_| 1);
        prop_assert!(trace.outcome != Outcome::Ok || finished, "{trace:?}");
        prop_assert!(trace.audio_ns.is_some() == (trace.audio_bytes > 0), "{trace:?}");
    }
}
