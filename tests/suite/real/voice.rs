//! Speech of Piper, transcriptions of Whisper, and spoken turns with a Realtime server that says back what it hears. All of
//! them know one sentence, `speech.wav`: Piper said it with the voice of `tests/real/piper.sh` without noise, and it was
//! resampled to 24 kHz.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Real, Run, assert_judged_again};

/// What is said in `speech.wav`, as far as Whisper is to understand it: in small letters, without punctuation.
const SENTENCE: &str = "the quick brown fox jumps over the lazy dog";

/// How long `speech.wav` lasts, by Python's `wave`: 66,595 samples at 24,000 Hz.
const SENTENCE_NS: u64 = 66_595 * 1_000_000_000 / 24_000;

/// How long a WAV file with the shortest of headers lasts, by its header: bytes of sound over bytes a second.
fn wav_ns(wav: &[u8]) -> u64 {
    assert!(wav.starts_with(b"RIFF") && &wav[8..16] == b"WAVEfmt " && &wav[36..40] == b"data");
    let number = |at: usize| u64::from(u32::from_le_bytes(wav[at..at + 4].try_into().expect("four bytes")));
    assert_eq!(wav.len() as u64, 44 + number(40), "all of the sound is there");
    number(40) * 1_000_000_000 / number(28)
}

/// A reply that was read to its end, whose sound lasts so long.
#[track_caller]
fn assert_sound(request: &Value, lasts_ns: u64, within_ns: u64) {
    let expected = [("outcome", json!("ok")), ("error", Value::Null), ("output_tokens", Value::Null)];
    for (field, expected) in expected {
        assert_eq!(request[field], expected, "{field} in {request}");
    }
    let audio_ns = number(request, "audio_ns");
    assert!(audio_ns.abs_diff(lasts_ns) <= within_ns, "{lasts_ns} ns were expected: {request}");
    let instants = ["scheduled_ns", "sent_ns", "first_output_ns", "last_output_ns", "finished_ns"];
    assert!(instants.map(|field| number(request, field)).is_sorted(), "{request}");
}

fn number(request: &Value, field: &str) -> u64 {
    request[field].as_u64().unwrap_or_else(|| panic!("no {field} in {request}"))
}

/// The requests that were read to their end: the drain may have been cut when everything was decided.
fn answered(run: &Run) -> impl Iterator<Item = &Value> {
    run.requests.iter().filter(|request| request["segment"] != "drain" || request["outcome"] != "cancelled")
}

/// The real-time factor of the run's only step is time to the last output / duration of the sound, of its window's requests.
/// `begins` names the field from which a request's time counts.
fn assert_real_time_factor(run: &Run, begins: &str) {
    let step = run.step(0);
    let window = |request: &&Value| request["segment"] == "window";
    let mut factors: Vec<f64> =
        run.trial(run.trial_of(0)).filter(window).map(|request| factor(request, begins)).collect();
    let found = &step["ratios"]["rtf"];
    if found["count"] != factors.len() {
        // A trial before the last one speaks for the step too.
        factors = run.requests.iter().filter(window).map(|request| factor(request, begins)).collect();
    }
    factors.sort_by(f64::total_cmp);
    assert_eq!(found["count"], factors.len());
    let nearest_rank = factors[(factors.len() * 9).div_ceil(10) - 1];
    for (field, expected) in [("p90_ppm", nearest_rank), ("max_ppm", factors[factors.len() - 1])] {
        let ppm = found[field].as_f64().expect("a number");
        assert!(expected > 0.0 && (ppm / 1e6 - expected).abs() < 2e-6, "{field}: {ppm}, expected {expected}");
    }
}

fn factor(request: &Value, begins: &str) -> f64 {
    let waited_ns = number(request, "last_output_ns") - number(request, begins);
    waited_ns as f64 / number(request, "audio_ns") as f64
}

/// The texts that were kept as evidence, in small letters without punctuation.
fn kept_texts(run: &Run) -> Vec<String> {
    let lines = fs::read_to_string(run.folder.join("samples.jsonl")).expect("samples.jsonl");
    let texts = lines.lines().map(|line| {
        let kept: Value = serde_json::from_str(line).expect("a reply");
        let text = kept["text"].as_str().expect("a text").to_lowercase();
        text.replace(|letter: char| !letter.is_alphanumeric() && letter != ' ', "").trim().to_owned()
    });
    texts.collect()
}

#[test]
fn speech_is_measured_by_how_long_it_sounds() {
    let Some(real) = Real::server("GOODPUT_REAL_PIPER") else { return };
    let cases = fs::read_to_string(real.folder.path().join("spoken.json")).expect("the cases");
    let cases: Vec<Value> = serde_json::from_str(&cases).expect("JSON");
    let lasts_ns: BTreeMap<&str, u64> = cases
        .iter()
        .map(|case| {
            let wish = json!({ "text": case["prompt"], "noise_scale": 0, "noise_w_scale": 0 });
            (case["id"].as_str().expect("a name"), wav_ns(&real.post("/synthesize", &wish)))
        })
        .collect();
    assert_eq!(lasts_ns.len(), 4);

    let run = real.gate("contract-piper.yaml");
    for request in answered(&run) {
        // A duration is kept in whole nanoseconds, rounded either way.
        assert_sound(request, lasts_ns[request["case"].as_str().expect("a case")], 1);
        assert_eq!(request["first_output_kind"], "audio", "{request}");
        assert_eq!(request["first_audio_ns"], request["first_output_ns"], "{request}");
    }
    let cases: BTreeSet<_> = run.requests.iter().filter_map(|request| request["case"].as_str()).collect();
    assert!(lasts_ns.keys().eq(&cases), "every case was sent: {cases:?}");
    assert_real_time_factor(&run, "scheduled_ns");
    assert_judged_again(&real, &run);
}

#[test]
fn a_transcription_is_measured_by_the_sound_that_was_sent() {
    let Some(real) = Real::server("GOODPUT_REAL_WHISPER") else { return };
    assert_eq!(wav_ns(&fs::read(real.folder.path().join("speech.wav")).expect("the speech")), SENTENCE_NS);
    let run = real.gate("contract-whisper.yaml");
    for request in answered(&run) {
        assert_sound(request, SENTENCE_NS, 1);
        assert_eq!(request["first_output_kind"], "content", "{request}");
        assert_eq!((&request["first_audio_ns"], &request["underrun_ns"]), (&Value::Null, &Value::Null), "{request}");
    }
    assert_eq!(kept_texts(&run), vec![SENTENCE; 3]);
    assert_real_time_factor(&run, "scheduled_ns");
    assert_judged_again(&real, &run);
}

/// The server says what it heard, with the voice that said it first, so a reply lasts as long as the speech.
#[test]
fn a_spoken_turn_counts_from_the_end_of_speech() {
    let Some(real) = Real::server("GOODPUT_REAL_REALTIME") else { return };
    let run = real.gate("contract-realtime.yaml");
    for request in answered(&run) {
        // Two resamplings lose or gain a few samples; at a wrong rate it would be off by half.
        assert_sound(request, SENTENCE_NS, 5_000_000);
        let speech_ns = number(request, "speech_end_ns") - number(request, "scheduled_ns");
        assert!(speech_ns.abs_diff(SENTENCE_NS) <= 1, "{request}");
        // This server's text comes ahead of its sound, and neither before the client has ended its turn.
        assert_eq!(request["first_output_kind"], "content", "{request}");
        let order = ["speech_end_ns", "sent_ns", "first_output_ns", "first_audio_ns", "last_output_ns"];
        assert!(order.map(|field| number(request, field)).is_sorted(), "{request}");
    }
    assert_eq!(kept_texts(&run), vec![SENTENCE; 3]);
    assert_real_time_factor(&run, "speech_end_ns");
    assert_judged_again(&real, &run);
    assert_eq!(sessions_in_use(&real), 0, "every session was closed");
}

/// Sessions that the server holds; it frees one a moment after its end.
fn sessions_in_use(real: &Real) -> u64 {
    let in_use = || {
        let (_, page) = real.page("/v1/pool");
        serde_json::from_str::<Value>(&page).expect("JSON")["in_use"].as_u64().expect("a number")
    };
    for _ in 0..100 {
        if in_use() == 0 {
            return 0;
        }
        sleep(Duration::from_millis(100));
    }
    in_use()
}
