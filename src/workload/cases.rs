//! Cases as people write them: a JSON list, JSON lines, or inline in the contract.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// One entry of the workload: a name and the fields that a payload template can ask for.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// The case's name; its place in the list (`case-1`, …) when it has none.
    pub id: String,
    /// Every field, `id` included if written.
    pub fields: Map<String, Value>,
}

/// A fault in the cases.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct CaseError {
    /// Where: a line of the file, or the number of the case.
    pub place: String,
    /// The case's index, where the cases are a list.
    pub index: Option<usize>,
    /// What is wrong and what to do.
    pub problem: String,
}

impl CaseError {
    fn new(place: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { place: place.into(), index: None, problem: problem.into() }
    }

    fn in_list(index: usize, problem: impl Into<String>) -> Self {
        Self { index: Some(index), ..Self::new(format!("case {}", index + 1), problem) }
    }
}

/// Reads a file of cases: a JSON list of objects (also under the key `cases`), or one object a line.
///
/// # Errors
/// All faults at once: text that is not JSON, a case that is no object, a name used twice, no case at all.
pub fn parse_cases(text: &str) -> Result<Vec<Case>, Vec<CaseError>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Array(items)) => inline_cases(items),
        Ok(Value::Object(mut map)) if map.get("cases").is_some_and(Value::is_array) => match map.remove("cases") {
            Some(Value::Array(items)) => inline_cases(items),
            _ => Err(vec![CaseError::new("cases", "not a list")]),
        },
        Ok(Value::Object(map)) => named(vec![(Place::Line(1), map)]),
        Ok(_) => Err(vec![CaseError::new("line 1", "not a list of cases; write a JSON list of objects")]),
        Err(whole) => parse_lines(text).map_err(|mut faults| {
            // A file that starts like one JSON document is one: its own error is the helpful one.
            if text.trim_start().starts_with('[') {
                faults = vec![CaseError::new(
                    format!("line {}, column {}", whole.line(), whole.column()),
                    format!("not valid JSON: {whole}"),
                )];
            }
            faults
        }),
    }
}

fn parse_lines(text: &str) -> Result<Vec<Case>, Vec<CaseError>> {
    let mut found = Vec::new();
    let mut faults = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let place = format!("line {}", index + 1);
        match serde_json::from_str::<Value>(line) {
            Ok(Value::Object(map)) => found.push((Place::Line(index + 1), map)),
            Ok(_) => faults.push(CaseError::new(place, "not an object; a case is an object with at least a `prompt`")),
            Err(error) => faults.push(CaseError::new(place, format!("not valid JSON: {error}"))),
        }
    }
    match (named(found), faults.is_empty()) {
        (cases, true) => cases,
        (Ok(_), false) => Err(faults),
        (Err(more), false) => Err(faults.into_iter().chain(more).collect()),
    }
}

/// Reads a list of cases that was read before, such as the one in a contract.
///
/// # Errors
/// As [`parse_cases`]; every fault has the index of its case.
pub fn inline_cases(items: Vec<Value>) -> Result<Vec<Case>, Vec<CaseError>> {
    let mut found = Vec::new();
    let mut faults = Vec::new();
    for (index, item) in items.into_iter().enumerate() {
        match item {
            Value::Object(map) => found.push((Place::Case(index), map)),
            _ => faults.push(CaseError::in_list(index, "not an object; a case is an object with at least a `prompt`")),
        }
    }
    if faults.is_empty() { named(found) } else { Err(faults) }
}

/// Where a case stands.
#[derive(Debug, Clone, Copy)]
enum Place {
    Line(usize),
    Case(usize),
}

impl Place {
    fn error(self, problem: impl Into<String>) -> CaseError {
        match self {
            Self::Line(line) => CaseError::new(format!("line {line}"), problem),
            Self::Case(index) => CaseError::in_list(index, problem),
        }
    }
}

fn named(found: Vec<(Place, Map<String, Value>)>) -> Result<Vec<Case>, Vec<CaseError>> {
    let mut names = BTreeSet::new();
    let mut cases = Vec::with_capacity(found.len());
    let mut faults = Vec::new();
    for (index, (place, fields)) in found.into_iter().enumerate() {
        let id = match fields.get("id") {
            None => format!("case-{}", index + 1),
            Some(Value::String(id)) if !id.is_empty() => id.clone(),
            Some(Value::Number(id)) => id.to_string(),
            Some(_) => {
                faults.push(place.error("`id` is neither a text nor a number"));
                continue;
            }
        };
        if names.insert(id.clone()) {
            cases.push(Case { id, fields });
        } else {
            faults.push(place.error(format!("the id `{id}` is used twice; every case needs its own")));
        }
    }
    if cases.is_empty() && faults.is_empty() {
        faults.push(CaseError::new("line 1", "no case; write at least one"));
    }
    if faults.is_empty() { Ok(cases) } else { Err(faults) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(text: &str) -> Vec<String> {
        parse_cases(text).expect("cases").into_iter().map(|c| c.id).collect()
    }

    #[test]
    fn lists_lines_and_wrapped_lists_are_read() {
        assert_eq!(ids(r#"[{"prompt":"a"},{"id":"x","prompt":"b"},{"id":7}]"#), ["case-1", "x", "7"]);
        assert_eq!(ids("{\"prompt\":\"a\"}\n\n{\"id\":\"x\"}\n"), ["case-1", "x"]);
        assert_eq!(ids(r#"{"cases":[{"id":"only"}]}"#), ["only"]);
        assert_eq!(ids("\u{feff}{\"id\":\"one\"}"), ["one"]);
    }

    #[test]
    fn every_fault_is_named_with_its_place() {
        let faults = |text: &str| -> Vec<String> {
            parse_cases(text).expect_err("faults").iter().map(ToString::to_string).collect()
        };
        assert_eq!(faults("[]"), ["line 1: no case; write at least one"]);
        assert!(faults("[{\"id\": \"a\"},\n {\"id\": ]")[0].starts_with("line 2, column"));
        let lines = faults("{\"id\":\"a\"}\nnonsense\n{\"id\":\"a\"}\n3\n");
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert!(lines[0].starts_with("line 2: not valid JSON"));
        assert!(lines[1].starts_with("line 4: not an object"));
        assert!(lines[2].contains("used twice"));
    }
}
