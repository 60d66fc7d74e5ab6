//! Forms and turns, by their published formats.

use serde_json::{Value, json};

use super::*;
use crate::audio::{Encoding, PcmFormat};

const MONO_8K: PcmFormat = PcmFormat { encoding: Encoding::Pcm16, sample_rate: 8_000, channels: 1 };

/// A WAV file of 16-bit samples (Microsoft's and IBM's Multimedia Programming Interface, 1991, chapter 3).
fn wav(sample_rate: u32, samples: &[u8]) -> Vec<u8> {
    let mut file = b"RIFF".to_vec();
    file.extend((36 + samples.len() as u32).to_le_bytes());
    file.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    file.extend(sample_rate.to_le_bytes());
    file.extend((2 * sample_rate).to_le_bytes());
    file.extend(b"\x02\0\x10\0data");
    file.extend((samples.len() as u32).to_le_bytes());
    file.extend(samples);
    file
}

fn case(fields: Value) -> Case {
    let Value::Object(fields) = fields else { panic!("an object") };
    Case { id: "c".to_owned(), fields }
}

fn build(template: &Value, case: &Case, shape: Shape, file: Option<Vec<u8>>) -> Result<Content, Vec<String>> {
    let sounds = file.map(|file| ("dir/a\"b.wav".to_owned(), Sound::new("a\"b.wav".to_owned(), file.into())));
    let sounds = sounds.into_iter().collect();
    Workload::build(std::slice::from_ref(case), template, "m", 1, shape, &sounds)
        .map(|workload| workload.cases()[0].content.clone())
        .map_err(|faults| faults.iter().map(ToString::to_string).collect())
}

#[test]
fn a_form_holds_every_field_and_the_file() {
    let template = json!({ "model": "$model", "file": "$audio", "language": "en", "temperature": 0.5,
        "timestamp_granularities[]": ["word", "segment"] });
    let case = case(json!({ "audio": "dir/a\"b.wav" }));
    let Content::Form(form) = build(&template, &case, Shape::Form, Some(wav(8_000, &[1, 2]))).expect("a form") else {
        panic!("a form");
    };
    let boundary = form.content_type.strip_prefix("multipart/form-data; boundary=").expect("a boundary");
    let text = |name: &str, value: &str| {
        format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n").into_bytes()
    };
    let file = [
        format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a%22b.wav\"\r\n\
             Content-Type: audio/wav\r\n\r\n"
        )
        .into_bytes(),
        wav(8_000, &[1, 2]),
        b"\r\n".to_vec(),
    ];
    let expected = [
        text("model", "m"),
        file.concat(),
        text("language", "en"),
        text("temperature", "0.5"),
        text("timestamp_granularities[]", "word"),
        text("timestamp_granularities[]", "segment"),
        format!("--{boundary}--\r\n").into_bytes(),
    ]
    .concat();
    assert_eq!(String::from_utf8_lossy(&form.body), String::from_utf8_lossy(&expected));
    assert_eq!(form.body, expected);
}

#[test]
fn forms_that_cannot_be_sent_are_refused_with_their_place() {
    let spoken = case(json!({ "audio": "dir/a\"b.wav", "prompt": { "a": 1 } }));
    for (template, file, expected) in [
        (json!({ "file": "$audio" }), None, ": the case `c` has no sound"),
        (json!({ "model": "$model" }), Some(vec![]), ": no field holds the sound; write `file: $audio`"),
        (
            json!({ "file": "$audio", "a/b": "$prompt" }),
            Some(vec![]),
            "/a~1b: a field of a form is a text, a number, a boolean or a list of them",
        ),
    ] {
        assert_eq!(build(&template, &spoken, Shape::Form, file), Err(vec![expected.to_owned()]));
    }
    let silent = build(&json!({ "file": "$audio" }), &case(json!({})), Shape::Form, None).expect_err("no sound");
    assert!(silent[0].starts_with("/file: the case `c` has no field `audio`"), "{silent:?}");
}

#[test]
fn speech_is_cut_into_pieces_that_are_due_when_they_have_been_spoken() {
    let template = json!({ "events": [
        { "type": "session.update", "session": { "model": "$model" } },
        { "type": "input_audio_buffer.append", "audio": "$audio" },
        { "type": "input_audio_buffer.commit" },
        { "type": "response.create", "text": "$prompt" },
    ] });
    let case = case(json!({ "audio": "dir/a\"b.wav", "prompt": "hi" }));
    // 0.25 s of sound: pieces of 0.1 s are 1600 bytes.
    let samples: Vec<u8> = (0..4_000u32).map(|n| (n % 251) as u8).collect();
    let Content::Turn(turn) =
        build(&template, &case, Shape::Turn(MONO_8K), Some(wav(8_000, &samples))).expect("a turn")
    else {
        panic!("a turn");
    };
    let read = |event: &[u8]| -> Value { serde_json::from_slice(event).expect("JSON") };
    let before: Vec<Value> = turn.before.iter().map(|event| read(event)).collect();
    assert_eq!(before, [json!({ "type": "session.update", "session": { "model": "m" } })]);
    let after: Vec<Value> = turn.after.iter().map(|event| read(event)).collect();
    assert_eq!(
        after,
        [json!({ "type": "input_audio_buffer.commit" }), json!({ "type": "response.create", "text": "hi" })]
    );
    let due: Vec<u64> = turn.speech.iter().map(|piece| piece.due_ns).collect();
    assert_eq!(due, [100_000_000, 200_000_000, 250_000_000]);
    assert_eq!(turn.speech_ns(), Some(250_000_000));
    let sent: Vec<u8> = turn
        .speech
        .iter()
        .flat_map(|piece| {
            let event = read(&piece.event);
            assert_eq!(event["type"], "input_audio_buffer.append");
            base64::Engine::decode(&base64::engine::general_purpose::STANDARD, event["audio"].as_str().expect("text"))
                .expect("base64")
        })
        .collect();
    assert_eq!(sent, samples);
}

#[test]
fn turns_that_cannot_be_held_are_refused_with_their_place() {
    let append = json!({ "type": "input_audio_buffer.append", "audio": "$audio" });
    let spoken = case(json!({ "audio": "dir/a\"b.wav" }));
    let list = "the payload of a turn is `events: [ … ]`, the list of events that the client sends";
    for (template, file, expected) in [
        (json!({ "model": "$model" }), None, format!(": {list}")),
        (json!({ "events": [] }), None, format!(": {list}")),
        (
            json!({ "events": ["response.create"] }),
            None,
            "/events/0: an event is a mapping with a `type`, as in `{ type: response.create }`".to_owned(),
        ),
        (
            json!({ "events": [append, append] }),
            None,
            "/events/1: the turn's sound is sent once, as one value of one event".to_owned(),
        ),
        (
            json!({ "events": [{ "type": "x", "audio": "$audio", "again": ["$audio"] }] }),
            None,
            "/events/0: the turn's sound is sent once, as one value of one event".to_owned(),
        ),
        (
            json!({ "events": [{ "type": "$audio" }] }),
            None,
            "/events/0: an event is a mapping with a `type`, as in `{ type: response.create }`".to_owned(),
        ),
        (json!({ "events": [append] }), None, ": the case `c` has no sound".to_owned()),
        (
            json!({ "events": [append] }),
            Some(wav(16_000, &[0; 64])),
            ": the sound `a\"b.wav` of the case `c` is pcm16 of 16000 Hz with 1 channel(s), and the endpoint is sent pcm16 \
             of 8000 Hz with 1 channel(s); convert it, or declare `endpoint.audio.input`"
                .to_owned(),
        ),
        (
            json!({ "events": [append] }),
            Some(wav(8_000, &[])),
            ": the sound `a\"b.wav` of the case `c` is empty".to_owned(),
        ),
    ] {
        assert_eq!(build(&template, &spoken, Shape::Turn(MONO_8K), file), Err(vec![expected]));
    }
    let other = build(&json!({ "events": [append] }), &spoken, Shape::Turn(MONO_8K), Some(b"ID3 no wav".to_vec()));
    assert!(
        other.expect_err("refused")[0].contains("is no WAV file of 16-bit or G.711 samples; convert it, as in `ffmpeg")
    );
    let placeless = build(&json!({ "events": [{ "type": "x", "a": ["$none"] }] }), &spoken, Shape::Turn(MONO_8K), None);
    assert!(placeless.expect_err("refused")[0].starts_with("/events/0/a/0: the case `c` has no field `none`"));
}

#[test]
fn text_turns_need_no_sound_and_every_event_is_due_at_once() {
    let template = json!({ "events": [{ "type": "a", "text": "$prompt" }, { "type": "response.create" }] });
    let turn = build(&template, &case(json!({ "prompt": "hi" })), Shape::Turn(MONO_8K), None).expect("a turn");
    let Content::Turn(turn) = turn else { panic!("a turn") };
    assert_eq!((turn.before.len(), turn.speech_ns(), turn.after.len()), (0, None, 2));
    assert_eq!(turn.after[0], r#"{"type":"a","text":"hi"}"#);
}

#[test]
fn the_digest_names_the_sound_that_is_sent() {
    let digest = |samples: &[u8]| {
        let sounds = [("a".to_owned(), Sound::new("a".to_owned(), wav(8_000, samples).into()))].into_iter().collect();
        let case = case(json!({ "audio": "a" }));
        let template = json!({ "events": [{ "type": "x", "audio": "$audio" }] });
        let workload = Workload::build(&[case], &template, "m", 1, Shape::Turn(MONO_8K), &sounds).expect("a workload");
        assert_eq!(workload.cases()[0].audio_ns, Some(samples.len() as u64 * 62_500));
        workload.digest().clone()
    };
    assert_eq!(digest(&[1, 2]), digest(&[1, 2]));
    assert_ne!(digest(&[1, 2]), digest(&[1, 3]));
}
