//! The comment on a pull request: one, found by its mark and its author, and never set back.

use goodput::publish::{Subject, Wanted, When};
use serde_json::{Value, json};

use super::world::{BOT, HEAD, OTHER, World, mark, pull_request, result, wanted};

const LIST: &str = "GET /issues/7/comments?per_page=100&page=1 200";

fn comment(author: &str, body: &str) -> Value {
    json!({ "pull": 7, "author": author, "body": body })
}

#[tokio::test]
async fn a_comment_is_made_once_and_brought_up_to_date_in_its_place() {
    let Some(mut world) = World::start("create", |_| {}) else { return };
    let published = world.publish_whole(&result("FAIL", "first"), &wanted()).await;
    let comments = world.comments();
    assert!(comments[0].starts_with(&mark(HEAD, 100, 1)) && comments[0].contains("first"), "{comments:?}");
    assert_eq!(comments.len(), 1);
    let url = published.comment_url.unwrap();
    assert!(url.starts_with("https://github.com/octocat/create/pull/7#issuecomment-"), "{url}");
    assert_eq!(world.outputs()["comment-url"], url);
    assert_eq!(world.requests(), ["GET /pulls/7 200", LIST, "POST /issues/7/comments 201", LIST]);

    // The same run once more has nothing new to say.
    let published = world.publish_whole(&result("FAIL", "first"), &wanted()).await;
    assert_eq!(published.comment_url.as_deref(), Some(url.as_str()));
    assert_eq!((world.count("POST"), world.count("PATCH")), (1, 0));

    for (run, attempt, note) in [(100, 2, "again"), (101, 1, "anew")] {
        world.run(run, attempt);
        let published = world.publish_whole(&result("PASS", note), &wanted()).await;
        assert_eq!(published.comment_url.as_deref(), Some(url.as_str()));
        let comments = world.comments();
        assert!(comments[0].starts_with(&mark(HEAD, run, attempt)) && comments[0].contains(note), "{comments:?}");
        assert_eq!(comments.len(), 1);
    }
    assert_eq!((world.count("POST"), world.count("PATCH"), world.count("DELETE")), (1, 2, 0));
}

#[tokio::test]
async fn contracts_and_keys_have_comments_of_their_own() {
    let Some(world) = World::start("keys", |_| {}) else { return };
    let mut other = result("PASS", "");
    other.name = "huge".to_owned();
    for _ in 0..2 {
        world.publish_whole(&result("PASS", ""), &wanted()).await;
        world.publish_whole(&result("PASS", ""), &Wanted { key: Some("h200".to_owned()), ..wanted() }).await;
        world.publish_whole(&other, &wanted()).await;
    }
    assert_eq!(world.comments().len(), 3);
}

#[tokio::test]
async fn the_comment_is_found_however_many_others_there_are() {
    let Some(world) = World::start("many", |world| {
        let mut comments: Vec<Value> = (0..250).map(|number| comment("octocat", &format!("+{number}"))).collect();
        comments[204] = comment(BOT, &mark(OTHER, 99, 1));
        world["comments"] = comments.into();
    }) else {
        return;
    };
    world.publish_whole(&result("PASS", "now"), &wanted()).await;
    let comments = world.comments();
    assert!(comments[204].starts_with(&mark(HEAD, 100, 1)) && comments[204].contains("now"));
    assert_eq!((comments.len(), world.count("POST")), (250, 0));
    assert_eq!(world.requests()[1..4].join(" ").matches("page=1 200").count(), 1);
    assert!(world.requests()[3].contains("per_page=100&page=3"), "{:?}", world.requests());
}

#[tokio::test]
async fn a_mark_that_others_planted_is_left_alone() {
    let planted = [
        comment("mallory", &mark(HEAD, u64::MAX, 1)),
        comment("github-actions", &mark(HEAD, 1, 1)),
        comment("mallory[bot]", &mark(HEAD, 1, 1)),
        // Our own words, but not at their start: a quotation.
        comment(BOT, &format!("> {}", mark(HEAD, 1, 1))),
        comment(BOT, &mark(HEAD, 1, 1).replace("144e258f5b42", "144e258f5b43")),
    ];
    let Some(world) = World::start("planted", |world| world["comments"] = planted.to_vec().into()) else { return };
    world.publish_whole(&result("PASS", ""), &wanted()).await;
    let comments = world.comments();
    assert_eq!(comments.len(), 6);
    for (comment, planted) in comments.iter().zip(&planted) {
        assert_eq!(Value::from(comment.as_str()), planted["body"]);
    }
    assert!(comments[5].starts_with(&mark(HEAD, 100, 1)));
    assert_eq!((world.count("PATCH"), world.count("DELETE")), (0, 0));
}

/// Who hid it as outdated wants to see no more of it: it has done its service.
#[tokio::test]
async fn a_comment_that_was_hidden_is_left_alone() {
    let mut hidden = comment(BOT, &mark(HEAD, 99, 1));
    hidden["minimized"] = json!({ "reason": "outdated" });
    let Some(world) = World::start("hidden", |world| world["comments"] = json!([hidden])) else { return };
    world.publish_whole(&result("PASS", ""), &wanted()).await;
    let comments = world.comments();
    assert_eq!((comments.len(), &comments[0]), (2, &mark(HEAD, 99, 1)));
}

#[tokio::test]
async fn an_older_run_does_not_overwrite_a_newer_one() {
    for (test, run, attempt) in [("newer-run", 101, 1), ("newer-attempt", 100, 2)] {
        let there = format!("{}\nthe newer words", mark(OTHER, run, attempt));
        let Some(world) = World::start(test, |world| world["comments"] = json!([comment(BOT, &there)])) else { return };
        let published = world.publish_whole(&result("PASS", ""), &wanted()).await;
        let told = format!("it tells of run {run}, attempt {attempt}, which is newer");
        assert!(published.written.iter().any(|line| line.contains(&told)), "{published:?}");
        assert_eq!(world.comments(), [there]);
        assert!(world.outputs()["comment-url"].starts_with("https://github.com/"));
        assert_eq!(world.count("PATCH"), 0);
    }
}

#[tokio::test]
async fn a_head_that_moved_is_told_in_the_comment() {
    let Some(world) = World::start("stale", |world| world["pulls"][0]["head"] = OTHER.into()) else { return };
    world.publish_whole(&result("PASS", ""), &wanted()).await;
    let comments = world.comments();
    assert!(comments[0].starts_with(&mark(HEAD, 100, 1)));
    assert!(comments[0].contains(
        "stale: this is about commit <code>aaaaaaa</code>; the pull request's head is now <code>bbbbbbb</code>"
    ));
}

#[tokio::test]
async fn figures_of_another_commit_are_told() {
    let Some(world) = World::start("served", |_| {}) else { return };
    let mut other = result("PASS", "");
    other.origin.commit = Some(OTHER.to_owned());
    world.publish_whole(&other, &wanted()).await;
    assert!(
        world.comments()[0].contains(
            "what was measured was served from commit <code>bbbbbbb</code>, and not from <code>aaaaaaa</code>"
        )
    );
    other.origin.commit = Some(HEAD.to_owned());
    world.publish_whole(&other, &wanted()).await;
    assert!(!world.comments()[0].contains("was served from"));
}

/// GitHub cannot create "unless there is one": both find nothing, and both create.
#[tokio::test]
async fn two_at_once_make_one_comment_with_the_words_of_the_newer_run() {
    for round in 0..4 {
        let together = json!({ "method": "POST", "path": "/issues/7/comments", "times": 2, "together": 2 });
        let Some(mut world) = World::start(&format!("at-once-{round}"), |world| world["faults"] = json!([together]))
        else {
            return;
        };
        let (older, newer) = (world.context(), world.run(101, 1).context());
        let (first, second) = (result("FAIL", "older"), result("FAIL", "newer"));
        let subjects = [&first, &second].map(|result| Subject::Run { result, folder: None, contract: None });
        let (mut left, mut right, wanted) = (Vec::new(), Vec::new(), wanted());
        tokio::join!(
            goodput::publish::publish(&subjects[0], &wanted, &older, &mut left),
            goodput::publish::publish(&subjects[1], &wanted, &newer, &mut right),
        );
        let comments = world.comments();
        assert_eq!(comments.len(), 1, "{comments:?}");
        assert!(comments[0].starts_with(&mark(HEAD, 101, 1)) && comments[0].contains("newer"), "{comments:?}");
        assert_eq!(world.count("POST"), 2, "both were to create: {:?}", world.requests());
        world.assert_as_described();
    }
}

/// A server that lets a run wait gives a newer one the time to come first.
#[tokio::test]
async fn a_run_that_had_to_wait_looks_again_before_it_writes() {
    let Some(mut world) = World::start("waits", |world| {
        world["comments"] = json!([comment(BOT, &mark(OTHER, 60, 1))]);
    }) else {
        return;
    };
    let path = format!("/issues/comments/{}", world.now()["comments"][0]["id"]);
    world.fault(&json!({ "method": "PATCH", "path": path, "status": 429, "headers": { "retry-after": "3" } }));
    let older = world.run(84, 1).context();
    let newer = world.run(86, 1).context();
    let (first, second) = (result("PASS", "older"), result("FAIL", "newer"));
    let subjects = [&first, &second].map(|result| Subject::Run { result, folder: None, contract: None });
    let (mut left, mut right, wanted) = (Vec::new(), Vec::new(), wanted());
    let later = async {
        while world.count("PATCH") == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        goodput::publish::publish(&subjects[1], &wanted, &newer, &mut right).await
    };
    let (published, _) = tokio::join!(goodput::publish::publish(&subjects[0], &wanted, &older, &mut left), later);
    let comments = world.comments();
    assert_eq!(comments.len(), 1, "{comments:?}");
    assert!(comments[0].starts_with(&mark(HEAD, 86, 1)) && comments[0].contains("newer"), "{comments:?}");
    assert!(published.written.iter().any(|line| line.contains("tells of run 86")), "{published:?}");
    world.assert_as_described();
}

#[tokio::test]
async fn duplicates_are_healed_to_the_first() {
    let Some(world) = World::start("duplicates", |world| {
        world["comments"] = json!([
            comment("octocat", "hello"),
            comment(BOT, &format!("{}\none", mark(OTHER, 98, 1))),
            comment(BOT, &format!("{}\ntwo", mark(OTHER, 99, 1))),
            comment(BOT, &format!("{}\nthree", mark(OTHER, 97, 1))),
        ]);
    }) else {
        return;
    };
    let first = world.now()["comments"][1]["id"].clone();
    world.publish_whole(&result("PASS", "now"), &wanted()).await;
    let now = world.now();
    assert_eq!((now["comments"].as_array().unwrap().len(), &now["comments"][1]["id"]), (2, &first));
    assert!(world.comments()[1].starts_with(&mark(HEAD, 100, 1)));
    assert_eq!(world.comments()[0], "hello");

    // A newer run's words are kept, in the place of the first.
    let newer = format!("{}\nnewer", mark(OTHER, 200, 1));
    let Some(world) = World::start("duplicates-newer", |world| {
        world["comments"] = json!([comment(BOT, &mark(OTHER, 98, 1)), comment(BOT, &newer)]);
    }) else {
        return;
    };
    world.publish_whole(&result("PASS", ""), &wanted()).await;
    assert_eq!(world.comments(), [newer]);
}

/// A token of a user can ask who it is; that of an app cannot, and learns its name by what it wrote.
#[tokio::test]
async fn other_authors_than_the_workflow_find_their_comment_too() {
    for (test, login, may_ask) in [("user", "octobot", true), ("app", "my-app[bot]", false)] {
        let Some(mut world) = World::start(test, |world| {
            let token = format!("ghs_{test}");
            world["tokens"][token] = json!({ "login": login, "user": may_ask, "comment": true });
        }) else {
            return;
        };
        for run in 100..103 {
            world.run(run, 1).publish_whole(&result("PASS", ""), &wanted()).await;
            let now = world.now();
            assert_eq!(now["comments"].as_array().unwrap().len(), 1);
            assert_eq!(now["comments"][0]["author"], login);
            assert!(world.comments()[0].starts_with(&mark(HEAD, run, 1)));
        }
        assert_eq!(world.count("POST"), if may_ask { 1 } else { 3 });
    }
}

#[tokio::test]
async fn what_passes_may_go_without_a_new_comment() {
    let Some(mut world) = World::start("not-pass", |_| {}) else { return };
    let not_pass = Wanted { comment: When::NotPass, ..wanted() };
    let published = world.publish_whole(&result("PASS", ""), &not_pass).await;
    assert_eq!((published.comment_url, world.comments().len()), (None, 0));
    assert_eq!(world.outputs()["comment-url"], "");
    world.run(101, 1).publish_whole(&result("UNKNOWN", ""), &not_pass).await;
    assert!(world.comments()[0].starts_with(&mark(HEAD, 101, 1)));
    // A comment that is there must not go on saying what is no longer so.
    world.run(102, 1).publish_whole(&result("PASS", ""), &not_pass).await;
    assert!(world.comments()[0].starts_with(&mark(HEAD, 102, 1)));

    let before = world.requests().len();
    world.run(103, 1).publish_whole(&result("FAIL", ""), &Wanted { comment: When::Never, ..wanted() }).await;
    assert_eq!(world.requests().len(), before);
}

#[tokio::test]
async fn a_tool_that_failed_says_so_in_the_same_comment() {
    let Some(mut world) = World::start("failure", |_| {}) else { return };
    world.publish_whole(&result("PASS", "all is well"), &wanted()).await;
    let subject = Subject::Failure { contract: "tiny", message: "the disk is full", faults: ("", &[]) };
    let wanted = Wanted { comment: When::NotPass, check: true, exit_code: 70, ..wanted() };
    let (published, commands) = world.run(101, 1).publish_subject(&subject, &wanted).await;
    assert_eq!(published.problems, [""; 0]);
    let comments = world.comments();
    assert!(comments[0].starts_with(&mark(HEAD, 101, 1)) && comments[0].contains("the disk is full"), "{comments:?}");
    assert!(comments.len() == 1 && !comments[0].contains("all is well"));
    assert_eq!(commands, "::error title=goodput%3A no verdict on tiny::the disk is full\n");
    let outputs = world.outputs();
    let values = ["verdict", "exit-code", "goodput", "reason-codes", "report"].map(|name| outputs[name].as_str());
    assert_eq!(values, ["ERROR", "70", "", "", ""]);
    assert_eq!(world.now()["check_runs"][0]["conclusion"], "failure");
}

#[tokio::test]
async fn forks_and_locked_conversations_name_what_is_missing() {
    let fork = "mallory/fork";
    let Some(mut world) = World::start("fork", |world| {
        world["tokens"]["ghs_fork"] = json!({ "login": BOT });
        world["pulls"][0]["repository"] = fork.into();
    }) else {
        return;
    };
    let event = pull_request(&world.name, fork, HEAD);
    world.event("pull_request", &event);
    let problem = world.publish_with_problem(&result("FAIL", ""), &wanted()).await;
    assert!(problem.contains("answered 403 Forbidden (Resource not accessible by integration)"), "{problem}");
    assert!(
        problem.contains("`permissions: { pull-requests: write }`; a second workflow, on `workflow_run`"),
        "{problem}"
    );
    assert_eq!(world.outputs()["verdict"], "FAIL");

    // In the repository itself it is the workflow that can be changed.
    world.pull_request(HEAD);
    let problem = world.publish_with_problem(&result("FAIL", ""), &wanted()).await;
    assert!(problem.ends_with("give the job `permissions: { pull-requests: write }`"), "{problem}");
    let check = Wanted { comment: When::Never, check: true, ..wanted() };
    let problem = world.publish_with_problem(&result("FAIL", ""), &check).await;
    assert!(problem.starts_with("check run: ") && problem.ends_with("give the job `permissions: { checks: write }`"));

    let Some(world) = World::start("locked", |world| world["pulls"][0]["locked"] = true.into()) else { return };
    let problem = world.publish_with_problem(&result("FAIL", ""), &wanted()).await;
    assert!(problem.contains("the conversation of pull request 7 is locked"), "{problem}");

    let Some(world) = World::start("closed", |world| world["pulls"][0]["state"] = "closed".into()) else { return };
    let published = world.publish_whole(&result("FAIL", ""), &wanted()).await;
    assert!(published.written.iter().any(|line| line.contains("pull request 7, which is closed")), "{published:?}");
}
