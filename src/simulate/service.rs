//! The HTTP side: paths, refusals, and the way of a request into the engine.

use std::convert::Infallible;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use tokio_util::sync::CancellationToken;

use super::body::{Place, ReplyBody, TokenStream};
use super::driver::{Driver, SteadyClock};
use super::engine::{LengthSource, Lengths, Refusal};
use super::faults::{Ending, FaultScript, ServerFault, Treatment};
use super::metrics::{Counters, page};
use super::profile::Profile;
use super::render::{Reply, error_body};
use super::request::{Asked, Kind, read};
use super::wire::{RequestLog, RequestRecord, Wire};

/// The longest body of a request.
const LONGEST_BODY: usize = 16 << 20;

/// What depends on the order of requests.
#[derive(Debug)]
struct Script {
    faults: FaultScript,
    lengths: LengthSource,
    requests: u64,
}

/// What all connections share.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) profile: Profile,
    pub(super) clock: SteadyClock,
    pub(super) driver: Arc<Driver>,
    pub(super) log: Option<Arc<RequestLog>>,
    pub(super) counters: Arc<Counters>,
    /// What is left to come of all that depends on the order of requests.
    script: Mutex<Script>,
    ready_at_ns: AtomicU64,
    /// Ends the connections of the present life; each restart makes a new one.
    life: Mutex<CancellationToken>,
    /// Ends the server.
    pub(super) stop: CancellationToken,
    /// The exit code of the fault that ended it.
    pub(super) exit_code: OnceLock<u8>,
}

impl Endpoint {
    pub(super) fn new(
        profile: Profile,
        clock: SteadyClock,
        driver: Arc<Driver>,
        script: FaultScript,
        log: Option<RequestLog>,
    ) -> Self {
        let stop = CancellationToken::new();
        Self {
            ready_at_ns: AtomicU64::new(profile.ready_after.0),
            script: Mutex::new(Script { faults: script, lengths: LengthSource::new(&profile), requests: 0 }),
            profile,
            clock,
            driver,
            log: log.map(Arc::new),
            counters: Arc::default(),
            life: Mutex::new(stop.child_token()),
            stop,
            exit_code: OnceLock::new(),
        }
    }

    /// Cancelled when the connections of the present life must end.
    pub(super) fn life(&self) -> CancellationToken {
        self.life.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Something happens to the whole server.
    pub(super) fn strike(&self, fault: ServerFault) {
        match fault {
            ServerFault::Stall(length_ns) => self.driver.stall(length_ns),
            ServerFault::Exit(code) => {
                let _ = self.exit_code.set(code);
                self.stop.cancel();
            }
            ServerFault::Restart(length_ns) => {
                self.ready_at_ns.store(self.clock.now_ns().saturating_add(length_ns), Ordering::Relaxed);
                self.counters.restart();
                self.driver.restart();
                let next = self.stop.child_token();
                std::mem::replace(&mut *self.life.lock().unwrap_or_else(PoisonError::into_inner), next).cancel();
            }
        }
    }

    fn is_ready(&self) -> bool {
        self.clock.now_ns() >= self.ready_at_ns.load(Ordering::Relaxed)
    }

    /// Answers one request.
    ///
    /// # Errors
    /// When the connection is to end without an answer.
    pub(super) async fn answer(
        self: Arc<Self>,
        wire: Arc<Wire>,
        request: Request<Incoming>,
    ) -> io::Result<Response<ReplyBody>> {
        let kind = match (request.method(), request.uri().path()) {
            (&Method::POST, "/v1/chat/completions") => Kind::Chat,
            (&Method::POST, "/v1/completions") => Kind::Completion,
            (&Method::GET, path) => return Ok(self.page(path)),
            (_, path) => return Ok(refused(404, &format!("no such path: {path}"), None)),
        };
        let request_id = request.headers().get("x-request-id").and_then(|value| value.to_str().ok()).map(str::to_owned);
        let body = match Limited::new(request.into_body(), LONGEST_BODY).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<http_body_util::LengthLimitError>() => {
                return Ok(refused(413, "the body is longer than 16 MiB", None));
            }
            Err(error) => return Err(io::Error::other(error)),
        };
        let received_ns = self.clock.now_ns();
        self.infer(kind, &body, request_id, received_ns, wire).await
    }

    fn page(&self, path: &str) -> Response<ReplyBody> {
        match path {
            "/health" if self.is_ready() => reply(200, "text/plain", Bytes::from_static(b"ok\n")),
            "/health" => refused(503, "the model is loading", None),
            "/v1/models" => {
                let model = serde_json::json!({ "id": self.profile.name, "object": "model", "owned_by": "goodput" });
                let list = serde_json::json!({ "object": "list", "data": [model] });
                reply(200, "application/json", list.to_string().into())
            }
            "/metrics" => {
                let (occupancy, generated) = self.driver.occupancy();
                reply(200, "text/plain; version=0.0.4", page(&self.counters, occupancy, generated).into())
            }
            _ => refused(404, &format!("no such path: {path}"), None),
        }
    }

    /// Takes a request that was fully read through the fault script into the engine, and answers from there.
    async fn infer(
        &self,
        kind: Kind,
        body: &[u8],
        request_id: Option<String>,
        received_ns: u64,
        wire: Arc<Wire>,
    ) -> io::Result<Response<ReplyBody>> {
        if !self.is_ready() {
            return Ok(self.refuse(503, "the model is loading", None));
        }
        let (treatment, lengths) = self.treatment(received_ns);
        for fault in &treatment.server {
            self.strike(*fault);
        }
        if treatment.server.iter().any(|fault| !matches!(fault, ServerFault::Stall(_))) {
            return Err(io::Error::other("the server ended"));
        }
        if treatment.hang {
            std::future::pending::<Infallible>().await;
        }
        if let Some((status, retry_after)) = treatment.refuse {
            return Ok(self.refuse(status, "refused by the fault script", retry_after));
        }
        let asked = match read(kind, body, &self.profile) {
            Ok(asked) => asked.with(lengths),
            Err(problem) => return Ok(self.refuse(400, &problem, None)),
        };
        let place = match self.driver.submit(received_ns, asked.prompt_tokens, asked.output_tokens) {
            Ok((id, outbox)) => Place { driver: Arc::clone(&self.driver), id, outbox },
            Err(refusal) => return Ok(self.turn_away(refusal)),
        };
        self.counters.prompt_tokens.fetch_add(u64::from(asked.prompt_tokens), Ordering::Relaxed);
        let record = Arc::new(RequestRecord::new(
            self.log.clone(),
            Arc::clone(&self.counters),
            request_id,
            received_ns,
            asked.prompt_tokens,
        ));
        if asked.stream {
            self.stream(asked, &treatment, place, record, wire).await
        } else {
            self.whole(asked, &treatment, place, record, wire).await
        }
    }

    /// What the fault script says about the next request, and the lengths that are drawn for it.
    fn treatment(&self, received_ns: u64) -> (Treatment, Lengths) {
        let mut script = self.script.lock().unwrap_or_else(PoisonError::into_inner);
        script.requests += 1;
        let number = script.requests;
        (script.faults.strike(number, received_ns), script.lengths.next_lengths())
    }

    /// The model has no place for a request.
    fn turn_away(&self, refusal: Refusal) -> Response<ReplyBody> {
        match refusal {
            Refusal::TooLarge => self.refuse(400, "prompt and reply are longer than the key-value cache", None),
            Refusal::QueueFull => {
                let status = self.profile.queue.map_or(503, |queue| queue.status);
                self.refuse(status, "the queue is full", None)
            }
        }
    }

    fn refuse(&self, status: u16, message: &str, retry_after: Option<u32>) -> Response<ReplyBody> {
        self.counters.refused.fetch_add(1, Ordering::Relaxed);
        refused(status, message, retry_after)
    }

    fn reply_of(&self, asked: Asked, treatment: &Treatment, id: u64) -> Reply {
        let created_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Reply::new(asked, treatment, id, created_s, self.profile.tokens_per_chunk.get())
    }

    /// A stream. Its head goes out with its first event, as from servers that look at the first result before they answer.
    async fn stream(
        &self,
        asked: Asked,
        treatment: &Treatment,
        place: Place,
        record: Arc<RequestRecord>,
        wire: Arc<Wire>,
    ) -> io::Result<Response<ReplyBody>> {
        let reply_text = self.reply_of(asked, treatment, place.id);
        let mut stream = TokenStream::new(reply_text, place, record, wire);
        if let Some((bytes, every)) = treatment.trickle {
            stream.trickle(bytes.get() as usize, Duration::from_nanos(every.0));
        }
        stream.place.wait_for(1).await?;
        let mut response = Response::new(ReplyBody::Stream(Box::new(stream)));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        label(&mut response);
        Ok(response)
    }

    async fn whole(
        &self,
        asked: Asked,
        treatment: &Treatment,
        place: Place,
        record: Arc<RequestRecord>,
        wire: Arc<Wire>,
    ) -> io::Result<Response<ReplyBody>> {
        let tokens = asked.output_tokens;
        let reply_text = self.reply_of(asked, treatment, place.id);
        match treatment.ending {
            Ending::Complete => place.wait_for(tokens).await?,
            Ending::Error(after) | Ending::Cut(after) | Ending::Reset(after) => {
                place.wait_for(after.min(tokens)).await?
            }
        }
        match treatment.ending {
            Ending::Complete => {}
            Ending::Error(_) => return Ok(refused(500, "the simulated engine failed", None)),
            Ending::Cut(_) => return Err(io::Error::other("cut by the fault script")),
            Ending::Reset(_) => {
                wire.reset();
                return Err(io::Error::other("reset by the fault script"));
            }
        }
        record.count_tokens(tokens);
        record.completed();
        wire.handed_over(&record);
        Ok(reply(200, "application/json", reply_text.whole()))
    }
}

/// A whole reply.
fn reply(status: u16, content_type: &'static str, body: Bytes) -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::Whole(Some(body)));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    label(&mut response);
    response
}

fn refused(status: u16, message: &str, retry_after: Option<u32>) -> Response<ReplyBody> {
    let mut response = reply(status, "application/json", error_body(status, message).into());
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Says what this server is, so that no report can take its numbers for a real one's.
fn label(response: &mut Response<ReplyBody>) {
    response.headers_mut().insert(header::SERVER, HeaderValue::from_static("goodput-simulated"));
}
