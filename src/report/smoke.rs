//! What a dry run saw (`goodput smoke`).

use serde::Serialize;

use super::figures::UNMEASURED;
use super::layout::{Column, Page, lay_out, shortened};
use crate::contract::ResourceUnit;
use crate::judge::Status;
use crate::observe::{Outcome, OutputKind, Warning};
use crate::units::{format_measured_ratio, format_nanos};

/// What a dry run sent, received and could not prove. All times are since the request was due; where it speaks, since the end of
/// its speech.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SmokeReport {
    /// What was sent, with secrets already masked.
    pub sent: SmokeSent,
    /// Each request, in the order it was due.
    pub requests: Vec<SmokeRequest>,
    /// Each stability probe's answer.
    pub probes: Vec<ProbeAnswer>,
    /// What the server would not have, and what was done instead.
    pub notices: Vec<String>,
    /// What was proven not to work, each with a next step.
    pub problems: Vec<String>,
    /// What could not be proven, each with a next step.
    pub unproven: Vec<String>,
}

/// The first request, as it went over the wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SmokeSent {
    /// `POST http://127.0.0.1:8000/v1/chat/completions`.
    pub line: String,
    /// The dialect.
    pub protocol: String,
    /// Headers, secrets masked.
    pub headers: Vec<(String, String)>,
    /// The beginning of the body, secrets masked.
    pub body: String,
}

/// One request of a dry run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SmokeRequest {
    /// The case that was sent.
    pub case: String,
    /// How it ended.
    pub outcome: Outcome,
    /// The HTTP status, once one was seen.
    pub status: Option<u16>,
    /// What went wrong.
    pub error: Option<String>,
    /// The kind of the first output.
    pub first_output_kind: Option<OutputKind>,
    /// When it came, in nanoseconds.
    pub first_output_ns: Option<u64>,
    /// When the first output other than reasoning came, in nanoseconds.
    pub first_answer_ns: Option<u64>,
    /// When the first sound came, in nanoseconds.
    pub first_audio_ns: Option<u64>,
    /// When the last output came, in nanoseconds.
    pub e2e_ns: Option<u64>,
    /// How long the sound lasts that was spoken or transcribed, in nanoseconds.
    pub audio_ns: Option<u64>,
    /// `e2e_ns` / `audio_ns`, in parts per million.
    pub rtf_ppm: Option<u64>,
    /// How long a listener who starts at the first sound runs dry in all, in nanoseconds.
    pub underrun_ns: Option<u64>,
    /// Prompt tokens by the server's count.
    pub input_tokens: Option<u64>,
    /// Completion tokens by the server's count.
    pub output_tokens: Option<u64>,
    /// Messages with output.
    pub output_chunks: Option<u32>,
    /// Why the reply ended, normalised.
    pub finish_reason: Option<String>,
    /// The beginning of the reply's text.
    pub text: Option<String>,
    /// Oddities that did not change the outcome.
    pub warnings: Vec<Warning>,
    /// Name of the other dialect that a reply which did not end well seems to be written in.
    pub looks_like: Option<String>,
}

/// One probe's answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProbeAnswer {
    /// The name of the stability row or of the resource.
    pub name: String,
    /// The number or exit code; `null` when the probe failed.
    pub value: Option<f64>,
    /// The unit of a resource's number.
    pub unit: Option<ResourceUnit>,
    /// Whose number it is, where the source says.
    pub of: Vec<String>,
    /// Why there is none.
    pub failure: Option<String>,
    /// Whether a row of the verdict depends on it.
    pub needed: bool,
    /// Whether it is the exit code of a health check, which must be 0.
    pub is_exit_code: bool,
}

impl SmokeReport {
    /// FAIL when something was proven not to work, else UNKNOWN when something could not be proven, else PASS.
    pub fn overall(&self) -> Status {
        match (self.problems.is_empty(), self.unproven.is_empty()) {
            (false, _) => Status::Fail,
            (true, false) => Status::Unknown,
            (true, true) => Status::Pass,
        }
    }
}

/// Renders a dry run for a terminal of `width` columns.
pub fn smoke(report: &SmokeReport, width: usize, color: bool) -> String {
    let mut page = Page::new(width, color);
    sent(&mut page, &report.sent);
    requests(&mut page, &report.requests);
    probes(&mut page, &report.probes);
    page.blank();
    let overall = report.overall();
    let text = match overall {
        Status::Pass | Status::Accepted => proven(report),
        Status::Fail => "something does not work".to_owned(),
        Status::Unknown => "something could not be proven".to_owned(),
    };
    page.status_line(Some(overall), overall.word(), &text);
    for notice in &report.notices {
        page.item(&format!("notice: {notice}"));
    }
    for problem in report.problems.iter().chain(&report.unproven) {
        page.item(problem);
    }
    page.finish()
}

/// What gave data, and what of it there was none.
fn proven(report: &SmokeReport) -> String {
    let counted = report.requests.iter().all(|request| request.output_tokens.is_some());
    let silent = report.probes.iter().filter(|probe| probe.value.is_none()).count();
    let probed = if silent == report.probes.len() { "" } else { ", probes" };
    let (gave, lacks) = if counted { (", token counts", "") } else { ("", "; there are no token counts") };
    let silent =
        if silent > 0 { format!("; {silent} of {} probes give none", report.probes.len()) } else { String::new() };
    format!("payload, reply{gave}{probed} give data{lacks}{silent}")
}

fn sent(page: &mut Page, sent: &SmokeSent) {
    page.heading(&format!("{}  ({})", sent.line, sent.protocol));
    for (name, value) in &sent.headers {
        page.remark(&format!("{name}: {value}"), 2);
    }
    for line in sent.body.lines() {
        page.remark(line, 2);
    }
}

fn requests(page: &mut Page, requests: &[SmokeRequest]) {
    let column = |value: fn(&SmokeRequest) -> Option<String>| -> Vec<String> {
        requests.iter().map(|request| value(request).unwrap_or_else(|| UNMEASURED.to_owned())).collect()
    };
    let columns = vec![
        Column::words("case", column(|r| Some(shortened(&r.case, 18)))),
        Column::words("outcome", column(|r| Some(r.outcome.name().to_owned()))),
        Column::numbers("status", column(|r| r.status.map(|status| status.to_string()))),
        Column::words("first output", column(first_output)),
        Column::numbers("E2E", column(|r| r.e2e_ns.map(format_nanos))),
        Column::numbers("chunks", column(|r| r.output_chunks.map(|chunks| chunks.to_string()))).ranked(2),
        Column::words("tokens", column(|r| Some(tokens(r)))),
        Column::words("finish", column(|r| r.finish_reason.clone())).ranked(1),
    ];
    page.blank();
    let lines = lay_out(columns, page.width());
    page.table_header(&lines);
    for (line, request) in lines.rows.iter().zip(requests) {
        page.table_row(line, None);
        page.remark_if(request.error.as_ref(), 2);
        page.remark_if(answer_and_sound(request).as_ref(), 2);
        page.remark_if(request.text.as_ref().map(|text| format!("“{text}”")).as_ref(), 2);
        page.remark_if(warnings(request).as_ref(), 2);
    }
}

fn first_output(request: &SmokeRequest) -> Option<String> {
    let kind = match request.first_output_kind? {
        OutputKind::Reasoning => "reasoning",
        OutputKind::Content => "content",
        OutputKind::Refusal => "refusal",
        OutputKind::ToolCall => "tool_call",
        OutputKind::Audio => "audio",
    };
    Some(match request.first_output_ns {
        Some(at) => format!("{kind} {}", format_nanos(at)),
        None => kind.to_owned(),
    })
}

/// What there is to say beyond first and last output: an answer behind its reasoning, and sound.
fn answer_and_sound(request: &SmokeRequest) -> Option<String> {
    let unknown = request.first_audio_ns.is_some() && request.audio_ns.is_none();
    let later = request.first_answer_ns.filter(|answer| Some(*answer) != request.first_output_ns);
    let parts: Vec<String> = [
        later.map(|at| format!("first answer {}", format_nanos(at))),
        request.first_audio_ns.map(|at| format!("first audio {}", format_nanos(at))),
        request.audio_ns.map(|length| format!("{} of sound", format_nanos(length))),
        request.rtf_ppm.map(|ratio| format!("RTF {}", format_measured_ratio(ratio))),
        request.underrun_ns.filter(|_| request.first_audio_ns.is_some()).map(underrun),
        unknown.then(|| "how long the sound lasts is not known".to_owned()),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn underrun(nanos: u64) -> String {
    if nanos == 0 { "no underrun".to_owned() } else { format!("underrun {}", format_nanos(nanos)) }
}

fn tokens(request: &SmokeRequest) -> String {
    match (request.input_tokens, request.output_tokens) {
        (None, None) => "no usage".to_owned(),
        (input, output) => {
            let shown = |count: Option<u64>| count.map_or_else(|| UNMEASURED.to_owned(), |count| count.to_string());
            format!("{} in, {} out", shown(input), shown(output))
        }
    }
}

fn warnings(request: &SmokeRequest) -> Option<String> {
    let codes = request.warnings.iter().map(super::conclusion::code_of).collect::<Vec<_>>();
    (!codes.is_empty()).then(|| format!("warnings: {}", codes.join(", ")))
}

/// How many owners of a probe's number are named.
const OWNERS: usize = 3;

fn probes(page: &mut Page, probes: &[ProbeAnswer]) {
    if probes.is_empty() {
        return;
    }
    page.blank();
    let answer = |probe: &ProbeAnswer| match (probe.value, &probe.failure) {
        (Some(value), _) => {
            let shown = probe.unit.map_or_else(|| value.to_string(), |unit| unit.show(value));
            let of = probe.of.iter().take(OWNERS).map(String::as_str).collect::<Vec<_>>().join(", ");
            let more = if probe.of.len() > OWNERS { ", …" } else { "" };
            if of.is_empty() { shown } else { format!("{shown}  of {of}{more}") }
        }
        (None, Some(failure)) => format!("failed: {failure}"),
        (None, None) => UNMEASURED.to_owned(),
    };
    page.table(vec![
        Column::words("probe", probes.iter().map(|probe| probe.name.clone()).collect()),
        Column::words("answer", probes.iter().map(answer).collect()),
    ]);
}
