//! JSON Schemas of the published formats, generated from their types.

use schemars::{JsonSchema, Schema, generate::SchemaSettings};

use super::audit::AuditRecord;
use super::baseline::BaselineRecord;
use super::model::{RequestRecord, RunResult};

/// The schema of `result.json` (draft 2020-12).
pub fn result_schema() -> Schema {
    schema::<RunResult>("A run's result: everything a verdict needs, and the verdict.")
}

/// The schema of one line of `requests.jsonl` (draft 2020-12).
pub fn request_schema() -> Schema {
    schema::<RequestRecord>("One scheduled request: a line of requests.jsonl.")
}

/// The schema of `audit.json` (draft 2020-12).
pub fn audit_schema() -> Schema {
    schema::<AuditRecord>("An audit of the load generator: up to which rate, and how exactly, it can be trusted.")
}

/// The schema of a baseline record (draft 2020-12).
pub fn baseline_schema() -> Schema {
    schema::<BaselineRecord>("A baseline: what a later comparison needs of one run.")
}

fn schema<T: JsonSchema>(title: &str) -> Schema {
    let mut schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>();
    schema.insert("title".to_owned(), title.into());
    schema
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::*;

    fn committed(path: &str) -> String {
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap_or_default()
    }

    /// Every property name in a schema, however deep.
    fn property_names(schema: &Value, names: &mut Vec<String>) {
        match schema {
            Value::Object(map) => {
                if let Some(Value::Object(properties)) = map.get("properties") {
                    names.extend(properties.keys().cloned());
                }
                map.values().for_each(|value| property_names(value, names));
            }
            Value::Array(values) => values.iter().for_each(|value| property_names(value, names)),
            _ => {}
        }
    }

    #[test]
    fn the_committed_schemas_are_fresh() {
        for (path, schema) in [
            ("schemas/result.schema.json", result_schema()),
            ("schemas/request.schema.json", request_schema()),
            ("schemas/audit.schema.json", audit_schema()),
            ("schemas/baseline.schema.json", baseline_schema()),
        ] {
            let text = serde_json::to_string_pretty(&schema).expect("a schema is JSON") + "\n";
            if std::env::var_os("GOODPUT_UPDATE_SCHEMAS").is_some() {
                std::fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join(path), &text)
                    .expect("the schema can be written");
            }
            assert!(committed(path) == text, "{path} is stale; run the tests once with GOODPUT_UPDATE_SCHEMAS=1");
        }
    }

    #[test]
    fn a_request_line_is_valid_and_a_foreign_one_is_not() {
        let validator = jsonschema::validator_for(request_schema().as_value()).expect("the schema is one");
        let line = json!({
            "trial": 0, "arrival": 3, "segment": "window", "case": "a", "scheduled_ns": 1, "sent_ns": 2,
            "first_output_ns": null, "first_answer_ns": null, "last_output_ns": null, "finished_ns": 9,
            "outcome": "connect_error", "status": null, "error": "refused", "first_output_kind": null,
            "output_chunks": null, "chunk_gaps_ns": null, "input_tokens": null, "output_tokens": null,
            "reasoning_tokens": null, "finish_reason": null, "warnings": ["no_done"], "truncated": null,
            "answerless": null, "good": false, "missed": null
        });
        assert!(validator.is_valid(&line));
        for (key, value) in [
            ("outcome", json!("fine")),
            ("scheduled_ns", json!(-1)),
            ("scheduled_ns", json!(null)),
            ("sent_ns", json!(1.5)),
            ("surprise", json!(1)),
        ] {
            let mut wrong = line.clone();
            wrong[key] = value;
            assert!(!validator.is_valid(&wrong), "{key}");
        }
    }

    #[test]
    fn every_field_is_documented() {
        let page = committed("docs/files.md");
        let mut names = Vec::new();
        for schema in [result_schema(), request_schema(), audit_schema(), baseline_schema()] {
            property_names(schema.as_value(), &mut names);
        }
        assert!(names.len() > 100, "the walk over the schema finds {} names", names.len());
        let missing: Vec<_> = names.iter().filter(|name| !page.contains(&format!("`{name}`"))).collect();
        assert!(missing.is_empty(), "docs/files.md does not name {missing:?}");
    }
}
