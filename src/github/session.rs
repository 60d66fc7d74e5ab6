//! One question to the API: requests that are counted, repeated where that is safe, and answered as JSON.

use std::time::Duration;

use http::request::Builder;
use http::{Method, Response, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use octocrab::Octocrab;
use secrecy::ExposeSecret;
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use url::Url;

use super::refusal::{Cause, Failure, Reply, plain, step, wait_asked_for};
use super::site::Site;

/// How long one request may take.
const REQUEST: Duration = Duration::from_secs(20);

/// How long making a connection may take.
const CONNECT: Duration = Duration::from_secs(5);

/// Waits before a request that met a fault of the server or the network is made again.
pub(super) const WAITS: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(2)];

/// How long all waits of one question that a server asked for may take together.
const WAITS_IN_ALL: Duration = Duration::from_secs(60);

/// The largest page of JSON; one of 100 runs has 2 MB, and one of 100 comments as long as they may be, all of it escaped, 40 MB.
const LARGEST_PAGE: usize = 64 << 20;

/// The largest answer that is no success.
const LARGEST_REFUSAL: usize = 64 << 10;

/// The most things that GitHub lists at once.
const PAGE: usize = 100;

/// The most redirects of one request: a repository can have been renamed, and its new name too.
const MOST_REDIRECTS: u32 = 3;

/// What one question may cost.
#[derive(Debug, Clone, Copy)]
pub struct Allowance {
    /// The most requests; GitHub grants a workflow's token 1,000 in an hour for a repository.
    pub requests: u32,
    /// The longest single wait that a server can ask for.
    pub longest_wait: Duration,
}

/// What a request is about, for messages.
#[derive(Debug, Clone, Copy)]
pub struct Matter<'a> {
    /// What the site is asked, as `for workflow runs` or `to write a comment`.
    pub what: &'a str,
    /// The next step when the token has no right to it, with the permission as a workflow writes it.
    pub right: &'a str,
}

/// One question, with its count of requests.
#[derive(Debug)]
pub struct Session<'a> {
    pub(super) site: &'a Site,
    crab: Octocrab,
    pub(super) storage: reqwest::Client,
    allowance: Allowance,
    left: u32,
    waited: Duration,
    /// Whether a request was not made because there were too many before it.
    spent: bool,
}

impl<'a> Session<'a> {
    pub(super) fn new(site: &'a Site, allowance: Allowance) -> Result<Self, Failure> {
        let unbuilt =
            |error: &dyn std::error::Error| other(format!("no client can be made: {}", plain(&causes(error))));
        let client = |redirects: reqwest::redirect::Policy| {
            let builder = reqwest::Client::builder().redirect(redirects).connect_timeout(CONNECT).timeout(REQUEST);
            builder.build().map_err(|error| unbuilt(&error))
        };
        // The library's own repetitions know no bound of time, so that it makes none.
        let crab = Octocrab::builder()
            .base_uri(site.api.as_str())
            .map_err(|error| unbuilt(&error))?
            .add_header(header::ACCEPT, "application/vnd.github+json".to_owned())
            .personal_token(site.token.clone())
            .build_with_reqwest(client(reqwest::redirect::Policy::none())?)
            .map_err(|error| unbuilt(&error))?;
        // Archives lie on another host, which must not see the token: its client has none.
        let storage = client(reqwest::redirect::Policy::limited(3))?;
        let left = allowance.requests;
        Ok(Self { site, crab, storage, allowance, left, waited: Duration::ZERO, spent: false })
    }

    /// Whether requests had to be left out.
    pub fn is_spent(&self) -> bool {
        self.spent
    }

    /// Reads what lies at a path below the repository.
    ///
    /// # Errors
    /// When it cannot be had, or is something else.
    pub async fn json<T: DeserializeOwned>(
        &mut self,
        path: &[&str],
        query: &[(&str, &str)],
        matter: &Matter<'_>,
    ) -> Result<T, Failure> {
        let address = self.address(path, query)?;
        let reply = self.ask(&Method::GET, &address, None::<&()>, matter, true).await?;
        self.read(&reply, matter)
    }

    /// Reads all pages of what is listed at a path below the repository, of which there may be `most`; gives what `keep` keeps.
    ///
    /// # Errors
    /// When a page cannot be had, or there are more.
    pub async fn pages<T: DeserializeOwned, K>(
        &mut self,
        path: &[&str],
        query: &[(&str, &str)],
        most: u32,
        matter: &Matter<'_>,
        keep: impl Fn(T) -> Option<K>,
    ) -> Result<Vec<K>, Failure> {
        let mut kept = Vec::new();
        let size = PAGE.to_string();
        for page in 1..=most {
            let page = page.to_string();
            let query = [query, &[("per_page", size.as_str()), ("page", page.as_str())]].concat();
            let listed: Vec<T> = self.json(path, &query, matter).await?;
            let is_last = listed.len() < PAGE;
            kept.extend(listed.into_iter().filter_map(&keep));
            if is_last {
                return Ok(kept);
            }
        }
        let text = format!("{} was asked {} and has more than {most} pages of {PAGE}", self.site, matter.what);
        Err(other(text))
    }

    /// Reads who the token belongs to, which is not below the repository.
    ///
    /// # Errors
    /// When it cannot be had; a workflow's own token has no right to it.
    pub async fn user<T: DeserializeOwned>(&mut self, matter: &Matter<'_>) -> Result<T, Failure> {
        let address = self.below_api(&["user"], &[])?;
        let reply = self.ask(&Method::GET, &address, None::<&()>, matter, true).await?;
        self.read(&reply, matter)
    }

    /// Sends JSON to a path below the repository, and reads the answer. A POST is made once only: when the failure's cause is
    /// [`Cause::Unanswered`] it may have been carried out, and the caller must look before it tries again. So is a PATCH: the
    /// failure says in which time it may be tried again, if it is still due then.
    ///
    /// # Errors
    /// When it was refused or not answered.
    pub async fn send<T: DeserializeOwned>(
        &mut self,
        method: Method,
        path: &[&str],
        body: &impl Serialize,
        matter: &Matter<'_>,
    ) -> Result<T, Failure> {
        let address = self.address(path, &[])?;
        let reply = self.ask(&method, &address, Some(body), matter, true).await?;
        self.read(&reply, matter)
    }

    /// Deletes what lies at a path below the repository; that it is gone already is none the worse.
    ///
    /// # Errors
    /// When it was refused or not answered.
    pub async fn delete(&mut self, path: &[&str], matter: &Matter<'_>) -> Result<(), Failure> {
        let address = self.address(path, &[])?;
        let reply = self.ask(&Method::DELETE, &address, None::<&()>, matter, true).await?;
        match reply.status {
            StatusCode::NO_CONTENT | StatusCode::OK | StatusCode::NOT_FOUND | StatusCode::GONE => Ok(()),
            _ => Err(self.refused(&reply, matter)),
        }
    }

    fn read<T: DeserializeOwned>(&self, reply: &Reply, matter: &Matter<'_>) -> Result<T, Failure> {
        if !matches!(reply.status, StatusCode::OK | StatusCode::CREATED) {
            return Err(self.refused(reply, matter));
        }
        serde_json::from_slice(&reply.body).map_err(|error| {
            let is_json = serde_json::from_slice::<IgnoredAny>(&reply.body).is_ok();
            let error = plain(&self.masked(&error.to_string()));
            let text = format!("{} was asked {} and sent something else: {error}", self.site, matter.what);
            // What is no JSON at all comes from something in between, which says nothing of what the server did.
            Failure::new(if is_json { Cause::Other } else { Cause::Unanswered }, text)
        })
    }

    /// The address of a path below the repository.
    pub(super) fn address(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Url, Failure> {
        let Site { owner, repository, .. } = self.site;
        self.below_api(&[&["repos", owner, repository], path].concat(), query)
    }

    fn below_api(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Url, Failure> {
        let mut url = self.site.api.clone();
        url.path_segments_mut()
            .map_err(|()| other("GITHUB_API_URL is no address".to_owned()))?
            .pop_if_empty()
            .extend(path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        Ok(url)
    }

    pub(super) fn count(&mut self) -> Result<(), Failure> {
        self.spent = self.left == 0;
        self.left = self.left.saturating_sub(1);
        if self.spent {
            let most = self.allowance.requests;
            return Err(other(format!("{} was asked {most} times and is asked no more", self.site)));
        }
        Ok(())
    }

    /// Asks, again where a fault may pass or the server says how long to wait, and where a redirect leads when it is to be followed.
    pub(super) async fn ask(
        &mut self,
        method: &Method,
        address: &Url,
        body: Option<&impl Serialize>,
        matter: &Matter<'_>,
        follows: bool,
    ) -> Result<Reply, Failure> {
        let mut address = address.clone();
        let mut redirects = 0..MOST_REDIRECTS;
        loop {
            let reply = self.ask_patiently(method, &address, body, matter).await?;
            match self.redirected(method, &address, &reply).filter(|_| follows && redirects.next().is_some()) {
                Some(place) => address = place,
                None => return Ok(reply),
            }
        }
    }

    async fn ask_patiently(
        &mut self,
        method: &Method,
        address: &Url,
        body: Option<&impl Serialize>,
        matter: &Matter<'_>,
    ) -> Result<Reply, Failure> {
        // What was carried out without an answer would be carried out twice.
        let is_safe = *method != Method::POST;
        let mut waits = WAITS.iter();
        loop {
            self.count()?;
            let answer = self.ask_once(method, address, body).await;
            let wait = match &answer {
                Ok(reply) if reply.status.is_server_error() => waits.next().filter(|_| is_safe).copied(),
                Ok(reply) => self.bearable_wait(reply).filter(|_| waits.next().is_some()),
                Err(_) => waits.next().filter(|_| is_safe).copied(),
            };
            match (wait, answer) {
                // By then it may not be due any more.
                (Some(wait), answer) if *method == Method::PATCH => {
                    self.waited += wait;
                    let failure = match answer {
                        Ok(reply) => self.refused(&reply, matter),
                        Err(cause) => self.unanswered(&cause, matter),
                    };
                    return Err(failure.again_in(wait));
                }
                (Some(wait), _) => {
                    self.waited += wait;
                    tokio::time::sleep(wait).await;
                }
                (None, Ok(reply)) => return Ok(reply),
                (None, Err(cause)) => return Err(self.unanswered(&cause, matter)),
            }
        }
    }

    fn unanswered(&self, cause: &str, matter: &Matter<'_>) -> Failure {
        let cause = plain(&self.masked(cause));
        let text =
            format!("{} cannot be asked {}: {cause}; is this machine allowed to reach it?", self.site, matter.what);
        Failure::new(Cause::Unanswered, text)
    }

    /// The wait that a server asks for, where there is patience for it.
    fn bearable_wait(&self, reply: &Reply) -> Option<Duration> {
        let wait = wait_asked_for(reply, jiff::Timestamp::now())?;
        (wait <= self.allowance.longest_wait && self.waited + wait <= WAITS_IN_ALL).then_some(wait)
    }

    /// Where a repository that was renamed lies now. A redirect is followed below the address of the API alone, so that the token
    /// goes to nobody else; and one that lets a writing request become a reading one is not.
    fn redirected(&self, method: &Method, from: &Url, reply: &Reply) -> Option<Url> {
        let keeps_method = matches!(reply.status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
        let moves = matches!(reply.status, StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND);
        if !(keeps_method || (moves && *method == Method::GET)) {
            return None;
        }
        let place = from.join(reply.header("location")?).ok()?;
        let base = format!("{}/", self.site.api.as_str().trim_end_matches('/'));
        place.as_str().starts_with(&base).then_some(place)
    }

    async fn ask_once(&self, method: &Method, address: &Url, body: Option<&impl Serialize>) -> Result<Reply, String> {
        let request = Builder::new().method(method.clone()).uri(address.as_str());
        let request = self.crab.build_request(request, body).map_err(|error| causes(&error))?;
        let reply: Response<_> = self.crab.execute(request).await.map_err(|error| causes(&error))?;
        let (head, body) = reply.into_parts();
        let most = if head.status.is_success() { LARGEST_PAGE } else { LARGEST_REFUSAL };
        let body = Limited::new(body, most).collect().await;
        let body = body.map_err(|error| format!("its answer broke off: {}", causes(error.as_ref())))?;
        Ok(Reply { status: head.status, headers: head.headers, body: body.to_bytes().to_vec() })
    }

    /// What an answer that is no success means, with the next step.
    pub(super) fn refused(&self, reply: &Reply, matter: &Matter<'_>) -> Failure {
        let said = reply.message();
        let said = said.map_or_else(String::new, |said| format!(" ({})", plain(&self.masked(&said))));
        let step = step(reply, matter.right);
        let status = reply.status;
        let text = format!("{} was asked {} and answered {status}{said}; {step}", self.site, matter.what);
        Failure::new(reply.cause(), text)
    }

    /// A text without the token, should a server or proxy repeat it.
    fn masked(&self, text: &str) -> String {
        text.replace(self.site.token.expose_secret(), "***")
    }
}

/// The causes of an error from the outermost to the innermost, none said twice; neither masked nor bounded yet.
pub(super) fn causes(error: &dyn std::error::Error) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let text = error.to_string();
        if !texts.iter().any(|said| said.contains(&text)) {
            texts.push(text);
        }
        next = error.source();
    }
    texts.join(": ")
}

fn other(text: String) -> Failure {
    Failure::new(Cause::Other, text)
}
