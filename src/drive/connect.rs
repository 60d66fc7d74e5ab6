//! Connections whose bytes are stamped where they happen.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::Clock;
use super::target::{Address, Target};
use crate::observe::{Outcome, RequestTrace};

/// Why there is no connection, as an outcome.
#[derive(Debug)]
pub(super) struct ConnectFailure {
    pub(super) outcome: Outcome,
    pub(super) error: String,
}

impl ConnectFailure {
    fn new(outcome: Outcome, what: &str, error: impl std::fmt::Display) -> Self {
        Self { outcome, error: format!("{what}: {error}") }
    }

    /// What is recorded of the request that had no connection.
    pub(super) fn trace(self, at_ns: u64) -> RequestTrace {
        RequestTrace::without_reply(self.outcome, self.error, at_ns)
    }

    /// A failure of our own machine (no socket, no port, no memory) is `unsent`; the network's and the server's are theirs.
    fn from_io(what: &str, error: &io::Error) -> Self {
        use nix::errno::Errno;
        let ours = [Errno::EMFILE, Errno::ENFILE, Errno::EADDRNOTAVAIL, Errno::ENOBUFS, Errno::ENOMEM];
        let own_limit = error.raw_os_error().is_some_and(|code| ours.contains(&Errno::from_raw(code)));
        Self::new(if own_limit { Outcome::Unsent } else { Outcome::ConnectError }, what, error)
    }
}

/// When bytes last moved, in clock nanoseconds; 0 is never. And how many were written.
#[derive(Debug, Default)]
pub(super) struct Stamps {
    written: AtomicU64,
    read: AtomicU64,
    written_bytes: AtomicU64,
}

impl Stamps {
    pub(super) fn last_written(&self) -> Option<u64> {
        Some(self.written.load(Ordering::Relaxed)).filter(|at| *at > 0)
    }

    pub(super) fn written_bytes(&self) -> u64 {
        self.written_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn last_read(&self) -> Option<u64> {
        Some(self.read.load(Ordering::Relaxed)).filter(|at| *at > 0)
    }
}

/// Counts open connections.
#[derive(Debug, Default)]
pub(super) struct OpenCount(AtomicU64);

impl OpenCount {
    pub(super) fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// One entry in the count, for as long as it lives.
#[derive(Debug)]
struct OpenEntry(Arc<OpenCount>);

impl OpenEntry {
    fn new(count: &Arc<OpenCount>) -> Self {
        count.0.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for OpenEntry {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Debug)]
enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// An open connection that stamps every read and write.
#[derive(Debug)]
pub(super) struct Wire {
    stream: Stream,
    stamps: Arc<Stamps>,
    clock: Clock,
    _open: OpenEntry,
}

impl Wire {
    pub(super) fn stamps(&self) -> Arc<Stamps> {
        Arc::clone(&self.stamps)
    }

    /// Whether TLS negotiated HTTP/2.
    pub(super) fn negotiated_http2(&self) -> bool {
        match &self.stream {
            Stream::Plain(_) => false,
            Stream::Tls(tls) => tls.get_ref().1.alpn_protocol() == Some(b"h2"),
        }
    }
}

/// Connects to the endpoint, through the proxy where one is named, with TLS where the URL asks for it.
pub(super) async fn connect(target: &Target, clock: Clock, open: &Arc<OpenCount>) -> Result<Wire, ConnectFailure> {
    let entry = OpenEntry::new(open);
    let mut tcp = connect_tcp(target.proxy.as_ref().unwrap_or(&target.endpoint)).await?;
    if target.proxy.is_some() && (target.tls.is_some() || target.socket) {
        tunnel(&mut tcp, &target.endpoint).await?;
    }
    let stream = match &target.tls {
        None => Stream::Plain(tcp),
        Some(tls) => {
            let handshake = TlsConnector::from(Arc::clone(&tls.config)).connect(tls.name.clone(), tcp).await;
            Stream::Tls(Box::new(
                handshake.map_err(|error| ConnectFailure::new(Outcome::TlsError, "no TLS session", error))?,
            ))
        }
    };
    Ok(Wire { stream, stamps: Arc::default(), clock, _open: entry })
}

pub(super) async fn connect_tcp(address: &Address) -> Result<TcpStream, ConnectFailure> {
    let what = format!("no connection to {}", address.authority());
    let candidates = address.resolve().await.map_err(|error| ConnectFailure::from_io(&what, &error))?;
    let mut failure = None;
    for candidate in candidates {
        match TcpStream::connect(candidate).await {
            Ok(tcp) => {
                tcp.set_nodelay(true).map_err(|error| ConnectFailure::from_io(&what, &error))?;
                return Ok(tcp);
            }
            Err(error) => failure = Some(ConnectFailure::from_io(&what, &error)),
        }
    }
    Err(failure.unwrap_or_else(|| ConnectFailure::new(Outcome::ConnectError, &what, "the name has no address")))
}

/// Asks an HTTP proxy for a tunnel (RFC 9110, section 9.3.6).
async fn tunnel(tcp: &mut TcpStream, endpoint: &Address) -> Result<(), ConnectFailure> {
    const LONGEST_ANSWER: usize = 16 * 1024;
    let refused = |why: String| ConnectFailure::new(Outcome::ConnectError, "the proxy opened no tunnel", why);
    let authority = endpoint.authority();
    let ask = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n");
    tcp.write_all(ask.as_bytes()).await.map_err(|error| refused(error.to_string()))?;
    let mut answer = Vec::new();
    // Byte by byte, so that nothing of what follows the tunnel's answer is taken.
    while !answer.ends_with(b"\r\n\r\n") {
        if answer.len() > LONGEST_ANSWER {
            return Err(refused("its answer has no end".to_owned()));
        }
        answer.push(tcp.read_u8().await.map_err(|error| refused(error.to_string()))?);
    }
    let status_line = String::from_utf8_lossy(answer.split(|b| *b == b'\r').next().unwrap_or_default()).into_owned();
    match status_line.split(' ').nth(1) {
        Some(code) if code.len() == 3 && code.starts_with('2') => Ok(()),
        _ => Err(refused(format!("it answered `{status_line}`"))),
    }
}

impl AsyncRead for Wire {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let wire = self.get_mut();
        let before = buf.filled().len();
        let polled = match &mut wire.stream {
            Stream::Plain(tcp) => Pin::new(tcp).poll_read(cx, buf),
            Stream::Tls(tls) => Pin::new(tls.as_mut()).poll_read(cx, buf),
        };
        if buf.filled().len() > before {
            wire.stamps.read.store(wire.clock.now_ns(), Ordering::Relaxed);
        }
        polled
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let wire = self.get_mut();
        let polled = match &mut wire.stream {
            Stream::Plain(tcp) => Pin::new(tcp).poll_write(cx, buf),
            Stream::Tls(tls) => Pin::new(tls.as_mut()).poll_write(cx, buf),
        };
        wire.stamp_write(&polled);
        polled
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wire = self.get_mut();
        let polled = match &mut wire.stream {
            Stream::Plain(tcp) => Pin::new(tcp).poll_write_vectored(cx, bufs),
            Stream::Tls(tls) => Pin::new(tls.as_mut()).poll_write_vectored(cx, bufs),
        };
        wire.stamp_write(&polled);
        polled
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            Stream::Plain(tcp) => tcp.is_write_vectored(),
            Stream::Tls(tls) => tls.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().stream {
            Stream::Plain(tcp) => Pin::new(tcp).poll_flush(cx),
            Stream::Tls(tls) => Pin::new(tls.as_mut()).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().stream {
            Stream::Plain(tcp) => Pin::new(tcp).poll_shutdown(cx),
            Stream::Tls(tls) => Pin::new(tls.as_mut()).poll_shutdown(cx),
        }
    }
}

impl Wire {
    fn stamp_write(&self, polled: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(written @ 1..)) = polled {
            self.stamps.written.store(self.clock.now_ns(), Ordering::Relaxed);
            self.stamps.written_bytes.fetch_add(*written as u64, Ordering::Relaxed);
        }
    }
}
