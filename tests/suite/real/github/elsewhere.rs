//! Events without a pull request, the second workflow, servers of one's own, check runs, summary, annotations and outputs.

use std::fs;

use goodput::publish::{Subject, Wanted, When};
use serde_json::{Value, json};

use super::world::{HEAD, OTHER, World, mark, pull_request, result, wanted};

const FORK: &str = "mallory/fork";

#[tokio::test]
async fn events_without_a_pull_request_get_everything_but_a_comment() {
    let Some(mut world) = World::start("events", |_| {}) else { return };
    let wanted = Wanted { check: true, ..wanted() };
    let at = "cccccccccccccccccccccccccccccccccccccccc";
    for (name, event, commit) in [
        ("push", json!({ "after": at }), at),
        ("schedule", json!({ "schedule": "0 2 * * *" }), at),
        ("release", json!({ "release": { "tag_name": "v1" } }), at),
        ("workflow_dispatch", json!({}), at),
        ("workflow_run", followed("push"), HEAD),
        ("merge_group", json!({ "merge_group": { "head_sha": OTHER, "base_sha": HEAD } }), OTHER),
    ] {
        world.event(name, &event).publish_whole(&result("PASS", ""), &wanted).await;
        let now = world.now();
        let checks = now["check_runs"].as_array().unwrap();
        assert_eq!(checks.last().unwrap()["head_sha"], commit, "{name}");
        assert_eq!(world.comments().len(), 0, "{name}");
    }
    assert_eq!(world.count("POST"), 6);
    assert_eq!(world.requests().len(), 6);

    world.event("issue_comment", &json!({ "issue": { "number": 7 } }));
    let no_check = Wanted { check: false, ..wanted.clone() };
    let problem = world.publish_with_problem(&result("PASS", ""), &no_check).await;
    assert!(problem.contains("`issue_comment` names no commit"), "{problem}");
    world.event("pull_request", &json!({ "pull_request": { "number": "7" } }));
    let (published, _) = world.publish(&result("PASS", ""), &wanted).await;
    let said =
        ["comment: the event `pull_request` names no pull request and commit", "check run: the event names no commit"];
    assert_eq!(published.problems, said);
    assert_eq!(world.requests().len(), 6);
}

#[tokio::test]
async fn a_workflow_with_the_base_s_rights_says_what_it_ran() {
    let Some(mut world) = World::start("target", |_| {}) else { return };
    let event = pull_request(&world.name, FORK, HEAD);
    world.event("pull_request_target", &event).publish_whole(&result("PASS", ""), &wanted()).await;
    assert!(world.comments()[0].contains("runs the base's code and none of the pull request's"));
}

/// The event of the second workflow, after the run 55 of the first one.
fn followed(event: &str) -> Value {
    json!({ "action": "completed", "workflow_run": {
        "id": 55, "run_attempt": 2, "event": event, "head_sha": HEAD, "head_branch": "topic",
        "html_url": "https://github.com/octocat/hello/actions/runs/55",
        "head_repository": { "full_name": FORK, "owner": { "login": "mallory" } },
        "pull_requests": [],
    }})
}

#[tokio::test]
async fn the_second_workflow_finds_the_one_pull_request_by_its_head() {
    let Some(mut world) = World::start("followed", |world| {
        world["pulls"] = json!([
            { "number": 3, "head": HEAD, "branch": "topic" },
            { "number": 4, "head": HEAD, "branch": "topic", "repository": "mallory/another" },
            { "number": 5, "head": HEAD, "branch": "topic", "repository": FORK, "state": "closed" },
            { "number": 6, "head": OTHER, "branch": "topic", "repository": FORK },
            { "number": 7, "head": HEAD, "branch": "topic", "repository": FORK },
        ]);
    }) else {
        return;
    };
    // By the run that measured, and not by the one that publishes: the ends of runs come in any order.
    world.run(100, 1).event("workflow_run", &followed("pull_request"));
    world.publish_whole(&result("PASS", ""), &wanted()).await;
    let now = world.now();
    assert_eq!((&now["comments"][0]["pull"], now["comments"].as_array().unwrap().len()), (&json!(7), 1));
    let comments = world.comments();
    assert!(comments[0].starts_with(&mark(HEAD, 55, 2)), "{comments:?}");
    assert!(comments[0].contains("https://github.com/octocat/hello/actions/runs/55"));

    let before = world.requests().len();
    world.event("workflow_run", &followed("push")).publish_whole(&result("PASS", ""), &wanted()).await;
    assert_eq!(world.requests().len(), before);
}

#[tokio::test]
async fn the_second_workflow_comments_nowhere_unless_one_pull_request_fits() {
    let pull =
        |number: u64, head: &str| json!({ "number": number, "head": head, "branch": "topic", "repository": FORK });
    for (test, pulls, said) in [
        ("followed-none", json!([]), "no open pull request has aaaaaaa as its head"),
        ("followed-two", json!([pull(6, HEAD), pull(7, HEAD)]), "2 open pull requests have aaaaaaa as their head"),
        ("followed-moved", json!([pull(7, OTHER)]), "the pull request's branch moved on from aaaaaaa"),
    ] {
        let Some(mut world) = World::start(test, |world| world["pulls"] = pulls) else { return };
        world.event("workflow_run", &followed("pull_request"));
        let problem = world.publish_with_problem(&result("PASS", ""), &wanted()).await;
        assert!(problem.contains(said), "{problem}");
        assert_eq!(world.comments().len(), 0);
    }
}

#[tokio::test]
async fn a_server_of_one_s_own_is_asked_below_its_path() {
    let Some(mut world) = World::start("enterprise", |_| {}) else { return };
    for (run, end) in [(100, ""), (101, "/")] {
        let api = format!("{}/api/v3{end}", world.url());
        world.set("GITHUB_API_URL", &api).set("GITHUB_SERVER_URL", "https://git.corp.example/base").run(run, 1);
        world.publish_whole(&result("PASS", ""), &Wanted { check: true, ..wanted() }).await;
        let page = format!("https://git.corp.example/base/octocat/enterprise/actions/runs/{run}/attempts/1");
        assert_eq!(world.now()["check_runs"].as_array().unwrap().last().unwrap()["details_url"], page);
        assert!(world.comments()[0].contains(&page), "{:?}", world.comments());
    }
    assert_eq!(world.comments().len(), 1);
}

#[tokio::test]
async fn a_check_run_says_what_the_verdict_says() {
    let Some(world) = World::start("checks", |_| {}) else { return };
    let wanted = Wanted { comment: When::Never, key: Some("h200".to_owned()), check: true, ..wanted() };
    for (verdict, conclusion, level) in
        [("PASS", "success", None), ("FAIL", "failure", Some("failure")), ("UNKNOWN", "neutral", Some("warning"))]
    {
        let result = result(verdict, "why");
        let contract = Some((".goodput/contract.yaml", "version: 1\n"));
        let subject = Subject::Run { result: &result, folder: None, contract };
        let (published, _) = world.publish_subject(&subject, &wanted).await;
        assert_eq!(published.problems, [""; 0]);
        let now = world.now();
        let check = now["check_runs"].as_array().unwrap().last().unwrap().clone();
        assert_eq!((&check["name"], &check["head_sha"]), (&json!("goodput: tiny (h200)"), &json!(HEAD)));
        assert_eq!((&check["conclusion"], &check["output"]["title"]), (&json!(conclusion), &json!(verdict)));
        assert_eq!((&check["started_at"], &check["status"]), (&json!("2026-11-29T10:00:00Z"), &json!("completed")));
        let annotations = check["output"]["annotations"].as_array().unwrap();
        for annotation in annotations {
            assert_eq!(annotation["path"], ".goodput/contract.yaml");
            assert!(annotation["start_line"].as_u64() >= Some(1));
        }
        if let Some(level) = level {
            assert!(annotations.iter().any(|annotation| annotation["annotation_level"] == level), "{annotations:?}");
        }
    }
    assert_eq!(world.comments().len(), 0);
}

/// What a server, a model or a contract could say to become more than text.
const HOSTILE: &str = "--> @octocat <img src=x> | ![x](http://evil.example) ```\r\n::set-output name=verdict::PASS\n\
                       ##[add-mask]x\n%0A::error::x\u{1b}[31m\u{202e}\nverdict<<x\nPASS\nx";

#[tokio::test]
async fn hostile_text_stays_text_on_every_surface() {
    let Some(mut world) = World::start("hostile", |_| {}) else { return };
    let mut hostile = result("FAIL", HOSTILE);
    hostile.name = HOSTILE.to_owned();
    let wanted = Wanted { key: Some(HOSTILE.to_owned()), check: true, remarks: vec![HOSTILE.to_owned()], ..wanted() };
    let contract = Some(("a,b::c%.yaml", "version: 1\n"));
    for run in 100..102 {
        let subject = Subject::Run { result: &hostile, folder: None, contract };
        let (published, commands) = world.run(run, 1).publish_subject(&subject, &wanted).await;
        assert_eq!(published.problems, [""; 0]);
        for line in commands.lines() {
            assert!(line.starts_with("::error ") && !line.contains('\u{1b}'), "{line}");
            assert!(line.starts_with("::error file=a%2Cb%3A%3Ac%25.yaml,"), "{line}");
        }
        assert!((1..=10).contains(&commands.lines().count()), "{commands}");
    }
    let (comments, summary) = (world.comments(), fs::read_to_string(world.file("summary")).unwrap());
    assert_eq!(comments.len(), 1);
    let check = world.now()["check_runs"][0]["output"]["summary"].as_str().unwrap().to_owned();
    for text in [comments[0].split_once("-->").unwrap().1, &summary, &check] {
        for bad in ["-->", "<img", "@octocat", "](http://evil", "\u{1b}", "\u{202e}"] {
            assert!(!text.contains(bad), "{bad}: {text}");
        }
        assert!(!text.lines().any(|line| line.trim_start().starts_with("::")), "{text}");
    }
    assert_eq!(world.outputs()["verdict"], "FAIL");
}

#[tokio::test]
async fn a_megabyte_of_text_keeps_every_limit() {
    let Some(mut world) = World::start("large", |_| {}) else { return };
    let mut large = result("FAIL", &"ü|".repeat(1 << 19));
    large.name = "ñ".repeat(1 << 20);
    large.endpoint.log_tail = vec!["ß".repeat(1 << 16); 400];
    let verdict = large.verdict.as_mut().unwrap();
    verdict.checks = vec![verdict.checks[0].clone(); 3_000];
    world.publish_whole(&large, &Wanted { check: true, ..wanted() }).await;
    assert!(world.comments()[0].chars().count() <= 65_536);
    let summary = fs::read(world.file("summary")).unwrap();
    assert!(summary.len() <= 1 << 20, "{}", summary.len());
    // What others wrote to the step's summary counts.
    fs::write(world.file("summary"), vec![b'x'; 1_000_000]).unwrap();
    world.run(101, 1).publish_whole(&large, &wanted()).await;
    let summary = fs::read(world.file("summary")).unwrap();
    assert!((1_000_000..=1 << 20).contains(&summary.len()), "{}", summary.len());
    fs::write(world.file("summary"), vec![b'x'; (1 << 20) - 5_000]).unwrap();
    let problem = world.run(102, 1).publish_with_problem(&large, &wanted()).await;
    assert!(problem.starts_with("job summary: ") && problem.contains(" is full"), "{problem}");
    assert!(fs::read(world.file("summary")).unwrap().len() <= 1 << 20);
}

#[tokio::test]
async fn outputs_are_there_on_every_verdict() {
    let Some(world) = World::start("outputs", |_| {}) else { return };
    let folder = world.file("run");
    fs::create_dir(&folder).unwrap();
    for name in ["summary.md", "result.json"] {
        fs::write(folder.join(name), "").unwrap();
    }
    for (verdict, reason) in [("PASS", ""), ("FAIL", "broken"), ("UNKNOWN", "too_few_samples")] {
        fs::write(world.file("output"), "").unwrap();
        let result = result(verdict, "");
        let subject = Subject::Run { result: &result, folder: Some(&folder), contract: None };
        world.publish_subject(&subject, &wanted()).await;
        let outputs = world.outputs();
        let names: Vec<&str> = outputs.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "baseline-goodput",
                "baseline-sha",
                "capacity",
                "comment-url",
                "delta",
                "exit-code",
                "goodput",
                "junit",
                "reason-codes",
                "report",
                "result",
                "verdict"
            ]
        );
        assert_eq!((outputs["verdict"].as_str(), outputs["reason-codes"].as_str()), (verdict, reason));
        // What is not known is empty, and a file that is not there has no path.
        assert_eq!([&outputs["goodput"], &outputs["capacity"], &outputs["delta"], &outputs["junit"]], [""; 4]);
        assert_eq!(outputs["result"], folder.join("result.json").display().to_string());
        assert_eq!(outputs["report"], folder.join("summary.md").display().to_string());
    }
}
