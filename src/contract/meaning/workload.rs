//! What is sent: the cases, and whether they fill the payload.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::Meaning;
use crate::contract::document::join;
use crate::contract::model::{CaseSource, Endpoint, WorkloadSource, shape};
use crate::contract::raw;
use crate::observe::{Protocol, session_formats};
use crate::workload::{Case, Shape, check, inline_cases};

const CASES: &str = "/workload/cases";
const PAYLOAD: &str = "/workload/payload";

impl Meaning<'_> {
    pub(super) fn workload(
        &mut self,
        written: raw::Workload,
        protocol: Option<Protocol>,
        endpoint: Option<&Endpoint>,
    ) -> Option<WorkloadSource> {
        let has_payload = self.is_written(written.payload.as_ref(), PAYLOAD);
        let payload = written.payload.map(Value::Object);
        if let (Some(payload), Some(protocol)) = (&payload, protocol) {
            self.stream_flag(payload, protocol);
        }
        if let (Some(payload), Some(endpoint)) = (&payload, endpoint) {
            self.session_formats(payload, endpoint);
        }
        let cases = match written.cases? {
            raw::Cases::File(file) if file.trim().is_empty() => {
                self.fault(CASES, "the text is blank; write the path of a JSON or JSON-lines file");
                None
            }
            raw::Cases::File(file) => Some(CaseSource::File(self.folder.join(file))),
            raw::Cases::Inline(items) => self.inline_cases(items).map(CaseSource::Inline),
        };
        let source = WorkloadSource { cases: cases?, payload, seed: written.seed.map_or(1, |seed| seed.0) };
        if has_payload != source.payload.is_some() {
            return None;
        }
        if let (CaseSource::Inline(cases), Some(protocol)) = (&source.cases, protocol) {
            // A fault in the endpoint is told elsewhere and changes little about what the cases have to carry.
            let template = source.template(cases, |has| match endpoint {
                Some(endpoint) => endpoint.default_payload(has),
                None => protocol.default_payload("", [None; 2], has),
            });
            let (model, shape) = endpoint.map_or(("model", shape(protocol, None)), |e| (e.model.as_str(), e.shape()));
            self.fill(&template, cases, model, shape, has_payload);
        }
        Some(source)
    }

    /// A dialect reads either a stream or one body; a payload that asks for the other would fail on every request.
    fn stream_flag(&mut self, payload: &Value, protocol: Protocol) {
        if matches!(protocol, Protocol::OpenaiRealtime | Protocol::OpenaiSpeech | Protocol::OpenaiTranscription) {
            return;
        }
        let streamed = protocol.streams();
        if payload.get("stream").and_then(Value::as_bool) == Some(!streamed) {
            let reads = if streamed { "a stream" } else { "one JSON body" };
            let message = format!(
                "the protocol `{}` reads {reads}; write `stream: {streamed}` or choose another protocol",
                protocol.name()
            );
            self.fault(&join(PAYLOAD, "stream"), message);
        }
    }

    /// A session that asks for other sound than the endpoint is said to hear and speak would be measured by a wrong clock.
    fn session_formats(&mut self, payload: &Value, endpoint: &Endpoint) {
        if endpoint.protocol != Protocol::OpenaiRealtime {
            return;
        }
        let events = payload.get("events").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        for (index, event) in events.iter().enumerate() {
            let [input, output] = session_formats(event);
            for (key, asked, said) in
                [("input", input, endpoint.input_audio), ("output", output, endpoint.output_audio)]
            {
                if let (Some(asked), Some(said)) = (asked, said)
                    && asked != said
                {
                    let message = format!(
                        "the session asks for {asked} as its {key}, and `endpoint.audio.{key}` is {said}; declare the same there"
                    );
                    self.fault(&join(&join(PAYLOAD, "events"), &index.to_string()), message);
                }
            }
        }
    }

    fn inline_cases(&mut self, items: Vec<Option<Map<String, Value>>>) -> Option<Vec<Case>> {
        let items = items.into_iter().map(|item| item.map(Value::Object)).collect::<Option<Vec<_>>>()?;
        match inline_cases(items) {
            Ok(cases) => Some(cases),
            Err(faults) => {
                for fault in faults {
                    let pointer = fault.index.map_or(CASES.to_owned(), |index| join(CASES, &index.to_string()));
                    self.fault(&pointer, fault.problem);
                }
                None
            }
        }
    }

    /// Fills the template with every case; a placeholder that many cases cannot fill is one mistake.
    fn fill(&mut self, template: &Value, cases: &[Case], model: &str, shape: Shape, has_payload: bool) {
        let mut found: BTreeMap<String, (usize, String, usize)> = BTreeMap::new();
        for (index, case) in cases.iter().enumerate() {
            for fault in check(template, case, model, shape) {
                found.entry(fault.pointer).or_insert((index, fault.problem, 0)).2 += 1;
            }
        }
        for (place, (index, problem, count)) in found {
            let more = if count > 1 { format!(" (and so for {} more)", count - 1) } else { String::new() };
            let pointer = if has_payload { format!("{PAYLOAD}{place}") } else { join(CASES, &index.to_string()) };
            self.fault(&pointer, format!("{problem}{more}"));
        }
    }
}
