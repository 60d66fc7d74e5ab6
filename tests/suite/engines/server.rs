//! Servers on unix sockets, on TCP and behind TLS that note every request and answer as a test says.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

use crate::server::read_head;

/// What a server does with a request.
#[derive(Clone)]
pub(super) enum Act {
    /// Sends these bytes and closes.
    Say(Vec<u8>),
    /// Says nothing until the client closes.
    Hang,
    /// Sends a head and then more than anybody wants, until the client closes.
    Flood,
}

/// A reply with a JSON body.
pub(super) fn json(status: u16, headers: &str, body: &str) -> Act {
    let length = body.len();
    Act::Say(
        format!(
            "HTTP/1.1 {status} Said\r\ncontent-type: application/json\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
        )
        .into_bytes(),
    )
}

/// The reply of both engines to `/_ping`.
pub(super) fn ping() -> Act {
    json(200, "Api-Version: 1.41\r\nLibpod-Api-Version: 4.3.1\r\n", "OK")
}

/// A server that ends when this is dropped.
pub(super) struct Engine {
    pub(super) address: String,
    pub(super) folder: TempDir,
    requests: Arc<Mutex<Vec<String>>>,
    closed: Arc<AtomicUsize>,
    serving: JoinHandle<()>,
}

/// The server's side of a test: the requests so far, and what to do with each.
struct Script<F> {
    act: F,
    requests: Arc<Mutex<Vec<String>>>,
    closed: Arc<AtomicUsize>,
}

impl Engine {
    /// On a unix socket. The script gets the number of the request, from 0, and its head.
    pub(super) async fn on_socket(act: impl Fn(usize, &str) -> Act + Send + Sync + 'static) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("engine.sock");
        let listener = UnixListener::bind(&path).unwrap();
        Self::start(format!("unix://{}", path.display()), folder, act, async move |script| {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream, Arc::clone(&script)));
            }
        })
    }

    /// On TCP.
    pub(super) async fn on_tcp(act: impl Fn(usize, &str) -> Act + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("tcp://{}", listener.local_addr().unwrap());
        Self::start(address, tempfile::tempdir().unwrap(), act, async move |script| {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream, Arc::clone(&script)));
            }
        })
    }

    /// Behind TLS, with its certificate as `ca.pem` in its folder. With `mutual`, a client must show `client.pem`.
    pub(super) async fn on_tls(mutual: bool, act: impl Fn(usize, &str) -> Act + Send + Sync + 'static) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("https://{}", listener.local_addr().unwrap());
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        std::fs::write(folder.path().join("ca.pem"), cert.pem()).unwrap();
        let client = generate_simple_self_signed(["gate".to_owned()]).unwrap();
        std::fs::write(folder.path().join("client.pem"), client.cert.pem()).unwrap();
        std::fs::write(folder.path().join("client.key"), client.signing_key.serialize_pem()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config =
            ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions().unwrap();
        let config = if mutual {
            let mut roots = RootCertStore::empty();
            roots.add(client.cert.der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
            config.with_client_cert_verifier(verifier)
        } else {
            config.with_no_client_auth()
        };
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
        let config = config.with_single_cert(vec![cert.der().clone()], key).unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        Self::start(address, folder, act, async move |script| {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, script) = (acceptor.clone(), Arc::clone(&script));
                connections.spawn(async move {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        serve(stream, script).await;
                    }
                });
            }
        })
    }

    fn start<A, S, R>(address: String, folder: TempDir, act: A, serving: S) -> Self
    where
        A: Fn(usize, &str) -> Act + Send + Sync + 'static,
        S: FnOnce(Arc<Script<A>>) -> R,
        R: Future<Output = ()> + Send + 'static,
    {
        let (requests, closed) = (Arc::default(), Arc::default());
        let script = Script { act, requests: Arc::clone(&requests), closed: Arc::clone(&closed) };
        let serving = tokio::spawn(serving(Arc::new(script)));
        Self { address, folder, requests, closed, serving }
    }

    /// The heads of the requests so far.
    pub(super) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// Their request lines.
    pub(super) fn lines(&self) -> Vec<String> {
        self.requests().iter().map(|head| head.lines().next().unwrap_or_default().to_owned()).collect()
    }

    /// Waits until a client that was left hanging has closed.
    pub(super) async fn client_is_gone(&self) {
        let gone = async {
            while self.closed.load(Ordering::SeqCst) == 0 {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(crate::client::HANG, gone).await.unwrap();
    }

    /// A kubeconfig for this server, in its folder, with these lines of the user, indented by six.
    pub(super) fn kubeconfig(&self, cluster: &str, user: &str) -> PathBuf {
        let path = self.folder.path().join("kubeconfig");
        let server = &self.address;
        let text = format!(
            "apiVersion: v1
kind: Config
current-context: test
clusters:
  - name: test
    cluster:
      server: {server}
      {cluster}
contexts:
  - name: test
    context: {{ cluster: test, user: gate, namespace: serving }}
users:
  - name: gate
    user:
      {user}
"
        );
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve<S, F>(mut stream: S, script: Arc<Script<F>>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    F: Fn(usize, &str) -> Act,
{
    let Some(request) = read_head(&mut stream).await else { return };
    let number = {
        let mut requests = script.requests.lock().unwrap();
        requests.push(request.head.clone());
        requests.len() - 1
    };
    match (script.act)(number, &request.head) {
        Act::Say(bytes) => {
            let _ = stream.write_all(&bytes).await;
            let _ = stream.shutdown().await;
            return;
        }
        Act::Hang => while stream.read_u8().await.is_ok() {},
        Act::Flood => {
            let _ = stream
                .write_all(b"HTTP/1.1 200 Said\r\nApi-Version: 1.41\r\nLibpod-Api-Version: 4.3.1\r\n\r\n\"")
                .await;
            let block = vec![b'x'; 64 * 1024];
            while stream.write_all(&block).await.is_ok() {}
        }
    }
    script.closed.fetch_add(1, Ordering::SeqCst);
}
