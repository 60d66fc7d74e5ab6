//! Speech and transcriptions, beyond what the wire corpus holds. The payloads follow the protocols' public descriptions, and every
//! expected duration is bytes divided by the bytes of a second.

use super::corpus_tests::Reply;
use super::{Outcome, OutputKind, Protocol, ReplyEnd, ReplyHead, ReplyReader, RequestTrace, Warning};
use crate::audio::{Encoding, PcmFormat};

pub(super) const MS: u64 = 1_000_000;

/// 16-bit mono at 24 kHz: 48 bytes a millisecond.
pub(super) const PCM: PcmFormat = PcmFormat { encoding: Encoding::Pcm16, sample_rate: 24_000, channels: 1 };

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
pub(super) fn read(
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
        (Some("audio/pcm; encoding=float32; rate=24000"), Some(PCM), None),
        (Some("audio/pcm;codec=opus;rate=24000"), Some(PCM), None),
        (Some("audio/pcm; bits=24"), Some(PCM), None),
        (Some("application/octet-stream;Format=\"F32LE\""), Some(PCM), None),
        (Some("audio/pcm;encoding=S16LE;bits=16;rate=16000"), None, Some(300)),
        (Some("audio/pcm;bits=16"), None, None),
        (Some("audio/pcm;channels=2"), Some(PCM), Some(100)),
    ] {
        let trace = speech(content_type, declared, &[3; 9_600]);
        assert_eq!((trace.outcome, &trace.warnings[..], trace.audio_bytes), (Outcome::Ok, &[][..], 9_600));
        assert_eq!(trace.audio_ns, expected_ms.map(|ms| ms * MS), "{content_type:?} {declared:?}");
        assert_eq!(trace.underrun_ns, expected_ms.map(|_| 0));
    }
    for content_type in ["audio/L16;rate=24000", "audio/pcm;encoding=pcm16;rate=24000"] {
        let ulaw = PcmFormat { encoding: Encoding::G711Ulaw, sample_rate: 8_000, channels: 1 };
        assert_eq!(speech(Some(content_type), Some(ulaw), &[3; 9_600]).audio_ns, Some(200 * MS), "{content_type}");
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

#[test]
fn words_under_a_type_of_sound_are_no_sound() {
    use Outcome::{EmptyOutput, Ok, ProtocolError, StreamError};
    let bom = |text: &str| [b"\xef\xbb\xbf", text.as_bytes()].concat();
    let error = r#"{"error":{"message":"no such voice"}}"#;
    let long = format!(r#"{{"trace":"{}","error":{{"message":"no such voice"}}}}"#, "x".repeat(200_000));
    for (body, outcome, told) in [
        (b"CUDA out of memory".to_vec(), ProtocolError, "CUDA out of memory"),
        (b"<!doctype html><p>busy</p>".to_vec(), ProtocolError, "web page"),
        (bom("<html>"), ProtocolError, "web page"),
        (error.into(), StreamError, "no such voice"),
        (bom(error), StreamError, "no such voice"),
        (bom("\n \t").into_iter().chain(bom(error).split_off(3)).collect(), StreamError, "no such voice"),
        (long.clone().into_bytes(), StreamError, "no such voice"),
        (long[..9_000].into(), ProtocolError, "trace"),
        (long.repeat(6).into_bytes(), ProtocolError, "trace"),
        (format!("[{error}]").into_bytes(), StreamError, "no such voice"),
        (br#"["no such voice"]"#.to_vec(), ProtocolError, "no such voice"),
        (br#""no such voice""#.to_vec(), ProtocolError, "no such voice"),
        (format!("{error}\n{error}\n").into_bytes(), ProtocolError, "no such voice"),
        (error[..30].into(), ProtocolError, "no such"),
        (format!("data: {error}\n\n").into_bytes(), ProtocolError, "no such voice"),
        ("Stimme nicht verfügbar: ".repeat(9).into_bytes(), ProtocolError, "Stimme nicht verfügbar"),
        (format!("{}é and more", "x".repeat(63)).into_bytes(), ProtocolError, "xxx"),
        (b"busy".to_vec(), ProtocolError, "busy"),
    ] {
        for content_type in
            ["audio/wav", "audio/x-wav", "audio/mpeg", "audio/pcm;rate=24000", "application/octet-stream"]
        {
            for writes in [vec![(10, &body[..])], vec![(10, &body[..3]), (20, &body[3..])]] {
                let head = (200, Some(content_type));
                let trace = read(Protocol::OpenaiSpeech, head, Some(PCM), &writes, ReplyEnd::Complete);
                let found = (trace.outcome, trace.audio_bytes, trace.output_chunks, trace.first_audio_ns);
                assert_eq!(found, (outcome, 0, 0, None), "{content_type} {:?}", trace.error);
                let words = trace.error.unwrap_or_default();
                assert!(words.contains(told), "{content_type}: {words}");
            }
        }
    }
    for content_type in ["audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave"] {
        check_speech(Some(content_type), &[3; 200], ProtocolError, &[], (0, None));
        check_speech(Some(content_type), b"OggS and so on", Ok, &[], (14, None));
        check_speech(Some(content_type), b"", EmptyOutput, &[], (0, None));
    }
    // A few bytes are as well a sample as a word; near silence in A-law is "UUTU…".
    assert_eq!(speech(Some("audio/pcm"), Some(PCM), b"ab").audio_bytes, 2);
    let alaw = PcmFormat { encoding: Encoding::G711Alaw, sample_rate: 8_000, channels: 1 };
    let quiet = speech(Some("audio/pcm"), Some(alaw), &b"UUTU".repeat(200));
    assert_eq!((quiet.outcome, quiet.audio_ns), (Ok, Some(100 * MS)));
}

#[test]
fn wav_files_one_after_another_are_one_sound() {
    use Outcome::Ok;
    let (wav_type, half, samples) = (Some("audio/wav"), [1; 2_400], [1; 4_800]);
    let twice = [wav(2_400, &half), wav(2_400, &half)].concat();
    check_speech(wav_type, &twice, Ok, &[], (4_800, Some(100)));
    let listed = [wav(2_400, &half), b"LIST\x04\0\0\0INFO".to_vec(), wav(0, &half)].concat();
    check_speech(wav_type, &listed, Ok, &[], (4_800, Some(100)));
    check_speech(wav_type, &wav(480, &samples), Ok, &[], (4_800, Some(100)));
    let mixed = [wav(4_800, &samples), wav_header(24, 0), samples.to_vec()].concat();
    check_speech(wav_type, &mixed, Ok, &[], (9_600, None));
    let mut lying = wav(4_800, &samples);
    lying[28..32].copy_from_slice(&24_000u32.to_le_bytes());
    check_speech(wav_type, &lying, Ok, &[], (4_800, None));
    // Each file by its own write: the second comes 50 ms after the first, which lasts as long.
    let (first, second) = twice.split_at(twice.len() / 2);
    let writes = [(10, first), (60, second)];
    let trace = read(Protocol::OpenaiSpeech, (200, wav_type), None, &writes, ReplyEnd::Complete);
    assert_eq!((trace.audio_ns, trace.underrun_ns, trace.output_chunks), (Some(100 * MS), Some(0), 2));
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
