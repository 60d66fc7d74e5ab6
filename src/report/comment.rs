//! A page for people who read it where it was published: a comment, a job summary, a note. One page says one answer.

use super::escape;
use super::markdown;
use super::parts::{Limit, Part, Worth, lay_out, whereabouts};
use super::{checks, conclusion};
use crate::record::RunResult;

/// The longest name of a contract in a heading.
const NAME_CAP: usize = 120;
/// The longest sentence of whoever publishes, and how many there are at most.
const REMARK_CAP: usize = 600;
const MOST_REMARKS: usize = 8;
/// How much of a message is shown: its lines, and the characters of each.
const MOST_LINES: usize = 200;
const LINE_CAP: usize = 600;

/// What surrounds a page where it is published.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// A whole HTML comment by which the page is found again; it goes first.
    pub marker: Option<&'a str>,
    /// Sentences of whoever publishes, as plain text, right under the headline: that the page is stale, which permission is
    /// missing.
    pub remarks: &'a [String],
    /// The page with the whole report and its artifacts; linked where it is an address of `http` or `https`.
    pub run_url: Option<&'a str>,
    /// How long the page may be.
    pub limit: Limit,
}

/// A result as GitHub-flavoured Markdown: the overall answer, what holds and what binds in sentences, one table of the checks,
/// one of the loads, and the rest folded away. Where there is no room for all of it, what matters least is left out and the page
/// says so.
pub fn comment(result: &RunResult, frame: &Frame<'_>) -> String {
    let (status, word) = conclusion::overall(result);
    let headline = headline(checks::symbol(status), word, &result.name);
    lay_out(&head(headline, frame), &markdown::parts(result, frame.run_url), frame.limit, &whereabouts(frame.run_url))
}

/// The longest note of a merge request that GitLab takes, in characters.
const LONGEST_NOTE: usize = 1_000_000;

/// A result for a merge request on GitLab, whose Markdown has tables and folded parts as well.
pub fn note(result: &RunResult) -> String {
    let run_url = result.origin.run_url.as_deref();
    comment(result, &Frame { marker: None, remarks: &[], run_url, limit: Limit::Characters(LONGEST_NOTE) })
}

/// The page of a run that ended without a verdict, so that nobody takes an older page for the answer: which contract it was
/// about, and what the tool said at last.
pub fn failure(contract: &str, message: &str, frame: &Frame<'_>) -> String {
    let neither = "The tool ended before there was a verdict. This is neither a PASS nor a FAIL: nothing was shown of the change.";
    let lines = message.lines().take(MOST_LINES).map(|line| (Worth::Answer, preformatted(line)));
    let parts = [
        Part::whole("a sentence", Worth::Answer, neither.to_owned()),
        Part::of_rows("lines of the message", "<pre>".to_owned(), lines.collect(), "\n</pre>".to_owned()),
        Part::whole("the link", Worth::Remark, link(frame.run_url).unwrap_or_default()),
    ];
    let whole = link(frame.run_url).unwrap_or_else(|| "The log of the job has all of it.".to_owned());
    lay_out(&head(headline("🚫", "NO VERDICT", contract), frame), &parts, frame.limit, &whole)
}

/// A line that keeps how far it is indented: a caret stands below what it points at.
fn preformatted(line: &str) -> String {
    let indent = line.chars().take_while(|c| *c == ' ').take(LINE_CAP).count();
    " ".repeat(indent) + &escape::markdown(line, LINE_CAP)
}

fn link(run_url: Option<&str>) -> Option<String> {
    Some(format!("{}.", escape::link("The whole log of the run", run_url?)?))
}

fn headline(symbol: &str, word: &str, name: &str) -> String {
    format!("## {symbol} {word}: {}", escape::markdown(name, NAME_CAP))
}

fn head(headline: String, frame: &Frame<'_>) -> Vec<String> {
    let mut head: Vec<String> = frame.marker.map(str::to_owned).into_iter().collect();
    head.push(headline);
    let remarks = frame.remarks.iter().take(MOST_REMARKS);
    head.extend(remarks.map(|remark| format!("> ⚠️ {}", escape::markdown(remark, REMARK_CAP))));
    head
}
