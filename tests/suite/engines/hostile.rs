//! Servers that are not there, say nothing, say too much or say something else.

use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use goodput::contract::{ContainerField, PodField, Source};
use goodput::probe::Prober;
use tokio::net::{TcpListener, UnixListener};

use super::server::{Act, Engine, json as reply, ping};
use super::{container, docker, fixture, podman, pods, prober, series};
use crate::client::HANG;

/// The failure of one reading.
async fn failure(mut prober: Prober) -> String {
    let reading = tokio::time::timeout(HANG * 2, prober.read()).await.unwrap();
    series(reading).unwrap_err()
}

fn restarts_of_docker(host: &str) -> Prober {
    docker(host, ContainerField::RestartCount)
}

async fn closed_port() -> String {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().to_string()
}

#[tokio::test]
async fn nobody_there() {
    let folder = tempfile::tempdir().unwrap();
    let socket = format!("unix://{}/none.sock", folder.path().display());
    assert_eq!(
        failure(restarts_of_docker(&socket)).await,
        format!(
            "no reply from Docker at {socket}: No such file or directory (os error 2); is Docker running? name another address \
             with `host` or $DOCKER_HOST"
        )
    );
    let told = failure(podman(&socket, ContainerField::RestartCount)).await;
    assert!(told.contains("start it with `systemctl --user start podman.socket`"), "{told}");
    // A socket that its server left behind.
    let left = folder.path().join("left.sock");
    drop(UnixListener::bind(&left).unwrap());
    let told = failure(restarts_of_docker(&format!("unix://{}", left.display()))).await;
    assert!(told.contains("Connection refused (os error 111); is Docker running?"), "{told}");
    let port = closed_port().await;
    let told = failure(restarts_of_docker(&format!("tcp://{port}"))).await;
    assert!(told.starts_with(&format!("no reply from Docker at tcp://{port}: Connection refused")), "{told}");
    let config = folder.path().join("kubeconfig");
    std::fs::write(&config, kubeconfig_for(&format!("https://{port}"))).unwrap();
    let told = failure(pods(&config, PodField::RestartCount, HANG)).await;
    assert_eq!(told, format!("no reply from Kubernetes at https://{port}: Connection refused (os error 111)"));
}

fn kubeconfig_for(server: &str) -> String {
    format!(
        "current-context: c
clusters: [{{ name: c, cluster: {{ server: '{server}' }} }}]
contexts: [{{ name: c, context: {{ cluster: c, user: u }} }}]
users: [{{ name: u, user: {{ token: abc }} }}]
"
    )
}

/// Root may use every socket, so that this runs once more, as nobody.
#[test]
#[expect(clippy::print_stderr, reason = "a test that is left out says so")]
fn a_socket_that_is_not_for_this_user() {
    const SOCKET: &str = "GOODPUT_TEST_SOCKET_OF_ANOTHER_USER";
    if let Ok(socket) = std::env::var(SOCKET) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let told = runtime.block_on(failure(restarts_of_docker(&format!("unix://{socket}"))));
        assert!(told.ends_with("Permission denied (os error 13); add this user to the group `docker`"), "{told}");
        return;
    }
    if !rustix::process::geteuid().is_root() {
        return eprintln!("left out: only root can take the place of another user");
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let socket = folder.path().join("docker.sock");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o660)).unwrap();
    // The program of the tests may lie where nobody may look: it runs from a copy.
    let program = folder.path().join("tests");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    chown(&program, Some(65534), Some(65534)).unwrap();
    let name = "engines::hostile::a_socket_that_is_not_for_this_user";
    let mut again = Command::new(&program);
    again.args(["--exact", name, "--nocapture"]).env(SOCKET, &socket).current_dir("/").uid(65534).gid(65534);
    let output = again.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test]
async fn a_server_that_says_nothing_is_left_in_time_and_nothing_stays_open() {
    const LIMIT: Duration = Duration::from_millis(400);
    let given_up = "took longer than 400ms and was given up";
    let engine = Engine::on_socket(|_, _| Act::Hang).await;
    for source in [Source::Docker, Source::Podman] {
        let asked = source(container(&engine.address, "vllm", ContainerField::RestartCount));
        assert_eq!(failure(prober(asked, LIMIT)).await, given_up);
    }
    engine.client_is_gone().await;
    let engine = Engine::on_tls(false, |_, _| Act::Hang).await;
    let config = engine.kubeconfig("certificate-authority: ca.pem", "token: abc");
    assert_eq!(failure(pods(&config, PodField::RestartCount, LIMIT)).await, given_up);
    engine.client_is_gone().await;
    // One that takes the connection and does not even speak TLS.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("kubeconfig");
    std::fs::write(&config, kubeconfig_for(&format!("https://{}", silent.local_addr().unwrap()))).unwrap();
    assert_eq!(failure(pods(&config, PodField::RestartCount, LIMIT)).await, given_up);
}

#[tokio::test]
async fn a_flood_is_cut_off() {
    let engine = Engine::on_socket(|_, _| Act::Flood).await;
    let told = failure(restarts_of_docker(&engine.address)).await;
    assert!(told.ends_with("the reply is larger than 65536 bytes"), "{told}");
    engine.client_is_gone().await;
    let engine = Engine::on_socket(|_, head| if head.contains("/_ping") { ping() } else { Act::Flood }).await;
    let told = failure(podman(&engine.address, ContainerField::RestartCount)).await;
    assert!(told.ends_with("the reply is larger than 4194304 bytes"), "{told}");
    let engine = Engine::on_tls(false, |_, _| Act::Flood).await;
    let config = engine.kubeconfig("certificate-authority: ca.pem", "token: abc");
    let told = failure(pods(&config, PodField::RestartCount, HANG)).await;
    assert!(told.ends_with("the reply is larger than 16777216 bytes"), "{told}");
    engine.client_is_gone().await;
}

#[tokio::test]
async fn what_is_no_engine_is_told_apart() {
    for (said, expected) in [
        (Act::Say(b"SSH-2.0-OpenSSH_9.2\r\n".to_vec()), "no reply from Docker at unix://"),
        (Act::Say(Vec::new()), "no reply from Docker at unix://"),
        (Act::Say(b"\xff\xfe\0\0".repeat(1000)), "no reply from Docker at unix://"),
        (reply(200, "", "<html>Welcome</html>"), "is not Docker: its reply to `/_ping` has no `api-version`"),
        (reply(200, "Api-Version: ../../x\r\n", "OK"), "is not Docker: its reply to `/_ping` has no `api-version`"),
        (reply(302, "Location: http://127.0.0.1:1/\r\n", ""), "answered GET `/_ping` with 302 and nothing else"),
        (
            reply(403, "", "no\u{1b}[2J\nway"),
            "answered GET `/_ping` with 403 and `no\\u{1b}[2J\\nway`; does a proxy before it allow",
        ),
        (reply(503, "", &"x".repeat(5000)), "…`"),
    ] {
        let engine = Engine::on_socket(move |_, _| said.clone()).await;
        let told = failure(restarts_of_docker(&engine.address)).await;
        assert!(told.contains(expected), "{told} has no {expected}");
        assert_eq!(engine.lines().len(), 1);
    }
    let engine = Engine::on_socket(|_, _| reply(200, "Api-Version: 1.41\r\n", "OK")).await;
    let told = failure(podman(&engine.address, ContainerField::RestartCount)).await;
    assert!(told.contains("is not Podman: its reply to `/_ping` has no `libpod-api-version`"), "{told}");
}

#[tokio::test]
async fn an_engine_that_does_not_answer_the_question_is_quoted() {
    let cut = format!("HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\n{}", fixture("docker.running"));
    for (said, expected) in [
        (reply(404, "", &fixture("docker.not-found")), "no container `vllm` in Docker at unix://"),
        (reply(404, "", "gone"), "`docker ps --all` lists them"),
        (
            reply(500, "", r#"{"message":"server error"}"#),
            "answered GET `/v1.41/containers/vllm/json` with 500 and `server error`",
        ),
        (
            reply(400, "", r#"{"message":"client version 1.41 is too old"}"#),
            "with 400 and `client version 1.41 is too old`",
        ),
        (reply(200, "", "{"), "sent no description of container `vllm`: EOF while parsing"),
        (reply(200, "", "[]"), "sent no description of container `vllm`"),
        (
            reply(200, "", &format!("{{\"X\":{}", "[".repeat(100_000))),
            "sent no description of container `vllm`: EOF while parsing a list",
        ),
        (
            reply(200, "", &fixture("docker.running").replace("\"RestartCount\": 0", "\"RestartCount\": 1e999")),
            "out of range",
        ),
        (
            reply(
                200,
                "",
                &fixture("docker.running").replace("\"RestartCount\": 0", "\"RestartCount\": 0, \"RestartCount\": 1"),
            ),
            "duplicate field `RestartCount`",
        ),
        (Act::Say(cut.into_bytes()), "no reply from Docker at unix://"),
    ] {
        let engine =
            Engine::on_socket(move |_, head| if head.contains("/_ping") { ping() } else { said.clone() }).await;
        let told = failure(restarts_of_docker(&engine.address)).await;
        assert!(told.contains(expected), "{told} has no {expected}");
    }
}

#[tokio::test]
async fn an_address_that_is_none_is_refused_before_anything_is_asked() {
    for host in ["ssh://host", "/var/run/docker.sock", "https://host:2376"] {
        let told = failure(restarts_of_docker(host)).await;
        assert_eq!(
            told,
            format!(
                "`{host}` is no address of an engine; write `unix:///path`, `tcp://host:port` or `http://host:port`"
            )
        );
    }
}
