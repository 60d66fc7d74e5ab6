//! Single dialects, beyond what the wire corpus holds. The payloads follow the protocols' public descriptions.

use super::corpus_tests::read;
use super::corpus_tests::wire::Case;
use super::{Outcome, OutputKind, Protocol, ReplyTexts, RequestTrace, Warning, looks_like};

const ALL: [Protocol; 4] = [Protocol::OpenaiResponses, Protocol::AnthropicMessages, Protocol::Tgi, Protocol::Ollama];

/// Reads messages, each a JSON text, in the dialect's framing.
fn stream(protocol: Protocol, messages: &[&str]) -> RequestTrace {
    let (kind, before, after) = match protocol {
        Protocol::Ollama => ("application/x-ndjson", "", "\n"),
        _ => ("text/event-stream", "data: ", "\n\n"),
    };
    let body: String = messages.iter().flat_map(|message| [before, message, after]).collect();
    read(protocol, kind, body.as_bytes())
}

fn texts(trace: &RequestTrace) -> ReplyTexts {
    trace.texts.clone().unwrap_or_default()
}

fn calls(trace: &RequestTrace) -> Vec<String> {
    texts(trace).tool_calls.into_iter().map(|call| call.name + " " + &call.arguments).collect()
}

/// Outcome, normalised finish reason, whether it was cut, and the warnings.
#[track_caller]
fn check_end(
    protocol: Protocol,
    messages: &[&str],
    outcome: Outcome,
    finish: Option<&str>,
    truncated: Option<bool>,
    warnings: &[Warning],
) {
    let trace = stream(protocol, messages);
    let found = (trace.outcome, trace.finish_reason.as_deref(), trace.truncated, &trace.warnings[..]);
    assert_eq!(found, (outcome, finish, truncated, warnings), "{messages:?}\n{:?}", trace.error);
}

#[test]
fn responses_end_as_their_last_event_says() {
    let check = |messages: &[&str], outcome, finish, truncated, warnings: &[Warning]| {
        check_end(Protocol::OpenaiResponses, messages, outcome, finish, truncated, warnings);
    };
    let delta = r#"{"type":"response.output_text.delta","delta":"x"}"#;
    let usage = r#""usage":{"input_tokens":3,"output_tokens":1,"total_tokens":4}"#;
    let done = format!(r#"{{"type":"response.completed","response":{{"status":"completed",{usage}}}}}"#);
    check(&[delta, &done], Outcome::Ok, Some("stop"), Some(false), &[]);
    check(&[delta, &done, "[DONE]"], Outcome::Ok, Some("stop"), Some(false), &[]);
    check(&[delta, &done, delta], Outcome::Ok, Some("stop"), Some(false), &[Warning::DataAfterDone]);
    check(&[&done], Outcome::EmptyOutput, Some("stop"), Some(false), &[]);
    check(&[delta, "[DONE]"], Outcome::TruncatedStream, None, Some(true), &[]);
    let cut = |kind: &str, details: &str| {
        format!(r#"{{"type":"{kind}","response":{{"status":"incomplete",{details}{usage}}}}}"#)
    };
    let filtered = cut("response.incomplete", r#""incomplete_details":{"reason":"content_filter"},"#);
    check(&[delta, &filtered], Outcome::Ok, Some("content_filter"), Some(true), &[]);
    let as_completed = cut("response.completed", r#""incomplete_details":{"reason":"max_output_tokens"},"#);
    check(&[delta, &as_completed], Outcome::Ok, Some("length"), Some(true), &[]);
    check(&[delta, &cut("response.incomplete", "")], Outcome::Ok, Some("incomplete"), Some(true), &[]);
    let bare = r#"{"type":"response.completed"}"#;
    check(&[delta, bare], Outcome::Ok, Some("stop"), Some(false), &[Warning::NoUsage]);
    for failure in [
        r#"{"type":"error","code":"server_error","message":"gone","param":null}"#,
        r#"{"type":"error","error":{"type":"server_error","message":"gone"}}"#,
        r#"{"type":"response.failed","response":{"status":"failed","error":{"message":"gone"}}}"#,
        r#"{"type":"response.cancelled","response":{"status":"cancelled"}}"#,
        r#"{"error":{"message":"gone"}}"#,
    ] {
        check(&[delta, failure], Outcome::StreamError, None, None, &[]);
    }
}

#[test]
fn responses_tell_reasoning_refusals_and_tool_calls_apart() {
    let trace = stream(
        Protocol::OpenaiResponses,
        &[
            r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","summary":[]}}"#,
            r#"{"type":"response.reasoning_text.delta","output_index":0,"delta":"hm"}"#,
            r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","name":"f","arguments":""}}"#,
            r#"{"type":"response.output_item.added","output_index":2,"item":{"type":"function_call","name":"g","arguments":""}}"#,
            r#"{"type":"response.function_call_arguments.delta","output_index":1,"delta":"{\"a\""}"#,
            r#"{"type":"response.function_call_arguments.delta","output_index":2,"delta":"{}"}"#,
            r#"{"type":"response.function_call_arguments.delta","output_index":1,"delta":":1}"}"#,
            r#"{"type":"response.function_call_arguments.done","output_index":1,"arguments":"{\"a\":1}"}"#,
            r#"{"type":"response.completed","response":{"status":"completed"}}"#,
        ],
    );
    assert_eq!((trace.outcome, trace.output_chunks, trace.answerless), (Outcome::Ok, 4, Some(false)));
    assert_eq!((trace.first_output_kind, texts(&trace).reasoning.as_str()), (Some(OutputKind::Reasoning), "hm"));
    assert_eq!(calls(&trace), [r#"f {"a":1}"#, "g {}"]);
    let refused = stream(
        Protocol::OpenaiResponses,
        &[
            r#"{"type":"response.refusal.delta","delta":"I can"}"#,
            r#"{"type":"response.refusal.delta","delta":"not"}"#,
            r#"{"type":"response.refusal.done","refusal":"I cannot"}"#,
            r#"{"type":"response.completed"}"#,
        ],
    );
    assert_eq!((refused.first_output_kind, refused.output_chunks), (Some(OutputKind::Refusal), 2));
    assert_eq!(texts(&refused).refusal, "I cannot");
}

#[test]
fn anthropic_messages_end_by_a_stop_reason_or_a_stop() {
    let check = |messages: &[&str], outcome, finish, truncated, warnings: &[Warning]| {
        check_end(Protocol::AnthropicMessages, messages, outcome, finish, truncated, warnings);
    };
    let delta = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}"#;
    let stopped = |reason: &str| {
        format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}"}},"usage":{{"output_tokens":1}}}}"#)
    };
    let stop = r#"{"type":"message_stop"}"#;
    check(&[delta, &stopped("end_turn"), stop], Outcome::Ok, Some("stop"), Some(false), &[]);
    check(&[delta, &stopped("end_turn")], Outcome::Ok, Some("stop"), Some(false), &[Warning::NoDone]);
    check(&[delta, &stopped("max_tokens"), stop], Outcome::Ok, Some("length"), Some(true), &[]);
    check(&[delta, &stopped("model_context_window_exceeded"), stop], Outcome::Ok, Some("length"), Some(true), &[]);
    check(&[delta, &stopped("refusal"), stop], Outcome::Ok, Some("content_filter"), Some(true), &[]);
    check(&[delta, &stopped("tool_use"), stop], Outcome::Ok, Some("tool_calls"), Some(false), &[]);
    check(&[delta, stop], Outcome::Ok, None, None, &[Warning::NoFinishReason, Warning::NoUsage]);
    check(&[delta, r#"{"type":"ping"}"#], Outcome::TruncatedStream, None, Some(true), &[]);
    check(
        &[
            r#"{"type":"content_block_start","content_block":{"type":"text","text":"whole"}}"#,
            &stopped("end_turn"),
            stop,
        ],
        Outcome::Ok,
        Some("stop"),
        Some(false),
        &[],
    );
    check(&[&stopped("end_turn"), stop], Outcome::EmptyOutput, Some("stop"), Some(false), &[]);
    let late = r#"{"type":"error","error":{"type":"api_error","message":"gone"}}"#;
    check(&[delta, late], Outcome::StreamError, None, None, &[]);
}

#[test]
fn anthropic_blocks_are_told_apart() {
    let trace = stream(
        Protocol::AnthropicMessages,
        &[
            r#"{"type":"message_start","message":{"content":[],"usage":{"input_tokens":2,"output_tokens":1}}}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}"#,
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":""}}"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"1}"}}"#,
            r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"u","name":"g","input":{"b":2}}}"#,
            r#"{"type":"something_new","text":"none of ours"}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}"#,
            r#"{"type":"message_stop"}"#,
        ],
    );
    assert_eq!(
        (trace.outcome, trace.output_chunks, trace.first_output_kind),
        (Outcome::Ok, 4, Some(OutputKind::Reasoning))
    );
    assert_eq!((texts(&trace).reasoning.as_str(), texts(&trace).text.as_str()), ("hm", ""));
    assert_eq!(calls(&trace), [r#"f {"a":1}"#, r#"g {"b":2}"#]);
    assert_eq!((trace.input_tokens, trace.output_tokens), (Some(2), Some(9)));
}

/// Prompt, reply and cached tokens of an Anthropic reply whose two usage objects are these.
#[track_caller]
fn check_counts(start: &str, end: &str, expected: [Option<u64>; 3]) {
    let trace = stream(
        Protocol::AnthropicMessages,
        &[
            &format!(r#"{{"type":"message_start","message":{{"usage":{start}}}}}"#),
            r#"{"type":"content_block_delta","delta":{"text":"x"}}"#,
            &format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"end_turn"}},"usage":{end}}}"#),
            r#"{"type":"message_stop"}"#,
        ],
    );
    assert_eq!([trace.input_tokens, trace.output_tokens, trace.cached_tokens], expected, "{start} {end}");
}

#[test]
fn anthropic_counts_are_put_together_and_never_made_up() {
    check_counts(
        r#"{"input_tokens":5,"cache_creation_input_tokens":100,"cache_read_input_tokens":1000,"output_tokens":1}"#,
        r#"{"output_tokens":7}"#,
        [Some(1105), Some(7), Some(1000)],
    );
    check_counts(
        r#"{"input_tokens":0,"output_tokens":0}"#,
        r#"{"input_tokens":9,"output_tokens":7}"#,
        [Some(9), Some(7), None],
    );
    check_counts(r#"{"input_tokens":14}"#, r#"{"input_tokens":0,"output_tokens":7}"#, [Some(14), Some(7), None]);
    check_counts(r#"{"input_tokens":14,"output_tokens":1}"#, "null", [Some(14), None, None]);
    check_counts("null", "{}", [None, None, None]);
    check_counts(r#"{"input_tokens":14}"#, r#"{"output_tokens":0}"#, [Some(14), None, None]);
}

#[test]
fn tgi_ends_with_the_event_that_repeats_the_text() {
    let check = |messages: &[&str], outcome, finish, truncated, warnings: &[Warning]| {
        check_end(Protocol::Tgi, messages, outcome, finish, truncated, warnings);
    };
    let token = r#"{"index":1,"token":{"id":5,"text":" x","logprob":-0.2,"special":false},"generated_text":null,"details":null}"#;
    let last = |special: bool, details: &str| {
        format!(r#"{{"index":2,"token":{{"text":"y","special":{special}}},"generated_text":"x","details":{details}}}"#)
    };
    let length = r#"{"finish_reason":"length","generated_tokens":2,"seed":null}"#;
    check(&[token, &last(false, length)], Outcome::Ok, Some("length"), Some(true), &[Warning::Coalesced]);
    check(&[token, &last(true, "null")], Outcome::Ok, None, None, &[Warning::NoFinishReason, Warning::NoUsage]);
    let at_once = r#"{"finish_reason":"eos_token","generated_tokens":1,"input_length":4}"#;
    check(&[&last(true, at_once)], Outcome::EmptyOutput, Some("stop"), Some(false), &[]);
    check(&[token], Outcome::TruncatedStream, None, Some(true), &[]);
    let failure = r#"{"error":"Request failed during generation","error_type":"generation"}"#;
    check(&[token, failure], Outcome::StreamError, None, None, &[]);
    let trace = stream(Protocol::Tgi, &[token, &last(false, length)]);
    assert_eq!((trace.output_tokens, trace.input_tokens, texts(&trace).text.as_str()), (Some(2), None, " xy"));
}

#[test]
fn ollama_speaks_in_chats_and_in_plain_texts() {
    let plain = stream(
        Protocol::Ollama,
        &[
            r#"{"thinking":"hm","response":"","done":false}"#,
            r#"{"response":"Si","done":false}"#,
            r#"{"response":"x","done":false}"#,
            r#"{"response":"","done":true,"done_reason":"length","context":[1,2],"prompt_eval_count":8,"eval_count":3}"#,
        ],
    );
    assert_eq!((plain.outcome, plain.output_chunks, plain.truncated), (Outcome::Ok, 3, Some(true)));
    assert_eq!((texts(&plain).reasoning.as_str(), texts(&plain).text.as_str()), ("hm", "Six"));
    assert_eq!((plain.input_tokens, plain.output_tokens), (Some(8), Some(3)));
    let called = stream(
        Protocol::Ollama,
        &[
            r#"{"message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]},"done":false}"#,
            r#"{"message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","eval_count":5}"#,
        ],
    );
    assert_eq!(
        (called.first_output_kind, calls(&called)),
        (Some(OutputKind::ToolCall), vec![r#"f {"a":1}"#.to_owned()])
    );
}

#[test]
fn ollama_ends_with_the_line_that_is_done() {
    let check = |messages: &[&str], outcome, finish, truncated, warnings: &[Warning]| {
        check_end(Protocol::Ollama, messages, outcome, finish, truncated, warnings);
    };
    let piece = r#"{"message":{"content":"x"},"done":false}"#;
    let done = r#"{"message":{"content":""},"done":true,"done_reason":"stop","eval_count":2}"#;
    check(&["", piece, "  ", done], Outcome::Ok, Some("stop"), Some(false), &[]);
    check(&[piece, done, piece], Outcome::Ok, Some("stop"), Some(false), &[Warning::DataAfterDone]);
    let whole = r#"{"message":{"content":"a whole answer"},"done":true,"done_reason":"stop","eval_count":4}"#;
    check(&[whole], Outcome::Ok, Some("stop"), Some(false), &[Warning::NotStreamed]);
    let one = r#"{"response":"x","done":true,"done_reason":"stop","eval_count":1}"#;
    check(&[one], Outcome::Ok, Some("stop"), Some(false), &[]);
    let old = r#"{"response":"","done":true,"eval_count":2}"#;
    check(&[piece, old], Outcome::Ok, None, None, &[Warning::NoFinishReason]);
    let load = r#"{"response":"","done":true,"done_reason":"load"}"#;
    check(&[load], Outcome::EmptyOutput, Some("load"), Some(false), &[]);
    // Reading goes on behind a fault, which is not excused by what follows.
    check(&[piece, r#"{"message":{"#, done], Outcome::ProtocolError, Some("stop"), None, &[]);
    check(&[piece, "upstream connect error"], Outcome::ProtocolError, None, None, &[]);
    check(&[piece, r#"{"error":"gone"}"#, done], Outcome::StreamError, Some("stop"), None, &[]);
    let cut = read(Protocol::Ollama, "application/x-ndjson", format!("{piece}\n{}", &done[..30]).as_bytes());
    assert_eq!(cut.outcome, Outcome::TruncatedStream);
    let page = read(Protocol::Ollama, "application/json", b"\n<html>");
    assert_eq!(page.outcome, Outcome::ProtocolError);
    let typed = read(Protocol::Ollama, "application/json; charset=utf-8", format!("{piece}\n{done}\n").as_bytes());
    assert_eq!((typed.outcome, &typed.warnings[..]), (Outcome::Ok, &[Warning::ContentType][..]));
}

#[test]
fn what_gateways_add_is_no_fault() {
    for protocol in ALL.into_iter().filter(|protocol| *protocol != Protocol::Ollama) {
        for (odd, outcome, warnings) in [
            ("[DONE]", Outcome::EmptyOutput, &[][..]),
            ("ping", Outcome::EmptyOutput, &[Warning::NonjsonKeepalive]),
            ("null", Outcome::EmptyOutput, &[]),
            ("\":\"lost\"}{", Outcome::ProtocolError, &[]),
            ("{\"type\":", Outcome::ProtocolError, &[]),
            ("{\"object\":\"error\",\"message\":\"gone\"}", Outcome::StreamError, &[]),
        ] {
            // TGI has no field of that name.
            if protocol == Protocol::Tgi && odd.contains("object") {
                continue;
            }
            let trace = stream(protocol, &[odd]);
            assert_eq!((trace.outcome, &trace.warnings[..]), (outcome, warnings), "{} {odd}", protocol.name());
        }
    }
}

#[test]
fn every_complete_case_looks_like_its_own_dialect_and_a_stranger_is_told_so() {
    let mut seen = 0;
    for case in Case::all().iter().filter(|case| case.expect["outcome"] == "ok" && !case.is_frames()) {
        let own = Protocol::from_name(&case.adapter).expect("a dialect");
        let body: Vec<u8> = case.chunks.iter().flat_map(super::corpus_tests::wire::Write::bytes).collect();
        let content_type = case.header("content-type");
        assert_eq!(looks_like(content_type.as_deref(), &body), Some(own), "{}", case.id);
        for other in Protocol::ALL.into_iter().filter(|other| *other != own) {
            let trace = read(other, content_type.as_deref().unwrap_or_default(), &body);
            let hint = (trace.outcome != Outcome::Ok).then_some(own);
            assert_eq!(trace.looks_like, hint, "{} read as {}", case.id, other.name());
            seen += 1;
        }
    }
    assert!(seen > 300, "only {seen}");
}
