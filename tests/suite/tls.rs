//! TLS, and the proxies in front of it.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use goodput::contract::{Across, Endpoint, HttpVersion, MetricsPage, Probe, PrometheusSource, Source};
use goodput::observe::Outcome;
use goodput::probe::{Context, Prober};
use http::{Request, Response, Version};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::PrivateKeyDer;
use tempfile::TempDir;
use tokio::io::{AsyncWriteExt, copy_bidirectional};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use crate::client::{Client, HANG, REST, endpoint};
use crate::scene::{Contract, SIMULATED, Scene};
use crate::server::{EVENTS, Server, answer_all, read_head, read_request, reply};

/// A server with a certificate for `127.0.0.1` that notes the HTTP version of every request.
struct Secure {
    server: Server,
    versions: Arc<Mutex<Vec<Version>>>,
    folder: TempDir,
}

impl Secure {
    async fn start(names: &[&str], protocols: &[&[u8]]) -> Self {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), cert.pem()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let versions: Arc<Mutex<Vec<Version>>> = Arc::default();
        let noted = Arc::clone(&versions);
        let server = Server::start(move |_, stream| serve(acceptor.clone(), stream, Arc::clone(&noted))).await;
        Self { server, versions, folder }
    }

    fn ca_file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    fn url(&self) -> String {
        self.server.url().replace("http:", "https:")
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint { ca_file: Some(self.ca_file()), ..endpoint(&self.url()) }
    }

    fn versions(&self) -> Vec<Version> {
        self.versions.lock().unwrap().clone()
    }
}

async fn serve(acceptor: TlsAcceptor, stream: TcpStream, versions: Arc<Mutex<Vec<Version>>>) {
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let service = service_fn(move |request: Request<Incoming>| {
        versions.lock().unwrap().push(request.version());
        async move {
            request.into_body().collect().await.unwrap();
            let reply = Response::builder().header("content-type", "text/event-stream");
            Ok::<_, Infallible>(reply.body(Full::new(Bytes::from_static(EVENTS.as_bytes()))).unwrap())
        }
    });
    drop(auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await);
}

/// Asks twice and gives back the outcomes.
async fn ask_twice(endpoint: &Endpoint) -> [Outcome; 2] {
    let client = Client::of(endpoint);
    let first = client.ask().await.trace.outcome;
    tokio::time::sleep(REST).await;
    [first, client.ask().await.trace.outcome]
}

#[tokio::test]
async fn a_certificate_that_is_named_is_trusted_and_http2_negotiated() {
    let secure = Secure::start(&["127.0.0.1"], &[b"h2", b"http/1.1"]).await;
    assert_eq!(ask_twice(&secure.endpoint()).await, [Outcome::Ok; 2]);
    assert_eq!(secure.versions(), [Version::HTTP_2; 2]);
    assert_eq!(secure.server.accepted(), 1);
}

#[tokio::test]
async fn http1_is_spoken_where_it_is_asked_for_or_all_there_is() {
    let secure = Secure::start(&["127.0.0.1"], &[b"h2", b"http/1.1"]).await;
    let endpoint = Endpoint { http: HttpVersion::Http1, ..secure.endpoint() };
    assert_eq!(ask_twice(&endpoint).await, [Outcome::Ok; 2]);
    assert_eq!(secure.versions(), [Version::HTTP_11; 2]);
    assert_eq!(secure.server.accepted(), 1);
    for protocols in [&[b"http/1.1".as_slice()][..], &[]] {
        let secure = Secure::start(&["127.0.0.1"], protocols).await;
        assert_eq!(ask_twice(&secure.endpoint()).await, [Outcome::Ok; 2]);
        assert_eq!(secure.versions(), [Version::HTTP_11; 2]);
    }
}

#[tokio::test]
async fn who_cannot_be_trusted_is_a_tls_error() {
    let secure = Secure::start(&["127.0.0.1"], &[]).await;
    let unknown = Client::to(&secure.url()).ask().await;
    assert_eq!((unknown.trace.outcome, unknown.sent_ns), (Outcome::TlsError, None));
    assert!(unknown.trace.error.unwrap().contains("certificate"));

    let misnamed = Secure::start(&["elsewhere.example"], &[]).await;
    let asked = Client::of(&misnamed.endpoint()).ask().await;
    assert_eq!(asked.trace.outcome, Outcome::TlsError, "{:?}", asked.trace.error);
    assert_eq!((secure.versions().len(), misnamed.versions().len()), (0, 0), "no request was sent");
}

#[tokio::test]
async fn a_metrics_page_is_read_over_tls_from_whom_the_contract_trusts() {
    let secure = Secure::start(&["127.0.0.1"], &[b"h2", b"http/1.1"]).await;
    let context = Context { folder: PathBuf::from("/"), endpoint: None, port: 1 };
    let read = async |ca_file: Option<PathBuf>| {
        let page = MetricsPage { url: secure.url().parse().unwrap(), headers: Vec::new(), ca_file };
        let source = PrometheusSource { page, metrics: vec!["x".to_owned()], labels: BTreeMap::new() };
        let probe = Probe { source: Source::Prometheus(source), timeout: HANG };
        Prober::new(&probe, Across::Sum, &context).read().await.failure.unwrap()
    };
    let unknown = read(None).await;
    assert!(unknown.contains("certificate"), "{unknown}");
    assert!(unknown.ends_with("; name the PEM file of its issuer in `ca_file`"), "{unknown}");
    // Its page holds events, which is another thing.
    let trusted = read(Some(secure.ca_file())).await;
    assert!(trusted.contains("holds no metric `x`"), "{trusted}");
    assert_eq!(secure.versions(), [Version::HTTP_2]);
}

#[tokio::test]
async fn a_server_without_tls_is_a_tls_error() {
    let plain = Server::start(|_, mut stream| async move {
        drop(stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").await);
    })
    .await;
    let silent = Server::start(|_, stream| async move { drop(stream) }).await;
    for server in [plain, silent] {
        let asked = Client::to(&server.url().replace("http:", "https:")).ask().await;
        assert_eq!(asked.trace.outcome, Outcome::TlsError, "{:?}", asked.trace.error);
    }
}

#[tokio::test]
async fn a_plain_proxy_gets_the_whole_url() {
    let heads: Arc<Mutex<Vec<String>>> = Arc::default();
    let proxy = Server::start({
        let heads = Arc::clone(&heads);
        move |_, mut stream| {
            let heads = Arc::clone(&heads);
            async move {
                while let Some(request) = read_request(&mut stream).await {
                    heads.lock().unwrap().push(request.head);
                    stream.write_all(reply("").as_bytes()).await.unwrap();
                }
            }
        }
    })
    .await;
    // Nobody but the proxy could resolve the name.
    let mut endpoint = endpoint("http://model.invalid:8000/v1/chat/completions?a=b");
    endpoint.proxy = Some(format!("http://{}", proxy.address()).parse().unwrap());
    assert_eq!(ask_twice(&endpoint).await, [Outcome::Ok; 2]);
    let heads = heads.lock().unwrap();
    assert_eq!((heads.len(), proxy.accepted()), (2, 1));
    for head in heads.iter() {
        let first = head.lines().next().unwrap();
        assert_eq!(first, "POST http://model.invalid:8000/v1/chat/completions?a=b HTTP/1.1");
        assert!(head.to_ascii_lowercase().contains("\r\nhost: model.invalid:8000\r\n"), "{head}");
    }
}

/// A proxy that answers `CONNECT` with this status line, and tunnels where it is a success.
async fn tunnel_proxy(status: &'static str, to: Option<std::net::SocketAddr>) -> (Server, Arc<Mutex<Vec<String>>>) {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = Arc::clone(&asked);
    let proxy = Server::start(move |_, mut stream| {
        let noted = Arc::clone(&noted);
        async move {
            let request = read_head(&mut stream).await.unwrap();
            noted.lock().unwrap().push(request.head.lines().next().unwrap().to_owned());
            stream.write_all(format!("HTTP/1.1 {status}\r\n\r\n").as_bytes()).await.unwrap();
            if let Some(to) = to {
                let mut onwards = TcpStream::connect(to).await.unwrap();
                drop(copy_bidirectional(&mut stream, &mut onwards).await);
            }
        }
    })
    .await;
    (proxy, asked)
}

#[tokio::test]
async fn https_goes_through_a_tunnel() {
    let secure = Secure::start(&["model.invalid"], &[b"h2", b"http/1.1"]).await;
    let (proxy, asked) = tunnel_proxy("200 Connection established", Some(secure.server.address())).await;
    let mut endpoint = secure.endpoint();
    endpoint.url = "https://model.invalid/v1/chat/completions".parse().unwrap();
    endpoint.proxy = Some(format!("http://{}", proxy.address()).parse().unwrap());
    assert_eq!(ask_twice(&endpoint).await, [Outcome::Ok; 2]);
    assert_eq!(*asked.lock().unwrap(), ["CONNECT model.invalid:443 HTTP/1.1"]);
    assert_eq!(secure.versions(), [Version::HTTP_2; 2]);
}

#[tokio::test]
async fn a_proxy_that_refuses_is_no_connection() {
    let (proxy, _) = tunnel_proxy("407 Proxy Authentication Required", None).await;
    let mut endpoint = endpoint("https://model.invalid/v1/chat/completions");
    endpoint.proxy = Some(format!("http://{}", proxy.address()).parse().unwrap());
    let asked = Client::of(&endpoint).ask().await;
    assert_eq!(asked.trace.outcome, Outcome::ConnectError);
    let error = asked.trace.error.unwrap();
    assert!(error.contains("407 Proxy Authentication Required"), "{error}");
}

#[test]
fn proxies_of_the_environment_are_ignored() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (server, proxy) = runtime.block_on(async {
        let server = Server::start(|_, stream| answer_all(stream, reply(""))).await;
        (server, Server::start(|_, stream| async move { drop(stream) }).await)
    });
    let mut command = Command::new(env!("CARGO_BIN_EXE_goodput"));
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
        command.env(name, format!("http://{}", proxy.address()));
    }
    command.env_remove("NO_PROXY").env_remove("no_proxy");
    let done = command.args(["smoke", "--protocol", "openai-chat", "--url", &server.url()]).output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stdout));
    assert_eq!((server.accepted(), proxy.accepted()), (1, 0));
}

/// What is said of the API of GitHub at that address, with these variables.
fn asked_of_github(api: &str, variables: &[(&str, &str)]) -> String {
    let more = "baseline: { from: [artifact] }\n".to_owned();
    let scene = Scene::with(&Contract { more, ..Contract::of(SIMULATED) }, "");
    let mut command = scene.goodput(&["baseline", "history", "contract.yaml"]);
    command.envs([("GITHUB_API_URL", api), ("GITHUB_REPOSITORY", "octocat/hello"), ("GITHUB_TOKEN", "ghs_x")]);
    command.envs(variables.iter().copied());
    scene.run(command).exits(70).stderr.clone()
}

/// A GitHub Enterprise Server often has a certificate of the company's own.
#[tokio::test(flavor = "multi_thread")]
async fn the_api_of_github_is_trusted_by_a_certificate_of_one_s_own() {
    let secure = Secure::start(&["127.0.0.1"], &[]).await;
    let api = format!("https://{}/api/v3", secure.server.address());
    let ca_file = secure.ca_file().display().to_string();
    let trusted = asked_of_github(&api, &[("SSL_CERT_FILE", &ca_file)]);
    // The server is none of GitHub's: that it could be asked is all that counts.
    assert!(
        trusted.contains("/api/v3/repos/octocat/hello was asked for the repository and sent something else"),
        "{trusted}"
    );
    let asked = secure.versions().len();
    let refused = asked_of_github(&api, &[]);
    assert!(refused.contains("cannot be asked for the repository") && refused.contains("certificate"), "{refused}");
    assert_eq!(secure.versions().len(), asked, "no request was sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_of_github_is_asked_through_the_proxy_of_the_environment() {
    let heads: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = Arc::clone(&heads);
    let proxy = Server::start(move |_, mut stream| {
        let noted = Arc::clone(&noted);
        async move {
            if let Some(request) = read_head(&mut stream).await {
                noted.lock().unwrap().push(request.head);
                drop(stream.write_all(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n").await);
            }
        }
    })
    .await;
    let proxied = format!("http://{}", proxy.address());
    let said = asked_of_github("https://github.corp.example/api/v3", &[("HTTPS_PROXY", &proxied)]);
    assert!(said.contains("https://github.corp.example/api/v3/repos/octocat/hello cannot be asked"), "{said}");
    let heads = heads.lock().unwrap().clone();
    assert!(!heads.is_empty(), "{said}");
    for head in &heads {
        assert!(head.starts_with("CONNECT github.corp.example:443 HTTP/1.1\r\n") && !head.contains("ghs_x"), "{head}");
    }
    let secure = Secure::start(&["127.0.0.1"], &[]).await;
    let api = format!("https://{}", secure.server.address());
    let ca_file = secure.ca_file().display().to_string();
    let variables = [("HTTPS_PROXY", proxied.as_str()), ("NO_PROXY", "127.0.0.1"), ("SSL_CERT_FILE", &ca_file)];
    assert!(asked_of_github(&api, &variables).contains("sent something else"));
    assert_eq!(proxy.accepted(), heads.len());
}
