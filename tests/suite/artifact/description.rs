//! GitHub's published description of its API, against which every request and every answer of the tests is held.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::server::Received;

/// The part of the description that the store needs.
pub(super) struct Description(Value);

impl Description {
    pub(super) fn read() -> Self {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/github/openapi.json");
        let document: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        assert!(document["openapi"].as_str().unwrap().starts_with("3.0."));
        Self(translated(&document))
    }

    /// A documented example of an answer.
    pub(super) fn example(&self, name: &str) -> Value {
        let example = self.0["components"]["examples"][name]["value"].clone();
        assert!(example.is_object(), "{name}");
        example
    }

    /// The documented path that a path is one of, as `/repos/{owner}/{repo}`.
    fn template(&self, path: &str) -> Option<&str> {
        let fits = |template: &&String| {
            let (template, path) = (template.split('/'), path.split('/'));
            template.clone().count() == path.clone().count()
                && template.zip(path).all(|(wanted, is)| wanted == is || (wanted.starts_with('{') && !is.is_empty()))
        };
        // `artifacts/{artifact_id}/{archive_format}` and its like have no rival with fixed words in this part.
        self.0["paths"].as_object().unwrap().keys().find(fits).map(String::as_str)
    }

    /// What is wrong with a request, if anything.
    pub(super) fn check_request(
        &self,
        path: &str,
        query: &BTreeMap<String, String>,
        request: &Received,
    ) -> Vec<String> {
        let mut problems = Vec::new();
        let Some(template) = self.template(path) else { return vec![format!("{path} is not described")] };
        let parameters = self.0["paths"][template]["get"]["parameters"].as_array().unwrap();
        let parameters: Vec<&Value> = parameters.iter().map(|parameter| self.resolved(parameter)).collect();
        for (name, value) in query {
            let known = parameters.iter().find(|parameter| parameter["in"] == "query" && parameter["name"] == *name);
            match known {
                None => problems.push(format!("{template} has no parameter {name}")),
                Some(parameter) => {
                    problems.extend(self.faults(&parameter["schema"], &typed(value, &parameter["schema"])))
                }
            }
        }
        let must_be = [("accept", "application/vnd.github+json"), ("x-github-api-version", "2022-11-28")];
        for (name, value) in must_be {
            if request.header(name) != Some(value) {
                problems.push(format!("{template} was asked with {name}: {:?}", request.header(name)));
            }
        }
        if request.header("user-agent").is_none() {
            problems.push("GitHub refuses requests without a user agent".to_owned());
        }
        problems
    }

    /// What is wrong with an answer, if anything.
    pub(super) fn check_answer(&self, path: &str, status: u16, body: &[u8]) -> Vec<String> {
        let template = self.template(path).unwrap();
        let schema = match &self.0["paths"][template]["get"]["responses"][status.to_string()] {
            // Every refusal has the same form.
            Value::Null => json!({"$ref": "#/components/schemas/basic-error"}),
            answer => self.resolved(answer)["content"]["application/json"]["schema"].clone(),
        };
        if schema.is_null() {
            return Vec::new();
        }
        match serde_json::from_slice(body) {
            Ok(body) => self.faults(&schema, &body),
            Err(error) => vec![format!("the answer to {path} is not JSON: {error}")],
        }
    }

    fn resolved<'a>(&'a self, value: &'a Value) -> &'a Value {
        match value["$ref"].as_str() {
            Some(reference) => self.0.pointer(reference.trim_start_matches('#')).unwrap(),
            None => value,
        }
    }

    fn faults(&self, schema: &Value, value: &Value) -> Vec<String> {
        let mut schema = schema.clone();
        schema["components"] = self.0["components"].clone();
        let validator = jsonschema::validator_for(&schema).unwrap();
        validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect()
    }
}

/// OpenAPI 3.0 says `nullable` where JSON Schema has another type.
fn translated(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(translated).collect(),
        Value::Object(map) => {
            let mut map: serde_json::Map<String, Value> =
                map.iter().map(|(key, value)| (key.clone(), translated(value))).collect();
            match map.shift_remove("nullable") {
                Some(Value::Bool(true)) => json!({"anyOf": [map, {"type": "null"}]}),
                _ => Value::Object(map),
            }
        }
        other => other.clone(),
    }
}

/// A parameter as the type that it stands for; one that is none of it stays a text.
fn typed(text: &str, schema: &Value) -> Value {
    match schema["type"].as_str() {
        Some("integer" | "boolean") => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
        _ => json!(text),
    }
}
