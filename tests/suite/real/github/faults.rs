//! What goes wrong on the way: nothing of it makes a second comment, and nothing stays untold.

use std::fs;

use goodput::publish::{Context, Subject, Wanted, publish};
use serde_json::{Value, json};

use super::world::{HEAD, World, mark, result, wanted};

/// A world that meets this fault.
fn faulty(test: &str, fault: Value) -> Option<World> {
    World::start(test, |world| world["faults"] = json!([fault]))
}

#[tokio::test]
async fn faults_that_pass_are_got_over_with_one_comment() {
    let list = "/issues/7/comments";
    for (test, fault) in [
        ("list-502", json!({ "method": "GET", "path": list, "status": 502 })),
        ("list-cut", json!({ "method": "GET", "path": list, "close": true })),
        ("pull-503", json!({ "method": "GET", "path": "/pulls/7", "status": 503, "times": 2 })),
        ("limit", json!({ "method": "POST", "path": list, "status": 429, "headers": { "retry-after": "1" } })),
        ("second", json!({ "method": "POST", "path": list, "status": 403, "headers": { "retry-after": "1" } })),
        ("post-500", json!({ "method": "POST", "path": list, "status": 500 })),
        ("post-cut", json!({ "method": "POST", "path": list, "close": true })),
        // The comment was made, and the answer was lost.
        ("post-made-500", json!({ "method": "POST", "path": list, "status": 502, "after": true })),
        ("post-made-cut", json!({ "method": "POST", "path": list, "close": true, "after": true })),
    ] {
        let Some(world) = faulty(test, fault) else { return };
        world.publish_whole(&result("FAIL", "said"), &wanted()).await;
        let comments = world.comments();
        assert_eq!(comments.len(), 1, "{test}: {:?}", world.requests());
        assert!(comments[0].starts_with(&mark(HEAD, 100, 1)), "{test}");
        let made = world.requests().iter().filter(|request| request.ends_with(" 201")).count();
        assert_eq!(made, 1, "{test}: {:?}", world.requests());
        let met =
            world.requests().iter().filter(|request| !request.ends_with(" 200") && !request.ends_with(" 201")).count();
        assert!(met > 0, "{test}: the fault was not met");
    }
}

#[tokio::test]
async fn an_update_is_repeated_and_a_comment_that_went_is_made_anew() {
    let there = json!([{ "pull": 7, "author": "github-actions[bot]", "body": mark(HEAD, 99, 1) }]);
    let id = |world: &World| format!("/issues/comments/{}", world.now()["comments"][0]["id"]);
    let Some(mut world) = World::start("update", |world| world["comments"] = there.clone()) else { return };
    for (run, fault) in [
        (100, json!({ "method": "PATCH", "status": 502 })),
        (101, json!({ "method": "PATCH", "close": true, "after": true })),
        (102, json!({ "method": "PATCH", "status": 404 })),
    ] {
        let mut fault = fault;
        fault["path"] = id(&world).into();
        world.fault(&fault);
        world.run(run, 1).publish_whole(&result("FAIL", ""), &wanted()).await;
        assert_eq!(world.comments().len(), 1);
        assert!(world.comments()[0].starts_with(&mark(HEAD, run, 1)));
    }
}

#[tokio::test]
async fn faults_that_stay_are_told_with_the_next_step() {
    let list = "/issues/7/comments";
    let limit = "the token may make no more requests for now; run the job again in 3600 s";
    for (test, fault, said) in [
        ("stays-502", json!({ "method": "GET", "path": list, "status": 502, "times": 9 }), "the server is at fault"),
        ("stays-500", json!({ "method": "POST", "path": list, "status": 500, "times": 9 }), "the server is at fault"),
        (
            "stays-cut",
            json!({ "method": "POST", "path": list, "close": true, "times": 9 }),
            "is this machine allowed to",
        ),
        (
            "stays-429",
            json!({ "method": "POST", "path": list, "status": 429, "headers": { "retry-after": "3600" } }),
            limit,
        ),
        (
            "stays-403",
            json!({ "method": "GET", "path": "/pulls/7", "status": 403, "headers": { "retry-after": "3600" } }),
            limit,
        ),
        (
            "reset",
            json!({ "method": "GET", "path": "/pulls/7", "status": 403,
                    "headers": { "x-ratelimit-remaining": "0", "x-ratelimit-reset": "4102444800" } }),
            "run the job again after 2100-01-01T00:00:00Z",
        ),
        (
            "too-many",
            json!({ "method": "POST", "path": list, "status": 403, "message": "Commenting is disabled on issues with more than 2500 comments" }),
            "(Commenting is disabled on issues with more than 2500 comments)",
        ),
    ] {
        let Some(world) = faulty(test, fault) else { return };
        let problem = world.publish_with_problem(&result("FAIL", ""), &wanted()).await;
        assert!(problem.starts_with("comment: http") && problem.contains(said), "{test}: {problem}");
        assert_eq!(world.comments().len(), 0);
    }
}

#[tokio::test]
async fn one_surface_that_fails_keeps_no_other_from_being_written() {
    let fault = json!({ "method": "GET", "path": "/issues/7/comments", "status": 500, "times": 9 });
    let Some(world) = faulty("alone", fault) else { return };
    let problem = world.publish_with_problem(&result("FAIL", ""), &Wanted { check: true, ..wanted() }).await;
    assert!(problem.starts_with("comment: "), "{problem}");
    assert_eq!(world.now()["check_runs"].as_array().unwrap().len(), 1);

    let fault = json!({ "method": "POST", "path": "/check-runs", "status": 500, "times": 9 });
    let Some(world) = faulty("alone-too", fault) else { return };
    let problem = world.publish_with_problem(&result("FAIL", ""), &Wanted { check: true, ..wanted() }).await;
    assert!(problem.starts_with("check run: "), "{problem}");
    // It may have been written: it is not written twice.
    assert_eq!(
        (world.comments().len(), world.requests().iter().filter(|line| line.contains("check-runs")).count()),
        (1, 1)
    );
}

#[tokio::test]
async fn a_token_that_is_missing_or_expired_is_told() {
    let Some(mut world) = World::start("expired", |world| world["tokens"] = json!({})) else { return };
    let problem = world.publish_with_problem(&result("PASS", ""), &wanted()).await;
    assert!(problem.contains("answered 401 Unauthorized (Bad credentials); the token is wrong, expired"), "{problem}");
    world.set("GITHUB_TOKEN", " ");
    let problem = world.publish_with_problem(&result("PASS", ""), &wanted()).await;
    assert!(
        problem.contains("there is no token: give this step `env: { GITHUB_TOKEN: ${{ github.token }} }`"),
        "{problem}"
    );
    assert!(problem.ends_with("and its job `permissions: { pull-requests: write }`"), "{problem}");
}

#[tokio::test]
async fn without_a_network_everything_else_is_written() {
    let Some(mut world) = World::start("offline", |_| {}) else { return };
    let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    world.set("GITHUB_API_URL", &format!("http://{gone}"));
    let problem = world.publish_with_problem(&result("PASS", "sure"), &wanted()).await;
    assert!(
        problem.contains("cannot be asked for the pull request 7: ") && problem.contains("Connection refused"),
        "{problem}"
    );
    let summary = fs::read_to_string(world.file("summary")).unwrap();
    assert!(summary.contains("sure") && summary.contains("Connection refused"), "{summary}");
    assert_eq!(world.outputs()["verdict"], "PASS");
}

#[tokio::test]
async fn files_that_cannot_be_written_are_told() {
    let Some(mut world) = World::start("files", |_| {}) else { return };
    world.set("GITHUB_OUTPUT", "/nowhere/output").set("GITHUB_STEP_SUMMARY", "/nowhere/summary");
    let (published, _) = world.publish(&result("PASS", ""), &wanted()).await;
    assert!(published.problems.iter().any(|line| line.starts_with("outputs: /nowhere/output cannot be written: ")));
    assert!(
        published.problems.iter().any(|line| line.starts_with("job summary: /nowhere/summary cannot be written: "))
    );
    assert_eq!(world.comments().len(), 1);

    world.set("GITHUB_EVENT_NAME", "");
    let (published, _) = world.publish(&result("PASS", ""), &wanted()).await;
    assert!(published.problems[0].starts_with("GITHUB_EVENT_NAME is not set"), "{published:?}");

    // Outside of a workflow nothing is written, and that is told.
    world.set("GITHUB_ACTIONS", "");
    let (published, commands) = world.publish(&result("PASS", ""), &wanted()).await;
    assert!(published.problems[0].contains("this is no workflow of GitHub Actions"), "{published:?}");
    assert_eq!((published.problems.len(), commands.as_str(), world.count("PATCH")), (1, "", 0));
}

#[tokio::test]
async fn a_repository_that_was_renamed_is_followed() {
    let Some(new) = World::start("renamed-new", |_| {}) else { return };
    let old = new.also("renamed-old", &json!({ "moved_to": new.name }));
    let context = Context::from_environment(&|name| match name {
        "GITHUB_REPOSITORY" => Some(old.clone()),
        name => new.variable(name),
    });
    let result = result("PASS", "");
    let subject = Subject::Run { result: &result, folder: None, contract: None };
    let published = publish(&subject, &wanted(), &context, &mut Vec::new()).await;
    assert_eq!(published.problems, [""; 0]);
    assert_eq!(new.comments().len(), 1);
    new.assert_as_described();
}
