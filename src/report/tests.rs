//! Whole outputs of every renderer, and what hostile text must not do to them.

use std::path::Path;

use serde_json::Value;

use super::samples::{self, MS, rate};
use super::*;
use crate::judge::{Check, Reason, Status};
use crate::observe::{Outcome, OutputKind, Warning};
use crate::record::{Reading, RunResult};
use crate::schedule::TrialCounts;
use crate::units::{Digest, Load};

/// Compares line by line, so that a difference shows its place.
fn assert_text(found: &str, expected: &str) {
    let expected = expected.strip_prefix('\n').unwrap_or(expected);
    for (number, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, expected, "line {}", number + 1);
    }
    assert_eq!(found.lines().count(), expected.lines().count(), "number of lines in\n{found}");
}

/// Display columns of a line of these tests, whose characters are all one column wide.
fn columns(line: &str) -> usize {
    line.chars().count()
}

const NASTY: [&str; 10] = [
    "a|b||c",
    "`code` ``` fence",
    "<script>alert(1)</script><!-- x --></details>",
    "@octocat @org/team see #12 GH-3 https://evil.example www.evil.example",
    "line one\n\n# heading\r\n- item\n| a | b |",
    "\x1b[2J\x1b]8;;https://evil.example\x07link\x1b]8;;\x07 \u{9b}31m",
    "\u{202e}reversed\u{2066}\u{200b}\u{feff}",
    "[link](javascript:alert(1)) ![img](x) [ref]: x",
    "\\| \\` &lt;b&gt; &#64;octocat $x$ ~~s~~ **b** _i_",
    "FAIL PASS UNKNOWN FAIL",
];

/// A result in which every text that others write is `text`.
fn poisoned(text: &str) -> RunResult {
    let mut result = samples::fail();
    text.clone_into(&mut result.name);
    for field in [&mut result.tool_version, &mut result.started_at, &mut result.finished_at] {
        text.clone_into(field);
    }
    text.clone_into(&mut result.endpoint.url);
    text.clone_into(&mut result.endpoint.protocol);
    result.endpoint.ready = crate::record::Readiness::NotReady { detail: text.to_owned() };
    result.endpoint.exited = Some(text.to_owned());
    result.endpoint.log_tail = vec![text.to_owned(), text.to_owned()];
    result.stopped = Some(crate::record::Stop::EndpointDown { detail: text.to_owned() });
    for check in result.verdict.iter_mut().flat_map(|verdict| &mut verdict.checks) {
        text.clone_into(&mut check.id);
        for field in [&mut check.method, &mut check.limit, &mut check.observed, &mut check.note] {
            *field = Some(text.to_owned());
        }
        check.interval = Some([text.to_owned(), text.to_owned()]);
    }
    for probe in &mut result.probes {
        text.clone_into(&mut probe.name);
        probe.after = Some(Reading { value: None, failure: Some(text.to_owned()), took_ns: 1 });
    }
    for step in &mut result.steps {
        step.not_measured = Some(text.to_owned());
        for trial in &mut step.trials {
            trial.health.faults = vec![text.to_owned()];
            trial.objectives.iter_mut().for_each(|objective| text.clone_into(&mut objective.id));
        }
        if let Some(quantiles) = step.metrics.remove("ttft") {
            step.metrics.insert(text.to_owned(), quantiles);
        }
    }
    if let Some(binding) = result.capacity.as_mut().and_then(|capacity| capacity.binding.as_mut()) {
        text.clone_into(&mut binding.objective);
    }
    result
}

/// Cells of a GitHub-flavoured table row: unescaped pipes divide them.
fn cells(row: &str) -> usize {
    let inner = row.trim().strip_prefix('|').and_then(|row| row.strip_suffix('|')).expect("a row between pipes");
    let mut escaped = false;
    let pipes = inner.chars().filter(|c| {
        let divides = *c == '|' && !escaped;
        escaped = *c == '\\' && !escaped;
        divides
    });
    pipes.count() + 1
}

/// What of a line is left when everything that this tool itself writes as markup is taken away.
fn without_own_markup(line: &str) -> String {
    let mut rest = line.to_owned();
    for own in ["<br>", "<sub>", "</sub>", "<details>", "</details>", "<summary>", "</summary>", "<pre>", "</pre>"] {
        rest = rest.replace(own, "");
    }
    rest = rest.trim_start_matches("## ").trim_start_matches("> ").trim_start_matches("- ").to_owned();
    let bold: Vec<&str> = rest.splitn(3, "**").collect();
    if let ["", load, after] = bold.as_slice() { format!("{load}{after}") } else { rest }
}

#[test]
fn hostile_text_stays_text_in_markdown() {
    let harmless = markdown(&poisoned("harmless"));
    for text in NASTY {
        let page = markdown(&poisoned(text));
        assert_eq!(page.lines().count(), harmless.lines().count(), "{text:?} adds or takes lines in\n{page}");
        for (line, plain) in page.lines().zip(harmless.lines()) {
            if plain.starts_with('|') {
                assert_eq!(cells(line), cells(plain), "{text:?} changes the cells of {line}");
            }
            let rest = without_own_markup(line);
            assert!(!rest.contains(['<', '>', '@', '*', '~', '[', ']', '\\', '$']), "{text:?} leaves markup in {line}");
            assert_eq!(rest.matches('`').count(), without_own_markup(plain).matches('`').count(), "{text:?} in {line}");
            assert!(!rest.contains("://") && !rest.contains("www."), "{text:?} leaves a link in {line}");
            assert!(!line.chars().any(char::is_control), "{text:?} leaves a control character in {line}");
            let references = rest.replace("&#", "");
            assert!(!references.contains('#'), "{text:?} leaves a reference in {line}");
        }
        assert_eq!(page.matches("</details>").count(), page.matches("<details>").count());
    }
}

#[test]
fn hostile_text_stays_text_in_a_terminal() {
    for text in NASTY {
        for width in [80, 100, 140] {
            let page = terminal(&poisoned(text), width, false);
            let stray = page.chars().find(|c| c.is_control() && *c != '\n');
            assert_eq!(stray, None, "{text:?}");
            assert!(!page.contains(['\u{202e}', '\u{2066}', '\u{200b}', '\u{feff}']), "{text:?}");
            for line in page.lines() {
                assert!(columns(line) <= width, "{text:?} makes a line of {} columns: {line}", columns(line));
            }
        }
        let colored = terminal(&poisoned(text), 100, true);
        assert_eq!(strip_colors(&colored), terminal(&poisoned(text), 100, false), "{text:?}");
    }
}

/// Takes away the colours that this tool itself writes.
fn strip_colors(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\x1b[") {
        plain.push_str(before);
        rest = after.split_once('m').map_or("", |(_, rest)| rest);
    }
    plain + rest
}

#[test]
fn every_sample_fits_every_width() {
    for (name, result) in samples::all() {
        for width in [40, 60, 80, 100, 140, 200] {
            for line in terminal(&result, width, false).lines() {
                assert!(columns(line) <= width, "{name} at {width}: {} columns in {line}", columns(line));
            }
        }
    }
}

#[test]
fn statuses_are_coloured_and_only_on_request() {
    let mut result = samples::fail();
    if let Some(check) = result.verdict.as_mut().and_then(|verdict| verdict.checks.first_mut()) {
        "FAIL PASS".clone_into(&mut check.id);
    }
    let page = terminal(&result, 100, true);
    assert!(page.starts_with("\x1b[1m\x1b[31mFAIL\x1b[0m  "), "{page:?}");
    let row = page.lines().find(|line| line.starts_with("FAIL PASS")).expect("the renamed row");
    assert!(row.contains("\x1b[1m\x1b[31mFAIL\x1b[0m     broken"), "{row:?}");
    assert!(page.contains("\x1b[1m\x1b[32mPASS\x1b[0m") && page.contains("\x1b[1m\x1b[33mUNKNOWN\x1b[0m"));
    assert!(!terminal(&result, 100, false).contains('\x1b'));
}

#[test]
fn nothing_that_is_missing_is_shown_as_zero() {
    let mut result = samples::unknown();
    for step in &mut result.steps {
        step.metrics.clear();
        (step.completed, step.success_rate, step.achieved) = (None, None, None);
    }
    let page = terminal(&result, 140, false);
    let row = page.lines().find(|line| line.starts_with("▸ 20/s")).expect("the step's row");
    assert!(row["▸ 20/s".len()..].split_whitespace().all(|cell| cell == "—"), "{row}");
    assert!(!row["▸ 20/s".len()..].contains('0'), "{row}");
}

#[test]
fn a_result_without_verdict_or_steps_is_rendered() {
    let mut result = samples::not_ready();
    result.verdict = None;
    assert!(terminal(&result, 80, false).starts_with("NOT JUDGED  crash\n"));
    assert!(markdown(&result).starts_with("## ❔ NOT JUDGED: crash\n"));
}

#[test]
fn a_result_survives_json() {
    for (name, result) in samples::all() {
        let text = json(&result);
        assert!(text.ends_with("}\n"), "{name}");
        assert_eq!(serde_json::from_str::<RunResult>(&text).ok().as_ref(), Some(&result), "{name}");
        let schema = crate::record::result_schema();
        let validator = jsonschema::validator_for(schema.as_value()).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        let errors: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{name}: {errors:?}");
    }
}

/// The codes of a fieldless enumeration, from its generated schema.
fn codes_of<T: schemars::JsonSchema>() -> Vec<String> {
    fn collect(value: &Value, codes: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                codes.extend(map.get("const").and_then(Value::as_str).map(str::to_owned));
                let listed = map.get("enum").and_then(Value::as_array);
                codes.extend(listed.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned));
                map.values().for_each(|value| collect(value, codes));
            }
            Value::Array(values) => values.iter().for_each(|value| collect(value, codes)),
            _ => {}
        }
    }
    let mut codes = Vec::new();
    collect(schemars::schema_for!(T).as_value(), &mut codes);
    codes
}

#[test]
fn every_reason_is_explained_and_no_other() {
    let page =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/verdict.md")).unwrap_or_default();
    let reasons = page.split_once("## Reasons").map_or("", |(_, rest)| rest);
    let mut explained: Vec<&str> = reasons
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(code, _)| code)
        .collect();
    let mut codes = codes_of::<Reason>();
    explained.sort_unstable();
    codes.sort_unstable();
    assert!(codes.len() >= 27, "the schema lists {codes:?}");
    assert_eq!(explained, codes);
    assert_eq!(Reason::IntervalStraddlesLimit.code(), "interval_straddles_limit");
}

#[test]
fn show() {
    use std::io::Write as _;
    let mut out = std::fs::File::create("/tmp/report-show.txt").unwrap();
    for (name, result) in samples::all() {
        for width in [80, 100, 140] {
            writeln!(out, "=== {name} {width}\n{}", super::terminal(&result, width, false)).unwrap();
        }
        writeln!(out, "=== {name} md\n{}", super::markdown(&result)).unwrap();
    }
    for (name, result) in samples::all() {
        std::fs::write(format!("/tmp/report-{}.md", name.replace(' ', "-")), super::markdown(&result)).unwrap();
    }
    std::fs::write("/tmp/report-nasty.md", NASTY.map(|t| super::markdown(&poisoned(t))).join("\n")).unwrap();
    for width in [80, 140] {
        writeln!(out, "=== plan\n{}", plan(&a_plan(), width, false)).unwrap();
        writeln!(out, "=== smoke\n{}", smoke(&a_smoke(), width, false)).unwrap();
    }
}

fn a_plan() -> PlanReport {
    let step = |per_second: u64, must_hold, seconds: u64| PlanStep {
        load: rate(per_second),
        must_hold,
        requests: Some(TrialCounts { warm_up: 100, window: 300, drain: 60 }),
        load_time_ns: seconds * 1_000 * MS,
    };
    let row = |id: &str, limit: &str, smallest, reached, note: Option<&str>| ObjectiveRow {
        id: id.to_owned(),
        limit: limit.to_owned(),
        requests: Some(300),
        smallest_sample: Some(smallest),
        reached: Some(reached),
        note: note.map(str::to_owned),
    };
    PlanReport {
        name: "quickstart".to_owned(),
        steps: vec![step(10, false, 46), step(20, true, 23), step(30, false, 16)],
        total_requests: Some(1_380),
        total_time_ns: 85_000 * MS,
        plan_digest: Digest::of(b"plan"),
        workload_digest: Digest::of(b"workload"),
        cases: 12,
        objectives: vec![
            row("ttft_p95", "≤ 500ms", 59, true, None),
            row("success_rate", "≥ 99.9%", 2_995, false, Some("ask for 2,995 requests, or for a lower floor")),
        ],
    }
}

fn a_smoke() -> SmokeReport {
    let good = SmokeRequest {
        case: "hello".to_owned(),
        outcome: Outcome::Ok,
        status: Some(200),
        error: None,
        first_output_kind: Some(OutputKind::Content),
        first_output_ns: Some(41 * MS),
        e2e_ns: Some(312 * MS),
        input_tokens: Some(9),
        output_tokens: Some(64),
        output_chunks: Some(64),
        finish_reason: Some("stop".to_owned()),
        text: Some("Hello!\nI am".to_owned()),
        warnings: vec![Warning::NoDone],
    };
    let bad = SmokeRequest {
        case: "a case with a name that is far too long".to_owned(),
        outcome: Outcome::HttpError,
        status: Some(404),
        error: Some("model `gamma` does not exist".to_owned()),
        first_output_kind: None,
        first_output_ns: None,
        e2e_ns: None,
        input_tokens: None,
        output_tokens: None,
        output_chunks: None,
        finish_reason: None,
        text: None,
        warnings: Vec::new(),
    };
    SmokeReport {
        sent: SmokeSent {
            line: "POST http://127.0.0.1:8000/v1/chat/completions".to_owned(),
            protocol: "openai-chat".to_owned(),
            headers: vec![("authorization".to_owned(), "Bearer ***".to_owned())],
            body: "{\"model\":\"gamma-26b\",\"stream\":true}".to_owned(),
        },
        requests: vec![good, bad],
        probes: vec![
            ProbeAnswer { name: "restart_count".to_owned(), value: Some(0.0), failure: None },
            ProbeAnswer { name: "oom_count".to_owned(), value: None, failure: Some("exit status: 2".to_owned()) },
        ],
        problems: vec!["the request for `a case` ended in http_error; check `endpoint.model`".to_owned()],
        unproven: vec!["probe `oom_count` gave no number; run its command by hand".to_owned()],
    }
}
