//! Waiting until an endpoint answers.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;
use url::{Host, Url};

use super::exit::Exit;
use super::launch::Running;
use crate::units::format_duration;

/// The first pause between two attempts; each next one is half as long again.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The longest single attempt: a server that accepts and never answers is asked again.
const ATTEMPT_WITHIN: Duration = Duration::from_secs(10);

/// Why an endpoint is not ready.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotReady {
    /// The launched process ended first.
    #[error("the endpoint {exit} before it was ready; its last words are in `{}`", log.display())]
    Exited {
        /// How it ended.
        exit: Exit,
        /// Where its output is.
        log: PathBuf,
    },
    /// The time was over.
    #[error("`{target}` was not ready within {}; the last attempt: {last}", format_duration(*within))]
    TimedOut {
        /// What was tried.
        target: String,
        /// How long it was tried.
        within: Duration,
        /// What the last attempt saw.
        last: String,
    },
    /// The run was stopped.
    #[error("the run was stopped before the endpoint was ready")]
    Cancelled,
}

/// The URL that readiness asks: `path` (with its query, if any) on the host of `url`.
pub fn ready_target(url: &Url, path: &str) -> Url {
    let mut target = url.clone();
    let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    target.set_path(path);
    target.set_query(query);
    target.set_fragment(None);
    target
}

/// Waits until a GET of `path` on the endpoint's host answers 2xx, or, without a path, until its port accepts (directly:
/// a proxy says nothing about that). Attempts follow each other at 100 ms, growing to one second.
///
/// # Errors
/// When a launched process ended, the time is over, or `cancel` was called; at once in the first and the last case.
pub async fn wait_ready(
    url: &Url,
    path: Option<&str>,
    within: Duration,
    running: Option<&Running>,
    client: &reqwest::Client,
    cancel: &CancellationToken,
) -> Result<(), NotReady> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(NotReady::Cancelled),
        (exit, log) = ended(running) => Err(NotReady::Exited { exit, log }),
        outcome = attempt_until(url, path, within, client) => outcome,
    }
}

/// Resolves when a launched process has ended; never for an endpoint that somebody else started.
async fn ended(running: Option<&Running>) -> (Exit, PathBuf) {
    match running {
        Some(running) => (running.wait_exited().await, running.log().to_owned()),
        None => std::future::pending().await,
    }
}

async fn attempt_until(
    url: &Url,
    path: Option<&str>,
    within: Duration,
    client: &reqwest::Client,
) -> Result<(), NotReady> {
    let start = Instant::now();
    let deadline = start.checked_add(within).unwrap_or(start + Duration::from_secs(u64::from(u32::MAX)));
    let mut pause = FIRST_PAUSE;
    let mut last = None;
    loop {
        let attempt_end = deadline.min(Instant::now() + ATTEMPT_WITHIN);
        match timeout_at(attempt_end, attempt(url, path, client)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(seen)) => last = Some(seen),
            // An attempt that the deadline cut short says less than the one before it.
            Err(_) if attempt_end < deadline || last.is_none() => last = Some("no answer".to_owned()),
            Err(_) => {}
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let last = last.unwrap_or_default();
            return Err(NotReady::TimedOut { target: describe(url, path), within, last });
        }
        sleep(pause.min(left)).await;
        pause = LONGEST_PAUSE.min(pause * 3 / 2);
    }
}

async fn attempt(url: &Url, path: Option<&str>, client: &reqwest::Client) -> Result<(), String> {
    match path {
        Some(path) => answers(client, ready_target(url, path)).await,
        None => accepts(url).await,
    }
}

/// Whether something accepts connections at the URL's port. Asked before a launch: a server left over from before would
/// otherwise be taken for the one that was launched, and measured.
pub async fn port_answers(url: &Url) -> bool {
    matches!(tokio::time::timeout(ATTEMPT_WITHIN, accepts(url)).await, Ok(Ok(())))
}

/// What is tried, without credentials.
fn describe(url: &Url, path: Option<&str>) -> String {
    let place = &url[..url::Position::BeforeUsername];
    let authority = &url[url::Position::BeforeHost..url::Position::AfterPort];
    match path {
        Some(path) => format!("GET {place}{authority}{path}"),
        None => format!("connect {authority}"),
    }
}

async fn answers(client: &reqwest::Client, target: Url) -> Result<(), String> {
    let reply = client.get(target).send().await.map_err(|error| innermost(&error.without_url()))?;
    let status = reply.status();
    if status.is_success() { Ok(()) } else { Err(format!("status {status}")) }
}

async fn accepts(url: &Url) -> Result<(), String> {
    let port = url.port_or_known_default().ok_or("the URL names no port")?;
    let connection = match url.host().ok_or("the URL names no host")? {
        Host::Domain(name) => TcpStream::connect((name, port)).await,
        Host::Ipv4(address) => TcpStream::connect((address, port)).await,
        Host::Ipv6(address) => TcpStream::connect((address, port)).await,
    };
    connection.map(drop).map_err(|error| error.to_string())
}

/// The cause at the bottom of an error, which is the one that says something: "connection refused", not "error sending
/// request".
pub fn innermost(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::contract::HttpVersion;
    use crate::endpoint::http_client;

    /// Longer than any of these can take; only a hang meets it.
    const HANG: Duration = Duration::from_secs(60);

    fn client() -> reqwest::Client {
        http_client(None, None, HttpVersion::Auto).expect("a client")
    }

    /// A server that answers its connections with these status lines in turn, the last one for ever.
    async fn server(replies: &'static [&'static str]) -> Url {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        tokio::spawn(async move {
            let mut replies = replies.iter().peekable();
            let mut reply = "";
            while let Ok((mut connection, _)) = listener.accept().await {
                reply = replies.next().copied().unwrap_or(reply);
                let mut request = [0; 1024];
                let read = connection.read(&mut request).await.unwrap_or(0);
                assert!(String::from_utf8_lossy(&request[..read]).starts_with("GET /health?deep=1 HTTP/1.1"));
                let text = format!("HTTP/1.1 {reply}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                let _ = connection.write_all(text.as_bytes()).await;
            }
        });
        Url::parse(&format!("http://{address}/v1/chat/completions?x=2")).expect("a URL")
    }

    async fn wait(url: &Url, path: Option<&str>, within: Duration) -> Result<(), NotReady> {
        wait_ready(url, path, within, None, &client(), &CancellationToken::new()).await
    }

    /// The URL of a port that nobody listens on.
    async fn closed_port() -> Url {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        Url::parse(&format!("http://{}/v1", listener.local_addr().expect("its address"))).expect("a URL")
    }

    #[tokio::test]
    async fn a_server_that_warms_up_is_asked_until_it_answers_2xx() {
        let url = server(&["503 Service Unavailable", "404 Not Found", "204 No Content"]).await;
        assert_eq!(wait(&url, Some("/health?deep=1"), HANG).await, Ok(()));
    }

    #[tokio::test]
    async fn a_redirect_is_not_readiness() {
        let url = server(&["302 Found\r\nlocation: /elsewhere"]).await;
        match wait(&url, Some("/health?deep=1"), Duration::from_millis(600)).await {
            Err(NotReady::TimedOut { last, target, .. }) => {
                assert_eq!(last, "status 302 Found");
                assert_eq!(target, format!("GET http://{}/health?deep=1", url.authority()));
            }
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_closed_port_is_named_as_the_cause() {
        let url = closed_port().await;
        for path in [Some("/health"), None] {
            let failure = wait(&url, path, Duration::from_millis(300)).await.expect_err("nobody listens").to_string();
            assert!(failure.contains("was not ready within 300ms; the last attempt: Connection refused"), "{failure}");
        }
    }

    #[tokio::test]
    async fn a_server_that_never_answers_is_not_waited_for_beyond_the_limit() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = Url::parse(&format!("http://{}/", listener.local_addr().expect("its address"))).expect("a URL");
        let waited = tokio::time::timeout(HANG, wait(&url, Some("/health"), Duration::from_millis(300))).await;
        let failure = waited.expect("no hang").expect_err("no answer").to_string();
        assert!(failure.ends_with("the last attempt: no answer"), "{failure}");
    }

    #[tokio::test]
    async fn without_a_path_an_accepting_port_is_enough() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("its address").port();
        for url in [format!("http://127.0.0.1:{port}/v1"), format!("http://localhost:{port}/v1")] {
            let url = Url::parse(&url).expect("a URL");
            assert_eq!(wait(&url, None, HANG).await, Ok(()));
            assert!(port_answers(&url).await);
        }
        assert!(!port_answers(&closed_port().await).await);
    }

    #[tokio::test]
    async fn a_stopped_run_waits_no_longer() {
        let cancel = CancellationToken::new();
        cancel.cancel();
        let waiting = wait_ready(&closed_port().await, None, Duration::MAX, None, &client(), &cancel).await;
        assert_eq!(waiting, Err(NotReady::Cancelled));
    }

    #[test]
    fn what_was_tried_is_said_without_credentials() {
        let url = Url::parse("https://user:secret@example.test:8443/v1?key=1#x").expect("a URL");
        assert_eq!(describe(&url, Some("/health")), "GET https://example.test:8443/health");
        assert_eq!(describe(&url, None), "connect example.test:8443");
        assert_eq!(ready_target(&url, "//other.test/x").host_str(), Some("example.test"));
    }

    /// A server with a certificate of its own making, which answers every request with 200.
    async fn tls_server() -> (Url, String) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        let key = rustls::pki_types::PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        let provider = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("TLS versions")
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .expect("a server");
        let acceptor = tokio_rustls::TlsAcceptor::from(std::sync::Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("its address").port();
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let Ok(mut connection) = acceptor.accept(connection).await else { continue };
                let _ = connection.read(&mut [0; 1024]).await;
                let _ = connection.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
                let _ = connection.shutdown().await;
            }
        });
        (Url::parse(&format!("https://localhost:{port}/v1")).expect("a URL"), made.cert.pem())
    }

    #[tokio::test]
    async fn a_private_certificate_is_trusted_only_when_it_was_named() {
        let (url, pem) = tls_server().await;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("ca.pem");
        std::fs::write(&path, pem).expect("the file is written");
        let trusting = http_client(Some(&path), None, HttpVersion::Auto).expect("a client");
        let cancel = CancellationToken::new();
        assert_eq!(wait_ready(&url, Some("/health"), HANG, None, &trusting, &cancel).await, Ok(()));
        let failure = wait(&url, Some("/health"), Duration::from_millis(500)).await.expect_err("unknown issuer");
        assert!(failure.to_string().contains("invalid peer certificate"), "{failure}");
    }
}
