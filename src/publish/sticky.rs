//! One comment for a contract on a pull request, whoever comes first and however many come at once.
//!
//! GitHub knows no "create unless there is one". So after creating, everybody looks again and brings about the same end: the
//! comment with the lowest number stays, it gets the text of the newest run, and the others go.

use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

use super::marker::{Age, Marker};
use crate::github::{Cause, Failure, Matter, Session};

/// The most pages of comments that are read; GitHub allows 2,500 comments.
const MOST_PAGES: u32 = 30;

/// Who a workflow's own token writes as.
const WORKFLOW: &str = "github-actions[bot]";

/// What is to stand on a pull request.
pub(super) struct Note<'a> {
    pub(super) pull: u64,
    pub(super) marker: &'a Marker,
    pub(super) body: &'a str,
    /// Whether a comment is made where there is none.
    pub(super) may_create: bool,
    /// The next step where the token may not write.
    pub(super) right: &'a str,
}

/// What became of it, with the comment's address.
pub(super) enum Placed {
    Created(String),
    Updated(String),
    /// It says so already.
    Same(String),
    /// There is none, and none is due.
    NotDue,
    /// It is there, and so is another one of ours that could not be deleted.
    Twice {
        url: String,
        failure: Failure,
    },
    /// A newer run was there.
    Newer {
        url: String,
        age: Age,
    },
}

/// A comment as it is listed.
#[derive(Debug, Deserialize)]
struct Comment {
    id: u64,
    html_url: String,
    #[serde(default)]
    body: String,
    user: Option<User>,
    /// Set when somebody hid it: then it has done its service, and a new one is made.
    #[serde(default)]
    minimized: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct User {
    login: String,
}

/// One of our own comments, with what its mark says of its age.
struct Own {
    comment: Comment,
    age: Age,
}

/// Brings the comment about. One that went while it was written is looked for once more.
pub(super) async fn place(session: &mut Session<'_>, note: &Note<'_>) -> Result<Placed, Failure> {
    match place_once(session, note).await {
        Err(failure) if failure.cause() == Cause::Missing => place_once(session, note).await,
        placed => placed,
    }
}

async fn place_once(session: &mut Session<'_>, note: &Note<'_>) -> Result<Placed, Failure> {
    let mut author = author(session).await?;
    let mut own = list(session, note, &author).await?;
    let is_new = own.is_empty();
    if is_new {
        if !note.may_create {
            return Ok(Placed::NotDue);
        }
        if let Some(login) = create(session, note, &author).await? {
            author = login;
        }
        own = list(session, note, &author).await?;
    }
    settle(session, note, &author, own, is_new).await
}

/// Who the token writes as. A workflow's own token and that of an app may not ask; what the app is called is known only when it
/// has written something.
async fn author(session: &mut Session<'_>) -> Result<String, Failure> {
    let matter = Matter { what: "who the token belongs to", right: "no step is needed" };
    match session.user::<User>(&matter).await {
        Ok(user) => Ok(user.login),
        Err(failure) if matches!(failure.cause(), Cause::Rights | Cause::Missing) => Ok(WORKFLOW.to_owned()),
        Err(failure) => Err(failure),
    }
}

/// Our own comments about the contract, the lowest number first. A mark alone proves nothing: anybody can write one.
async fn list(session: &mut Session<'_>, note: &Note<'_>, author: &str) -> Result<Vec<Own>, Failure> {
    let matter = Matter { what: "for the comments of a pull request", right: note.right };
    let pull = note.pull.to_string();
    let own = |comment: Comment| {
        let is_ours = comment.user.as_ref().is_some_and(|user| user.login == author) && comment.minimized.is_none();
        let marker = Marker::of(&comment.body).filter(|marker| is_ours && marker.id == note.marker.id)?;
        Some(Own { comment, age: marker.age })
    };
    let mut own = session.pages(&["issues", &pull, "comments"], &[], MOST_PAGES, &matter, own).await?;
    own.sort_by_key(|own| own.comment.id);
    Ok(own)
}

/// Makes a comment; gives its author. Where no answer came it may be there: then that is looked at before it is tried again.
async fn create(session: &mut Session<'_>, note: &Note<'_>, author: &str) -> Result<Option<String>, Failure> {
    let matter = Matter { what: "to write a comment", right: note.right };
    let pull = note.pull.to_string();
    let mut is_second = false;
    loop {
        let body = json!({ "body": note.body });
        match session.send::<Comment>(Method::POST, &["issues", &pull, "comments"], &body, &matter).await {
            Ok(comment) => return Ok(comment.user.map(|user| user.login)),
            Err(failure) if failure.cause() != Cause::Unanswered || is_second => return Err(failure),
            Err(_) if !list(session, note, author).await?.is_empty() => return Ok(None),
            Err(_) => is_second = true,
        }
    }
}

/// Of all our comments the first stays, with the text of the newest run.
async fn settle(
    session: &mut Session<'_>,
    note: &Note<'_>,
    author: &str,
    own: Vec<Own>,
    is_new: bool,
) -> Result<Placed, Failure> {
    let newest = own.iter().max_by_key(|own| own.age);
    let mut newer = newest.filter(|newest| newest.age > note.marker.age).map(|newest| newest.age);
    let body = match newest.filter(|_| newer.is_some()) {
        Some(newest) => newest.comment.body.clone(),
        None => note.body.to_owned(),
    };
    let mut own = own.into_iter().map(|own| own.comment);
    let Some(kept) = own.next() else {
        let text = "the comment that was written is not there any more; run the job again".to_owned();
        return Err(Failure::new(Cause::Other, text));
    };
    let is_same = same(&kept.body, &body);
    if !is_same {
        newer = update(session, note, author, kept.id, &body).await?.or(newer);
    }
    let url = page(&kept.html_url);
    for duplicate in own {
        let matter = Matter { what: "to delete a comment of its own", right: note.right };
        if let Err(failure) = session.delete(&["issues", "comments", &duplicate.id.to_string()], &matter).await {
            return Ok(Placed::Twice { url, failure });
        }
    }
    Ok(match newer {
        Some(age) => Placed::Newer { url, age },
        None if is_new => Placed::Created(url),
        None if is_same => Placed::Same(url),
        None => Placed::Updated(url),
    })
}

/// Changes a comment; gives the age of a newer run whose comment was there by the time that the server had time for this one.
async fn update(
    session: &mut Session<'_>,
    note: &Note<'_>,
    author: &str,
    id: u64,
    body: &str,
) -> Result<Option<Age>, Failure> {
    let matter = Matter { what: "to bring a comment up to date", right: note.right };
    let (id, body) = (id.to_string(), json!({ "body": body }));
    for is_last in [false, false, true] {
        let sent = session.send::<Comment>(Method::PATCH, &["issues", "comments", &id], &body, &matter).await;
        let Err(failure) = sent else { break };
        let Some(wait) = failure.wait().filter(|_| !is_last) else { return Err(failure) };
        tokio::time::sleep(wait).await;
        let own = list(session, note, author).await?;
        let newer = own.iter().map(|own| own.age).filter(|age| *age > note.marker.age).max();
        if newer.is_some() {
            return Ok(newer);
        }
    }
    Ok(None)
}

/// An address as a page that can be opened; empty where it is none, for whoever answers could write anything there.
pub(super) fn page(address: &str) -> String {
    let url = Url::parse(address).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    url.map(String::from).unwrap_or_default()
}

/// Whether a comment says this already; GitHub may end lines its own way.
fn same(there: &str, wanted: &str) -> bool {
    let lines = |text: &str| text.replace("\r\n", "\n").trim_end().to_owned();
    lines(there) == lines(wanted)
}
