//! The store `artifact` over real sockets, against servers that answer as GitHub's published description says.

mod description;
mod github;

use std::io::{Cursor, Write};
use std::sync::atomic::{AtomicUsize, Ordering};

use goodput::baseline::{Store, StoreFailure};
use goodput::github::Site;
use goodput::record::BaselineRecord;
use serde_json::Value;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use self::github::{GitHub, Reply, TOKEN, World, of_a_fork};
use crate::records::{commit, corrupt, record, records, unavailable};

const NAME: &str = "gamma-26b-chat";

/// An artifact with that record, as the upload action makes it.
fn zipped(record: &BaselineRecord) -> Vec<u8> {
    zipped_text(&serde_json::to_vec_pretty(record).unwrap())
}

fn zipped_text(text: &[u8]) -> Vec<u8> {
    let mut archive = ZipWriter::new_stream(Cursor::new(Vec::new()));
    archive.start_file("baseline.json", SimpleFileOptions::default()).unwrap();
    archive.write_all(text).unwrap();
    archive.finish().unwrap().into_inner().into_inner()
}

fn same(_: &mut Value) {}

/// One green run at the commit, with one record.
fn one(digit: char) -> (World, BaselineRecord) {
    let mut world = World::empty();
    let kept = record(NAME, &commit(digit), "1");
    world.run(1, &commit(digit), same);
    world.artifact(11, 1, zipped(&kept), same);
    (world, kept)
}

#[tokio::test]
async fn a_record_is_taken_from_a_green_run_at_the_wanted_commit() {
    let (world, kept) = one('a');
    let github = GitHub::start(world).await;
    let found = github.artifacts(None).find(NAME, &[commit('a'), commit('b')]).await.unwrap();
    assert_eq!(found[0].place, "https://github.com/octocat/Hello-World/actions/runs/1, artifact `goodput-baseline`");
    assert_eq!(records(found), [kept]);
    assert_eq!(
        github.asked(),
        ["", "/actions/runs", "/actions/runs/1/artifacts", "/actions/artifacts/11/zip", "/archives/11"]
    );
}

#[tokio::test]
async fn the_first_wanted_commit_with_a_record_wins_whatever_is_newer() {
    let mut world = World::empty();
    let kept = [('b', "1"), ('b', "2"), ('c', "3")].map(|(digit, mark)| record(NAME, &commit(digit), mark));
    // At the base itself only another contract was measured, and something else than the commit of the run.
    world.run(9, &commit('a'), same);
    world.artifact(91, 9, zipped(&record("another", &commit('a'), "1")), same);
    world.artifact(92, 9, zipped(&record(NAME, &commit('c'), "1")), same);
    world.artifact(93, 9, b"no archive".to_vec(), |artifact| artifact["name"] = "goodput-baseline-2".into());
    world.run(1, &commit('b'), same);
    world.artifact(11, 1, zipped(&kept[0]), same);
    world.artifact(12, 1, zipped(&kept[1]), same);
    world.run(20, &commit('c'), same);
    world.artifact(99, 20, zipped(&kept[2]), same);
    world.lists_all = true;
    let github = GitHub::start(world).await;
    let store = github.artifacts(None);
    let found = store.find(NAME, &['a', 'b', 'c'].map(commit)).await.unwrap();
    assert_eq!(records(found), [kept[1].clone(), kept[0].clone()]);
    assert_eq!(store.find(NAME, &[commit('d')]).await.unwrap(), []);
    github.asked();
}

#[tokio::test]
async fn only_what_the_default_branch_alone_decided_counts() {
    type Change = fn(&mut Value);
    let refused: [(&str, Change); 13] = [
        ("a pull request", |run| run["event"] = "pull_request".into()),
        ("a pull request with the base's rights", |run| run["event"] = "pull_request_target".into()),
        ("what follows on any other run", |run| run["event"] = "workflow_run".into()),
        ("a comment", |run| run["event"] = "issue_comment".into()),
        ("another branch", |run| run["head_branch"] = "masters".into()),
        ("no branch", |run| run["head_branch"] = Value::Null),
        ("a branch that looks like a queue", |run| run["head_branch"] = "gh-readonly-queue/master/pr-1".into()),
        ("a queue of another branch", |run| {
            run["event"] = "merge_group".into();
            run["head_branch"] = "gh-readonly-queue/masters/pr-1".into();
        }),
        ("a failure", |run| run["conclusion"] = "failure".into()),
        ("an end that is not known", |run| run["conclusion"] = Value::Null),
        ("a fork", of_a_fork),
        ("another commit", |run| run["head_sha"] = commit('b').into()),
        ("another workflow", |run| run["path"] = ".github/workflows/not-nightly.yml".into()),
    ];
    for (what, change) in refused {
        let mut world = World::empty();
        world.run(1, &commit('a'), change);
        world.artifact(11, 1, zipped(&record(NAME, &commit('a'), "1")), same);
        // Even from a server that knows none of the parameters.
        world.lists_all = true;
        let github = GitHub::start(world).await;
        let store = github.artifacts(Some("nightly.yml"));
        assert_eq!(store.find(NAME, &[commit('a')]).await.unwrap(), [], "{what}");
        assert_eq!(github.asked(), ["", "/actions/workflows/nightly.yml/runs"], "{what}");
    }
    let counted: [(&str, Change); 4] = [
        ("a push", |run| run["event"] = "push".into()),
        ("by hand", |run| run["event"] = "workflow_dispatch".into()),
        ("a merge queue", |run| {
            run["event"] = "merge_group".into();
            run["head_branch"] = "gh-readonly-queue/master/pr-1-0123".into();
        }),
        ("a path with its branch", |run| run["path"] = ".github/workflows/nightly.yml@master".into()),
    ];
    for (what, change) in counted {
        let mut world = World::empty();
        world.run(1, &commit('a'), change);
        world.artifact(11, 1, zipped(&record(NAME, &commit('a'), "1")), same);
        world.lists_all = true;
        let github = GitHub::start(world).await;
        let store = github.artifacts(Some("nightly.yml"));
        assert_eq!(store.find(NAME, &[commit('a')]).await.unwrap().len(), 1, "{what}");
        github.asked();
    }
}

#[tokio::test]
async fn an_expired_artifact_is_told_and_an_older_commit_asked() {
    for listed_as_expired in [true, false] {
        let (mut world, kept) = one('b');
        world.run(2, &commit('a'), same);
        world.artifact(21, 2, Vec::new(), |artifact| artifact["expired"] = listed_as_expired.into());
        world.gone.push(21);
        let github = GitHub::start(world).await;
        let store = github.artifacts(None);
        let note = "the artifact `goodput-baseline` of commit aaaaaaa expired on 2026-12-24";
        let found = store.find(NAME, &[commit('a'), commit('b')]).await.unwrap();
        assert!(found[0].place.ends_with(&format!("/runs/1, artifact `goodput-baseline` ({note})")), "{found:?}");
        assert_eq!(records(found), [kept]);
        let told = unavailable(store.find(NAME, &[commit('a'), commit('c')]).await);
        assert!(told.starts_with(note) && told.contains("measure the base again"), "{told}");
        github.asked();
    }
}

#[tokio::test]
async fn what_cannot_be_read_is_told_and_never_passed_over() {
    let mut changed = serde_json::to_value(record(NAME, &commit('a'), "1")).unwrap();
    changed["verdict"] = "FAIL".into();
    let old = serde_json::json!({"schema": "goodput-baseline/9"});
    for (archive, problem) in [
        (b"no archive".to_vec(), "the baseline lies in an archive that cannot be read: "),
        (zipped_text(b"{"), "the baseline is not JSON: "),
        (zipped_text(changed.to_string().as_bytes()), "the baseline was changed: "),
        (zipped_text(old.to_string().as_bytes()), "the baseline has the format `goodput-baseline/9`"),
        (zipped_text(&vec![b' '; 100_000_000]), "the baseline unpacks to more than 16 MiB"),
    ] {
        let (mut world, _) = one('b');
        world.run(2, &commit('a'), same);
        world.artifact(21, 2, archive, same);
        let github = GitHub::start(world).await;
        let told = corrupt(github.artifacts(None).find(NAME, &[commit('a'), commit('b')]).await);
        let place = "https://github.com/octocat/Hello-World/actions/runs/2, artifact `goodput-baseline`: ";
        assert!(told.starts_with(place) && told.contains(problem), "{told}");
        github.asked();
    }
}

#[tokio::test]
async fn a_large_artifact_is_not_downloaded_even_when_it_is_listed_as_a_small_one() {
    let (mut world, _) = one('a');
    world.artifact(12, 1, vec![0], |artifact| artifact["size_in_bytes"] = 100_000_000.into());
    let github = GitHub::start(world).await;
    let told = corrupt(github.artifacts(None).find(NAME, &[commit('a')]).await);
    assert!(told.contains("the baseline has more than 16 MiB (100000000 bytes)"), "{told}");
    assert!(!github.asked().iter().any(|path| path.starts_with("/archives")));

    let (mut world, _) = one('a');
    world.artifact(12, 1, vec![0; 100_000_000], |artifact| artifact["size_in_bytes"] = 500.into());
    let github = GitHub::start(world).await;
    let told = corrupt(github.artifacts(None).find(NAME, &[commit('a')]).await);
    assert!(told.contains("the baseline has more than 16 MiB (100000000 bytes)"), "{told}");
    github.asked();
}

/// What is told when everything is answered so.
async fn told(reply: impl Fn() -> Reply + Send + Sync + 'static) -> (String, Vec<String>) {
    let (mut world, _) = one('a');
    world.script = Some(Box::new(move |_, path| path.ends_with("/actions/runs").then(&reply)));
    let github = GitHub::start(world).await;
    let told = unavailable(github.artifacts(None).find(NAME, &[commit('a')]).await);
    let (start, told) = told.split_once(" was asked for ").map_or(("", told.as_str()), |(start, told)| (start, told));
    assert!(start.is_empty() || start == format!("{}/repos/octocat/Hello-World", github.address()), "{start}");
    (told.to_owned(), github.asked())
}

#[tokio::test]
async fn refusals_say_what_was_asked_and_what_to_do() {
    let permission = "give the job `permissions: { contents: read, actions: read }`";
    let limit = "the token may make no more requests for now; run the job again ";
    let rows: [(u16, &'static str, &'static str, String); 7] = [
        (401, "Bad credentials", "", "the token is wrong, expired or of another server".to_owned()),
        (403, "Resource not accessible by integration", "", permission.to_owned()),
        (404, "Not Found", "", permission.to_owned()),
        (429, "Too many", "retry-after: 3600\r\n", format!("{limit}in 3600 s")),
        (403, "You have exceeded a secondary rate limit", "retry-after: 60\r\n", format!("{limit}in 60 s")),
        (
            403,
            "API rate limit exceeded",
            "x-ratelimit-remaining: 0\r\nx-ratelimit-reset: 1795996800\r\n",
            format!("{limit}after 2026-11-30T00:00:00Z"),
        ),
        (301, "Moved Permanently", "location: /elsewhere\r\n", "the repository was moved".to_owned()),
    ];
    for (status, message, headers, step) in rows {
        let (told, asked) = told(move || Reply::refusal(status, message, headers)).await;
        assert!(told.starts_with(&format!("workflow runs and answered {status} ")), "{told}");
        assert!(told.contains(&format!("({message}); ")) && told.contains(&step), "{told}");
        assert_eq!(asked, ["", "/actions/runs"]);
    }
}

#[tokio::test]
async fn a_server_that_stays_broken_is_asked_three_times() {
    let (text, asked) = told(|| Reply::refusal(502, "Bad Gateway", "")).await;
    assert!(text.starts_with("workflow runs and answered 502 ") && text.contains("the server is at fault"), "{text}");
    assert_eq!(asked.len(), 1 + 3);

    let page = || Reply { status: 200, headers: String::new(), body: b"<html>login</html>".to_vec(), cut: None };
    let (text, _) = told(page).await;
    assert!(text.starts_with("workflow runs and sent something else: expected value"), "{text}");

    let (text, asked) = told(|| Reply { cut: Some(5), ..Reply::refusal(200, "cut", "") }).await;
    assert!(text.contains("cannot be asked for workflow runs: its answer broke off: "), "{text}");
    assert_eq!(asked.len(), 1 + 3);
}

#[tokio::test]
async fn no_message_repeats_the_token() {
    let message = "x".repeat(50_000);
    let (text, _) = told(move || Reply::refusal(403, &format!("no\r\nrights for {TOKEN} {message}"), "")).await;
    assert!(text.contains("(no rights for *** xxx") && !text.contains(TOKEN), "{text}");
    let site = Site::new("https://host", "octocat/Hello-World", TOKEN.to_owned().into()).unwrap();
    assert!(!format!("{site:?} {site}").contains(TOKEN));
}

#[tokio::test]
async fn a_fault_that_passes_is_got_over() {
    for fault in [
        (|| Reply::refusal(503, "Unavailable", "")) as fn() -> Reply,
        || Reply::refusal(429, "Too many", "retry-after: 1\r\n"),
        || Reply { cut: Some(3), ..Reply::refusal(200, "cut", "") },
    ] {
        for at in ["/actions/runs", "/archives/11"] {
            let (mut world, kept) = one('a');
            let met = AtomicUsize::new(0);
            world.script = Some(Box::new(move |_, path| {
                (path.ends_with(at) && met.fetch_add(1, Ordering::SeqCst) == 0).then(fault)
            }));
            let github = GitHub::start(world).await;
            let found = github.artifacts(None).find(NAME, &[commit('a')]).await.unwrap();
            assert_eq!(records(found), [kept], "{at}");
            assert_eq!(github.asked().len(), 6, "{at}");
        }
    }
}

#[tokio::test]
async fn an_artifact_that_cannot_be_downloaded_names_the_host_and_not_its_address() {
    let (mut world, _) = one('a');
    world.script = Some(Box::new(|_, path| {
        path.starts_with("/archives").then(|| Reply { cut: Some(100), ..Reply::refusal(200, &"x".repeat(500), "") })
    }));
    let github = GitHub::start(world).await;
    let told = unavailable(github.artifacts(None).find(NAME, &[commit('a')]).await);
    assert!(told.starts_with("the artifact cannot be downloaded from localhost: "), "{told}");
    assert!(!told.contains("Secret"), "{told}");
    assert_eq!(github.asked().len(), 4 + 3);

    for location in ["", "location: ftp://elsewhere/11\r\n", "location: not an address\r\n"] {
        let (mut world, _) = one('a');
        world.script = Some(Box::new(move |_, path| {
            let reply = Reply { status: 302, headers: location.to_owned(), body: Vec::new(), cut: None };
            path.ends_with("/zip").then_some(reply)
        }));
        let github = GitHub::start(world).await;
        let told = unavailable(github.artifacts(None).find(NAME, &[commit('a')]).await);
        assert!(told.ends_with("was asked for an artifact and named no address to get it from"), "{told}");
    }
}

#[tokio::test]
async fn the_number_of_requests_is_bounded_and_told() {
    let github = GitHub::start(World::empty()).await;
    let wanted: Vec<String> = (0..200).map(|number| format!("{number:040x}")).collect();
    let told = unavailable(github.artifacts(None).find(NAME, &wanted).await);
    assert!(
        told.starts_with("gave up after 60 requests, with 59 of 200 commits looked at; name the `workflow`"),
        "{told}"
    );
    assert_eq!(github.asked().len(), 60);
}

/// A branch at rest that is measured every night has many runs at one commit.
#[tokio::test]
async fn of_many_runs_at_one_commit_the_newest_are_read() {
    let mut world = World::empty();
    for night in (1..=40).rev() {
        world.run(night, &commit('a'), same);
        world.artifact(100 + night, night, zipped(&record(NAME, &commit('a'), &night.to_string())), same);
    }
    let github = GitHub::start(world).await;
    let found = records(github.artifacts(None).find(NAME, &[commit('a')]).await.unwrap());
    let newest: Vec<BaselineRecord> =
        (33..=40).rev().map(|night| record(NAME, &commit('a'), &night.to_string())).collect();
    assert_eq!(found, newest);
    github.asked();
}

#[tokio::test]
async fn the_newest_are_listed_without_those_that_do_not_count() {
    let mut world = World::empty();
    let kept = ['a', 'b', 'c'].map(|digit| record(NAME, &commit(digit), "1"));
    for (number, record) in (1..).zip(&kept) {
        world.run(number, record.origin.commit.as_ref().unwrap(), same);
        world.artifact(10 + number, number, zipped(record), same);
    }
    world.run(7, &commit('d'), |run| run["event"] = "pull_request".into());
    world.artifact(70, 7, zipped(&record(NAME, &commit('d'), "1")), same);
    world.run(8, &commit('e'), |run| run["head_branch"] = "topic".into());
    world.artifact(80, 8, zipped(&record(NAME, &commit('e'), "1")), same);
    world.run(9, &commit('f'), same);
    world.artifact(90, 9, Vec::new(), |artifact| artifact["expired"] = true.into());
    let github = GitHub::start(world).await;
    let store = github.artifacts(None);
    assert_eq!(records(store.list(NAME, 9).await.unwrap()), [kept[2].clone(), kept[1].clone(), kept[0].clone()]);
    assert_eq!(records(store.list(NAME, 1).await.unwrap()), [kept[2].clone()]);
    assert_eq!(store.list("another", 9).await.unwrap(), []);
    github.asked();
}

#[tokio::test]
async fn nothing_can_be_put_and_nobody_may_be_there() {
    let github = GitHub::start(World::empty()).await;
    let told = unavailable(github.artifacts(None).put(&record(NAME, &commit('a'), "1")).await);
    assert!(told.contains("`goodput baseline save`") && told.contains("actions/upload-artifact"), "{told}");
    assert!(github.asked().is_empty());

    let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let site = Site::new(&format!("http://{gone}"), "octocat/Hello-World", TOKEN.to_owned().into()).unwrap();
    let store = goodput::baseline::artifact::Artifacts::at(site, "goodput-baseline", None);
    let told = unavailable(store.find(NAME, &[commit('a')]).await);
    assert!(
        told.starts_with(&format!("http://{gone}/repos/octocat/Hello-World cannot be asked for the repository: ")),
        "{told}"
    );
    assert!(told.contains("Connection refused"), "{told}");
}

#[test]
fn an_environment_that_names_no_repository_is_told() {
    for (api, repository, problem) in [
        ("https://api.github.com", "Hello-World", "GITHUB_REPOSITORY is `Hello-World` and not `owner/name`"),
        ("https://api.github.com", "octocat/../x", "GITHUB_REPOSITORY is `octocat/../x` and not `owner/name`"),
        ("https://api.github.com", "octocat/..", "GITHUB_REPOSITORY is `octocat/..` and not `owner/name`"),
        ("api.github.com", "octocat/Hello-World", "GITHUB_API_URL is no address: `api.github.com`"),
        ("file:///etc", "octocat/Hello-World", "GITHUB_API_URL is no address: `file:///etc`"),
    ] {
        assert_eq!(
            unavailable(Site::new(api, repository, TOKEN.to_owned().into()).map_err(StoreFailure::from)),
            problem
        );
    }
}
