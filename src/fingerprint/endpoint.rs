//! What is under test: how the endpoint is launched, and what it tells of itself.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use http::header::HeaderMap;
use serde_json::Value;
use url::Url;

use super::add;
use super::pages::Page;
use crate::contract::{Endpoint, LaunchWhat};
use crate::endpoint::{Secrets, add_headers};
use crate::observe::Protocol;
use crate::units::Digest;

/// Longest time that one page may take.
const PAGE_WITHIN: Duration = Duration::from_secs(2);

/// The most of a page that is read, in bytes; a longer one is left alone.
const LARGEST_PAGE: usize = 1 << 20;

/// The longest command line that is kept as a whole, in characters.
const LONGEST_LAUNCH: usize = 1_000;

/// What a change may change: the command line or the simulated profile, the image that it names, and what the server's own pages
/// tell. They are asked with the endpoint's headers, two seconds each and no more than six; a page that is not there or does not
/// answer in its known form tells nothing.
///
/// `client` is one that trusts what the endpoint's requests trust.
pub async fn endpoint(endpoint: &Endpoint, client: &reqwest::Client, secrets: &Secrets) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    match endpoint.launch.as_ref().map(|launch| &launch.what) {
        // The simulated endpoint has none of these pages.
        Some(LaunchWhat::Simulate(profile)) => {
            let text = std::fs::read(profile).ok();
            add(&mut found, "profile", text.map(|text| Digest::of(&text).short().to_owned()));
            return found;
        }
        Some(LaunchWhat::Command(command)) => {
            add(&mut found, "launch", Some(command_line(command, secrets)));
            add(&mut found, "image", image(command));
        }
        None => {}
    }
    let mut headers = HeaderMap::new();
    // Whoever drives the load has told what is wrong with a header.
    if add_headers(&mut headers, &endpoint.headers, &mut secrets.clone()).is_err() {
        return found;
    }
    let server = Server { endpoint, client, headers };
    for (key, value) in server.pages().await {
        // What the command names is what was asked for; a page may know it by a shorter name.
        found.entry(key).or_insert_with(|| secrets.mask(&value).into_owned());
    }
    found
}

/// A server and how it is asked.
struct Server<'a> {
    endpoint: &'a Endpoint,
    client: &'a reqwest::Client,
    headers: HeaderMap,
}

impl Server<'_> {
    /// What all pages tell; of two that tell the same thing, the later one.
    async fn pages(&self) -> BTreeMap<String, String> {
        let (first, others): (&[Page], &[Page]) = match self.endpoint.protocol {
            Protocol::Tgi => (&[Page::TgiInfo], &[]),
            Protocol::Ollama => (&[Page::OllamaVersion, Page::OllamaTags], &[]),
            _ => (&[Page::Models], &[]),
        };
        let mut found = self.ask(first).await;
        let others = if first == [Page::Models] { rest(found.get("engine").map(String::as_str)) } else { others };
        found.extend(self.ask(others).await);
        found
    }

    async fn ask(&self, pages: &[Page]) -> BTreeMap<String, String> {
        let asked = join_all(pages.iter().map(|page| self.page(*page))).await;
        pages
            .iter()
            .zip(asked)
            .filter_map(|(page, text)| Some(page.read(&text?, &self.endpoint.model)))
            .flatten()
            .collect()
    }

    /// One page as JSON.
    async fn page(&self, page: Page) -> Option<Value> {
        let target = target(&self.endpoint.url, page.path())?;
        let read = async {
            let mut reply = self.client.get(target).headers(self.headers.clone()).send().await.ok()?;
            if !reply.status().is_success() {
                return None;
            }
            let mut text = Vec::new();
            while let Some(part) = reply.chunk().await.ok()? {
                text.extend_from_slice(&part);
                if text.len() > LARGEST_PAGE {
                    return None;
                }
            }
            serde_json::from_slice(&text).ok()
        };
        tokio::time::timeout(PAGE_WITHIN, read).await.ok()?
    }
}

/// The pages besides `/v1/models`, by what that tells of the engine.
fn rest(engine: Option<&str>) -> &'static [Page] {
    match engine {
        Some("vllm") => &[Page::Version],
        Some("sglang") => &[Page::SglangInfo("/get_server_info"), Page::SglangInfo("/server_info")],
        Some("llama.cpp") => &[Page::LlamaProps],
        _ => {
            &[Page::Version, Page::SglangInfo("/get_server_info"), Page::TgiInfo, Page::OllamaVersion, Page::LlamaProps]
        }
    }
}

/// The URL of a page: beside the path that requests go to, so that what stands before `/v1/` stays.
fn target(url: &Url, path: &str) -> Option<Url> {
    let mut target = url.clone();
    let scheme = match url.scheme() {
        "ws" => "http",
        "wss" => "https",
        other => other,
    };
    target.set_scheme(scheme).ok()?;
    let begin = ["/v1/", "/api/", "/generate"].iter().find_map(|mark| url.path().find(mark)).unwrap_or(0);
    target.set_path(&format!("{}{path}", &url.path()[..begin]));
    target.set_query(None);
    target.set_fragment(None);
    Some(target)
}

/// The command line as a shell would read it, without secrets. A long one ends with the digest of the whole.
fn command_line(command: &[String], secrets: &Secrets) -> String {
    let words: Vec<String> = command.iter().map(|word| quoted(word)).collect();
    let line = secrets.mask(&words.join(" ")).into_owned();
    if line.chars().nth(LONGEST_LAUNCH).is_none() {
        return line;
    }
    let start: String = line.chars().take(LONGEST_LAUNCH).collect();
    format!("{start}… (SHA-256 {})", Digest::of(line.as_bytes()).short())
}

/// A word as a shell needs it; control characters are made visible.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    let shown: String = word
        .chars()
        .flat_map(|c| if c.is_control() { c.escape_default().collect::<Vec<_>>() } else { vec![c] })
        .collect();
    format!("'{}'", shown.replace('\'', "'\\''"))
}

/// The first image that is named by its digest, as `name@sha256:…`.
fn image(command: &[String]) -> Option<String> {
    let words = command.iter().flat_map(|word| word.split(|c: char| c.is_whitespace() || "'\"=;".contains(c)));
    words.into_iter().find_map(|word| {
        let (name, digest) = word.split_once("@sha256:")?;
        let is_digest = digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
        (is_digest && !name.is_empty() && word.len() <= super::LONGEST).then(|| word.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::{Arc, Mutex};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::contract::HttpVersion;
    use crate::endpoint::http_client;

    fn contract(url: &str, rest: &str) -> Endpoint {
        let text = format!(
            "version: 1\nname: demo\nendpoint: {{ url: \"{url}\", model: m, {rest} }}\n\
             workload: {{ cases: [{{ id: a, prompt: hi }}] }}\n\
             traffic: {{ model: constant, loads: [4/s], trial: {{ window: 75s }} }}\n\
             slo: {{ objectives: [{{ metric: success_rate, at_least: 99% }}], at_load: 4/s }}\n"
        );
        crate::contract::parse(&text, Path::new("/repo")).expect("a contract").contract.endpoint
    }

    /// A server with these pages; everything else is 404. What was asked of it is written down.
    async fn server(pages: &'static [(&'static str, &'static str)]) -> (String, Arc<Mutex<Vec<String>>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let written = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((mut connection, _)) = listener.accept().await {
                let mut request = vec![0; 4096];
                let read = connection.read(&mut request).await.unwrap_or(0);
                let request = String::from_utf8_lossy(&request[..read]).into_owned();
                let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
                let page = pages.iter().find(|(name, _)| *name == path);
                written.lock().expect("a lock").push(path);
                let (status, body) = page.map_or(("404 Not Found", ""), |(_, body)| ("200 OK", *body));
                let text =
                    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len());
                let _ = connection.write_all(text.as_bytes()).await;
            }
        });
        (format!("http://{address}"), asked)
    }

    async fn ask(endpoint: &Endpoint) -> Vec<(String, String)> {
        let client = http_client(None, None, HttpVersion::Auto).expect("a client");
        let mut secrets = Secrets::default();
        secrets.add("hunter2-token");
        super::endpoint(endpoint, &client, &secrets).await.into_iter().collect()
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[tokio::test]
    async fn the_engine_is_asked_for_what_it_is_behind_the_prefix_of_the_endpoint() {
        let (server, asked) = server(&[
            ("/prod/v1/models", r#"{"data":[{"id":"m","owned_by":"vllm","root":"org/m-hunter2-token"}]}"#),
            ("/prod/version", r#"{"version":"0.11.0"}"#),
        ])
        .await;
        let endpoint = contract(&format!("{server}/prod/v1/chat/completions?x=1"), "protocol: openai-chat");
        let expected = [("engine", "vllm"), ("engine_version", "0.11.0"), ("model", "org/m-***")];
        assert_eq!(ask(&endpoint).await, pairs(&expected));
        assert_eq!(*asked.lock().expect("a lock"), ["/prod/v1/models", "/prod/version"]);
    }

    #[tokio::test]
    async fn a_server_that_tells_nothing_is_asked_six_times_at_most() {
        let (server, asked) = server(&[("/version", "no JSON")]).await;
        for protocol in Protocol::ALL {
            let endpoint = Endpoint { protocol, ..contract(&format!("{server}/v1/x"), "protocol: openai-chat") };
            assert_eq!(ask(&endpoint).await, [], "{protocol:?}");
            let asked = std::mem::take(&mut *asked.lock().expect("a lock"));
            assert!((1..=6).contains(&asked.len()), "{protocol:?}: {asked:?}");
        }
    }

    #[tokio::test]
    async fn nobody_there_is_no_failure() {
        let endpoint = contract("http://127.0.0.1:1/v1/chat/completions", "protocol: openai-chat");
        assert_eq!(ask(&endpoint).await, []);
    }

    #[tokio::test]
    async fn a_launch_is_told_by_its_command_line_without_secrets_and_by_the_image() {
        let digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
        let launch = format!(
            "protocol: openai-chat, launch: {{ command: [docker, run, 'vllm/vllm-openai@sha256:{digest}', --note, \
             \"it's hunter2-token\"] }}"
        );
        let endpoint = contract("http://127.0.0.1:1/v1/chat/completions", &launch);
        let image = format!("vllm/vllm-openai@sha256:{digest}");
        let line = format!("docker run {image} --note 'it'\\''s ***'");
        assert_eq!(ask(&endpoint).await, pairs(&[("image", &image), ("launch", &line)]));
    }

    #[tokio::test]
    async fn a_simulated_endpoint_is_its_profile() {
        let folder = tempfile::tempdir().expect("a folder");
        let profile = folder.path().join("p.yaml");
        std::fs::write(&profile, "abc").expect("a profile");
        let launch = format!("protocol: openai-chat, launch: {{ simulate: \"{}\" }}", profile.display());
        let endpoint = contract("http://127.0.0.1:1/v1/chat/completions", &launch);
        // FIPS 180-4: SHA-256("abc") begins with ba7816bf 8f01cfea.
        assert_eq!(ask(&endpoint).await, pairs(&[("profile", "ba7816bf8f01")]));
    }

    #[test]
    fn long_command_lines_stay_apart() {
        let line = |end: &str| command_line(&["x".repeat(2_000), end.to_owned()], &Secrets::default());
        assert_ne!(line("a"), line("b"));
        assert!(line("a").chars().count() < 1_050);
        assert_eq!(command_line(&["a\nb".to_owned(), String::new()], &Secrets::default()), "'a\\nb' ''");
    }
}
