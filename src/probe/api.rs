//! Requests to the API of a container engine or of Kubernetes: one attempt each, bounded in size, and the text of what
//! went wrong.
//!
//! Every request has a connection of its own. Readings are minutes apart, an idle connection is closed by then, and none
//! is left open beside the measurement.

use std::error::Error;
use std::io;
use std::time::Duration;

use http::{HeaderMap, HeaderValue, StatusCode, header};
use jiff::Timestamp;
use reqwest::{Client, ClientBuilder};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use url::Url;

use super::LARGEST_EXACT;
use super::excerpt::{plain, quote};

/// Longest time to open a connection; the probe's own timeout bounds the whole.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// A reply that came whole.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

impl Reply {
    /// What the server says of a request that it did not serve: the `message` of the JSON that all three APIs send, or
    /// the beginning of whatever else came; without the secrets, which a server may echo.
    pub(super) fn complaint(&self, secrets: &[&str]) -> String {
        let json = serde_json::from_slice::<serde_json::Value>(&self.body).ok();
        let message = json.as_ref().and_then(|json| json.get("message")?.as_str());
        let text = message.map_or_else(|| String::from_utf8_lossy(&self.body).into_owned(), str::to_owned);
        let text =
            secrets.iter().filter(|secret| !secret.is_empty()).fold(text, |text, secret| text.replace(secret, "***"));
        let said = if text.trim().is_empty() { "nothing else".to_owned() } else { quote(text.trim()) };
        format!("{} and {said}", self.status.as_u16())
    }
}

/// Why there is no whole reply.
#[derive(Debug)]
pub(super) struct Unreached {
    /// What the system said, where it said something.
    pub(super) kind: Option<io::ErrorKind>,
    /// The same as a text on one line.
    pub(super) cause: String,
}

/// A client that follows no redirect, uses no proxy of the environment and keeps no connection.
pub(super) fn client() -> ClientBuilder {
    Client::builder()
        .user_agent(concat!("goodput/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT_WITHIN)
        .pool_max_idle_per_host(0)
        .http1_only()
        .no_proxy()
}

/// The address with these segments behind its path. What is no plain text of a segment is percent-encoded, so that a name
/// cannot ask for another path.
///
/// # Errors
/// When a segment is empty or would climb, or the address has no path.
pub(super) fn address(base: &Url, segments: &[&str]) -> Result<Url, String> {
    if let Some(odd) = segments.iter().find(|segment| ["", ".", ".."].contains(*segment)) {
        return Err(format!("{} is no name", quote(odd)));
    }
    let mut url = base.clone();
    match url.path_segments_mut() {
        Ok(mut path) => path.pop_if_empty().extend(segments),
        Err(()) => return Err(format!("{} is no address of a server", quote(base.as_str()))),
    };
    Ok(url)
}

/// Asks once.
///
/// # Errors
/// When no whole reply came, or one of more than `limit` bytes.
pub(super) async fn get(
    client: &Client,
    url: Url,
    authorization: Option<HeaderValue>,
    limit: usize,
) -> Result<Reply, Unreached> {
    let mut request = client.get(url).header(header::ACCEPT, "application/json");
    if let Some(value) = authorization {
        request = request.header(header::AUTHORIZATION, value);
    }
    let mut response = request.send().await.map_err(|error| unreached(&error))?;
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| unreached(&error))? {
        if body.len() + chunk.len() > limit {
            return Err(Unreached { kind: None, cause: format!("the reply is larger than {limit} bytes") });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Reply { status: response.status(), headers: std::mem::take(response.headers_mut()), body })
}

/// The innermost cause: the outer ones repeat the address or say only that something failed.
fn unreached(error: &reqwest::Error) -> Unreached {
    let mut cause: &dyn Error = error;
    let mut kind = None;
    while let Some(source) = cause.source() {
        kind = source.downcast_ref::<io::Error>().map(io::Error::kind).or(kind);
        cause = source;
    }
    Unreached { kind, cause: plain(&cause.to_string()) }
}

/// A number in JSON that counts something: whole, not negative, and small enough to be compared exactly. JSON knows one
/// kind of number, so `2e0` is 2.
///
/// # Errors
/// When it is none.
pub(super) fn count(of: &str, number: f64) -> Result<f64, String> {
    let is_count = number.trunc().to_bits() == number.to_bits() && (0.0..=LARGEST_EXACT).contains(&number);
    if is_count { Ok(number) } else { Err(format!("{of} is {number}, which is no count")) }
}

/// An instant that may be missing, in RFC 3339 as all three APIs write it.
pub(super) fn instant<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    let written = Option::<String>::deserialize(deserializer)?;
    written.map(|text| text.parse().map_err(|_| D::Error::custom(format!("{} is no time", quote(&text))))).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_in_its_segment() {
        let base = Url::parse("http://localhost/behind/").expect("a URL");
        for (name, encoded) in [
            ("vllm", "vllm"),
            ("a/../b", "a%2F..%2Fb"),
            ("a?all=1#b", "a%3Fall=1%23b"),
            ("modèle 1", "mod%C3%A8le%201"),
            ("%2e%2e", "%252e%252e"),
        ] {
            let url = address(&base, &["containers", name, "json"]).expect(name);
            assert_eq!(url.as_str(), format!("http://localhost/behind/containers/{encoded}/json"));
        }
        for name in ["", ".", ".."] {
            assert_eq!(address(&base, &["containers", name, "json"]), Err(format!("`{name}` is no name")));
        }
    }

    #[test]
    fn a_complaint_is_short_harmless_and_without_secrets() {
        let reply = |body: &str| Reply {
            status: StatusCode::FORBIDDEN,
            headers: HeaderMap::new(),
            body: body.as_bytes().to_vec(),
        };
        let said = reply(r#"{"message":"no\nwith s3cret","code":403}"#).complaint(&["s3cret"]);
        assert_eq!(said, "403 and `no\\nwith ***`");
        assert_eq!(reply(" ").complaint(&[]), "403 and nothing else");
        assert_eq!(reply(&"é".repeat(300)).complaint(&[]), format!("403 and `{}…`", "é".repeat(200)));
    }

    #[test]
    fn only_whole_numbers_from_zero_count() {
        assert_eq!(count("it", 3.0), Ok(3.0));
        assert_eq!(count("it", 0.0), Ok(0.0));
        for odd in [-1.0, 0.5, 1e300, f64::NAN, f64::INFINITY] {
            assert!(count("it", odd).is_err_and(|text| text.ends_with("which is no count")), "{odd}");
        }
    }
}
