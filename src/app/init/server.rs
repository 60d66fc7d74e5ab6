//! The servers that `goodput init` knows: how each is started and asked, after its own documentation.

use clap::ValueEnum;

use super::quoted;
use crate::observe::Protocol;

/// A server to write a contract for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::app) enum Server {
    /// vLLM, by `vllm serve`.
    Vllm,
    /// SGLang, by `python3 -m sglang.launch_server`.
    Sglang,
    /// llama.cpp, by `llama-server`.
    #[value(name = "llama.cpp", alias = "llama-cpp")]
    LlamaCpp,
    /// Text Generation Inference, by `text-generation-launcher`.
    Tgi,
    /// Ollama, which runs as a service of the machine.
    Ollama,
}

impl Server {
    /// What it is called.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Vllm => "vLLM",
            Self::Sglang => "SGLang",
            Self::LlamaCpp => "llama.cpp",
            Self::Tgi => "Text Generation Inference",
            Self::Ollama => "Ollama",
        }
    }

    /// The contract's name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Vllm => "vllm",
            Self::Sglang => "sglang",
            Self::LlamaCpp => "llama-cpp",
            Self::Tgi => "tgi",
            Self::Ollama => "ollama",
        }
    }

    /// A small model that needs no licence to be accepted, where none is named.
    pub(super) fn model(self) -> &'static str {
        match self {
            Self::Vllm | Self::Sglang | Self::Tgi => "Qwen/Qwen2.5-0.5B-Instruct",
            Self::LlamaCpp => "Qwen/Qwen2.5-0.5B-Instruct-GGUF",
            Self::Ollama => "qwen2.5:0.5b",
        }
    }

    /// Where it listens, unless told otherwise.
    pub(super) fn url(self) -> &'static str {
        match self {
            Self::Vllm => "http://127.0.0.1:8000/v1/chat/completions",
            Self::Sglang => "http://127.0.0.1:30000/v1/chat/completions",
            Self::LlamaCpp | Self::Tgi => "http://127.0.0.1:8080/v1/chat/completions",
            Self::Ollama => "http://127.0.0.1:11434/api/chat",
        }
    }

    pub(super) fn protocol(self) -> Protocol {
        match self {
            Self::Ollama => Protocol::Ollama,
            _ => Protocol::OpenaiChat,
        }
    }

    /// The part of the contract that starts it; nothing for one that runs already.
    pub(super) fn launch(self, model: &str) -> String {
        let model = quoted(model);
        let (command, health) = match self {
            Self::Vllm => (format!("[vllm, serve, {model}, --host, 127.0.0.1, --port, \"8000\"]"), "/health"),
            Self::Sglang => (
                format!(
                    "[python3, -m, sglang.launch_server, --model-path, {model}, --host, 127.0.0.1, --port, \"30000\", --enable-metrics]"
                ),
                "/health",
            ),
            Self::LlamaCpp => (
                format!(
                    "[llama-server, -hf, {model}, --host, 127.0.0.1, --port, \"8080\", --parallel, \"4\", --metrics]"
                ),
                "/health",
            ),
            Self::Tgi => (
                format!("[text-generation-launcher, --model-id, {model}, --hostname, 127.0.0.1, --port, \"8080\"]"),
                "/health",
            ),
            Self::Ollama => return String::new(),
        };
        format!(
            "\n  launch:                           # started and stopped by the gate; without it, what runs there is measured\n    \
             command: {command}\n    ready: {{ path: {health}, within: 15m }}"
        )
    }

    /// What is sampled while the load runs, where it tells of anything.
    pub(super) fn resources(self) -> &'static str {
        match self {
            Self::Vllm => {
                "\nresources: { preset: vllm }         # KV cache, queues, preemptions, sampled while the load runs\n"
            }
            Self::Sglang => {
                "\nresources: { preset: sglang }       # KV cache, queues, retractions, sampled while the load runs\n"
            }
            Self::LlamaCpp => {
                "\nresources: { preset: llama_cpp }    # running and waiting requests, sampled while the load runs\n"
            }
            Self::Tgi => {
                "\nresources: { preset: tgi }          # running and waiting requests, sampled while the load runs\n"
            }
            Self::Ollama => "",
        }
    }

    /// The steps of a workflow that bring it onto the runner.
    pub(super) fn steps(self, model: &str) -> String {
        let lines: &[&str] = match self {
            Self::Vllm => &["python3 -m venv \"$RUNNER_TEMP/server\"", "\"$RUNNER_TEMP/server/bin/pip\" install vllm"],
            Self::Sglang => {
                &["python3 -m venv \"$RUNNER_TEMP/server\"", "\"$RUNNER_TEMP/server/bin/pip\" install 'sglang[all]'"]
            }
            Self::LlamaCpp => &["command -v llama-server   # install llama.cpp on the runner, or here"],
            Self::Tgi => {
                &["command -v text-generation-launcher   # run the job in TGI's container, or install it here"]
            }
            Self::Ollama => &["ollama pull \"$MODEL\"   # Ollama runs as a service of the runner, or is started here"],
        };
        let mut text = format!("      - name: Have {} on the runner\n", self.title());
        if self == Self::Ollama {
            text.push_str(&format!("        env:\n          MODEL: {}\n", quoted(model)));
        }
        text.push_str("        run: |\n");
        lines.iter().for_each(|line| text.push_str(&format!("          {line}\n")));
        if matches!(self, Self::Vllm | Self::Sglang) {
            text.push_str("          echo \"$RUNNER_TEMP/server/bin\" >> \"$GITHUB_PATH\"\n");
        }
        text
    }
}
