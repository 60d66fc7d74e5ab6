//! Gates over voice, through the real binary: servers whose sound has a known length and a known pause.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::{sleep, spawn};
use std::time::Duration;

use serde_json::Value;

use crate::scene::Scene;

/// One second of 24 kHz, 16-bit sound is so many bytes.
const SECOND: usize = 48_000;

/// The header of a WAV whose length is not known when it begins, as servers stream it.
fn streaming_header() -> Vec<u8> {
    let mut header = b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0\x01\0\x01\0".to_vec();
    header.extend(24_000u32.to_le_bytes());
    header.extend(48_000u32.to_le_bytes());
    header.extend(b"\x02\0\x10\0data\xff\xff\xff\xff");
    header
}

/// Serves every connection by a thread of its own, for as long as the test lives.
fn serve(answer: impl Fn(&mut TcpStream, &[u8]) -> std::io::Result<()> + Clone + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let answer = answer.clone();
            spawn(move || {
                if let Some(request) = read_request(&mut stream) {
                    // The client may have gone away when its run is over.
                    drop(answer(&mut stream, &request));
                }
            });
        }
    });
    port
}

fn read_request(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let (mut bytes, mut block) = (Vec::new(), [0; 65_536]);
    loop {
        let read = stream.read(&mut block).ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&block[..read]);
        let Some(head) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let text = String::from_utf8_lossy(&bytes[..head]).to_ascii_lowercase();
        let length: usize = text.split("content-length: ").nth(1)?.lines().next()?.parse().ok()?;
        if bytes.len() >= head + 4 + length {
            return Some(bytes.split_off(head + 4));
        }
    }
}

/// A voice that says the first fifth of a second at once, then nothing for two fifths, then the rest.
fn stalling_voice(content_type: &'static str, header: Vec<u8>) -> u16 {
    serve(move |stream, _| {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\nconnection: close\r\n\r\n");
        stream.write_all(&[head.as_bytes(), &header, &vec![1; SECOND / 5]].concat())?;
        sleep(Duration::from_millis(400));
        stream.write_all(&vec![1; SECOND - SECOND / 5])
    })
}

fn contract(port: u16, endpoint: &str, workload: &str, slo: &str) -> String {
    format!(
        "version: 1
name: voice
endpoint:
  url: http://127.0.0.1:{port}/v1/audio
  model: m
  timeout: 20s
  {endpoint}
workload:
  {workload}
traffic:
  model: constant
  claim: this_run
  trial: {{ requests: 40, warm_up: 100ms, drain: 10s }}
slo:
  {slo}
  at_load: 20/s
"
    )
}

const VOICE_SLO: &str = "request: { rtf: 5 }
  objectives:
    - { metric: rtf, percentile: 90, at_most: 5 }
    - { metric: first_audio, percentile: 90, at_most: 10s }
    - { metric: underrun, percentile: 90, at_most: 50ms }";

/// The mean is faster than real time, and every listener hears a hole.
#[test]
fn a_voice_that_stalls_fails_by_its_underrun_and_not_by_its_factor() {
    let port = stalling_voice("audio/wav", streaming_header());
    let scene = Scene::new();
    scene.write("contract.yaml", contract(port, "protocol: openai-speech", "cases: [{ prompt: Hi }]", VOICE_SLO));
    let result = scene.gate().result();
    assert_eq!(result.row("underrun_p90"), ("FAIL", "broken"));
    assert_eq!(result.row("first_audio_p90"), ("PASS", "held"));
    assert_eq!(result.row("rtf_p90"), ("PASS", "held"));
    assert_eq!(result.overall(), "FAIL");
    for request in result.requests().iter().filter(|request| request["outcome"] == "ok") {
        let number = |field: &str| request[field].as_u64().unwrap_or_else(|| panic!("no {field} in {request}"));
        assert_eq!(number("audio_ns"), 1_000_000_000);
        assert_eq!(request["first_audio_ns"], request["first_output_ns"]);
        // However the machine cut the reads: the hole is as long as the silence, less the sound that was there.
        assert!(number("underrun_ns") <= number("last_output_ns") - number("first_audio_ns") - 200_000_000);
        assert_eq!((&request["output_tokens"], &request["finish_reason"]), (&Value::Null, &Value::Null));
    }
}

/// The same bytes without a container: nobody has said how long they last.
#[test]
fn sound_of_unknown_format_is_unknown_until_it_is_declared() {
    let port = stalling_voice("audio/pcm", Vec::new());
    let scene = Scene::new();
    scene.write("contract.yaml", contract(port, "protocol: openai-speech", "cases: [{ prompt: Hi }]", VOICE_SLO));
    let result = scene.gate().result();
    for id in ["rtf_p90", "underrun_p90"] {
        assert_eq!(result.row(id), ("UNKNOWN", "no_audio_duration"));
    }
    assert!(result.requests().iter().all(|request| request["audio_ns"].is_null() && request["underrun_ns"].is_null()));

    let scene = Scene::new();
    let declared = "protocol: openai-speech\n  audio: { output: { sample_rate: 24000 } }";
    scene.write("contract.yaml", contract(port, declared, "cases: [{ prompt: Hi }]", VOICE_SLO));
    let result = scene.gate().result();
    assert_eq!(result.row("underrun_p90"), ("FAIL", "broken"));
    assert_eq!(result.row("rtf_p90"), ("PASS", "held"));
}

/// What is heard has the file's length; what is sent is the file.
#[test]
fn a_transcription_is_measured_by_the_sound_that_was_sent() {
    let file = [streaming_header(), (0..SECOND * 2).map(|n| (n % 249) as u8).collect()].concat();
    let expected = file.clone();
    let port = serve(move |stream, request| {
        let arrived = request.windows(expected.len()).any(|window| window == expected);
        let named = |part: &str| String::from_utf8_lossy(request).contains(part);
        let whole =
            arrived && named("name=\"file\"; filename=\"two seconds.wav\"") && named("name=\"model\"\r\n\r\nm\r\n");
        let body = if whole { r#"{"text":"two seconds"}"# } else { r#"{"error":{"message":"not the file"}}"# };
        let length = body.len();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n");
        stream.write_all(format!("{head}{body}").as_bytes())
    });
    let scene = Scene::new();
    scene.write("two seconds.wav", &file);
    let slo = "request: { rtf: 4 }
  objectives:
    - { metric: rtf, percentile: 90, at_most: 4 }
    - { metric: success_rate, at_least: 100% }
    - { metric: attainment, at_least: 90% }";
    let cases = "cases: [{ audio: two seconds.wav }]";
    scene.write("contract.yaml", contract(port, "protocol: openai-transcription", cases, slo));
    let result = scene.gate().result();
    for id in ["rtf_p90", "success_rate", "attainment"] {
        assert_eq!(result.row(id), ("PASS", "held"));
    }
    for request in result.requests().iter().filter(|request| request["outcome"] == "ok") {
        assert_eq!(request["audio_ns"], 2_000_000_000u64);
        assert!(request["underrun_ns"].is_null(), "nothing is played");
    }
}
