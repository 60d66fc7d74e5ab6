//! The body of a reply: whole, or a stream that follows the engine.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep};

use super::driver::{Driver, Outbox};
use super::faults::Ending;
use super::render::{Piece, Reply};
use super::wire::{RequestRecord, Wire};

/// A request's place in the engine; given up when dropped before its end.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) driver: Arc<Driver>,
    pub(super) id: u64,
    pub(super) outbox: Arc<Outbox>,
}

impl Place {
    /// Waits until so many tokens came out.
    ///
    /// # Errors
    /// When the request is lost in a restart.
    pub(super) async fn wait_for(&self, tokens: u32) -> io::Result<()> {
        std::future::poll_fn(|context| match self.outbox.watch(context) {
            None => Poll::Ready(Err(io::Error::other("lost in a restart"))),
            Some(emitted) if emitted >= tokens => Poll::Ready(Ok(())),
            Some(_) => Poll::Pending,
        })
        .await
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.driver.cancel(self.id);
    }
}

/// The body of a reply.
#[derive(Debug)]
pub(super) enum ReplyBody {
    /// All at once.
    Whole(Option<Bytes>),
    /// Piece by piece.
    Stream(Box<TokenStream>),
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Stream(stream) => stream.poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}

/// A stream of events that follows the engine's tokens.
#[derive(Debug)]
pub(super) struct TokenStream {
    pub(super) reply: Reply,
    pub(super) place: Place,
    pub(super) record: Arc<RequestRecord>,
    pub(super) wire: Arc<Wire>,
    pieces: VecDeque<Piece>,
    seen: u32,
    trickle: Option<Trickle>,
    /// A scripted failure waits for what was written so far to leave the buffer.
    failing: bool,
}

#[derive(Debug)]
struct Trickle {
    bytes: usize,
    every: Duration,
    pause: Pin<Box<Sleep>>,
}

impl TokenStream {
    pub(super) fn new(reply: Reply, place: Place, record: Arc<RequestRecord>, wire: Arc<Wire>) -> Self {
        let mut opening = Vec::new();
        reply.open(&mut opening);
        Self { reply, place, record, wire, pieces: opening.into(), seen: 0, trickle: None, failing: false }
    }

    /// Makes its bytes trickle, so many at a time.
    pub(super) fn trickle(&mut self, bytes: usize, every: Duration) {
        self.trickle = Some(Trickle { bytes, every, pause: Box::pin(tokio::time::sleep(Duration::ZERO)) });
    }

    fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        loop {
            if !self.pieces.is_empty() {
                return self.poll_piece(context);
            }
            if self.reply.is_over() {
                return self.poll_end(context);
            }
            let Some(emitted) = self.place.outbox.watch(context) else {
                return Poll::Ready(Some(Err(io::Error::other("lost in a restart"))));
            };
            if emitted == self.seen {
                return Poll::Pending;
            }
            let mut fresh = Vec::new();
            self.reply.tokens(emitted - self.seen, &mut fresh);
            self.seen = emitted;
            self.pieces.extend(fresh);
        }
    }

    /// The next piece, or the next bytes of it.
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if let Some(trickle) = &mut self.trickle {
            ready!(trickle.pause.as_mut().poll(context));
            trickle.pause.as_mut().reset(Instant::now() + trickle.every);
            if let Some(piece) = self.pieces.front_mut().filter(|piece| piece.bytes.len() > trickle.bytes) {
                let part = piece.bytes.split_to(trickle.bytes);
                return Poll::Ready(Some(Ok(Frame::data(part))));
            }
        }
        let Some(piece) = self.pieces.pop_front() else { return Poll::Ready(None) };
        if piece.tokens > 0 {
            self.record.count_tokens(piece.tokens);
            self.wire.handed_over(&self.record);
        }
        Poll::Ready(Some(Ok(Frame::data(piece.bytes))))
    }

    /// The end, or the scripted failure in its place.
    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if let Ending::Complete | Ending::Error(_) = self.reply.ending() {
            self.record.completed();
            return Poll::Ready(None);
        }
        if !self.failing {
            // An error makes the connection drop its buffer; so it is first asked again, and flushes in between.
            self.failing = true;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Ending::Reset(_) = self.reply.ending() {
            self.wire.reset();
        }
        Poll::Ready(Some(Err(io::Error::other("cut by the fault script"))))
    }
}
