//! A result as JUnit XML, for whatever shows the tests of a job: a test for each check. What was not decided is an error and is
//! never skipped, since most viewers show what was skipped as green.

use jiff::Timestamp;

use super::annotations::told;
use super::escape;
use super::{conclusion, outputs};
use crate::judge::{Check, Reason, Status};
use crate::record::RunResult;

/// The longest text in one place.
const CAP: usize = 8_192;

/// Renders a result as one suite of tests. A run without verdict, and a verdict that no row accounts for, has a test more that
/// ends in an error: nothing that is no PASS may look like one.
pub fn junit(result: &RunResult) -> String {
    let checks: Vec<&Check> = result.verdict.iter().flat_map(|verdict| &verdict.checks).collect();
    let count = |status| checks.iter().filter(|check| check.status == status).count();
    let (failures, unknown) = (count(Status::Fail), count(Status::Unknown));
    let mut cases: Vec<String> = checks.iter().map(|check| case(result, check)).collect();
    let unexplained = unexplained(result, failures, unknown);
    let errors = unknown + usize::from(unexplained.is_some());
    cases.extend(unexplained);
    let tests = cases.len().to_string();
    let time = seconds(result).map(|seconds| format!("{seconds:.3}"));
    let (failures, errors) = (failures.to_string(), errors.to_string());
    let counted = [("tests", Some(tests.as_str())), ("failures", Some(&failures)), ("errors", Some(&errors))];
    let suite = [("name", Some(result.name.as_str()))].into_iter().chain(counted).chain([
        ("skipped", Some("0")),
        ("time", time.as_deref()),
        ("timestamp", time.as_ref().map(|_| result.started_at.as_str())),
    ]);
    let all = [("name", Some("goodput"))].into_iter().chain(counted).chain([("time", time.as_deref())]);
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}\n  {}\n{}{}  </testsuite>\n</testsuites>\n",
        open("testsuites", all),
        open("testsuite", suite),
        properties(result),
        cases.concat()
    )
}

/// An opening tag with the attributes that have a value.
fn open<'a>(name: &str, attributes: impl IntoIterator<Item = (&'a str, Option<&'a str>)>) -> String {
    let known = attributes.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let written: String = known.map(|(name, value)| format!(" {name}=\"{}\"", escape::xml(value, CAP))).collect();
    format!("<{name}{written}>")
}

/// From the beginning of the run to its end, where both are known.
fn seconds(result: &RunResult) -> Option<f64> {
    let at = |text: &str| text.parse::<Timestamp>().ok();
    let took = at(&result.finished_at)?.duration_since(at(&result.started_at)?).as_secs_f64();
    (took >= 0.0).then_some(took)
}

/// What people look for first, by name; what is not known is left out.
fn properties(result: &RunResult) -> String {
    let origin = &result.origin;
    let mut found: Vec<(&str, String)> = outputs(result);
    let digests = [
        ("contract-digest", result.contract_digest.as_str()),
        ("plan-digest", result.plan_digest.as_str()),
        ("workload-digest", result.workload_digest.as_str()),
    ];
    found.push(("commit", origin.commit.clone().unwrap_or_default()));
    found.push(("run-url", origin.run_url.clone().unwrap_or_default()));
    found.push(("plan", result.plan.name().to_owned()));
    found.extend(digests.map(|(name, digest)| (name, digest.to_owned())));
    found.push(("tool-version", result.tool_version.clone()));
    let lines = found.iter().filter(|(_, value)| !value.is_empty()).map(|(name, value)| {
        let tag = open("property", [("name", Some(*name)), ("value", Some(value.as_str()))]);
        format!("      {tag}</property>\n")
    });
    format!("    <properties>\n{}    </properties>\n", lines.collect::<String>())
}

/// One test: passed where the check passes or what it found was accepted.
fn case(result: &RunResult, check: &Check) -> String {
    let told = told(check);
    let inner = match check.status {
        Status::Pass => String::new(),
        Status::Accepted => format!("<system-out>{}</system-out>", escape::xml(&told, CAP)),
        Status::Fail => problem("failure", check.reason, &told),
        Status::Unknown => problem("error", check.reason, &told),
    };
    test(result, &check.id, &inner)
}

fn problem(kind: &str, reason: Reason, message: &str) -> String {
    let tag = open(kind, [("type", Some(reason.code())), ("message", Some(message))]);
    format!("{tag}{}</{kind}>", escape::xml(message, CAP))
}

fn test(result: &RunResult, name: &str, inner: &str) -> String {
    let class = format!("goodput.{}", result.name);
    let tag = open("testcase", [("classname", Some(class.as_str())), ("name", Some(name))]);
    format!("    {tag}{inner}</testcase>\n")
}

/// A test for an answer that is no PASS and that no row accounts for.
fn unexplained(result: &RunResult, failures: usize, unknown: usize) -> Option<String> {
    let (status, word) = conclusion::overall(result);
    if status == Some(Status::Pass) || failures + unknown > 0 {
        return None;
    }
    let sentences = conclusion::sentences(result).join(" ");
    Some(test(result, "verdict", &problem("error", Reason::Internal, format!("{word}. {sentences}").trim())))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use quick_xml::Reader;
    use quick_xml::escape::unescape;
    use quick_xml::events::{BytesStart, Event};

    use super::*;
    use crate::report::samples;

    /// An element as a reader of XML sees it: its name, its attributes, and its text without that of its children.
    #[derive(Debug, Default)]
    struct Element {
        name: String,
        attributes: BTreeMap<String, String>,
        text: String,
    }

    impl Element {
        fn of(tag: &BytesStart<'_>) -> Self {
            let mut attributes = BTreeMap::new();
            for attribute in tag.attributes() {
                let attribute = attribute.expect("an attribute");
                let value = String::from_utf8(attribute.value.to_vec()).expect("UTF-8");
                let name = String::from_utf8(attribute.key.as_ref().to_vec()).expect("UTF-8");
                attributes.insert(name, unescape(&value).expect("escaped text").into_owned());
            }
            let name = String::from_utf8(tag.name().as_ref().to_vec()).expect("UTF-8");
            Self { name, attributes, text: String::new() }
        }

        fn get(&self, attribute: &str) -> &str {
            self.attributes.get(attribute).map_or("", String::as_str)
        }
    }

    /// Every element with the path of names to it, in the order in which they begin.
    fn read(text: &str) -> Vec<(String, Element)> {
        let may_be =
            |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
        assert!(text.chars().all(may_be), "a character that XML 1.0 does not have");
        let mut reader = Reader::from_str(text);
        let (mut found, mut open): (Vec<(String, Element)>, Vec<usize>) = (Vec::new(), Vec::new());
        loop {
            match reader.read_event().expect("well-formed XML") {
                Event::Start(tag) => {
                    let element = Element::of(&tag);
                    let parent = open.last().map_or(String::new(), |at| format!("{}/", found[*at].0));
                    open.push(found.len());
                    found.push((parent + &element.name, element));
                }
                Event::End(_) => drop(open.pop().expect("an open element")),
                Event::Text(text) => {
                    if let Some(at) = open.last() {
                        found[*at].1.text.push_str(std::str::from_utf8(&text).expect("UTF-8"));
                    }
                }
                Event::GeneralRef(entity) => {
                    let entity = format!("&{};", String::from_utf8(entity.to_vec()).expect("UTF-8"));
                    let at = open.last().expect("an open element");
                    found[*at].1.text.push_str(&unescape(&entity).expect("a known entity"));
                }
                Event::Eof => break,
                _ => {}
            }
        }
        assert!(open.is_empty());
        found
    }

    const CASE: &str = "testsuites/testsuite/testcase";

    fn with<'a>(found: &'a [(String, Element)], path: &str) -> Vec<&'a Element> {
        found.iter().filter(|(at, _)| at == path).map(|(_, element)| element).collect()
    }

    #[test]
    fn every_check_is_a_test_and_what_is_not_decided_an_error() {
        for (name, result) in samples::all() {
            let found = read(&junit(&result));
            let checks = &result.verdict.as_ref().expect("a verdict").checks;
            let names: Vec<&str> = with(&found, CASE).iter().map(|case| case.get("name")).collect();
            assert_eq!(names, checks.iter().map(|check| check.id.as_str()).collect::<Vec<_>>(), "{name}");
            for (kind, status, count) in [
                ("failure", Status::Fail, "failures"),
                ("error", Status::Unknown, "errors"),
                ("system-out", Status::Accepted, ""),
            ] {
                let reasons: Vec<&str> =
                    checks.iter().filter(|check| check.status == status).map(|check| check.reason.code()).collect();
                let told = with(&found, &format!("{CASE}/{kind}"));
                assert_eq!(told.len(), reasons.len(), "{name}: {kind}");
                if !count.is_empty() {
                    assert_eq!(told.iter().map(|problem| problem.get("type")).collect::<Vec<_>>(), reasons, "{name}");
                    for suite in ["testsuites", "testsuites/testsuite"] {
                        assert_eq!(with(&found, suite)[0].get(count), reasons.len().to_string(), "{name}");
                    }
                }
            }
            assert!(found.iter().all(|(_, element)| element.name != "skipped"), "{name}");
            let suite = with(&found, "testsuites/testsuite")[0];
            assert_eq!(suite.get("tests"), checks.len().to_string());
            // From 10:00:00 to 10:01:34.
            assert_eq!((suite.get("name"), suite.get("time")), (result.name.as_str(), "94.000"));
            let class = format!("goodput.{}", result.name);
            assert!(with(&found, CASE).iter().all(|case| case.get("classname") == class));
        }
    }

    #[test]
    fn a_problem_is_told_with_its_figures() {
        let found = read(&junit(&samples::fail()));
        let failure = with(&found, "testsuites/testsuite/testcase/failure")[0];
        assert_eq!(
            failure.get("message"),
            "broken: 812 ms (774 ms … 845 ms), limit ≤ 500ms; 41 of 300 requests are above the limit; 8 or fewer would \
             pass, 22 or more fail"
        );
        assert_eq!(failure.text, failure.get("message"));
        let accepted = read(&junit(&samples::accepted()));
        let note = with(&accepted, "testsuites/testsuite/testcase/system-out")[0];
        assert!(note.text.contains("accepted by Ada until 2027-01-31"), "{}", note.text);
        let properties = with(&accepted, "testsuites/testsuite/properties/property");
        let of = |name: &str| properties.iter().find(|property| property.get("name") == name).map(|p| p.get("value"));
        assert_eq!(of("commit"), Some("89abcdef0123456789abcdef0123456789abcdef"));
        assert_eq!((of("delta"), of("capacity")), (Some("-12.3"), Some("30")));
        assert_eq!(read(&junit(&samples::unknown())).iter().filter(|(_, e)| e.get("name") == "goodput").count(), 1);
    }

    #[test]
    fn what_has_no_answer_is_an_error() {
        let empty = |overall| {
            let mut result = samples::pass();
            if let Some(verdict) = &mut result.verdict {
                (verdict.overall, verdict.checks) = (overall, Vec::new());
            }
            result
        };
        for result in [RunResult { verdict: None, ..samples::pass() }, empty(Status::Unknown), empty(Status::Fail)] {
            let found = read(&junit(&result));
            let suite = with(&found, "testsuites/testsuite")[0];
            assert_eq!((suite.get("tests"), suite.get("failures"), suite.get("errors")), ("1", "0", "1"));
            assert_eq!(with(&found, &format!("{CASE}/error"))[0].get("type"), "internal");
        }
    }

    #[test]
    fn hostile_text_stays_text() {
        let mut result = samples::fail();
        result.name = "\u{0}\u{1b}[31m\"><skipped/><!--&amp;]]>\u{ffff}\u{202e}".to_owned();
        "yesterday".clone_into(&mut result.finished_at);
        for check in result.verdict.iter_mut().flat_map(|verdict| &mut verdict.checks) {
            check.note = Some("</error></testcase><testcase name='x'/>\n\u{8}".repeat(100_000));
        }
        let text = junit(&result);
        assert!(text.len() < 1_000_000, "{}", text.len());
        let found = read(&text);
        let suite = with(&found, "testsuites/testsuite")[0];
        assert_eq!(suite.get("name"), "␀␛[31m\"><skipped/><!--&amp;]]>\u{fffd}\\u{202e}");
        assert_eq!((suite.get("tests"), suite.attributes.get("time")), ("6", None), "a time that is not known is none");
    }
}
