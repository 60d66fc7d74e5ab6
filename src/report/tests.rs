//! What hostile text, narrow pages and missing numbers must not do to a report.

use std::path::Path;

use serde_json::Value;

use super::{Frame, Limit, SmokeReport, SmokeRequest, SmokeSent};
use super::{comment, failure, json, markdown, samples, smoke, terminal};
use crate::judge::Reason;
use crate::observe::{Outcome, OutputKind};
use crate::record::{Reading, RunResult};

/// Display columns of a line of these tests, whose characters are all one column wide.
fn columns(line: &str) -> usize {
    line.chars().count()
}

const NASTY: [&str; 13] = [
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
    "/merge\n/approve @all ~bug ~\"a b\" %12 %\"next\" !34 g/p!34 &5 $6 ^alert#7 [[page]] {+a+} [^1]",
    "0123456789abcdef0123 o/r@89abcdef0123456789abcdef0123456789abcdef 1234567",
    "\0 $$x^2$$ ```math x ``` <details> </summary> <pre> :tada: <!-- goodput -->",
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
        probe.after = Some(Reading { value: None, series: Vec::new(), failure: Some(text.to_owned()), took_ns: 1 });
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
    for own in [
        "<br>",
        "<sub>",
        "</sub>",
        "<details>",
        "<details open>",
        "<span>",
        "</span>",
        "</details>",
        "<summary>",
        "</summary>",
        "<pre>",
        "</pre>",
        "<code>",
        "</code>",
        "**",
    ] {
        rest = rest.replace(own, "");
    }
    rest.trim_start_matches("## ").trim_start_matches("> ").trim_start_matches("- ").to_owned()
}

/// The text that a reader sees, with the character references resolved that this tool writes.
fn decoded(line: &str) -> String {
    let mut shown = String::new();
    for (index, part) in line.replace("&nbsp;", " ").split("&#").enumerate() {
        match part.split_once(';').and_then(|(code, rest)| Some((code.parse().ok().and_then(char::from_u32)?, rest))) {
            Some((c, rest)) if index > 0 => shown.extend([c.to_string().as_str(), rest]),
            _ => shown.push_str(part),
        }
    }
    shown
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
            let shown = decoded(&rest);
            for sigil in ['!', '%', '~', '&', '$', '@', '#'] {
                let follows = |c: char| c.is_alphanumeric() || c == '"';
                assert!(!shown.split(sigil).skip(1).any(|after| after.starts_with(follows)), "{text:?} in {line}");
            }
            assert!(!rest.trim_start().starts_with('/'), "{text:?} leaves a command in {line}");
            let references = rest.replace("&#", "");
            assert!(!references.contains('#'), "{text:?} leaves a reference in {line}");
        }
        assert_eq!(page.matches("</details>").count(), page.matches("<details").count());
    }
}

/// Runs of seven or more hexadecimal digits that stand alone and outside of code.
fn commits(line: &str) -> Vec<&str> {
    let outside = line.split("<code>").map(|part| part.rsplit("</code>").next().unwrap_or(part));
    let words = outside.flat_map(|part| part.split(|c: char| !c.is_alphanumeric() && c != '_'));
    words.filter(|word| word.len() >= 7 && word.bytes().all(|byte| byte.is_ascii_hexdigit())).collect()
}

#[test]
fn nothing_that_others_wrote_is_linked_as_a_commit() {
    let mut result = poisoned("0123456789abcdef0123 o/r@89abcdef0123456789abcdef0123456789abcdef 1234567 abcdef0");
    let page = markdown(&result);
    for line in page.lines().filter(|line| !line.contains("seed 42, plan `")) {
        assert_eq!(commits(line), [""; 0], "{line}");
    }
    // Our own commit may be.
    result.origin.commit = Some("89abcdef0123456789abcdef0123456789abcdef".to_owned());
    assert_eq!(markdown(&result).lines().flat_map(commits).filter(|word| *word == "89abcdef0123").count(), 1);
    result.origin.commit = Some("@octocat <b> 89abcdef".to_owned());
    assert!(!markdown(&result).contains("octocat"));
}

/// A result of hundreds of rows and loads in which every text is long.
fn huge(text: &str) -> RunResult {
    let long = text.repeat(1 + 4_000 / text.len());
    let mut result = poisoned(&long);
    result.name = text.repeat(1 + 1_000_000 / text.len());
    result.endpoint.log_tail = vec![long.clone(); 300];
    result.endpoint.notices = vec![long; 100];
    result.steps = result.steps.iter().cycle().take(200).cloned().collect();
    result.probes = result.probes.iter().cycle().take(200).cloned().collect();
    if let Some(verdict) = &mut result.verdict {
        verdict.checks = verdict.checks.iter().cycle().take(240).cloned().collect();
    }
    result
}

/// That everything in a page that is opened is closed, and that every row of a table has as many cells as its head.
fn assert_balanced(page: &str) {
    for tag in ["details", "summary", "pre", "sub", "code", "span"] {
        let (opened, closed) = (page.matches(&format!("<{tag}")).count(), page.matches(&format!("</{tag}>")).count());
        assert_eq!(opened, closed, "{tag}");
    }
    let mut head = None;
    for line in page.lines() {
        if !line.starts_with('|') {
            head = None;
            continue;
        }
        assert_eq!(cells(line), *head.get_or_insert_with(|| cells(line)), "{line}");
    }
}

#[test]
fn a_page_is_never_longer_than_its_limit_and_never_torn() {
    const MARKER: &str = "<!-- goodput comment:x -->";
    let remarks = ["Stale: @octocat pushed.".repeat(100), "No permission.".to_owned()];
    for text in NASTY.into_iter().chain(["harmless ", "推", "\u{202e}"]) {
        let result = huge(text);
        let run_url = Some("https://github.example/o/r/actions/runs/1");
        for limit in [Limit::Characters(4_000), Limit::Characters(65_536), Limit::Bytes(1_048_576)] {
            let (room, size): (usize, fn(&str) -> usize) = match limit {
                Limit::Characters(room) => (room, |page| page.chars().count()),
                Limit::Bytes(room) => (room, str::len),
            };
            let frame = Frame { marker: Some(MARKER), remarks: &remarks, run_url, limit };
            let page = comment(&result, &frame);
            assert!(size(&page) <= room, "{} of {limit:?} for {text:?}", size(&page));
            assert!(page.starts_with(&format!("{MARKER}\n\n## ❌ FAIL: ")), "{text:?}");
            assert_balanced(&page);
            if room <= 65_536 {
                let told = page.contains("so left out: ") && page.contains("[the run](https://github.example/");
                assert!(told, "{limit:?} for {text:?}");
                // It makes use of the room that there is.
                assert!(room < 65_536 || size(&page) > room / 2, "{} of {limit:?} for {text:?}", size(&page));
            }
            if page.contains("⚠️&nbsp;") {
                assert_eq!(page.matches("| FAIL |").count(), 120, "an undecided row stands for one that failed");
            }
            let page = failure(&result.name, &result.name, &frame);
            assert!(size(&page) <= room && page.starts_with(&format!("{MARKER}\n\n## 🚫 NO VERDICT: ")), "{text:?}");
            assert_balanced(&page);
        }
    }
}

#[test]
fn a_failure_says_that_it_is_no_answer() {
    let frame = Frame { marker: None, remarks: &[], run_url: None, limit: Limit::Characters(65_536) };
    let page = failure("demo", "disk full\n/merge\n::error::x", &frame);
    let expected = "## 🚫 NO VERDICT: demo\n\nThe tool ended before there was a verdict. This is neither a PASS nor a FAIL: \
                    nothing was shown of the change.\n\n<pre>\ndisk full\n&#47;merge\n&#58;&#8203;&#58;&#8203;error&#58;&#8203;&#58;&#8203;x\n</pre>\n";
    assert_eq!(page, expected);
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
fn metrics_have_columns_where_a_step_has_them_or_a_check_asks() {
    let result = samples::spoken();
    let page = terminal(&result, 200, false);
    let header = page.lines().find(|line| line.contains("TTFT ")).expect("the header of the steps");
    let groups: Vec<&str> = header.split("  ").map(str::trim).filter(|group| !group.is_empty()).collect();
    let rates = ["completed", "goodput", "attainment", "success"];
    assert_eq!(groups, [&["TTFT", "first answer", "first audio", "E2E", "RTF", "underrun"], rates.as_slice()].concat());
    let row = page.lines().find(|line| line.starts_with("▸ 20/s")).expect("the step's row");
    let cells: Vec<&str> = row.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    let times = ["121 ms", "204 ms", "262 ms", "221 ms", "304 ms", "231 ms", "314 ms", "912 ms", "1.19 s"];
    let rest = ["0.353", "0.420", "40.0 ms", "20.0", "20.0", "100%", "100%"];
    assert_eq!(cells[1..], [times.as_slice(), rest.as_slice()].concat());
    assert!(page.contains("reasoning is 43% of the output tokens"), "{page}");

    let mut asked = samples::spoken();
    for step in &mut asked.steps {
        step.metrics.retain(|name, _| ["ttft", "e2e"].contains(&name.as_str()));
        step.ratios.clear();
        step.reasoning_share = None;
    }
    let page = terminal(&asked, 200, false);
    let header = page.lines().find(|line| line.contains("TTFT ")).expect("the header of the steps");
    assert!(header.contains("RTF") && header.contains("underrun"), "what is asked about is missed: {header}");
    assert!(!header.contains("first") && !header.contains("TPOT") && !page.contains("reasoning"), "{page}");
}

#[test]
fn ratios_are_plain_numbers_in_every_table() {
    let page = markdown(&samples::spoken());
    for line in [
        "| load | TTFT<br>p99 | first answer<br>p95 | first audio<br>p95 | E2E<br>p99 | RTF<br>p95 | underrun<br>p95 \
         | goodput<br>req/s | attainment | success |",
        "| 20/s | rtf | 300 | 0.353 | 0.401 | 0.420 | 1.25 | 1.30 |",
        "| 20/s | RTF&nbsp;P95 | 4 | 0 | 0 | 300 | 0.420 | 0.411&nbsp;…&nbsp;0.520 |",
    ] {
        assert!(page.lines().any(|found| found == line), "no line `{line}` in\n{page}");
    }
}

#[test]
fn a_dry_run_shows_an_answer_behind_its_reasoning_and_sound() {
    let request = SmokeRequest {
        case: "hello".to_owned(),
        outcome: Outcome::Ok,
        status: Some(200),
        error: None,
        first_output_kind: Some(OutputKind::Reasoning),
        first_output_ns: Some(41 * samples::MS),
        first_answer_ns: Some(200 * samples::MS),
        first_audio_ns: Some(210 * samples::MS),
        e2e_ns: Some(1_100 * samples::MS),
        audio_ns: Some(3_100 * samples::MS),
        rtf_ppm: Some(354_839),
        underrun_ns: None,
        input_tokens: None,
        output_tokens: None,
        output_chunks: Some(3),
        finish_reason: None,
        text: None,
        warnings: Vec::new(),
        looks_like: None,
    };
    let sent = SmokeSent { line: String::new(), protocol: String::new(), headers: vec![], body: String::new() };
    let report = |requests| SmokeReport {
        sent: sent.clone(),
        notices: vec![],
        requests,
        probes: vec![],
        problems: vec![],
        unproven: vec![],
    };
    let page = smoke(&report(vec![request.clone()]), 80, false);
    assert!(page.contains("\n  first answer 200 ms, first audio 210 ms, 3.10 s of sound, RTF 0.355\n"), "{page}");
    let at_once = SmokeRequest {
        first_answer_ns: request.first_output_ns,
        first_audio_ns: None,
        audio_ns: None,
        rtf_ppm: None,
        underrun_ns: None,
        ..request
    };
    let page = smoke(&report(vec![at_once]), 80, false);
    assert!(!page.contains("first answer") && !page.contains("sound"), "{page}");
}

#[test]
fn a_policy_changes_the_sentence_and_not_the_word() {
    let mut result = samples::unknown();
    if let Some(verdict) = &mut result.verdict {
        verdict.unknown_blocks = false;
    }
    let page = terminal(&result, 100, false);
    assert!(page.starts_with("UNKNOWN  no-usage\n"), "{page}");
    assert!(page.contains("The policy does not let UNKNOWN"), "{page}");
}

#[test]
fn a_result_without_verdict_or_steps_is_rendered() {
    let mut result = samples::not_ready();
    result.verdict = None;
    assert!(terminal(&result, 80, false).starts_with("NOT JUDGED  crash\n"));
    assert!(markdown(&result).starts_with("## ⚠️ NOT JUDGED: crash\n"));
}

#[test]
fn a_result_survives_json() {
    for (name, result) in samples::all() {
        let text = json(&result);
        assert!(text.ends_with("}\n"), "{name}");
        assert_eq!(serde_json::from_str::<RunResult>(&text).ok().as_ref(), Some(&result), "{name}");
        let schema = crate::record::result_schema();
        let validator = jsonschema::validator_for(schema.as_value()).expect("the schema is one");
        let value: Value = serde_json::from_str(&text).expect("the result is JSON");
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
    let mut explained: Vec<&str> =
        reasons.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`')).map(|(code, _)| code).collect();
    let mut codes = codes_of::<Reason>();
    explained.sort_unstable();
    codes.sort_unstable();
    assert!(codes.len() >= 27, "the schema lists {codes:?}");
    assert_eq!(explained, codes);
    assert_eq!(Reason::IntervalStraddlesLimit.code(), "interval_straddles_limit");
}
