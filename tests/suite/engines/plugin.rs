//! Credentials from a program, as managed clusters have them.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use goodput::contract::PodField;
use serde_json::Value;

use super::server::{Act, Engine, json as reply};
use super::{fixture, pods, series};
use crate::client::HANG;

/// Prints a credential `token-N`, where N counts the calls, with what is in `more` besides.
const COUNTING: &str = r#"
here=$(dirname "$0")
echo called >> "$here/calls"
calls=$(wc -l < "$here/calls")
echo "$KUBERNETES_EXEC_INFO" > "$here/info"
echo "$1 $EXTRA" > "$here/asked"
more=$(cat "$here/more" 2>/dev/null)
echo "{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"token-$calls\"$more}}"
"#;

const EXEC: &str = "exec: { apiVersion: client.authentication.k8s.io/v1, command: ./plugin, args: [get-token], \
                    env: [{ name: EXTRA, value: more }], provideClusterInfo: true, interactiveMode: IfAvailable }";

fn write_plugin(folder: &Path, script: &str) {
    let path = folder.join("plugin");
    std::fs::write(&path, format!("#!/bin/sh\n{script}")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A server, and the kubeconfig whose user is this plugin.
async fn server(
    script: &str,
    act: impl Fn(usize, &str) -> Act + Send + Sync + 'static,
) -> (Engine, std::path::PathBuf) {
    let engine = Engine::on_tls(false, act).await;
    write_plugin(engine.folder.path(), script);
    let config = engine.kubeconfig("certificate-authority: ca.pem", EXEC);
    (engine, config)
}

fn one_page(_: usize, _: &str) -> Act {
    reply(200, "", &fixture("kubernetes.page-2"))
}

/// The tokens of the requests so far.
fn tokens(engine: &Engine) -> Vec<String> {
    let token = |head: String| head.split_once("Bearer ").unwrap().1.split_once("\r\n").unwrap().0.to_owned();
    engine.requests().into_iter().map(token).collect()
}

#[tokio::test]
async fn a_credential_is_asked_for_once_while_it_lasts() {
    let (engine, config) = server(COUNTING, one_page).await;
    let mut prober = pods(&config, PodField::RestartCount, HANG);
    for _ in 0..2 {
        series(prober.read().await).unwrap();
    }
    assert_eq!(tokens(&engine), ["token-1", "token-1"]);
    let file = |name| std::fs::read_to_string(engine.folder.path().join(name)).unwrap();
    assert_eq!(file("asked"), "get-token more\n");
    let info: Value = serde_json::from_str(&file("info")).unwrap();
    assert_eq!((&info["kind"], &info["spec"]["interactive"]), (&"ExecCredential".into(), &false.into()));
    assert_eq!(info["spec"]["cluster"]["server"], engine.address);
    // One that ends at once is asked for every time, one that ends much later is not.
    let mut prober = pods(&config, PodField::RestartCount, HANG);
    std::fs::write(engine.folder.path().join("more"), r#", "expirationTimestamp": "2020-01-01T00:00:00Z""#).unwrap();
    series(prober.read().await).unwrap();
    std::fs::write(engine.folder.path().join("more"), r#", "expirationTimestamp": "2999-01-01T00:00:00Z""#).unwrap();
    for _ in 0..2 {
        series(prober.read().await).unwrap();
    }
    assert_eq!(tokens(&engine)[2..], ["token-2", "token-3", "token-3"]);
}

#[tokio::test]
async fn a_credential_that_was_withdrawn_is_asked_for_anew() {
    let (engine, config) = server(COUNTING, |number, _| match number {
        1 | 3.. => reply(401, "", &fixture("kubernetes.unauthorized")),
        _ => reply(200, "", &fixture("kubernetes.page-2")),
    })
    .await;
    let mut prober = pods(&config, PodField::RestartCount, HANG);
    assert!(series(prober.read().await).is_ok());
    assert!(series(prober.read().await).is_ok());
    assert_eq!(tokens(&engine), ["token-1", "token-1", "token-2"]);
    let failure = series(prober.read().await).unwrap_err();
    assert!(failure.contains("the credentials are not accepted"), "{failure}");
    assert_eq!(tokens(&engine).len(), 5);
}

#[tokio::test]
async fn a_plugin_without_a_credential_is_named_and_its_output_is_not() {
    for (script, expected) in [
        ("echo 'please log in' >&2; exit 3", "failed (exit status: 3); stderr ends `please log in`"),
        ("echo s3cret", "printed no ExecCredential"),
        ("head -c 1000000 /dev/zero | tr '\\0' s", "printed no ExecCredential"),
        (
            r#"echo '{"apiVersion":"v1","kind":"ExecCredential","status":{"token":"s3cret"}}'"#,
            "printed no ExecCredential",
        ),
        (
            r#"echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":["s3cret"]}}'"#,
            "printed no ExecCredential",
        ),
        (
            r#"echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{}}'"#,
            "printed no ExecCredential",
        ),
    ] {
        let (engine, config) = server(script, one_page).await;
        let failure = series(pods(&config, PodField::RestartCount, HANG).read().await).unwrap_err();
        assert!(failure.contains("the credential plugin `") && failure.contains(expected), "{failure}");
        assert!(!failure.contains("s3cret"), "{failure}");
        assert_eq!(engine.lines().len(), 0);
    }
    let (engine, config) = server("", one_page).await;
    std::fs::remove_file(engine.folder.path().join("plugin")).unwrap();
    let failure = series(pods(&config, PodField::RestartCount, HANG).read().await).unwrap_err();
    assert!(
        failure.starts_with("cannot start the credential plugin `") && failure.ends_with("; install it"),
        "{failure}"
    );
}

#[tokio::test]
async fn a_plugin_that_hangs_is_killed_with_its_children() {
    let (engine, config) =
        server("trap '' TERM; here=$(dirname \"$0\"); sleep 1000 & echo $! > \"$here/child\"; wait", one_page).await;
    let mut prober = pods(&config, PodField::RestartCount, Duration::from_secs(3));
    let reading = tokio::time::timeout(HANG, prober.read()).await.unwrap();
    assert_eq!(series(reading), Err("took longer than 3s and was given up".to_owned()));
    let child = std::fs::read_to_string(engine.folder.path().join("child")).unwrap();
    let state = format!("/proc/{}/stat", child.trim());
    let gone = async {
        while std::fs::read_to_string(&state).is_ok_and(|stat| !stat.contains(") Z ")) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(HANG, gone).await.unwrap();
}
