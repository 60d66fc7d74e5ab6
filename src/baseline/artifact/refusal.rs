//! What GitHub's refusals mean, by their status and the headers that its documentation describes.

use std::time::Duration;

use http::{HeaderMap, StatusCode};

/// The permission that everything here needs, as a workflow writes it.
pub(super) const PERMISSION: &str = "`permissions: { contents: read, actions: read }`";

/// A whole answer.
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

/// How long a server that grants no more requests asks to wait, by its headers as GitHub describes them; `None` when that is not
/// why it refused.
pub(super) fn wait_asked_for(reply: &Reply) -> Option<Duration> {
    if !matches!(reply.status, StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS) {
        return None;
    }
    number(&reply.headers, "retry-after").map(Duration::from_secs)
}

fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.trim().parse().ok()
}

/// Whether a refusal is about the number of requests and not about rights.
fn is_rate_limit(reply: &Reply) -> bool {
    reply.status == StatusCode::TOO_MANY_REQUESTS
        || number(&reply.headers, "retry-after").is_some()
        || number(&reply.headers, "x-ratelimit-remaining") == Some(0)
}

/// The next step after an answer that is no success.
pub(super) fn step(reply: &Reply) -> String {
    match reply.status {
        StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS if is_rate_limit(reply) => {
            let reset = number(&reply.headers, "x-ratelimit-reset").and_then(|at| i64::try_from(at).ok());
            let reset = reset.and_then(|at| jiff::Timestamp::from_second(at).ok());
            let when = match (number(&reply.headers, "retry-after"), reset) {
                (Some(seconds), _) => format!("in {seconds} s"),
                (None, Some(reset)) => format!("after {reset}"),
                (None, None) => "later".to_owned(),
            };
            format!("the token may make no more requests for now; run the job again {when}")
        }
        StatusCode::UNAUTHORIZED => {
            "the token is wrong, expired or of another server; take `${{ github.token }}` of this very job".to_owned()
        }
        StatusCode::FORBIDDEN | StatusCode::NOT_FOUND => format!(
            "it is not there, or the token may not see it: give the job {PERMISSION}, and in the contract see that `workflow` \
             is the name of a workflow file"
        ),
        status if status.is_redirection() => {
            "the repository was moved; set GITHUB_REPOSITORY to its name of today".to_owned()
        }
        status if status.is_server_error() => "the server is at fault; run the job again later".to_owned(),
        _ => "that was not expected; is GITHUB_API_URL the address of a GitHub API?".to_owned(),
    }
}
