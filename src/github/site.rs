//! Which repository on which server, and with which token.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use url::Url;

use super::refusal::{Cause, Failure, plain};
use super::session::{Allowance, Session};

/// The address of the API where the environment names none.
const API: &str = "https://api.github.com";

/// How long one question may take, with every request and every wait for it.
const PATIENCE: Duration = Duration::from_secs(90);

/// A repository on a GitHub server, and the token to ask for it.
#[derive(Debug, Clone)]
pub struct Site {
    pub(super) api: Url,
    pub(super) owner: String,
    pub(super) repository: String,
    pub(super) token: SecretString,
}

impl Site {
    /// What the environment of a GitHub workflow says: `GITHUB_API_URL`, `GITHUB_REPOSITORY`, and `GITHUB_TOKEN` or `GH_TOKEN`.
    /// `permission` is what the job must be granted, as a workflow writes it.
    ///
    /// # Errors
    /// When it names no repository or has no token.
    pub fn from_environment(variable: &dyn Fn(&str) -> Option<String>, permission: &str) -> Result<Self, Failure> {
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let repository = set("GITHUB_REPOSITORY")
            .ok_or_else(|| other("GITHUB_REPOSITORY is not set: outside of GitHub Actions set it to `owner/name`"))?;
        let token = set("GITHUB_TOKEN").or_else(|| set("GH_TOKEN")).ok_or_else(|| {
            let text = format!(
                "there is no token: give this step `env: {{ GITHUB_TOKEN: ${{{{ github.token }}}} }}` and its job {permission}"
            );
            Failure::new(Cause::Token, text)
        })?;
        Self::new(&set("GITHUB_API_URL").unwrap_or_else(|| API.to_owned()), &repository, token.into())
    }

    /// A repository, as `owner/name`, at the server whose API has that address.
    ///
    /// # Errors
    /// When the address or the repository's name is none.
    pub fn new(api: &str, repository: &str, token: SecretString) -> Result<Self, Failure> {
        let url = Url::parse(api).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let is_named = |url: &Url| !url.username().is_empty() || url.password().is_some();
        if url.as_ref().is_some_and(is_named) || (url.is_none() && api.contains('@')) {
            // What it says is not repeated: it may be a password.
            return Err(other(
                "GITHUB_API_URL has a name or a password in it, or is no address; the token is all that is needed",
            ));
        }
        let api = url.ok_or_else(|| other(&format!("GITHUB_API_URL is no address: `{}`", plain(api))))?;
        // A secret is often stored with the end of its line.
        let token: SecretString = token.expose_secret().trim().to_owned().into();
        if token.expose_secret().is_empty() || !token.expose_secret().bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Failure::new(
                Cause::Token,
                "the token is none: it is empty, or has blanks or control characters in it".to_owned(),
            ));
        }
        let is_name = |part: &str| {
            !part.is_empty()
                && !matches!(part, "." | "..")
                && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        };
        let parts = repository.split_once('/').filter(|(owner, name)| is_name(owner) && is_name(name));
        let (owner, name) = parts
            .ok_or_else(|| other(&format!("GITHUB_REPOSITORY is `{}` and not `owner/name`", plain(repository))))?;
        Ok(Self { api, owner: owner.to_owned(), repository: name.to_owned(), token })
    }

    /// Begins a question, with its own count of requests.
    ///
    /// # Errors
    /// When no client can be made, as where the certificates of the system cannot be read.
    pub fn session(&self, allowance: Allowance) -> Result<Session<'_>, Failure> {
        Session::new(self, allowance)
    }

    /// Gives a question up when it takes too long.
    ///
    /// # Errors
    /// Those of the question, and that it took too long.
    pub async fn in_time<T, E: From<Failure>>(&self, question: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        tokio::time::timeout(PATIENCE, question).await.unwrap_or_else(|_| {
            let seconds = PATIENCE.as_secs();
            let text = format!("{self} did not answer within {seconds} s; is it up, and the network?");
            Err(Failure::new(Cause::Unanswered, text).into())
        })
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { api, owner, repository, .. } = self;
        write!(f, "{}/repos/{owner}/{repository}", api.as_str().trim_end_matches('/'))
    }
}

fn other(text: &str) -> Failure {
    Failure::new(Cause::Other, text.to_owned())
}
