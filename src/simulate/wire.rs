//! The connection as the server sees it: stamps of what is written, and the server's own log of them.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use serde::Serialize;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::driver::SteadyClock;
use super::metrics::Counters;

/// The server's own log: one JSON line per request, the truth that clients' measurements are compared with.
#[derive(Debug)]
pub(super) struct RequestLog(Mutex<BufWriter<File>>);

impl RequestLog {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        Ok(Self(Mutex::new(BufWriter::with_capacity(1 << 16, File::create(path)?))))
    }

    fn write(&self, line: &LogLine<'_>) {
        let mut text = serde_json::to_vec(line).unwrap_or_default();
        text.push(b'\n');
        // A full disk shows when the log is flushed; the server goes on.
        let _ = self.0.lock().unwrap_or_else(PoisonError::into_inner).write_all(&text);
    }

    pub(super) fn flush(&self) -> io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).flush()
    }
}

#[derive(Serialize)]
struct LogLine<'a> {
    request_id: Option<&'a str>,
    received_ns: u64,
    first_write_ns: Option<u64>,
    last_write_ns: Option<u64>,
    prompt_tokens: u32,
    output_tokens: u32,
    complete: bool,
}

/// One request's line in the making. It is written when the last holder lets go: the reply, or the connection that has yet
/// to write the reply's last bytes.
#[derive(Debug)]
pub(super) struct RequestRecord {
    log: Option<Arc<RequestLog>>,
    counters: Arc<Counters>,
    request_id: Option<String>,
    received_ns: u64,
    prompt_tokens: u32,
    output_tokens: AtomicU32,
    first_write_ns: AtomicU64,
    last_write_ns: AtomicU64,
    complete: AtomicBool,
}

impl RequestRecord {
    pub(super) fn new(
        log: Option<Arc<RequestLog>>,
        counters: Arc<Counters>,
        request_id: Option<String>,
        received_ns: u64,
        prompt_tokens: u32,
    ) -> Self {
        Self {
            log,
            counters,
            request_id,
            received_ns,
            prompt_tokens,
            output_tokens: AtomicU32::new(0),
            first_write_ns: AtomicU64::new(0),
            last_write_ns: AtomicU64::new(0),
            complete: AtomicBool::new(false),
        }
    }

    pub(super) fn count_tokens(&self, tokens: u32) {
        self.output_tokens.fetch_add(tokens, Ordering::Relaxed);
    }

    pub(super) fn completed(&self) {
        self.complete.store(true, Ordering::Relaxed);
    }

    fn written(&self, at_ns: u64) {
        let _ = self.first_write_ns.compare_exchange(0, at_ns, Ordering::Relaxed, Ordering::Relaxed);
        self.last_write_ns.store(at_ns, Ordering::Relaxed);
    }
}

impl Drop for RequestRecord {
    fn drop(&mut self) {
        let complete = self.complete.load(Ordering::Relaxed);
        let counter = if complete { &self.counters.finished } else { &self.counters.broken };
        counter.fetch_add(1, Ordering::Relaxed);
        let Some(log) = &self.log else { return };
        let known = |stamp: &AtomicU64| Some(stamp.load(Ordering::Relaxed)).filter(|at_ns| *at_ns > 0);
        log.write(&LogLine {
            request_id: self.request_id.as_deref(),
            received_ns: self.received_ns,
            first_write_ns: known(&self.first_write_ns),
            last_write_ns: known(&self.last_write_ns),
            prompt_tokens: self.prompt_tokens,
            output_tokens: self.output_tokens.load(Ordering::Relaxed),
            complete,
        });
    }
}

/// What replies and their connection share.
#[derive(Debug, Default)]
pub(super) struct Wire {
    /// Requests with output in the connection's buffer, to be stamped by the next write.
    unwritten: Mutex<Vec<Arc<RequestRecord>>>,
    any: AtomicBool,
    reset: AtomicBool,
}

impl Wire {
    fn unwritten(&self) -> MutexGuard<'_, Vec<Arc<RequestRecord>>> {
        self.unwritten.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Output of this request goes into the connection's buffer now.
    pub(super) fn handed_over(&self, record: &Arc<RequestRecord>) {
        if record.log.is_none() {
            return;
        }
        let mut unwritten = self.unwritten();
        if !unwritten.iter().any(|other| Arc::ptr_eq(other, record)) {
            unwritten.push(Arc::clone(record));
        }
        self.any.store(true, Ordering::Release);
    }

    /// The connection is to end with a reset.
    pub(super) fn reset(&self) {
        self.reset.store(true, Ordering::Release);
    }
}

/// A TCP stream that stamps the output it writes.
#[derive(Debug)]
pub(super) struct StampedStream {
    pub(super) stream: TcpStream,
    pub(super) wire: Arc<Wire>,
    pub(super) clock: SteadyClock,
}

impl Drop for StampedStream {
    fn drop(&mut self) {
        if self.wire.reset.load(Ordering::Acquire) {
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for StampedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for StampedStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        // The stamp is taken before the call: over loopback the reader may have the bytes before it returns.
        let at_ns = self.clock.now_ns();
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        if result.is_ready() && self.wire.any.swap(false, Ordering::AcqRel) {
            for record in std::mem::take(&mut *self.wire.unwritten()) {
                record.written(at_ns);
            }
        }
        result
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
