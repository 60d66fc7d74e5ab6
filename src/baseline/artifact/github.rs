//! Questions to GitHub's API, and what its refusals mean.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use http::{Response, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use octocrab::Octocrab;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use url::Url;

use super::refusal::{PERMISSION, Reply, step, wait_asked_for};
use crate::baseline::{StoreFailure, plain};

/// The address of the API where the environment names none.
const API: &str = "https://api.github.com";

/// The most requests for one question; GitHub grants a workflow's token 1,000 in an hour for a repository.
pub(super) const MOST_REQUESTS: u32 = 60;

/// How long one request may take.
const REQUEST: Duration = Duration::from_secs(20);

/// How long making a connection may take.
const CONNECT: Duration = Duration::from_secs(5);

/// How long one question may take, with every request and every wait for it.
const PATIENCE: Duration = Duration::from_secs(90);

/// Waits before a request that met a fault of the server or the network is made again.
const WAITS: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(2)];

/// The longest wait that a server can ask for.
const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// The largest page of JSON; one of 100 runs has 2 MB.
const LARGEST_PAGE: usize = 16 << 20;

/// The largest answer that is no success.
const LARGEST_REFUSAL: usize = 64 << 10;

/// A repository on a GitHub server, and the token to ask for it.
#[derive(Debug, Clone)]
pub struct Site {
    api: Url,
    owner: String,
    repository: String,
    token: SecretString,
}

impl Site {
    /// What the environment of a GitHub workflow says: `GITHUB_API_URL`, `GITHUB_REPOSITORY`, and `GITHUB_TOKEN` or `GH_TOKEN`.
    ///
    /// # Errors
    /// When it names no repository or has no token.
    pub fn from_environment() -> Result<Self, StoreFailure> {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        let repository = set("GITHUB_REPOSITORY").ok_or_else(|| {
            unavailable(
                "GITHUB_REPOSITORY is not set: outside of GitHub Actions set it to `owner/name`, or list another store",
            )
        })?;
        let token = set("GITHUB_TOKEN").or_else(|| set("GH_TOKEN")).ok_or_else(|| {
            unavailable(&format!(
                "there is no token: give this step `env: {{ GITHUB_TOKEN: ${{{{ github.token }}}} }}` and its job {PERMISSION}"
            ))
        })?;
        Self::new(&set("GITHUB_API_URL").unwrap_or_else(|| API.to_owned()), &repository, token.into())
    }

    /// A repository, as `owner/name`, at the server whose API has that address.
    ///
    /// # Errors
    /// When the address or the repository's name is none.
    pub fn new(api: &str, repository: &str, token: SecretString) -> Result<Self, StoreFailure> {
        let url = Url::parse(api).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let api = url.ok_or_else(|| unavailable(&format!("GITHUB_API_URL is no address: `{}`", plain(api))))?;
        let is_name = |part: &str| {
            !part.is_empty()
                && !matches!(part, "." | "..")
                && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        };
        let parts = repository.split_once('/').filter(|(owner, name)| is_name(owner) && is_name(name));
        let (owner, name) = parts.ok_or_else(|| {
            unavailable(&format!("GITHUB_REPOSITORY is `{}` and not `owner/name`", plain(repository)))
        })?;
        Ok(Self { api, owner: owner.to_owned(), repository: name.to_owned(), token })
    }

    /// Begins a question, with its own count of requests.
    pub(super) fn session(&self) -> Result<Session<'_>, StoreFailure> {
        let unbuilt = |error: &dyn std::error::Error| unavailable(&format!("no client can be made: {}", causes(error)));
        let client = |redirects: reqwest::redirect::Policy| {
            let builder = reqwest::Client::builder().redirect(redirects).connect_timeout(CONNECT).timeout(REQUEST);
            builder.build().map_err(|error| unbuilt(&error))
        };
        // The library's own repetitions know no bound of time, so that it makes none.
        let crab = Octocrab::builder()
            .base_uri(self.api.as_str())
            .map_err(|error| unbuilt(&error))?
            .add_header(header::ACCEPT, "application/vnd.github+json".to_owned())
            .personal_token(self.token.clone())
            .build_with_reqwest(client(reqwest::redirect::Policy::none())?)
            .map_err(|error| unbuilt(&error))?;
        // Archives lie on another host, which must not see the token: its client has none.
        let storage = client(reqwest::redirect::Policy::limited(3))?;
        Ok(Session { site: self, crab, storage, left: MOST_REQUESTS, spent: false })
    }

    /// Gives a question up when it takes too long.
    pub(super) async fn in_time<T>(
        &self,
        question: impl Future<Output = Result<T, StoreFailure>>,
    ) -> Result<T, StoreFailure> {
        tokio::time::timeout(PATIENCE, question).await.unwrap_or_else(|_| {
            let seconds = PATIENCE.as_secs();
            Err(unavailable(&format!("{self} did not answer within {seconds} s; is it up, and the network?")))
        })
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { api, owner, repository, .. } = self;
        write!(f, "{}/repos/{owner}/{repository}", api.as_str().trim_end_matches('/'))
    }
}

/// One question, with its count of requests.
pub(super) struct Session<'a> {
    site: &'a Site,
    crab: Octocrab,
    storage: reqwest::Client,
    left: u32,
    /// Whether a request was not made because there were too many before it.
    spent: bool,
}

/// What became of a download.
pub(super) enum Archive {
    /// The archive.
    Bytes(Vec<u8>),
    /// It was removed.
    Gone,
    /// It has more bytes than were allowed; at least so many.
    TooLarge(u64),
}

impl Session<'_> {
    /// Whether requests had to be left out.
    pub(super) fn is_spent(&self) -> bool {
        self.spent
    }

    /// Reads what lies at a path below the repository; `what` it is, for messages.
    pub(super) async fn json<T: DeserializeOwned>(
        &mut self,
        path: &[&str],
        query: &[(&str, &str)],
        what: &str,
    ) -> Result<T, StoreFailure> {
        let reply = self.ask(&self.address(path, query)?, what).await?;
        if reply.status != StatusCode::OK {
            return Err(self.refused(what, &reply));
        }
        serde_json::from_slice(&reply.body).map_err(|error| {
            let error = plain(&error.to_string());
            unavailable(&format!("{} was asked for {what} and sent something else: {error}", self.site))
        })
    }

    /// Downloads an archive of at most `most` bytes, from wherever GitHub says that it lies.
    pub(super) async fn archive(&mut self, path: &[&str], most: u64) -> Result<Archive, StoreFailure> {
        let what = "an artifact";
        let reply = self.ask(&self.address(path, &[])?, what).await?;
        match reply.status {
            StatusCode::GONE => return Ok(Archive::Gone),
            StatusCode::FOUND | StatusCode::SEE_OTHER | StatusCode::TEMPORARY_REDIRECT => {}
            _ => return Err(self.refused(what, &reply)),
        }
        let place = reply.headers.get(header::LOCATION).and_then(|place| place.to_str().ok());
        let place = place.and_then(|place| Url::parse(place).ok());
        // What is fetched without encryption could be replaced on its way.
        let is_safe = |place: &Url| place.scheme() == "https" || place.scheme() == self.site.api.scheme();
        let place = place.filter(is_safe).ok_or_else(|| {
            unavailable(&format!("{} was asked for {what} and named no address to get it from", self.site))
        })?;
        self.download(place, most).await
    }

    async fn download(&mut self, place: Url, most: u64) -> Result<Archive, StoreFailure> {
        let host = place.host_str().unwrap_or_default().to_owned();
        let mut waits = WAITS.iter();
        loop {
            self.count()?;
            // The address carries its own right to read and is never repeated in a message.
            let failure = match self.fetch(place.clone(), most).await {
                Ok(archive) => return Ok(archive),
                Err(failure) => failure,
            };
            match waits.next() {
                Some(wait) => tokio::time::sleep(*wait).await,
                None => {
                    return Err(unavailable(&format!(
                        "the artifact cannot be downloaded from {host}: {failure}; try again, and see that this machine may reach \
                         {host}"
                    )));
                }
            }
        }
    }

    async fn fetch(&self, place: Url, most: u64) -> Result<Archive, String> {
        let told = |error: reqwest::Error| causes(&error.without_url());
        let mut reply = self.storage.get(place).send().await.map_err(told)?;
        match reply.status() {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND | StatusCode::GONE => return Ok(Archive::Gone),
            status => return Err(format!("answered {status}")),
        }
        if let Some(length) = reply.content_length().filter(|length| *length > most) {
            return Ok(Archive::TooLarge(length));
        }
        let mut bytes = Vec::new();
        while let Some(part) = reply.chunk().await.map_err(told)? {
            bytes.extend_from_slice(&part);
            if bytes.len() as u64 > most {
                return Ok(Archive::TooLarge(bytes.len() as u64));
            }
        }
        Ok(Archive::Bytes(bytes))
    }

    /// The address of a path below the repository.
    fn address(&self, path: &[&str], query: &[(&str, &str)]) -> Result<String, StoreFailure> {
        let Site { api, owner, repository, .. } = self.site;
        let mut url = api.clone();
        url.path_segments_mut()
            .map_err(|()| unavailable("GITHUB_API_URL is no address"))?
            .pop_if_empty()
            .extend(["repos", owner, repository])
            .extend(path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        Ok(url.into())
    }

    fn count(&mut self) -> Result<(), StoreFailure> {
        self.spent = self.left == 0;
        self.left = self.left.saturating_sub(1);
        if self.spent {
            return Err(unavailable(&format!("{} was asked {MOST_REQUESTS} times and is asked no more", self.site)));
        }
        Ok(())
    }

    /// Asks, again where a fault may pass or the server says how long to wait.
    async fn ask(&mut self, address: &str, what: &str) -> Result<Reply, StoreFailure> {
        let mut waits = WAITS.iter();
        loop {
            self.count()?;
            let answer = self.ask_once(address).await;
            let wait = match &answer {
                Ok(reply) if reply.status.is_server_error() => waits.next().copied(),
                Ok(reply) => wait_asked_for(reply).filter(|wait| *wait <= LONGEST_WAIT && waits.next().is_some()),
                Err(_) => waits.next().copied(),
            };
            match (wait, answer) {
                (Some(wait), _) => tokio::time::sleep(wait).await,
                (None, Ok(reply)) => return Ok(reply),
                (None, Err(cause)) => {
                    return Err(unavailable(&format!(
                        "{} cannot be asked for {what}: {}; is this machine allowed to reach it?",
                        self.site,
                        self.masked(&cause)
                    )));
                }
            }
        }
    }

    async fn ask_once(&self, address: &str) -> Result<Reply, String> {
        let reply: Response<_> = self.crab._get(address).await.map_err(|error| causes(&error))?;
        let (head, body) = reply.into_parts();
        let most = if head.status.is_success() { LARGEST_PAGE } else { LARGEST_REFUSAL };
        let body = Limited::new(body, most).collect().await;
        let body = body.map_err(|error| format!("its answer broke off: {}", causes(error.as_ref())))?;
        Ok(Reply { status: head.status, headers: head.headers, body: body.to_bytes().to_vec() })
    }

    /// What an answer that is no success means, with the next step.
    fn refused(&self, what: &str, reply: &Reply) -> StoreFailure {
        #[derive(Deserialize)]
        struct Refusal {
            message: String,
        }
        let said = serde_json::from_slice::<Refusal>(&reply.body);
        let said = said.map_or_else(|_| String::new(), |said| format!(" ({})", self.masked(&plain(&said.message))));
        let step = step(reply);
        let status = reply.status;
        unavailable(&format!("{} was asked for {what} and answered {status}{said}; {step}", self.site))
    }

    /// A text without the token, should a server or proxy repeat it.
    fn masked(&self, text: &str) -> String {
        text.replace(self.site.token.expose_secret(), "***")
    }
}

/// The causes of an error from the outermost to the innermost, none said twice.
fn causes(error: &dyn std::error::Error) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let text = error.to_string();
        if !texts.iter().any(|said| said.contains(&text)) {
            texts.push(text);
        }
        next = error.source();
    }
    plain(&texts.join(": "))
}

fn unavailable(text: &str) -> StoreFailure {
    StoreFailure::Unavailable(text.to_owned())
}
