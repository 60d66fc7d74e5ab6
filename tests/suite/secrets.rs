//! Secrets stay out of every file and every line, also when the server hands them back.

use crate::scene::{Contract, Ran, Scene};
use crate::scripted::{Answer, Scripted, reply, streamed};

/// Has every character in it that some encoder escapes.
const SECRET: &str = r#"sk-Ab/Cd+9"q\z_XYZ01/23456789"#;

/// Parts of it that no encoder touches.
const PARTS: [&str; 2] = ["sk-Ab", "_XYZ01"];

fn endpoint(url: &str) -> String {
    format!("url: {url}\n  headers: {{ Authorization: {{ env: SERVING_TOKEN, prefix: \"Bearer \" }} }}")
}

/// Runs `goodput` with the secret in its environment.
fn run<'a>(scene: &'a Scene, arguments: &[&str]) -> Ran<'a> {
    let mut command = scene.goodput(arguments);
    command.env("SERVING_TOKEN", SECRET);
    scene.run(command)
}

/// Nothing that was written or said holds a good part of the secret.
#[track_caller]
fn assert_hidden(scene: &Scene, ran: &Ran<'_>) {
    let mut places = vec![("standard output".to_owned(), ran.stdout.clone())];
    places.push(("standard error".to_owned(), ran.stderr.clone()));
    if scene.path("runs").exists() {
        places.extend(scene.files().into_iter().map(|(path, content)| (path.display().to_string(), content)));
    }
    for (place, content) in places {
        let at = PARTS.iter().find_map(|part| content.find(part));
        assert_eq!(at, None, "{place}: {}", &content[at.unwrap_or(0)..].chars().take(80).collect::<String>());
    }
}

/// A server that takes the secret out of its request and hands it back in the way that the number of the request says.
fn echo(ways: &'static [fn(&str) -> String]) -> Scripted {
    Scripted::start(move |number, request| {
        let token = request.split("Bearer ").nth(1).and_then(|rest| rest.lines().next()).unwrap_or_default();
        assert_eq!(token, SECRET, "the server does get it");
        Answer::Bytes(ways[number % ways.len()](token))
    })
}

#[test]
fn what_the_server_echoes_is_masked_everywhere() {
    let server = echo(&[
        |token| streamed(&format!("your token is {token}"), "stop"),
        |token| {
            reply(
                "401 Unauthorized",
                "application/json",
                &format!("{{\"error\":{{\"message\":\"bad token {token:?}\"}}}}"),
            )
        },
        |token| reply("500 Oops", "text/plain", &format!("bad token {token}")),
        // Longer than an error text is kept: the cut goes through the secret.
        |token| reply("500 Oops", "text/plain", &format!("{}{token}", "x".repeat(190))),
        |token| reply("500 Oops", "text/plain", &format!("{}{token}", "x".repeat(980))),
        |token| reply("200 OK", "text/html", &format!("<html>{}{token}", "x".repeat(180))),
        |token| reply("200 OK", "text/event-stream", &format!("data: {{\"error\": {token:?}}}\n\n")),
        |token| reply("200 OK", "text/event-stream", &format!("data: {token}\n\n")),
        |token| streamed("hi", token),
    ]);
    let mut contract = Contract::of(endpoint(&server.url()));
    contract.loads = "40/s";
    let scene = Scene::with(&contract, "");
    let ran = run(&scene, &["gate", "--runs", "runs", "contract.yaml"]);
    let result = ran.result();
    let requests = result.requests();
    assert!(requests.iter().any(|line| line["error"].as_str().is_some_and(|error| error.contains("***"))));
    let samples = crate::scene::read(&result.folder.join("samples.jsonl"));
    assert!(samples.contains("your token is ***"), "{samples}");
    assert_hidden(&scene, &ran);
}

#[test]
fn what_the_server_echoes_in_escapes_is_masked_everywhere() {
    const PHP: &str = r#"sk-Ab\/Cd+9\"q\\z_XYZ01\/23456789"#;
    const DOT_NET: &str = r"sk-Ab/Cd\u002B9\u0022q\\z_XYZ01/23456789";
    const URL: &str = "sk-Ab%2fCd%2B9%22q%5Cz_XYZ01%2F23456789";
    const HTML: &str = r"sk-Ab/Cd&#43;9&quot;q\z_XYZ01/23456789";
    let server = echo(&[
        |_| streamed(&format!("your token is {HTML}, or {URL}"), "stop"),
        |_| {
            reply(
                "401 Unauthorized",
                "application/json",
                &format!(r#"{{"error":{{"message":"bad token {DOT_NET}"}}}}"#),
            )
        },
        |_| reply("403 Forbidden", "application/json", &format!(r#"{{"fault":["bad token {DOT_NET}"]}}"#)),
        |_| reply("403 Forbidden", "application/json", &format!(r#"{{"fault":["bad token {PHP}""#)),
        |_| reply("500 Oops", "text/plain", &format!("bad token {URL}")),
        |_| reply("500 Oops", "text/plain", &format!("{}{URL}", "x".repeat(190))),
        |_| reply("200 OK", "text/html", &format!("<p>bad token {HTML}")),
        |_| reply("200 OK", "text/event-stream", &format!("data: {{\"error\": \"{PHP}\"}}\n\n")),
    ]);
    let mut contract = Contract::of(endpoint(&server.url()));
    contract.loads = "40/s";
    let scene = Scene::with(&contract, "");
    let ran = run(&scene, &["gate", "--runs", "runs", "contract.yaml"]);
    let result = ran.result();
    for status in [401, 403, 500, 200] {
        let masked = |line: &serde_json::Value| {
            line["status"] == status && line["error"].as_str().is_some_and(|error| error.contains("***"))
        };
        assert!(result.requests().iter().any(masked), "{status}");
    }
    let samples = crate::scene::read(&result.folder.join("samples.jsonl"));
    assert!(samples.contains("your token is ***, or ***"), "{samples}");
    assert_hidden(&scene, &ran);

    let server = echo(&[|_| streamed(&format!("your token is {HTML}, or {URL}"), "stop")]);
    contract.endpoint = endpoint(&server.url());
    let scene = Scene::with(&contract, "");
    let ran = run(&scene, &["smoke", "--output", "smoke.json", "contract.yaml"]);
    assert!(ran.stdout.contains("your token is ***, or ***"), "{}", ran.stdout);
    assert_hidden(&scene, &ran);
    let written = crate::scene::read(&scene.path("smoke.json"));
    assert!(PARTS.iter().all(|part| !written.contains(part)), "{written}");
}

#[test]
fn a_dry_run_masks_what_it_shows() {
    let server = echo(&[|token| streamed(&format!("your token is {token}"), token)]);
    let scene = Scene::with(&Contract::of(endpoint(&server.url())), "");
    for format in ["table", "json"] {
        let ran = run(&scene, &["smoke", "--output-format", format, "--output", "smoke.json", "contract.yaml"]);
        assert!(ran.stdout.contains("Bearer ***"), "{}", ran.stdout);
        assert!(ran.stdout.contains("your token is ***"), "{}", ran.stdout);
        assert_hidden(&scene, &ran);
        let written = crate::scene::read(&scene.path("smoke.json"));
        assert!(PARTS.iter().all(|part| !written.contains(part)), "{written}");
    }
    let url = server.url();
    let flags =
        ["smoke", "--url", &url, "--protocol", "openai-chat", "--header", "Authorization=env:SERVING_TOKEN:Bearer "];
    let ran = run(&scene, &flags);
    assert!(ran.stdout.contains("your token is ***"), "{}", ran.stdout);
    assert_hidden(&scene, &ran);
}

#[test]
fn an_endpoint_that_refuses_with_the_secret_is_quoted_without_it() {
    let server = echo(&[|token| reply("401 Unauthorized", "text/plain", &format!("no such token {token}"))]);
    let scene = Scene::with(&Contract::of(endpoint(&server.url())), "");
    let ran = run(&scene, &["gate", "--runs", "runs", "contract.yaml"]);
    assert_hidden(&scene, &ran);
    ran.exits(3).shows(&["http_error 401", "no such token ***"]);
}

#[test]
fn what_launched_processes_and_probes_print_is_masked() {
    let mut contract = Contract::of(
        endpoint("http://127.0.0.1:9/v1")
            + "\n  launch: { command: [sh, -c, \"echo \\\"token $SERVING_TOKEN\\\"; exit 3\"] }",
    );
    contract.more =
        "stability: [{ name: talks, counter: { command: [sh, -c, \"echo no $SERVING_TOKEN; echo $SERVING_TOKEN >&2; exit 1\"] } }]"
            .to_owned();
    let scene = Scene::with(&contract, "");
    let ran = run(&scene, &["gate", "--runs", "runs", "contract.yaml"]);
    assert_hidden(&scene, &ran);
    let ran = ran.exits(1).shows(&["token ***"]);
    let folder = ran.result().folder;
    assert_eq!(crate::scene::read(&folder.join("endpoint.log")), "token ***\n");
    let ran = run(&scene, &["smoke", "contract.yaml"]);
    assert_hidden(&scene, &ran);

    let server = echo(&[|_| streamed("hi", "stop")]);
    contract.endpoint = endpoint(&server.url());
    let scene = Scene::with(&contract, "");
    let ran = run(&scene, &["gate", "--runs", "runs", "contract.yaml"]);
    assert_eq!(ran.result().row("talks"), ("UNKNOWN", "probe_failed"));
    assert!(crate::scene::read(&ran.result().folder.join("probes.jsonl")).contains("***"));
    assert_hidden(&scene, &ran);
    let ran = run(&scene, &["smoke", "contract.yaml"]);
    assert_hidden(&scene, &ran);
}

/// A server and a probe are code of the change under test; what is the job's own is not theirs.
#[test]
fn what_a_ci_job_gives_its_own_steps_reaches_nobody_who_is_started() {
    let launched =
        "url: http://127.0.0.1:1/v1/chat/completions\n  launch: { command: [sh, -c, \"env > env; exit 3\"] }";
    let probed = "stability: [{ name: talks, counter: { command: [sh, -c, \"env > env; echo 0\"] } }]";
    for contract in [
        Contract::of(launched),
        Contract { loads: "60/s", more: probed.to_owned(), ..Contract::of(crate::scene::SIMULATED) },
    ] {
        let scene = Scene::with(&contract, "");
        let mut command = scene.goodput(&["gate", "--runs", "runs", "contract.yaml"]);
        for name in ["GITHUB_TOKEN", "GH_TOKEN", "ACTIONS_RUNTIME_TOKEN", "GITHUB_OUTPUT", "GITHUB_ENV", "CI_JOB_TOKEN"]
        {
            command.env(name, "of-the-job");
        }
        command.env("HF_TOKEN", "of-the-user");
        scene.run(command);
        let seen = crate::scene::read(&scene.path("env"));
        assert!(seen.contains("HF_TOKEN=of-the-user") && !seen.contains("of-the-job"), "{seen}");
    }
}
