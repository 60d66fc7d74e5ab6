//! Open connections, kept for reuse and never waited for: where none is free a new one is opened.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};

use super::Clock;
use super::connect::{ConnectFailure, OpenCount, Stamps, Wire, connect};
use super::target::Target;
use crate::contract::HttpVersion;
use crate::observe::Outcome;

/// An HTTP/1 connection. It is driven by the task that uses it, so that a reply needs no hop between tasks.
pub(super) struct Http1 {
    pub(super) sender: http1::SendRequest<Full<Bytes>>,
    pub(super) connection: Pin<Box<http1::Connection<TokioIo<Wire>, Full<Bytes>>>>,
    pub(super) stamps: Arc<Stamps>,
    pub(super) ended: bool,
}

impl Http1 {
    /// Moves bytes; remembers when the connection is over.
    pub(super) fn drive(&mut self, cx: &mut Context<'_>) {
        if !self.ended && self.connection.as_mut().poll(cx).is_ready() {
            self.ended = true;
        }
    }

    /// Whether the connection is open as far as this machine has been told.
    fn is_alive(&mut self) -> bool {
        self.drive(&mut Context::from_waker(Waker::noop()));
        !self.ended && !self.sender.is_closed()
    }
}

/// A place on a shared HTTP/2 connection, given back when dropped.
pub(super) struct Http2 {
    pub(super) sender: http2::SendRequest<Full<Bytes>>,
    streams: Arc<AtomicUsize>,
}

impl Drop for Http2 {
    fn drop(&mut self) {
        self.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A connection that can take one request now.
pub(super) enum Connection {
    Http1(Http1),
    Http2(Http2),
}

/// An HTTP/2 connection, and how many requests it carries.
struct Shared {
    sender: http2::SendRequest<Full<Bytes>>,
    streams: Arc<AtomicUsize>,
    /// Knows what the server allows at once, which may change at any time; `None` once it is over.
    connection: Arc<Mutex<Option<Http2Connection>>>,
}

type Http2Connection = http2::Connection<TokioIo<Wire>, Full<Bytes>, TokioExecutor>;

impl Shared {
    fn place(&self) -> Http2 {
        self.streams.fetch_add(1, Ordering::Relaxed);
        Http2 { sender: self.sender.clone(), streams: Arc::clone(&self.streams) }
    }

    /// The server's own limit on streams must not become a queue of ours.
    fn has_room(&self) -> bool {
        let allowed = lock(&self.connection).as_ref().map_or(0, Http2Connection::current_max_send_streams);
        self.sender.is_ready() && self.streams.load(Ordering::Relaxed) < allowed
    }
}

/// An HTTP/1 connection between two requests.
struct Resting {
    connection: Http1,
    since_ns: u64,
}

/// Connections between two requests, the one used last at the end.
///
/// Some servers promise to keep a connection and close it right after the reply. A request that is written while that
/// close is under way is lost, and the loss would be held against the server though no user would see it. Nothing is
/// retried here, so the pool looks first: until a connection has been seen open some time after its reply, every reply's
/// connection has to rest before it is used again, and where none is fit a new one is opened.
#[derive(Default)]
struct Idle {
    resting: Vec<Resting>,
    server_keeps_open: bool,
}

/// How long after its reply a connection that is still open shows that the server keeps its word.
const PROOF_NS: u64 = 50_000_000;

/// Common servers close idle connections after two seconds or more; one that is older is not used again.
const LONGEST_REST_NS: u64 = 1_500_000_000;

impl Idle {
    fn take(&mut self, now_ns: u64) -> Option<Http1> {
        let rested = |resting: &Resting| now_ns.saturating_sub(resting.since_ns);
        self.resting.retain(|resting| rested(resting) < LONGEST_REST_NS);
        let mut index = self.resting.len();
        while index > 0 {
            index -= 1;
            let rest_ns = rested(&self.resting[index]);
            if !self.server_keeps_open && rest_ns < PROOF_NS {
                continue;
            }
            let mut connection = self.resting.remove(index).connection;
            let alive = connection.is_alive();
            if !alive || rest_ns >= PROOF_NS {
                self.server_keeps_open = alive;
            }
            if alive {
                return Some(connection);
            }
        }
        None
    }
}

/// The open connections of a run towards one target.
pub struct Pool {
    clock: Clock,
    idle: Mutex<Idle>,
    shared: Mutex<Vec<Shared>>,
    open: Arc<OpenCount>,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("open", &self.open.now()).finish_non_exhaustive()
    }
}

impl Pool {
    /// An empty pool.
    pub fn new(clock: Clock) -> Self {
        Self { clock, idle: Mutex::default(), shared: Mutex::default(), open: Arc::default() }
    }

    /// Connections open at this moment.
    pub fn open_connections(&self) -> u64 {
        self.open.now()
    }

    /// Closes every idle connection.
    pub fn clear(&self) {
        lock(&self.idle).resting.clear();
        lock(&self.shared).clear();
    }

    /// A connection that is open already and free: the one used last, for it is the least likely to have been closed.
    pub(super) fn take(&self) -> Option<Connection> {
        if let Some(connection) = lock(&self.idle).take(self.clock.now_ns()) {
            return Some(Connection::Http1(connection));
        }
        let mut shared = lock(&self.shared);
        shared.retain(|connection| !connection.sender.is_closed());
        shared.iter().find(|connection| connection.has_room()).map(|c| Connection::Http2(c.place()))
    }

    /// Opens a new connection.
    pub(super) async fn open(&self, target: &Target) -> Result<Connection, ConnectFailure> {
        let wire = connect(target, self.clock, &self.open).await?;
        let failed =
            |error: hyper::Error| ConnectFailure { outcome: Outcome::ConnectError, error: format!("no HTTP: {error}") };
        if wire.negotiated_http2() || target.http == HttpVersion::Http2 {
            let mut builder = http2::Builder::new(TokioExecutor::new());
            // Until the server has said how many streams it allows, one is sure to go out and the next might queue.
            builder.timer(TokioTimer::new()).initial_max_send_streams(1);
            let (sender, connection) = builder.handshake(TokioIo::new(wire)).await.map_err(failed)?;
            let connection = Arc::new(Mutex::new(Some(connection)));
            let shared = Shared { sender, streams: Arc::default(), connection: Arc::clone(&connection) };
            tokio::spawn(std::future::poll_fn(move |cx| drive_shared(&connection, cx)));
            let place = shared.place();
            lock(&self.shared).push(shared);
            return Ok(Connection::Http2(place));
        }
        let stamps = wire.stamps();
        let (sender, connection) = http1::handshake(TokioIo::new(wire)).await.map_err(failed)?;
        let connection = Box::pin(connection);
        Ok(Connection::Http1(Http1 { sender, connection, stamps, ended: false }))
    }

    /// Keeps a connection whose reply was read to its end.
    pub(super) fn give_back(&self, mut connection: Http1) {
        if connection.is_alive() && connection.sender.is_ready() {
            lock(&self.idle).resting.push(Resting { connection, since_ns: self.clock.now_ns() });
        }
    }
}

/// Moves the bytes of a shared connection until it is over. Its end shows in the sender as soon as it is dropped; the error
/// itself reaches the requests that it breaks.
fn drive_shared(connection: &Mutex<Option<Http2Connection>>, cx: &mut Context<'_>) -> Poll<()> {
    let mut connection = lock(connection);
    let over = connection.as_mut().is_none_or(|open| Pin::new(open).poll(cx).is_ready());
    if !over {
        return Poll::Pending;
    }
    *connection = None;
    Poll::Ready(())
}

/// A panic while holding the lock leaves a list of connections, which is as good as before.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
