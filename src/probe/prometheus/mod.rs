//! The `prometheus` probe: metrics on a Prometheus or OpenMetrics page.

mod exposition;
#[cfg(test)]
mod fixture_tests;
mod page;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::time::Duration;

use http::StatusCode;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION,
};
use reqwest::{Client, Response};
use url::{Position, Url};

use super::excerpt::quote;
use super::{Answer, Context};
use crate::contract::{HttpVersion, MetricsPage, PrometheusSource};
use crate::endpoint::{Secrets, add_headers, http_client, innermost};
use crate::record::Series;
use page::Scan;

/// The largest page that is read, in bytes.
const LARGEST_PAGE: usize = 64 * 1024 * 1024;

/// OpenMetrics first: it says where it ends and since when a counter counts.
const ACCEPTED: &str = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";

/// The header in which llama.cpp's server says when it started, by a clock of its own: its page holds no such series.
const PROCESS_START: HeaderName = HeaderName::from_static("process-start-time-unix");

/// The most of a page that is looked at for a message, in bytes, and how long it is waited for.
const GLIMPSE: (usize, Duration) = (4 * 1024, Duration::from_secs(1));

/// A metric on a Prometheus or OpenMetrics page.
#[derive(Debug)]
pub(super) struct Prometheus {
    reader: MetricsReader,
}

impl Prometheus {
    pub(super) fn new(source: &PrometheusSource, _context: &Context) -> Self {
        Self { reader: MetricsReader::new(&source.page, vec![source.clone()]) }
    }

    pub(super) async fn read(&mut self) -> Answer {
        self.reader.read().await.pop().unwrap_or_else(|| Err("nothing was asked".to_owned()))
    }
}

/// Reads any number of metrics off one page, which is fetched once for all of them.
///
/// It is made once and reads as often as one likes: it keeps its connection, its certificates and its secrets.
#[derive(Debug)]
pub(super) struct MetricsReader {
    sources: Vec<PrometheusSource>,
    /// The page's address, for messages: without its query, which may hold what others should not see.
    shown: String,
    request: Result<Request, String>,
    secrets: Secrets,
}

/// What is sent.
#[derive(Debug)]
struct Request {
    client: Client,
    url: Url,
    headers: HeaderMap,
}

impl MetricsReader {
    /// A reader of this page for these questions, whose own pages are not looked at. Header values are taken from the
    /// environment here, and `ca_file` is read; what is wrong with them is what each reading then answers.
    pub(super) fn new(page: &MetricsPage, sources: Vec<PrometheusSource>) -> Self {
        let mut secrets = Secrets::default();
        let request = Request::new(page, &mut secrets);
        Self { sources, shown: page.url[..Position::AfterPath].to_owned(), request, secrets }
    }

    /// Fetches the page and answers each question, in the order in which they were given; without any page, each with the
    /// reason for that. No answer holds a secret of the page's headers.
    ///
    /// It may wait as long as the server likes: whoever calls sets a limit, and may drop this at any time.
    pub(super) async fn read(&self) -> Vec<Answer> {
        let told = |problem: String| self.secrets.mask(&format!("the page {} {problem}", self.shown)).into_owned();
        let answers = self.fetch().await.unwrap_or_else(|problem| vec![Err(problem); self.sources.len()]);
        let masked = |mut series: Series| {
            series.of = self.secrets.mask(&series.of).into_owned();
            series
        };
        let answers = answers.into_iter();
        answers.map(|answer| answer.map(|all| all.into_iter().map(masked).collect()).map_err(told)).collect()
    }

    /// What is told of a failure completes "the page …".
    async fn fetch(&self) -> Result<Vec<Answer>, String> {
        let Request { client, url, headers } = self.request.as_ref().map_err(Clone::clone)?;
        let mut response = client.get(url.clone()).headers(headers.clone()).send().await.map_err(unreachable)?;
        // A part of a page may lack what is sought.
        if !response.status().is_success() || response.status() == reqwest::StatusCode::PARTIAL_CONTENT {
            return Err(refused(&mut response).await);
        }
        if let Some(encoding) = text_of(&response, CONTENT_ENCODING).filter(|encoding| encoding != "identity") {
            return Err(format!("is compressed with {}, which was not asked for", quote(&encoding)));
        }
        let form = text_of(&response, CONTENT_TYPE).unwrap_or_default().to_ascii_lowercase();
        if let Some(other) = ["html", "json"].into_iter().find(|other| form.contains(other)) {
            let begins = glimpse(&mut response).await;
            let other = other.to_ascii_uppercase();
            return Err(format!("is {other} and no page of metrics, it begins {begins}; look at the path of its URL"));
        }
        let started = text_of(&response, PROCESS_START);
        let mut scan = Scan::new(&self.sources, form.starts_with("application/openmetrics-text"));
        let mut length = 0;
        loop {
            match response.chunk().await {
                Ok(Some(bytes)) => {
                    length += bytes.len();
                    if length > LARGEST_PAGE {
                        let limit = LARGEST_PAGE / 1024 / 1024;
                        return Err(format!("is larger than {limit} MiB; is it a page of metrics?"));
                    }
                    scan.push(&bytes)?;
                }
                Ok(None) => {
                    return Ok(scan.finish()?.into_iter().map(|answer| since(answer, started.as_ref())).collect());
                }
                Err(error) => return Err(format!("was cut short after {length} bytes: {}", innermost(&error))),
            }
        }
    }
}

/// The answer with since when its series count, where they do not tell that themselves.
fn since(answer: Answer, started: Option<&String>) -> Answer {
    let told = |series: Series| Series { since: series.since.or_else(|| started.cloned()), ..series };
    answer.map(|all| all.into_iter().map(told).collect())
}

impl Request {
    fn new(page: &MetricsPage, secrets: &mut Secrets) -> Result<Self, String> {
        let told = |error: &dyn Error| format!("cannot be asked: {error}");
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static(ACCEPTED));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        add_headers(&mut headers, &page.headers, secrets).map_err(|error| told(&error))?;
        let client = http_client(page.ca_file.as_deref(), None, HttpVersion::Auto).map_err(|error| told(&error))?;
        Ok(Self { client, url: page.url.clone(), headers })
    }
}

/// Why there is no answer at all.
fn unreachable(error: reqwest::Error) -> String {
    let cause = innermost(&error);
    let hint = match error.is_connect() {
        true if cause.contains("certificate") => "; name the PEM file of its issuer in `ca_file`",
        true => "; is the server up, and does it listen there?",
        false => "",
    };
    format!("cannot be read: {cause}{hint}")
}

/// Why an answer does not count that is no success.
async fn refused(response: &mut Response) -> String {
    let status = response.status();
    let hint = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            "; give the header that it asks for in `headers`".to_owned()
        }
        StatusCode::NOT_FOUND => "; look at the path of its URL".to_owned(),
        _ if status.is_redirection() => {
            let to = text_of(response, LOCATION).unwrap_or_default();
            return format!("answers {} and points to {}; redirects are not followed", status.as_u16(), quote(&to));
        }
        _ => String::new(),
    };
    format!("answers {}: {}{hint}", status.as_u16(), glimpse(response).await)
}

/// The beginning of a body, for a message.
async fn glimpse(response: &mut Response) -> String {
    let (most, within) = GLIMPSE;
    let mut seen = Vec::new();
    let look = async {
        while let Ok(Some(bytes)) = response.chunk().await {
            seen.extend_from_slice(&bytes[..bytes.len().min(most - seen.len())]);
            if seen.len() == most {
                return;
            }
        }
    };
    // What came until then is enough for a message.
    drop(tokio::time::timeout(within, look).await);
    quote(String::from_utf8_lossy(&seen).trim())
}

fn text_of(response: &Response, header: HeaderName) -> Option<String> {
    response.headers().get(header).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}
