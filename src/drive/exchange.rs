//! One request and its reply, from the scheduled arrival to an outcome.

use std::error::Error as _;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, header};
use http_body_util::Full;
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1::Parts;
use tokio_util::sync::CancellationToken;

use super::connect::Wire;
use super::pool::{Connection, Http1, Http2};
use super::watch::Watch;
use super::{Clock, Pool, Target};
use crate::observe::{Outcome, Protocol, ReplyEnd, ReplyHead, ReplyReader, RequestTrace};
use crate::record::RequestRecord;
use crate::schedule::Segment;
use crate::workload::{Content, RenderedCase};

/// What is to be sent, and from when its time counts.
#[derive(Debug, Clone)]
pub struct Order {
    /// What goes over the wire.
    pub content: Content,
    /// How long the sound in it lasts, where that is known.
    pub audio_ns: Option<u64>,
    /// Sent as `x-request-id`, so that server logs and records can be joined.
    pub request_id: String,
    /// The instant it was due, on the run's clock.
    pub scheduled_ns: u64,
    /// Whether to keep the reply's texts.
    pub keep_texts: bool,
}

impl Order {
    /// The order to send a case, due at `scheduled_ns` on the run's clock.
    pub fn of(case: &RenderedCase, request_id: String, scheduled_ns: u64, keep_texts: bool) -> Self {
        Self { content: case.content.clone(), audio_ns: case.audio_ns, request_id, scheduled_ns, keep_texts }
    }

    /// When the speech in it ends by the schedule, on the run's clock; `None` where nothing is spoken.
    pub(super) fn speech_end_ns(&self) -> Option<u64> {
        match &self.content {
            Content::Turn(turn) => turn.speech_ns().map(|speech_ns| self.scheduled_ns.saturating_add(speech_ns)),
            Content::Json(_) | Content::Form(_) => None,
        }
    }

    /// Its id as a header.
    pub(super) fn id_header(&self) -> HeaderValue {
        HeaderValue::from_str(&self.request_id).unwrap_or_else(|_| HeaderValue::from_static("goodput"))
    }
}

/// What became of it. Times are on the run's clock.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// The reply.
    pub trace: RequestTrace,
    /// When the request's last byte was written.
    pub sent_ns: Option<u64>,
    /// How late the generator handed it to the network, once there was a connection; `None` where it never did.
    pub dispatch_lag_ns: Option<u64>,
    /// When the speech in it ended by the schedule.
    pub speech_end_ns: Option<u64>,
}

impl Exchange {
    /// A request that never went out.
    pub(super) fn unsent(trace: RequestTrace) -> Self {
        Self { trace, sent_ns: None, dispatch_lag_ns: None, speech_end_ns: None }
    }

    /// The published form, with times since the trial's start. `good` and `missed` are left to the grading.
    pub fn into_record(
        self,
        start_ns: u64,
        trial: u32,
        arrival: u64,
        segment: Segment,
        case: &str,
        scheduled_ns: u64,
    ) -> RequestRecord {
        let since = |at: u64| at.saturating_sub(start_ns);
        let trace = self.trace;
        // Without a status there was no reply, so nothing is known of its chunks.
        let replied = trace.status.is_some();
        RequestRecord {
            trial,
            arrival,
            segment,
            case: case.to_owned(),
            scheduled_ns,
            speech_end_ns: self.speech_end_ns.map(since),
            sent_ns: self.sent_ns.map(since),
            first_output_ns: trace.first_output_ns.map(since),
            first_answer_ns: trace.first_answer_ns.map(since),
            first_audio_ns: trace.first_audio_ns.map(since),
            last_output_ns: trace.last_output_ns.map(since),
            finished_ns: Some(since(trace.finished_ns)),
            outcome: trace.outcome,
            status: trace.status,
            error: trace.error,
            first_output_kind: trace.first_output_kind,
            output_chunks: replied.then_some(trace.output_chunks),
            chunk_gaps_ns: replied.then_some(trace.chunk_gaps_ns),
            audio_ns: trace.audio_ns,
            underrun_ns: trace.underrun_ns,
            input_tokens: trace.input_tokens,
            output_tokens: trace.output_tokens,
            reasoning_tokens: trace.reasoning_tokens,
            finish_reason: trace.finish_reason,
            warnings: trace.warnings,
            truncated: trace.truncated,
            answerless: trace.answerless,
            good: None,
            missed: None,
        }
    }
}

/// Sends one request and reads its reply. It never fails: whatever happens is an outcome.
pub async fn exchange(
    pool: &Pool,
    target: &Target,
    clock: Clock,
    order: Order,
    cancel: &CancellationToken,
) -> Exchange {
    let (speech_end_ns, audio_ns) = (order.speech_end_ns(), order.audio_ns);
    let watch = Watch::new(target, clock, speech_end_ns.unwrap_or(order.scheduled_ns));
    let reader = ReplyReader::new(target.protocol, order.keep_texts).with_audio(target.output_audio);
    let asking = Asking { pool, target, clock, watch, reader, cancel };
    let exchange = match &order.content {
        Content::Turn(turn) => asking.converse(turn, &order).await,
        Content::Json(body) => asking.post(body.clone(), None, &order).await,
        Content::Form(form) => asking.post(form.body.clone(), Some(&form.content_type), &order).await,
    };
    let mask = |text: String| target.secrets.mask(&text).into_owned();
    let trace = exchange.trace;
    // Whatever the server can word is masked here, once; the texts of the reply where they are kept.
    let trace = RequestTrace {
        error: trace.error.map(mask),
        finish_reason: trace.finish_reason.map(mask),
        finish_reason_raw: trace.finish_reason_raw.map(mask),
        audio_ns: if target.protocol == Protocol::OpenaiTranscription { audio_ns } else { trace.audio_ns },
        ..trace
    };
    Exchange { trace, speech_end_ns, ..exchange }
}

/// One request under way.
pub(super) struct Asking<'a> {
    pub(super) pool: &'a Pool,
    pub(super) target: &'a Target,
    pub(super) clock: Clock,
    pub(super) watch: Watch,
    pub(super) reader: ReplyReader,
    pub(super) cancel: &'a CancellationToken,
}

impl Asking<'_> {
    async fn post(mut self, body: Bytes, content_type: Option<&str>, order: &Order) -> Exchange {
        let Self { pool, target, clock, cancel, .. } = self;
        let connect_from = clock.now_ns();
        let connection = match pool.take() {
            Some(connection) => Ok(connection),
            None => match self.watch.guard(cancel, pin!(pool.open(target))).await {
                Ok(opened) => opened,
                Err(interruption) => {
                    return Exchange::unsent(self.reader.finish(clock.now_ns(), interruption.end()));
                }
            },
        };
        let connect_ns = clock.now_ns() - connect_from;
        let connection = match connection {
            Ok(connection) => connection,
            Err(failure) => return Exchange::unsent(failure.trace(clock.now_ns())),
        };
        let request = target.request(body, content_type, &order.id_header());
        let mut call = Call::new(connection, target, clock, request);
        let dispatched_ns = clock.now_ns();
        self.watch.message(dispatched_ns);
        let answered = self.watch.guard(cancel, pin!(call.head())).await;
        let trace = match answered {
            Err(interruption) => self.reader.finish(clock.now_ns(), interruption.end()),
            Ok(Err(error)) => headless(self.reader, &error, clock.now_ns()),
            Ok(Ok(response)) => {
                let (head, body) = response.into_parts();
                self.reader.head(reply_head(head.status.as_u16(), &head.headers));
                call.read(body, self.reader, &mut self.watch, cancel).await
            }
        };
        let sent_ns = call.sent_ns(dispatched_ns);
        let early = trace.first_output_ns.zip(sent_ns).is_some_and(|(output, sent)| output < sent);
        let unasked = trace.outcome == Outcome::Ok && (early || !call.is_sent());
        let trace = if unasked { answer_to_nothing(trace) } else { trace };
        if let Some(connection) = call.reusable() {
            pool.give_back(connection);
        }
        // The network's time to connect and to take the request is not the generator's.
        let dispatch_lag_ns = dispatched_ns.saturating_sub(order.scheduled_ns).saturating_sub(connect_ns);
        Exchange { trace, sent_ns, dispatch_lag_ns: Some(dispatch_lag_ns), speech_end_ns: None }
    }
}

type Answer = Pin<Box<dyn Future<Output = hyper::Result<Response<Incoming>>> + Send>>;

/// A request on its connection.
pub(super) struct Call {
    clock: Clock,
    answer: Answer,
    connection: Option<Http1>,
    /// The stream's place on its HTTP/2 connection, held until the reply is over.
    _place: Option<Http2>,
    /// Bytes that the connection will have written at the least once the request is on the wire.
    sent_at_bytes: u64,
    read_to_end: bool,
}

impl Call {
    pub(super) fn new(connection: Connection, target: &Target, clock: Clock, request: Request<Full<Bytes>>) -> Self {
        match connection {
            Connection::Http1(mut connection) => {
                // And some for the head, whose length only the engine knows.
                let body_bytes = request.body().size_hint().exact().unwrap_or(0);
                let sent_at_bytes = connection.stamps.written_bytes() + body_bytes + 1;
                let request = target.for_http1(request);
                let answer = Box::pin(connection.sender.send_request(request));
                Self { clock, answer, connection: Some(connection), _place: None, sent_at_bytes, read_to_end: false }
            }
            Connection::Http2(mut place) => {
                let answer = Box::pin(place.sender.send_request(target.for_http2(request)));
                Self { clock, answer, connection: None, _place: Some(place), sent_at_bytes: 0, read_to_end: false }
            }
        }
    }

    /// Polls `inner`, moving the connection's bytes in between where it is ours to drive.
    fn poll_driven<T>(
        connection: &mut Option<Http1>,
        cx: &mut Context<'_>,
        mut inner: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        if let Poll::Ready(value) = inner(cx) {
            return Poll::Ready(value);
        }
        match connection {
            Some(connection) => {
                connection.drive(cx);
                inner(cx)
            }
            None => Poll::Pending,
        }
    }

    pub(super) async fn head(&mut self) -> hyper::Result<Response<Incoming>> {
        let (answer, connection) = (&mut self.answer, &mut self.connection);
        std::future::poll_fn(|cx| Self::poll_driven(connection, cx, |cx| answer.as_mut().poll(cx))).await
    }

    async fn frame(&mut self, body: &mut Incoming) -> Option<hyper::Result<Bytes>> {
        let connection = &mut self.connection;
        loop {
            let polled =
                std::future::poll_fn(|cx| Self::poll_driven(connection, cx, |cx| Pin::new(&mut *body).poll_frame(cx)));
            match polled.await? {
                Ok(frame) => match frame.into_data() {
                    Ok(data) => return Some(Ok(data)),
                    Err(_trailers) => {}
                },
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// When the bytes just received became readable: the socket's stamp where the connection is ours alone.
    fn received_ns(&self) -> u64 {
        self.connection.as_ref().and_then(|c| c.stamps.last_read()).unwrap_or_else(|| self.clock.now_ns())
    }

    pub(super) async fn read(
        &mut self,
        mut body: Incoming,
        mut reader: ReplyReader,
        watch: &mut Watch,
        cancel: &CancellationToken,
    ) -> RequestTrace {
        let mut decided_ns = None;
        watch.message(self.received_ns());
        if reader.is_stream() {
            watch.streams();
        }
        let end = loop {
            let received = watch.guard(cancel, pin!(self.frame(&mut body))).await;
            match received {
                Ok(Some(Ok(data))) => {
                    let at_ns = self.received_ns();
                    let progress = reader.bytes(at_ns, &data);
                    if progress.messages > 0 {
                        watch.message(at_ns);
                        if reader.is_stream() {
                            watch.streams();
                        }
                    }
                    if progress.decided && decided_ns.is_none() {
                        decided_ns = Some(at_ns);
                        watch.decided();
                    }
                    if let Some(interruption) = watch.passed(at_ns) {
                        break interruption.end_of(decided_ns);
                    }
                }
                Ok(Some(Err(error))) => break ReplyEnd::Broken(whole_message(&error)),
                Ok(None) => {
                    self.read_to_end = true;
                    break ReplyEnd::Complete;
                }
                Err(interruption) => break interruption.end_of(decided_ns),
            }
        };
        let ended_ns = match &end {
            ReplyEnd::Complete | ReplyEnd::Broken(_) | ReplyEnd::Closed(..) => self.received_ns(),
            ReplyEnd::TimedOut(_) | ReplyEnd::Cancelled => self.clock.now_ns(),
        };
        reader.finish(decided_ns.unwrap_or(ended_ns), end)
    }

    /// When the request was on the wire: the last write before the reply on a connection of its own. HTTP/2 shares its
    /// connection, so there it is the instant the request was handed to it.
    fn sent_ns(&self, dispatched_ns: u64) -> Option<u64> {
        match &self.connection {
            Some(connection) => connection.stamps.last_written().filter(|at| *at >= dispatched_ns),
            None => Some(dispatched_ns),
        }
    }

    /// Whether the request is on the wire, body and all; on HTTP/2 nobody says.
    fn is_sent(&self) -> bool {
        self.connection.as_ref().is_none_or(|connection| connection.stamps.written_bytes() >= self.sent_at_bytes)
    }

    /// The connection behind an upgrade, and what was read of it beyond the head.
    pub(super) fn into_wire(self) -> Option<(Wire, Bytes)> {
        drop(self.answer);
        let Parts { io, read_buf, .. } = Pin::into_inner(self.connection?.connection).into_parts();
        Some((io.into_inner(), read_buf))
    }

    fn reusable(self) -> Option<Http1> {
        drop(self.answer);
        self.connection.filter(|_| self.read_to_end)
    }
}

/// A reply that came before the request was sent: whatever it says, it does not answer the request.
fn answer_to_nothing(trace: RequestTrace) -> RequestTrace {
    let error = "the reply came before the request was sent, so it cannot answer it".to_owned();
    RequestTrace { outcome: Outcome::ProtocolError, error: Some(error), truncated: None, answerless: None, ..trace }
}

/// A request whose reply has no head: the connection ended before, or what came is no HTTP.
pub(super) fn headless(reader: ReplyReader, error: &hyper::Error, at_ns: u64) -> RequestTrace {
    let message = whole_message(error);
    if error.is_parse() || error.is_parse_too_large() {
        return RequestTrace::without_reply(Outcome::ProtocolError, message, at_ns);
    }
    reader.finish(at_ns, ReplyEnd::Broken(message))
}

/// An error with everything that caused it.
fn whole_message(error: &hyper::Error) -> String {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        message.push_str(": ");
        message.push_str(&cause.to_string());
        source = cause.source();
    }
    message
}

pub(super) fn reply_head(status: u16, headers: &HeaderMap) -> ReplyHead {
    let text = |name: header::HeaderName| headers.get(name).map(|v| String::from_utf8_lossy(v.as_bytes()).into_owned());
    ReplyHead {
        status,
        content_type: text(header::CONTENT_TYPE),
        content_encoding: text(header::CONTENT_ENCODING),
        retry_after: text(header::RETRY_AFTER),
        date: text(header::DATE),
    }
}
