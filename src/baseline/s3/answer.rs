//! What an object storage answered instead of what was asked for, for people.

use object_store::Error;

use crate::baseline::StoreFailure;
use crate::github::plain;

/// A bucket, for people.
pub(super) fn place(bucket: &str, endpoint: Option<&str>) -> String {
    match endpoint {
        Some(endpoint) => format!("the bucket `{bucket}` at {endpoint}"),
        None => format!("the bucket `{bucket}`"),
    }
}

/// Codes of the documented error answers of Amazon S3, each with the next step.
const CODES: &[(&str, &str)] = &[
    ("NoSuchBucket", "make the bucket, or correct `bucket`, `region` and `endpoint` of the contract's baseline"),
    (
        "AccessDenied",
        "grant these credentials `s3:ListBucket` on the bucket and `s3:GetObject` on its objects, and where records are saved \
         `s3:PutObject`",
    ),
    ("AllAccessDisabled", "ask the bucket's owner"),
    (
        "SignatureDoesNotMatch",
        "AWS_SECRET_ACCESS_KEY does not belong to AWS_ACCESS_KEY_ID, or was cut when it was copied",
    ),
    (
        "InvalidAccessKeyId",
        "the storage does not know AWS_ACCESS_KEY_ID; is it the key of another storage, or removed?",
    ),
    ("InvalidToken", "AWS_SESSION_TOKEN does not belong to these credentials; take all three from the same place"),
    ("ExpiredToken", "the credentials have expired; take fresh ones, in CI shortly before this step"),
    ("RequestTimeTooSkewed", "the clock of this machine is wrong; set it"),
    ("PermanentRedirect", "the bucket lies in another region; correct `region` of the contract's baseline"),
    ("AuthorizationHeaderMalformed", "the bucket lies in another region; correct `region` of the contract's baseline"),
    (
        "IllegalLocationConstraintException",
        "the bucket lies in another region; correct `region` of the contract's baseline",
    ),
    (
        "NotImplemented",
        "the storage lacks conditional writes (`If-None-Match`); take one that has them, or another store",
    ),
    ("SlowDown", "the storage asks for fewer requests; try again later"),
];

/// The failure for an error of the client. Neither address nor body of the request is repeated: only the code of the answer is.
pub(super) fn refusal(place: &str, error: &Error) -> StoreFailure {
    let causes = everything(error);
    let text = match (code(&causes), status(error, &causes)) {
        (Some(code), _) => format!("{place} answered {code}; {}", step(&code)),
        (None, Some(status)) => format!("{place} answered {status} without saying why; {}", step_for_status(status)),
        (None, None) => unreached(place, error, &causes),
    };
    StoreFailure::Unavailable(text)
}

/// What every cause says, without a bound: the answer's body is among it.
fn everything(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        text.push('\n');
        text.push_str(&error.to_string());
        next = error.source();
    }
    text
}

/// The content of the answer's element `Code`, where it is a word.
fn code(text: &str) -> Option<String> {
    let code = text.split_once("<Code>")?.1.split_once("</Code>")?.0;
    let is_word =
        (1..=60).contains(&code.len()) && code.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.');
    is_word.then(|| code.to_owned())
}

fn step(code: &str) -> &'static str {
    let known = CODES.iter().find(|(name, _)| *name == code);
    known.map_or("the documentation of the storage says what that means", |(_, step)| step)
}

/// The status of the answer: some errors stand for one, of others the client only tells.
fn status(error: &Error, causes: &str) -> Option<u16> {
    match error {
        Error::NotFound { .. } => Some(404),
        Error::PermissionDenied { .. } => Some(403),
        Error::Unauthenticated { .. } => Some(401),
        _ => causes.split_once("non-2xx status code: ")?.1.get(..3)?.parse().ok(),
    }
}

fn step_for_status(status: u16) -> &'static str {
    match status {
        404 => step("NoSuchBucket"),
        401 | 403 => step("AccessDenied"),
        _ => "is `endpoint` the address of an object storage, and is that well?",
    }
}

/// Without an answer that says why: nobody there, no credentials, or something that is no object storage.
fn unreached(place: &str, error: &Error, causes: &str) -> String {
    // Without any credentials the client asks the machine that it would run on at Amazon.
    if causes.contains("latest/api/token") || causes.contains("latest/meta-data") {
        return format!(
            "{place} cannot be asked: there are no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give the \
             job a role"
        );
    }
    if causes.contains("redirect without LOCATION") {
        return format!("{place} answered with a redirect; {}", step("PermanentRedirect"));
    }
    let cause = plain(&innermost(error).to_string());
    format!("{place} cannot be asked: {cause}; is it up, and are `endpoint`, `region` and any proxy right?")
}

/// The last cause: the outer ones repeat the address of the request and the number of retries.
fn innermost(error: &dyn std::error::Error) -> &dyn std::error::Error {
    let mut error = error;
    while let Some(inner) = error.source() {
        error = inner;
    }
    error
}
