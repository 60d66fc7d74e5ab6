//! One turn over a WebSocket: a session of its own, the events of the turn, each at its time, and the reply.
//!
//! Speech is paced in real time by absolute deadlines, so that one late piece delays no other, and a piece is never sent
//! before it could have been spoken. The time of the turn counts from the end of speech by the schedule; of a turn without
//! speech from its scheduled arrival, opening the session included.

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use http::StatusCode;
use http::header::{CONNECTION, HeaderMap, HeaderName, SEC_WEBSOCKET_ACCEPT, UPGRADE};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};
use tokio_util::sync::CancellationToken;

use super::Clock;
use super::connect::{Stamps, Wire};
use super::exchange::{Asking, Call, Exchange, Order, headless, reply_head};
use super::watch::{AFTER_DECISION, Watch};
use crate::observe::{Outcome, ReplyEnd, ReplyReader, RequestTrace};
use crate::workload::Turn;

/// Longest message, in bytes: far above any event, as for the events of a stream.
const LONGEST_MESSAGE: usize = 16 << 20;

/// Read at once of each connection, in bytes; the default would hold 128 KiB of each.
const READ_BUFFER: usize = 16 << 10;

impl Asking<'_> {
    pub(super) async fn converse(mut self, turn: &Turn, order: &Order) -> Exchange {
        let (clock, cancel) = (self.clock, self.cancel);
        let (wire, read) = match self.open(order).await {
            Ok(opened) => opened,
            Err(trace) => return Exchange::unsent(*trace),
        };
        let stamps = wire.stamps();
        let socket = WebSocketStream::from_partially_read(wire, read.into(), Role::Client, Some(limits(turn))).await;
        let script = Script::new(turn, order.scheduled_ns);
        let free_ns = clock.now_ns();
        let mut session =
            Session { socket, stamps, clock, reader: self.reader, sent_ns: None, free_ns, dispatch_lag_ns: None };
        let (at_ns, end) = session.hold(script, &mut self.watch, cancel).await;
        let trace = session.reader.finish(at_ns, end);
        // The outcome is known; the farewell is for the server's sake.
        drop(timeout(AFTER_DECISION, session.socket.close(None)).await);
        Exchange { trace, sent_ns: session.sent_ns, dispatch_lag_ns: session.dispatch_lag_ns, speech_end_ns: None }
    }

    /// Opens the session: the connection behind the upgrade, and what was read beyond its head. Else the trace of a request
    /// that had another answer or none.
    async fn open(&mut self, order: &Order) -> Result<(Wire, Bytes), Box<RequestTrace>> {
        let Self { pool, target, clock, cancel, .. } = *self;
        let opened = self.watch.guard(cancel, pin!(pool.open(target))).await;
        let connection = match opened {
            Err(interruption) => return Err(self.end(interruption.end())),
            Ok(Err(failure)) => return Err(Box::new(failure.trace(clock.now_ns()))),
            Ok(Ok(connection)) => connection,
        };
        let key = generate_key();
        let mut call = Call::new(connection, target, clock, target.upgrade(&key, &order.id_header()));
        let answered = self.watch.guard(cancel, pin!(call.head())).await;
        let (head, body) = match answered {
            Err(interruption) => return Err(self.end(interruption.end())),
            Ok(Err(error)) => return Err(Box::new(headless(self.take_reader(), &error, clock.now_ns()))),
            Ok(Ok(response)) => response.into_parts(),
        };
        self.reader.head(reply_head(head.status.as_u16(), &head.headers));
        if head.status != StatusCode::SWITCHING_PROTOCOLS {
            let reader = self.take_reader();
            return Err(Box::new(call.read(body, reader, &mut self.watch, cancel).await));
        }
        let refused = |fault: &str| {
            Box::new(RequestTrace::without_reply(Outcome::ProtocolError, fault.to_owned(), clock.now_ns()))
        };
        accepts(&head.headers, &key).map_err(refused)?;
        call.into_wire().ok_or_else(|| refused("the connection was not upgraded"))
    }

    /// The trace of what is known so far.
    fn end(&mut self, end: ReplyEnd) -> Box<RequestTrace> {
        Box::new(self.take_reader().finish(self.clock.now_ns(), end))
    }

    /// The reader, which nothing reads after.
    fn take_reader(&mut self) -> ReplyReader {
        std::mem::replace(&mut self.reader, ReplyReader::new(self.target.protocol, false))
    }
}

/// Whether the server speaks WebSocket from here on (RFC 6455, section 4.1).
fn accepts(headers: &HeaderMap, key: &str) -> Result<(), &'static str> {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let has = |name, word: &str| text(name).split(',').any(|token| token.trim().eq_ignore_ascii_case(word));
    if !has(UPGRADE, "websocket") || !has(CONNECTION, "upgrade") {
        return Err("the server switched to another protocol than WebSocket");
    }
    if text(SEC_WEBSOCKET_ACCEPT) != derive_accept_key(key.as_bytes()) {
        return Err("the server's Sec-WebSocket-Accept does not answer the client's key");
    }
    Ok(())
}

fn limits(turn: &Turn) -> WebSocketConfig {
    let config = WebSocketConfig::default();
    // A server that pings and never reads the answers may not make them pile up.
    let unread = config.write_buffer_size + turn.events().map(Bytes::len).sum::<usize>() + READ_BUFFER;
    config
        .read_buffer_size(READ_BUFFER)
        .max_write_buffer_size(unread)
        .max_message_size(Some(LONGEST_MESSAGE))
        .max_frame_size(Some(LONGEST_MESSAGE))
}

/// The events of a turn that are still to be sent, each with the instant at which it is due.
struct Script<'a> {
    events: std::iter::Peekable<Box<dyn Iterator<Item = (u64, &'a Bytes)> + Send + 'a>>,
}

impl<'a> Script<'a> {
    fn new(turn: &'a Turn, begins_ns: u64) -> Self {
        let speech_end_ns = begins_ns.saturating_add(turn.speech_ns().unwrap_or(0));
        let before = turn.before.iter().map(move |event| (begins_ns, event));
        let speech = turn.speech.iter().map(move |piece| (begins_ns.saturating_add(piece.due_ns), &piece.event));
        let after = turn.after.iter().map(move |event| (speech_end_ns, event));
        let events: Box<dyn Iterator<Item = _> + Send> = Box::new(before.chain(speech).chain(after));
        Self { events: events.peekable() }
    }

    fn next_due_ns(&mut self) -> Option<u64> {
        self.events.peek().map(|(due_ns, _)| *due_ns)
    }

    fn take_due(&mut self, now_ns: u64) -> Option<&'a Bytes> {
        self.events.next_if(|(due_ns, _)| *due_ns <= now_ns).map(|(_, event)| event)
    }
}

/// An open session.
struct Session {
    socket: WebSocketStream<Wire>,
    stamps: Arc<Stamps>,
    clock: Clock,
    reader: ReplyReader,
    /// When the last event of the turn was on the wire.
    sent_ns: Option<u64>,
    /// Since when the network has taken what was sent: an event that is late for that is not late by us.
    free_ns: u64,
    /// How late the last event was begun to be sent.
    dispatch_lag_ns: Option<u64>,
}

/// What happened first.
enum Step {
    /// All that was due was sent, or it could not be.
    Sent(Result<(), Error>),
    Came(Option<Result<Message, Error>>),
}

impl Session {
    /// Sends what is due and reads what comes until the reply is decided or over; says when and how.
    async fn hold(&mut self, script: Script<'_>, watch: &mut Watch, cancel: &CancellationToken) -> (u64, ReplyEnd) {
        let mut script = Some(script);
        loop {
            let step = watch.guard(cancel, pin!(self.step(&mut script))).await;
            match step {
                Err(interruption) => return (self.clock.now_ns(), interruption.end()),
                Ok(Step::Sent(sent)) => self.note_sent(sent, &mut script, watch),
                Ok(Step::Came(message)) => {
                    if let Some(end) = self.read(message, watch) {
                        return end;
                    }
                    // A server that never pauses leaves no other moment to look.
                    let now_ns = self.clock.now_ns();
                    if let Some(interruption) = watch.passed(now_ns) {
                        return (now_ns, interruption.end());
                    }
                }
            }
        }
    }

    /// Waits for the next event to be due, which is then sent, or for a message.
    async fn step(&mut self, script: &mut Option<Script<'_>>) -> Step {
        let due_ns = script.as_mut().and_then(Script::next_due_ns);
        tokio::select! {
            // What came before an event was sent is no answer to it, so it is read before.
            biased;
            message = self.socket.next() => return Step::Came(message),
            () = until(self.clock, due_ns) => {}
        }
        Step::Sent(self.send(script).await)
    }

    /// Sends all that is due by now.
    async fn send(&mut self, script: &mut Option<Script<'_>>) -> Result<(), Error> {
        if let Some(due_ns) = script.as_mut().and_then(Script::next_due_ns) {
            self.dispatch_lag_ns = Some(self.clock.now_ns().saturating_sub(due_ns.max(self.free_ns)));
        }
        while let Some(event) = script.as_mut().and_then(|script| script.take_due(self.clock.now_ns())) {
            let text = Utf8Bytes::try_from(event.clone()).map_err(|error| Error::Utf8(error.to_string()))?;
            self.socket.feed(Message::Text(text)).await?;
        }
        self.socket.flush().await?;
        self.free_ns = self.clock.now_ns();
        Ok(())
    }

    fn note_sent(&mut self, sent: Result<(), Error>, script: &mut Option<Script<'_>>, watch: &mut Watch) {
        if sent.is_err() {
            // Why nothing can be sent any more is known to the other direction, which is read on.
            *script = None;
        } else if script.as_mut().is_some_and(|script| script.next_due_ns().is_none()) {
            *script = None;
            self.sent_ns = self.stamps.last_written();
            watch.message(self.clock.now_ns());
        }
    }

    /// Reads one message; the end, where it is one or decides the reply.
    fn read(&mut self, message: Option<Result<Message, Error>>, watch: &mut Watch) -> Option<(u64, ReplyEnd)> {
        let at_ns = self.stamps.last_read().unwrap_or_else(|| self.clock.now_ns());
        let progress = match message {
            Some(Ok(Message::Text(text))) => self.reader.frame(at_ns, text.as_bytes()),
            Some(Ok(Message::Binary(data))) => self.reader.frame(at_ns, &data),
            Some(Ok(Message::Close(frame))) => {
                let (code, reason) = frame.map(|frame| (u16::from(frame.code), frame.reason.to_string())).unzip();
                return Some((at_ns, ReplyEnd::Closed(code, reason.unwrap_or_default())));
            }
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => return None,
            Some(Err(error)) => {
                let text = error.to_string();
                if !is_broken(&error) {
                    self.reader.refuse(&text);
                }
                return Some((self.clock.now_ns(), ReplyEnd::Broken(text)));
            }
            None => return Some((self.clock.now_ns(), ReplyEnd::Broken("the connection ended".to_owned()))),
        };
        if progress.messages > 0 {
            watch.message(at_ns);
        }
        if progress.decided && self.sent_ns.is_none() {
            self.reader.refuse("the server ended its response before the turn was sent");
        }
        progress.decided.then_some((at_ns, ReplyEnd::Complete))
    }
}

/// Whether the connection ended, and not what was said over it was wrong.
fn is_broken(error: &Error) -> bool {
    matches!(
        error,
        Error::Io(_)
            | Error::ConnectionClosed
            | Error::AlreadyClosed
            | Error::Protocol(ProtocolError::ResetWithoutClosingHandshake)
    )
}

/// Resolves at an instant; never where there is none.
async fn until(clock: Clock, at_ns: Option<u64>) {
    match at_ns {
        Some(at_ns) => sleep_until(Instant::from_std(clock.instant(at_ns))).await,
        None => std::future::pending().await,
    }
}
