//! What GitHub's refusals mean, by their status and the headers that its documentation describes.

use std::time::Duration;

use http::{HeaderMap, StatusCode};
use serde::Deserialize;

/// Why a question has no answer; the text is one line and ends with the next step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Failure {
    cause: Cause,
    text: String,
    again_in: Option<Duration>,
}

/// The kind of a failure, where what follows depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// There is no token, or the server does not know it.
    Token,
    /// The token may not do it.
    Rights,
    /// It is not there, or the token may not see it.
    Missing,
    /// The token may make no more requests for now.
    Limit,
    /// No answer came, or the server failed: what was asked for may have been done or not.
    Unanswered,
    /// Anything else.
    Other,
}

impl Failure {
    /// A failure whose text is one line and ends with the next step.
    pub(crate) fn new(cause: Cause, text: String) -> Self {
        Self { cause, text, again_in: None }
    }

    /// The same, of something that may be tried again after this time.
    pub(super) fn again_in(self, wait: Duration) -> Self {
        Self { again_in: Some(wait), ..self }
    }

    /// After which time it may be tried again, where that may help.
    pub fn wait(&self) -> Option<Duration> {
        self.again_in
    }

    /// Its kind.
    pub fn cause(&self) -> Cause {
        self.cause
    }
}

/// A whole answer.
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

impl Reply {
    /// A header's text.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok().map(str::trim)
    }

    /// What the server said of its refusal.
    pub(super) fn message(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Refusal {
            message: String,
        }
        serde_json::from_slice::<Refusal>(&self.body).ok().map(|said| said.message)
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.header(name)?.parse().ok()
    }

    /// When the token may make requests again, where it has none left now.
    fn reset(&self) -> Option<jiff::Timestamp> {
        let at = self.number("x-ratelimit-reset").filter(|_| self.number("x-ratelimit-remaining") == Some(0))?;
        jiff::Timestamp::from_second(i64::try_from(at).ok()?).ok()
    }

    /// Whether a refusal is about the number of requests and not about rights.
    fn is_rate_limit(&self) -> bool {
        match self.status {
            StatusCode::TOO_MANY_REQUESTS => true,
            StatusCode::FORBIDDEN => {
                // The header that says when to come again may be missing; then only the text tells the two apart.
                let says_so = || self.message().is_some_and(|said| said.to_ascii_lowercase().contains("rate limit"));
                self.number("retry-after").is_some() || self.number("x-ratelimit-remaining") == Some(0) || says_so()
            }
            _ => false,
        }
    }

    /// What kind of refusal it is.
    pub(super) fn cause(&self) -> Cause {
        match self.status {
            _ if self.is_rate_limit() => Cause::Limit,
            StatusCode::UNAUTHORIZED => Cause::Token,
            StatusCode::FORBIDDEN => Cause::Rights,
            StatusCode::NOT_FOUND | StatusCode::GONE => Cause::Missing,
            status if status.is_server_error() => Cause::Unanswered,
            _ => Cause::Other,
        }
    }
}

/// How long a server that grants no more requests asks to wait, by its headers as GitHub describes them; `None` when that is not
/// why it refused. A time that is past by our clock says that the clocks differ, and nothing about when to come again.
pub(super) fn wait_asked_for(reply: &Reply, now: jiff::Timestamp) -> Option<Duration> {
    if !reply.is_rate_limit() {
        return None;
    }
    let said = reply.number("retry-after").map(Duration::from_secs);
    said.or_else(|| Duration::try_from(reply.reset()?.duration_since(now)).ok().filter(|wait| !wait.is_zero()))
}

/// The next step after an answer that is no success; `right` is the one when the token has no right to what was asked.
pub(super) fn step(reply: &Reply, right: &str) -> String {
    match reply.status {
        _ if reply.is_rate_limit() => {
            let when = match (reply.number("retry-after"), reply.reset()) {
                (Some(seconds), _) => format!("in {seconds} s"),
                (None, Some(reset)) => format!("after {reset}"),
                (None, None) => "later".to_owned(),
            };
            format!("the token may make no more requests for now; run the job again {when}")
        }
        StatusCode::UNAUTHORIZED => {
            "the token is wrong, expired or of another server; take `${{ github.token }}` of this very job".to_owned()
        }
        StatusCode::FORBIDDEN | StatusCode::NOT_FOUND => {
            format!("it is not there, or the token has no right to it: {right}")
        }
        StatusCode::GONE => "it was removed".to_owned(),
        StatusCode::UNPROCESSABLE_ENTITY => "the server does not accept what was sent".to_owned(),
        status if status.is_redirection() => {
            "the repository was moved; set GITHUB_REPOSITORY to its name of today".to_owned()
        }
        status if status.is_server_error() => "the server is at fault; run the job again later".to_owned(),
        _ => "that was not expected; is GITHUB_API_URL the address of a GitHub API?".to_owned(),
    }
}

/// The most letters of a stranger's text that a message repeats.
const LONGEST_QUOTE: usize = 200;

/// What a server said, fit for a message: on one line, bounded and without control characters.
pub fn plain(text: &str) -> String {
    let visible = text.chars().take(LONGEST_QUOTE * 8).map(|letter| if letter.is_control() { ' ' } else { letter });
    let visible: String = visible.collect();
    let mut words = visible.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = words.char_indices().nth(LONGEST_QUOTE) {
        words.truncate(end);
        words.push('…');
    }
    words
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn reply(status: u16, headers: &[(&'static str, &'static str)]) -> Reply {
        let headers =
            headers.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect();
        Reply { status: StatusCode::from_u16(status).unwrap(), headers, body: Vec::new() }
    }

    /// The headers are those of GitHub's documentation of its rate limits.
    #[test]
    fn a_limit_says_when_to_come_again() {
        let now = jiff::Timestamp::from_second(1_000).unwrap();
        for (status, headers, wait) in [
            (429, &[("retry-after", "7")][..], Some(7)),
            (403, &[("retry-after", "60")], Some(60)),
            (403, &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1030")], Some(30)),
            (429, &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "990")], None),
            (429, &[], None),
            (403, &[], None),
            (403, &[("x-ratelimit-remaining", "4999"), ("x-ratelimit-reset", "1030")], None),
            (500, &[("retry-after", "7")], None),
        ] {
            let reply = reply(status, headers);
            assert_eq!(wait_asked_for(&reply, now), wait.map(Duration::from_secs), "{status} {headers:?}");
        }
    }

    #[test]
    fn a_refusal_is_about_rights_only_where_no_limit_is_met() {
        assert_eq!(reply(403, &[]).cause(), Cause::Rights);
        assert_eq!(reply(403, &[("x-ratelimit-remaining", "12")]).cause(), Cause::Rights);
        assert_eq!(reply(403, &[("x-ratelimit-remaining", "0")]).cause(), Cause::Limit);
        assert_eq!(reply(401, &[("x-ratelimit-remaining", "0")]).cause(), Cause::Token);
        assert_eq!(reply(502, &[]).cause(), Cause::Unanswered);
        let body = br#"{"message": "You have exceeded a secondary rate limit. Please wait a few minutes."}"#;
        assert_eq!(Reply { body: body.to_vec(), ..reply(403, &[]) }.cause(), Cause::Limit);
    }

    #[test]
    fn a_stranger_s_text_is_one_bounded_line() {
        assert_eq!(plain("a\r\n\tb \u{1b}[31m c"), "a b [31m c");
        let long = plain(&"x".repeat(100_000));
        assert_eq!(long, format!("{}…", "x".repeat(200)));
    }
}
