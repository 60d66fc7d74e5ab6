//! What servers tell of themselves on pages of their own. Only entries that are named here are read: some of these pages also show
//! keys and paths that are nobody's business.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{add, plain};

/// What is under test, by name.
type Found = BTreeMap<String, String>;

/// Entries of SGLang's server information that change how it serves, besides its version and model.
const SGLANG: [&str; 6] = ["dtype", "quantization", "kv_cache_dtype", "tp_size", "dp_size", "attention_backend"];

/// One page of one kind of server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Page {
    /// `/v1/models` of everything that speaks OpenAI's dialect.
    Models,
    /// `/version` of vLLM: `{"version": …}`.
    Version,
    /// `/server_info` of SGLang, and `/get_server_info` of its older versions.
    SglangInfo(&'static str),
    /// `/info` of text-generation-inference.
    TgiInfo,
    /// `/api/version` of Ollama.
    OllamaVersion,
    /// `/api/tags` of Ollama: its models with their digests.
    OllamaTags,
    /// `/props` of llama.cpp.
    LlamaProps,
}

impl Page {
    /// Its path behind the server's prefix.
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Models => "/v1/models",
            Self::Version => "/version",
            Self::SglangInfo(path) => path,
            Self::TgiInfo => "/info",
            Self::OllamaVersion => "/api/version",
            Self::OllamaTags => "/api/tags",
            Self::LlamaProps => "/props",
        }
    }

    /// What the page tells of a server that serves `model`; nothing where it is another kind of page.
    pub(super) fn read(self, page: &Value, model: &str) -> Found {
        let mut found = Found::new();
        match self {
            Self::Models => models(page, model, &mut found),
            Self::Version => add(&mut found, "engine_version", text(page, "version")),
            Self::SglangInfo(_) => sglang(page, &mut found),
            Self::TgiInfo => tgi(page, &mut found),
            Self::OllamaVersion => {
                if let Some(version) = text(page, "version") {
                    add(&mut found, "engine", Some("ollama".to_owned()));
                    add(&mut found, "engine_version", Some(version));
                }
            }
            Self::OllamaTags => ollama_tags(page, model, &mut found),
            Self::LlamaProps => {
                if let Some(build) = text(page, "build_info") {
                    add(&mut found, "engine", Some("llama.cpp".to_owned()));
                    add(&mut found, "engine_version", Some(build));
                    add(&mut found, "model", text(page, "model_path"));
                }
            }
        }
        found
    }
}

/// The entry of the model that is asked for, or the only one. `root` is what it was loaded from, where it has another name.
fn models(page: &Value, model: &str, found: &mut Found) {
    let Some(listed) = page.get("data").and_then(Value::as_array) else { return };
    let named = listed.iter().find(|entry| entry.get("id").and_then(Value::as_str) == Some(model));
    let Some(entry) = named.or(listed.first().filter(|_| listed.len() == 1)) else { return };
    add(found, "model", text(entry, "root").or_else(|| text(entry, "id")));
    add(found, "max_model_len", text(entry, "max_model_len"));
    let engine = text(entry, "owned_by").and_then(|owner| match owner.to_ascii_lowercase().as_str() {
        "vllm" => Some("vllm"),
        "sglang" => Some("sglang"),
        "llamacpp" => Some("llama.cpp"),
        _ => None,
    });
    add(found, "engine", engine.map(str::to_owned));
}

/// The arguments of the server with its version, in one flat mapping.
fn sglang(page: &Value, found: &mut Found) {
    let (Some(version), Some(model)) = (text(page, "version"), text(page, "model_path")) else { return };
    add(found, "engine", Some("sglang".to_owned()));
    add(found, "engine_version", Some(version));
    add(found, "model", Some(model));
    add(found, "model_revision", text(page, "revision"));
    for name in SGLANG {
        add(found, name, text(page, name));
    }
}

fn tgi(page: &Value, found: &mut Found) {
    let (Some(version), Some(model)) = (text(page, "version"), text(page, "model_id")) else { return };
    add(found, "engine", Some("text-generation-inference".to_owned()));
    add(found, "engine_version", Some(version));
    add(found, "model", Some(model));
    add(found, "model_revision", text(page, "model_sha"));
    add(found, "dtype", text(page, "model_dtype"));
    add(found, "image", text(page, "docker_label"));
}

/// The digest of the model's weights and settings. A name without a tag means the tag `latest`.
fn ollama_tags(page: &Value, model: &str, found: &mut Found) {
    let full = if model.contains(':') { model.to_owned() } else { format!("{model}:latest") };
    let listed = page.get("models").and_then(Value::as_array).into_iter().flatten();
    let entry = listed.into_iter().find(|entry| entry.get("name").and_then(Value::as_str) == Some(full.as_str()));
    if let Some(entry) = entry {
        add(found, "model", Some(full));
        add(found, "model_revision", text(entry, "digest"));
        add(found, "quantization", entry.get("details").and_then(|details| text(details, "quantization_level")));
    }
}

/// A plain entry as text; nothing for `null`, which text-generation-inference writes as a text too, lists and mappings.
fn text(page: &Value, key: &str) -> Option<String> {
    match page.get(key)? {
        Value::String(text) => plain(text).filter(|text| text != "null"),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(page: Page, text: &Value, model: &str, expected: &[(&str, &str)]) {
        let found = page.read(text, model);
        let shown: Vec<(&str, &str)> = found.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(shown, expected, "{page:?}");
    }

    #[test]
    fn openai_models_name_what_is_loaded_and_sometimes_the_engine() {
        // vLLM's documented reply; `created` and `permission` differ with every start.
        let vllm = json!({ "object": "list", "data": [
            { "id": "chat", "object": "model", "created": 1_728_900_000, "owned_by": "vllm",
              "root": "meta-llama/Llama-3.1-8B-Instruct", "parent": null, "max_model_len": 131_072, "permission": [] },
            { "id": "lora", "object": "model", "owned_by": "vllm", "root": "lora", "parent": "chat" },
        ]});
        let loaded = [("engine", "vllm"), ("max_model_len", "131072"), ("model", "meta-llama/Llama-3.1-8B-Instruct")];
        check(Page::Models, &vllm, "chat", &loaded);
        check(Page::Models, &vllm, "other", &[]);
        let llama = json!({ "object": "list", "data": [
            { "id": "tiny.gguf", "object": "model", "owned_by": "llamacpp", "meta": { "n_params": 15 } },
        ]});
        check(Page::Models, &llama, "any", &[("engine", "llama.cpp"), ("model", "tiny.gguf")]);
        let hosted = json!({ "object": "list", "data": [{ "id": "gpt", "object": "model", "owned_by": "someone" }] });
        check(Page::Models, &hosted, "gpt", &[("model", "gpt")]);
    }

    #[test]
    fn every_engine_tells_its_version_in_its_own_way() {
        check(Page::Version, &json!({ "version": "0.11.0" }), "m", &[("engine_version", "0.11.0")]);
        let ollama = [("engine", "ollama"), ("engine_version", "0.5.1")];
        check(Page::OllamaVersion, &json!({ "version": "0.5.1" }), "m", &ollama);
        // docs/api.md of Ollama, "List Local Models".
        let tags = json!({ "models": [{
            "name": "llama3.2:latest", "model": "llama3.2:latest", "modified_at": "2025-05-04T17:37:44.706015396-07:00",
            "size": 2_019_393_189, "digest": "a80c4f17acd55265feec403c7aef86be0c25983ab279d83f3bcd3abbcb5b8b72",
            "details": { "format": "gguf", "parameter_size": "3.2B", "quantization_level": "Q4_K_M" } }] });
        check(
            Page::OllamaTags,
            &tags,
            "llama3.2",
            &[
                ("model", "llama3.2:latest"),
                ("model_revision", "a80c4f17acd55265feec403c7aef86be0c25983ab279d83f3bcd3abbcb5b8b72"),
                ("quantization", "Q4_K_M"),
            ],
        );
        // tools/server/README.md of llama.cpp, "GET /props".
        let props = json!({ "default_generation_settings": { "id": 0 }, "total_slots": 1,
            "model_path": "../models/Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf", "chat_template": "...",
            "build_info": "b(build number)-(build commit hash)" });
        check(
            Page::LlamaProps,
            &props,
            "m",
            &[
                ("engine", "llama.cpp"),
                ("engine_version", "b(build number)-(build commit hash)"),
                ("model", "../models/Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf"),
            ],
        );
    }

    #[test]
    fn of_long_pages_only_what_matters_is_read() {
        // The example in the API description of text-generation-inference (docs/openapi.json, schema `Info`).
        let tgi = json!({ "docker_label": "null", "max_best_of": 2, "max_client_batch_size": 32,
            "max_concurrent_requests": 128, "max_input_tokens": 1024, "max_stop_sequences": 4, "max_total_tokens": 2048,
            "model_id": "bigscience/blomm-560m", "model_pipeline_tag": "text-generation",
            "model_sha": "e985a63cdc139290c5f700ff1929f0b5942cced2", "router": "text-generation-router",
            "sha": "null", "validation_workers": 2, "version": "0.5.0" });
        check(
            Page::TgiInfo,
            &tgi,
            "m",
            &[
                ("engine", "text-generation-inference"),
                ("engine_version", "0.5.0"),
                ("model", "bigscience/blomm-560m"),
                ("model_revision", "e985a63cdc139290c5f700ff1929f0b5942cced2"),
            ],
        );
        let sglang = json!({ "model_path": "meta-llama/Llama-3.1-8B-Instruct", "tokenizer_path": "x", "tp_size": 2,
            "dp_size": 1, "dtype": "auto", "quantization": null, "api_key": "hunter2", "revision": "0e9e39f",
            "attention_backend": "fa3", "internal_states": [{}], "version": "0.5.3" });
        check(
            Page::SglangInfo("/server_info"),
            &sglang,
            "m",
            &[
                ("attention_backend", "fa3"),
                ("dp_size", "1"),
                ("dtype", "auto"),
                ("engine", "sglang"),
                ("engine_version", "0.5.3"),
                ("model", "meta-llama/Llama-3.1-8B-Instruct"),
                ("model_revision", "0e9e39f"),
                ("tp_size", "2"),
            ],
        );
    }

    #[test]
    fn pages_of_other_servers_say_nothing() {
        for page in [
            Page::Models,
            Page::Version,
            Page::SglangInfo("/server_info"),
            Page::TgiInfo,
            Page::OllamaVersion,
            Page::OllamaTags,
            Page::LlamaProps,
        ] {
            for other in [json!({ "status": "ok" }), json!([1]), json!(null), json!({ "version": { "major": 1 } })] {
                check(page, &other, "m", &[]);
            }
        }
    }
}
