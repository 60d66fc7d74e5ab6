//! Servers that do exactly what a test says, byte by byte, on ports that the system chooses.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use crate::client::HANG;

/// A whole streamed chat reply: one delta, the finish, usage and the end signal.
pub(crate) const EVENTS: &str = concat!(
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"ok\"},\"finish_reason\":null}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1,\"total_tokens\":4}}\n\n",
    "data: [DONE]\n\n",
);

/// One delta of a reply that goes on.
pub(crate) const DELTA: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"},\"finish_reason\":null}]}\n\n";

/// The head of a streamed reply that ends with its connection.
pub(crate) const ENDLESS_HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

/// A whole reply on a connection that stays open, with these headers besides the usual ones (each ends in CR LF).
pub(crate) fn reply(headers: &str) -> String {
    let length = EVENTS.len();
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{headers}content-length: {length}\r\n\r\n{EVENTS}")
}

/// Accepts connections and gives each, with its number from 0, to a script. Everything ends when this is dropped.
pub(crate) struct Server {
    address: SocketAddr,
    accepted: Arc<AtomicUsize>,
    accepting: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start<F, R>(script: F) -> Self
    where
        F: Fn(usize, TcpStream) -> R + Send + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        Self::on(TcpListener::bind("127.0.0.1:0").await.unwrap(), Duration::ZERO, script)
    }

    /// Begins to accept only after a while.
    pub(crate) fn on<F, R>(listener: TcpListener, after: Duration, script: F) -> Self
    where
        F: Fn(usize, TcpStream) -> R + Send + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        let address = listener.local_addr().unwrap();
        let accepted = Arc::new(AtomicUsize::new(0));
        let accepting = tokio::spawn({
            let accepted = Arc::clone(&accepted);
            async move {
                let mut connections = JoinSet::new();
                tokio::time::sleep(after).await;
                while let Ok((stream, _)) = listener.accept().await {
                    stream.set_nodelay(true).unwrap();
                    connections.spawn(script(accepted.fetch_add(1, Ordering::SeqCst), stream));
                }
            }
        });
        Self { address, accepted, accepting }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1/chat/completions", self.address)
    }

    /// Connections accepted so far.
    pub(crate) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    /// Request line and headers.
    pub(crate) head: String,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        headers.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

/// Reads up to the blank line, and nothing that follows it.
pub(crate) async fn read_head<S: AsyncRead + Unpin>(stream: &mut S) -> Option<Received> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    Some(Received { head: String::from_utf8(head).unwrap() })
}

/// Reads a whole request; `None` when the client has closed.
pub(crate) async fn read_request<S: AsyncRead + Unpin>(stream: &mut S) -> Option<Received> {
    let request = read_head(stream).await?;
    let mut body = vec![0; request.header("content-length")?.parse().unwrap()];
    stream.read_exact(&mut body).await.ok()?;
    Some(request)
}

/// Answers every request of a connection with the same bytes.
pub(crate) async fn answer_all<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, bytes: impl AsRef<[u8]>) {
    while read_request(&mut stream).await.is_some() {
        if stream.write_all(bytes.as_ref()).await.is_err() || stream.flush().await.is_err() {
            return;
        }
    }
}

/// Answers one request and closes.
pub(crate) async fn answer_once<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, bytes: impl AsRef<[u8]>) {
    if read_request(&mut stream).await.is_some() {
        drop(stream.write_all(bytes.as_ref()).await);
        drop(stream.shutdown().await);
        // Closing with bytes unread would reset the connection and take the reply with it.
        drop(stream.read_to_end(&mut Vec::new()).await);
    }
}

/// Waits for something that will come about.
pub(crate) async fn until(holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(HANG, waiting).await.expect("no hang");
}
