//! Sound and its text, beyond what the wire corpus holds. The payloads follow the protocols' public descriptions, and every
//! expected duration is bytes divided by the bytes of a second.

use super::corpus_tests::Reply;
use super::{Outcome, OutputKind, Protocol, ReplyEnd, ReplyHead, ReplyReader, RequestTrace, Warning};
use crate::audio::{Encoding, PcmFormat};

const MS: u64 = 1_000_000;

/// 16-bit mono at 24 kHz: 48 bytes a millisecond.
const PCM: PcmFormat = PcmFormat { encoding: Encoding::Pcm16, sample_rate: 24_000, channels: 1 };

/// The header of a WAV file of this many bits a sample, mono at 24 kHz, with this data size.
fn wav_header(bits: u16, size: u32) -> Vec<u8> {
    let mut header = b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0\x01\0\x01\0".to_vec();
    header.extend(24_000u32.to_le_bytes());
    header.extend((24_000 * u32::from(bits / 8)).to_le_bytes());
    header.extend((bits / 8).to_le_bytes());
    header.extend(bits.to_le_bytes());
    header.extend(b"data");
    header.extend(size.to_le_bytes());
    header
}

fn wav(size: u32, samples: &[u8]) -> Vec<u8> {
    [&wav_header(16, size), samples].concat()
}

/// Reads a reply of `protocol` whose head has this status and type, and whose writes come at these milliseconds.
fn read(
    protocol: Protocol,
    (status, content_type): (u16, Option<&str>),
    declared: Option<PcmFormat>,
    writes: &[(u64, &[u8])],
    end: ReplyEnd,
) -> RequestTrace {
    let head = ReplyHead { status, content_type: content_type.map(str::to_owned), ..ReplyHead::default() };
    let last = writes.last().map_or(0, |write| write.0);
    let writes = writes.iter().map(|(at_ms, bytes)| (at_ms * MS, bytes.to_vec())).collect();
    let reply = Reply { protocol, head: Some(head), writes, end: (last * MS, end) };
    reply.read_by(ReplyReader::new(protocol, true).with_audio(declared), |_| usize::MAX)
}

/// A complete body of speech in one write, with a declared format.
fn speech(content_type: Option<&str>, declared: Option<PcmFormat>, body: &[u8]) -> RequestTrace {
    read(Protocol::OpenaiSpeech, (200, content_type), declared, &[(10, body)], ReplyEnd::Complete)
}

#[test]
fn speech_begins_with_its_first_sample_and_a_listener_waits_for_late_ones() {
    let (header, samples) = (wav_header(16, u32::MAX), [1; 4_800]);
    let writes = [(10, &header[..20]), (20, &header[20..]), (30, &samples[..]), (230, &samples), (231, &[])];
    let trace = read(Protocol::OpenaiSpeech, (200, Some("audio/wav")), None, &writes, ReplyEnd::Complete);
    assert_eq!((trace.outcome, &trace.warnings[..], trace.error.as_deref()), (Outcome::Ok, &[][..], None));
    assert_eq!([trace.first_output_ns, trace.first_audio_ns, trace.first_answer_ns], [Some(30 * MS); 3]);
    assert_eq!((trace.first_output_kind, trace.first_output_write), (Some(OutputKind::Audio), Some(2)));
    assert_eq!((trace.output_chunks, &trace.chunk_gaps_ns[..]), (2, &[200 * MS][..]));
    // Two pieces of 100 ms; the second came 200 ms after the first, when there had been nothing to play for 100 ms.
    assert_eq!((trace.audio_bytes, trace.audio_ns, trace.underrun_ns), (9_600, Some(200 * MS), Some(100 * MS)));
    assert_eq!((trace.output_tokens, trace.finish_reason, trace.truncated), (None, None, None));
    let cut =
        read(Protocol::OpenaiSpeech, (200, Some("audio/wav")), None, &writes[..3], ReplyEnd::Broken("reset".into()));
    assert_eq!((cut.outcome, cut.audio_bytes, cut.close_code), (Outcome::TruncatedStream, 4_800, None));
}

#[test]
fn what_arrives_at_one_instant_is_one_piece_of_sound() {
    let samples = [1; 480];
    let writes = [(10, &samples[..]), (10, &samples), (30, &samples)];
    let trace = read(Protocol::OpenaiSpeech, (200, Some("audio/pcm")), Some(PCM), &writes, ReplyEnd::Complete);
    assert_eq!((trace.output_chunks, trace.output_writes, trace.audio_ns), (2, 2, Some(30 * MS)));
    assert_eq!(trace.underrun_ns, Some(0));
}

/// Outcome, warnings, bytes and milliseconds of sound of a body under a type.
#[track_caller]
fn check_speech(
    content_type: Option<&str>,
    body: &[u8],
    outcome: Outcome,
    warnings: &[Warning],
    sound: (u64, Option<u64>),
) {
    for declared in [None, Some(PCM)] {
        let trace = speech(content_type, declared, body);
        let found = (trace.outcome, &trace.warnings[..], (trace.audio_bytes, trace.audio_ns.map(|ns| ns / MS)));
        assert_eq!(found, (outcome, warnings, sound), "{content_type:?} {declared:?} {:?}", trace.error);
    }
}

#[test]
fn a_wav_file_tells_its_duration_under_any_type() {
    use Outcome::{EmptyOutput, Ok, ProtocolError};
    let samples = [1; 4_800];
    for (content_type, warnings) in [
        (Some("audio/wav"), &[][..]),
        (Some("application/octet-stream"), &[]),
        (Some("text/html; charset=utf-8"), &[Warning::ContentType]),
        (None, &[Warning::ContentType]),
    ] {
        for size in [4_800, 0, u32::MAX, 0x7FFF_0000] {
            check_speech(content_type, &wav(size, &samples), Ok, warnings, (4_800, Some(100)));
        }
        check_speech(content_type, &wav(0, &[]), EmptyOutput, warnings, (0, None));
        check_speech(content_type, &wav_header(16, 0)[..30], EmptyOutput, warnings, (0, None));
    }
    let wav_type = Some("audio/wav");
    let listed = [wav(4_800, &samples), b"LIST\x04\0\0\0INFO".to_vec()].concat();
    check_speech(wav_type, &listed, Ok, &[], (4_800, Some(100)));
    check_speech(wav_type, &[wav_header(24, 0), samples.to_vec()].concat(), Ok, &[], (4_800, Some(66)));
    check_speech(wav_type, &wav(4_800, &[0; 4_800]), Ok, &[Warning::SilentAudio], (4_800, Some(100)));
    check_speech(wav_type, &[wav_header(24, 0), vec![0; 72]].concat(), Ok, &[], (72, Some(1)));
    let without_format = [&b"RIFF\0\0\0\0WAVEdata\xff\xff\xff\xff"[..], &[1; 100]].concat();
    check_speech(wav_type, &without_format, ProtocolError, &[], (0, None));
}

#[test]
fn sound_without_a_container_lasts_as_its_type_or_the_contract_says() {
    for (content_type, declared, expected_ms) in [
        (Some("audio/pcm"), None, None),
        (Some("audio/pcm"), Some(PCM), Some(200)),
        (Some("application/octet-stream"), Some(PCM), Some(200)),
        (Some("audio/pcm;rate=16000"), None, Some(300)),
        (Some("audio/pcm; rate=16000"), Some(PCM), Some(300)),
        (Some("audio/L16;rate=24000;channels=2"), None, Some(100)),
        (Some("audio/pcm; Rate=\"48000\""), None, Some(100)),
        (Some("audio/pcm;rate=0"), Some(PCM), Some(200)),
        (Some("audio/mpeg"), Some(PCM), None),
        (Some("audio/wav"), Some(PCM), None),
    ] {
        let trace = speech(content_type, declared, &[3; 9_600]);
        assert_eq!((trace.outcome, &trace.warnings[..], trace.audio_bytes), (Outcome::Ok, &[][..], 9_600));
        assert_eq!(trace.audio_ns, expected_ms.map(|ms| ms * MS), "{content_type:?} {declared:?}");
        assert_eq!(trace.underrun_ns, expected_ms.map(|_| 0));
    }
    let ulaw = PcmFormat { encoding: Encoding::G711Ulaw, sample_rate: 8_000, channels: 1 };
    let silent = speech(Some("audio/basic"), Some(ulaw), &[0xFF; 800]);
    assert_eq!((silent.audio_ns, &silent.warnings[..]), (Some(100 * MS), &[Warning::SilentAudio][..]));
    let untyped = speech(None, Some(PCM), &[0xFF, 0xFF, 0, 0].repeat(1_200));
    assert_eq!((untyped.audio_ns, &untyped.warnings[..]), (Some(100 * MS), &[Warning::ContentType][..]));
}

#[test]
fn other_containers_are_sound_of_unknown_duration() {
    for beginning in [&b"fLaC"[..], b"OggS", b"ID3\x04", b"\xff\xfb\x90\xc4", b"\xff\xf1\x50\x80"] {
        let body = [beginning, &[9; 200]].concat();
        check_speech(Some("audio/mpeg"), &body, Outcome::Ok, &[], (body.len() as u64, None));
        check_speech(Some("text/html"), &body, Outcome::Ok, &[Warning::ContentType], (body.len() as u64, None));
        check_speech(Some("audio/mpeg"), beginning, Outcome::Ok, &[], (beginning.len() as u64, None));
    }
}

#[test]
fn what_is_no_sound_is_told_apart() {
    use Outcome::{EmptyOutput, HttpError, ProtocolError, StreamError};
    let error = br#"{"error":{"message":"no such voice"}}"#;
    let long = [&br#"{"error":{"message":"no such voice"},"trace":""#[..], &[b'x'; 200], br#""}"#].concat();
    for (content_type, body, outcome) in [
        (Some("audio/wav"), &error[..], StreamError),
        (Some("audio/pcm"), &long, StreamError),
        (Some("application/json"), error, StreamError),
        (Some("application/json"), &long, StreamError),
        (None, error, StreamError),
        (Some("audio/wav"), br#" {"status":"queued"}"#, ProtocolError),
        (Some("application/json"), br#"{"status":"queued"}"#, ProtocolError),
        (Some("text/html"), b"<html>blocked</html>", ProtocolError),
        (None, b"\n<!doctype html>", ProtocolError),
        (Some("text/plain"), b"upstream connect error", ProtocolError),
        (None, b"upstream connect error", ProtocolError),
        (Some("text/plain"), &[0x00, 0x01, 0x80], ProtocolError),
        (Some("text/event-stream"), b"data: {\"type\":\"speech.audio.delta\"}\n\n", ProtocolError),
        (Some("audio/wav"), b"", EmptyOutput),
        (Some("text/html"), b"", EmptyOutput),
    ] {
        let trace = speech(content_type, Some(PCM), body);
        let found = (trace.outcome, trace.audio_bytes, trace.output_chunks, trace.first_audio_ns);
        assert_eq!(found, (outcome, 0, 0, None), "{content_type:?} {:?}", String::from_utf8_lossy(body));
        assert_eq!(trace.error.as_deref() == Some("no such voice"), outcome == StreamError, "{:?}", trace.error);
    }
    let events = speech(Some("text/event-stream"), None, b"data: {}\n\n");
    assert!(events.error.is_some_and(|error| error.contains("stream_format")));
    let busy = read(Protocol::OpenaiSpeech, (503, Some("audio/wav")), None, &[(1, error)], ReplyEnd::Complete);
    assert_eq!((busy.outcome, busy.error.as_deref()), (HttpError, Some("no such voice")));
    let endless = read(Protocol::OpenaiSpeech, (200, None), None, &[(1, &[b'x'; 70_000])], ReplyEnd::TimedOut("total"));
    assert_eq!(endless.outcome, ProtocolError);
}

/// A transcription: outcome, text, output messages, tokens and warnings.
#[track_caller]
fn check_transcription(
    content_type: &str,
    body: &str,
    outcome: Outcome,
    text: &str,
    (chunks, tokens): (u32, Option<u64>),
    warnings: &[Warning],
) {
    let writes = [(10, body.as_bytes())];
    let trace = read(Protocol::OpenaiTranscription, (200, Some(content_type)), None, &writes, ReplyEnd::Complete);
    let found = (trace.outcome, trace.texts.map(|texts| texts.text), (trace.output_chunks, trace.output_tokens));
    assert_eq!(found, (outcome, Some(text.to_owned()), (chunks, tokens)), "{body} {:?}", trace.error);
    assert_eq!(trace.warnings, warnings, "{body}");
    assert_eq!((trace.audio_ns, trace.audio_bytes), (None, 0));
}

#[test]
fn a_transcription_in_one_body_is_its_text() {
    use Outcome::{EmptyOutput, Ok, ProtocolError, StreamError};
    let json = "application/json";
    let tokens = r#"{"text":"Hi","usage":{"type":"tokens","input_tokens":14,"output_tokens":3,"total_tokens":17}}"#;
    check_transcription(json, tokens, Ok, "Hi", (1, Some(3)), &[]);
    check_transcription(json, r#"{"text":"Hi","usage":{"type":"duration","seconds":3}}"#, Ok, "Hi", (1, None), &[]);
    let verbose =
        r#"{"task":"transcribe","language":"english","duration":3.2,"text":"Hi","segments":[{"id":0,"text":"Hi"}]}"#;
    check_transcription(json, verbose, Ok, "Hi", (1, None), &[]);
    check_transcription("text/plain", r#"{"text":"Hi"}"#, Ok, "Hi", (1, None), &[Warning::ContentType]);
    check_transcription("text/event-stream", r#"{"text":"Hi"}"#, Ok, "Hi", (1, None), &[Warning::ContentType]);
    check_transcription(json, r#"{"text":""}"#, EmptyOutput, "", (0, None), &[]);
    check_transcription(json, " ", EmptyOutput, "", (0, None), &[]);
    check_transcription(json, r#"{"error":{"message":"no speech"}}"#, StreamError, "", (0, None), &[]);
    check_transcription(json, r#"[{"error":{"message":"no speech"}}]"#, StreamError, "", (0, None), &[]);
    check_transcription(json, r#"{"status":"queued"}"#, ProtocolError, "", (0, None), &[]);
    check_transcription(json, r#"{"text":"Hi"#, ProtocolError, "", (0, None), &[]);
    check_transcription("text/html", "<html>", ProtocolError, "", (0, None), &[]);
    check_transcription("text/plain", "Hi there", ProtocolError, "", (0, None), &[Warning::ContentType]);
}

#[test]
fn a_transcription_in_events_is_its_deltas() {
    use Outcome::{EmptyOutput, Ok, StreamError, TruncatedStream};
    let events = |messages: &[&str]| -> String { messages.iter().map(|m| format!("data: {m}\n\n")).collect() };
    let delta = r#"{"type":"transcript.text.delta","delta":"Hi","logprobs":[]}"#;
    let more = r#"{"type":"transcript.text.delta","delta":" you"}"#;
    let done = r#"{"type":"transcript.text.done","text":"Hi you","usage":{"type":"tokens","input_tokens":14,"output_tokens":2}}"#;
    let check = |messages: &[&str], outcome, text: &str, counts, warnings: &[Warning]| {
        check_transcription("text/event-stream", &events(messages), outcome, text, counts, warnings);
    };
    let coalesced = &[Warning::Coalesced];
    check(&[delta, more, done], Ok, "Hi you", (2, Some(2)), coalesced);
    check(&[delta, more, done, "[DONE]"], Ok, "Hi you", (2, Some(2)), coalesced);
    check(&[done], Ok, "Hi you", (1, Some(2)), &[]);
    check(&[r#"{"type":"transcript.text.done","text":""}"#], EmptyOutput, "", (0, None), &[]);
    check(&[delta], TruncatedStream, "Hi", (1, None), &[]);
    check(&[delta, "[DONE]"], TruncatedStream, "Hi", (1, None), &[]);
    check(&[r#"{"type":"transcript.text.segment","text":"Hi"}"#], TruncatedStream, "", (0, None), &[]);
    check(&[delta, r#"{"type":"error","message":"gone"}"#], StreamError, "Hi", (1, None), &[]);
    check(&[delta, r#"{"error":{"message":"gone"}}"#, done], StreamError, "Hi", (1, Some(2)), &[]);
    // As vLLM streams.
    let chunk = r#"{"object":"transcription.chunk","choices":[{"delta":{"content":"Hi"}}]}"#;
    let counted = r#"{"object":"transcription.chunk","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1}}"#;
    check(&[chunk, counted, "[DONE]"], Ok, "Hi", (1, Some(1)), &[]);
    let labelled = events(&[delta, done]);
    check_transcription("application/json", &labelled, Ok, "Hi", (1, Some(2)), &[Warning::ContentType]);
}

/// A turn whose messages come 10 ms after each other, with a declared format, and which then breaks off.
fn turn(messages: &[&str]) -> RequestTrace {
    let writes: Vec<_> = (1..).map(|at| 10 * at).zip(messages.iter().map(|message| message.as_bytes())).collect();
    read(Protocol::OpenaiRealtime, (101, None), Some(PCM), &writes, ReplyEnd::Broken("reset".to_owned()))
}

/// 4 bytes of sound are 5 letters and 3 of padding; 480 zero bytes last 10 ms.
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

#[test]
fn silence_has_a_limit_where_the_reply_is_a_stream() {
    let head = |content_type: &str| ReplyHead {
        status: 200,
        content_type: Some(content_type.to_owned()),
        ..ReplyHead::default()
    };
    for (protocol, content_type, after_head, bytes, after_bytes) in [
        (Protocol::OpenaiSpeech, "audio/wav", false, &b"RIFF"[..], true),
        (Protocol::OpenaiTranscription, "application/json", false, b"{", false),
        (Protocol::OpenaiTranscription, "text/event-stream", true, b"data:", true),
        (Protocol::OpenaiTranscription, "text/plain", false, b"data:", true),
        (Protocol::OpenaiChat, "text/event-stream", true, b"data:", true),
        (Protocol::OpenaiChatJson, "application/json", false, b"{", false),
    ] {
        let mut reader = ReplyReader::new(protocol, false);
        reader.head(head(content_type));
        assert_eq!(reader.is_stream(), after_head, "{} {content_type}", protocol.name());
        reader.bytes(MS, bytes);
        assert_eq!(reader.is_stream(), after_bytes, "{} {content_type}", protocol.name());
    }
    assert!(ReplyReader::new(Protocol::OpenaiRealtime, false).is_stream());
}
