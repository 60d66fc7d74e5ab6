//! HTTP/2: shared connections that never become a queue, and streams and connections that the server ends.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::future::join_all;
use goodput::contract::HttpVersion;
use goodput::observe::Outcome;
use http::{Request, Response, Version};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Barrier;

use crate::client::{Client, endpoint};
use crate::server::{DELTA, EVENTS, Server};

fn client(server: &Server) -> Client {
    let mut endpoint = endpoint(&server.url());
    endpoint.http = HttpVersion::Http2;
    Client::of(&endpoint)
}

async fn whole(request: Request<Incoming>) -> Response<Full<Bytes>> {
    assert_eq!(request.version(), Version::HTTP_2);
    request.into_body().collect().await.unwrap();
    let reply = Response::builder().header("content-type", "text/event-stream");
    reply.body(Full::new(Bytes::from_static(EVENTS.as_bytes()))).unwrap()
}

/// A server that allows so many streams on a connection and answers when `together` requests are there.
async fn gathering(streams: u32, together: usize) -> Server {
    let barrier = Arc::new(Barrier::new(together));
    Server::start(move |_, stream| {
        let barrier = Arc::clone(&barrier);
        async move {
            let service = service_fn(move |request| {
                let barrier = Arc::clone(&barrier);
                async move {
                    let reply = whole(request).await;
                    barrier.wait().await;
                    Ok::<_, Infallible>(reply)
                }
            });
            let mut builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            drop(builder.max_concurrent_streams(streams).serve_connection(TokioIo::new(stream), service).await);
        }
    })
    .await
}

#[tokio::test]
async fn by_prior_knowledge_one_connection_carries_every_request() {
    let server = gathering(100, 1).await;
    let client = client(&server);
    for _ in 0..10 {
        let exchange = client.ask().await;
        assert_eq!(exchange.trace.outcome, Outcome::Ok, "{:?}", exchange.trace.error);
    }
    assert_eq!(server.accepted(), 1);
}

#[tokio::test]
async fn a_limit_on_streams_opens_connections_and_never_a_queue() {
    // Nothing is answered before all 40 are there: one that waited for a stream would keep all of them waiting.
    let server = gathering(3, 40).await;
    let client = client(&server);
    for round in 0..3 {
        let asked = join_all((0..40).map(|_| client.ask())).await;
        let ok = asked.iter().filter(|exchange| exchange.trace.outcome == Outcome::Ok).count();
        assert_eq!(ok, 40, "round {round}: {:?}", asked.iter().find_map(|exchange| exchange.trace.error.clone()));
    }
    assert!((14..=40).contains(&server.accepted()), "{} connections for 40 requests at once", server.accepted());
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const MAX_CONCURRENT_STREAMS: u8 = 3;
const INTERNAL_ERROR: u32 = 2;
const REFUSED_STREAM: u32 = 7;

/// An HTTP/2 connection of which the test writes every frame (RFC 9113, section 4).
struct Frames(TcpStream);

impl Frames {
    /// Takes the client's preface and sends empty settings.
    async fn open(mut stream: TcpStream) -> Self {
        let mut preface = [0; 24];
        stream.read_exact(&mut preface).await.unwrap();
        let mut frames = Self(stream);
        frames.write(SETTINGS, 0, 0, &[]).await;
        frames
    }

    async fn write(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        self.0.write_all(&frame).await.unwrap();
    }

    /// Waits for a whole request and gives back its stream; `None` when the client has closed.
    async fn request(&mut self) -> Option<u32> {
        loop {
            let mut head = [0; 9];
            self.0.read_exact(&mut head).await.ok()?;
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; length as usize];
            self.0.read_exact(&mut payload).await.ok()?;
            let (kind, flags) = (head[3], head[4]);
            if kind == SETTINGS && flags == 0 {
                self.write(SETTINGS, 1, 0, &[]).await;
            }
            if [HEADERS, DATA].contains(&kind) && flags & END_STREAM != 0 {
                return Some(u32::from_be_bytes([head[5], head[6], head[7], head[8]]));
            }
        }
    }

    /// Status 200 and the content type of an event stream (RFC 7541: `:status: 200` is entry 8, `content-type` entry 31).
    async fn head(&mut self, stream: u32) {
        let mut block = vec![0x88, 0x0f, 0x10, 17];
        block.extend(b"text/event-stream");
        self.write(HEADERS, END_HEADERS, stream, &block).await;
    }

    async fn reset(&mut self, stream: u32, code: u32) {
        self.write(RST_STREAM, 0, stream, &code.to_be_bytes()).await;
    }

    async fn go_away(&mut self, last_stream: u32) {
        let payload = [last_stream.to_be_bytes(), 0u32.to_be_bytes()].concat();
        self.write(GOAWAY, 0, 0, &payload).await;
    }

    async fn whole(&mut self, stream: u32) {
        self.head(stream).await;
        self.write(DATA, END_STREAM, stream, EVENTS.as_bytes()).await;
    }
}

#[tokio::test]
async fn a_limit_that_the_server_lowers_holds_at_once() {
    let barrier = Arc::new(Barrier::new(2));
    let server = Server::start(move |number, stream| {
        let barrier = Arc::clone(&barrier);
        async move {
            let mut frames = Frames::open(stream).await;
            if number == 0 {
                let first = frames.request().await.unwrap();
                frames.write(SETTINGS, 0, 0, &[0, MAX_CONCURRENT_STREAMS, 0, 0, 0, 1]).await;
                frames.whole(first).await;
            }
            let stream = frames.request().await.unwrap();
            barrier.wait().await;
            frames.whole(stream).await;
            frames.request().await;
        }
    })
    .await;
    let client = client(&server);
    assert_eq!(client.ask().await.trace.outcome, Outcome::Ok);
    // The two are answered when both are there, and one connection takes only one of them now.
    let asked = join_all([client.ask(), client.ask()]).await;
    assert!(asked.iter().all(|exchange| exchange.trace.outcome == Outcome::Ok));
    assert_eq!(server.accepted(), 2);
}

#[tokio::test]
async fn a_reset_stream_ends_its_request_alone() {
    let server = Server::start(|_, stream| async move {
        let mut frames = Frames::open(stream).await;
        let refused = frames.request().await.unwrap();
        frames.reset(refused, REFUSED_STREAM).await;
        let cut = frames.request().await.unwrap();
        frames.head(cut).await;
        frames.write(DATA, 0, cut, DELTA.as_bytes()).await;
        frames.reset(cut, INTERNAL_ERROR).await;
        while let Some(stream) = frames.request().await {
            frames.whole(stream).await;
        }
    })
    .await;
    let client = client(&server);
    let outcomes = [client.ask().await, client.ask().await, client.ask().await].map(|asked| asked.trace.outcome);
    assert_eq!(outcomes, [Outcome::NoResponse, Outcome::TruncatedStream, Outcome::Ok]);
    assert_eq!(server.accepted(), 1);
}

#[tokio::test]
async fn a_connection_that_goes_away_finishes_what_it_took_and_takes_no_more() {
    let taken = Arc::new(AtomicUsize::new(0));
    let server = Server::start({
        let taken = Arc::clone(&taken);
        move |_, stream| {
            let taken = Arc::clone(&taken);
            async move {
                let mut frames = Frames::open(stream).await;
                let stream = frames.request().await.unwrap();
                taken.fetch_add(1, Ordering::SeqCst);
                frames.go_away(stream).await;
                frames.whole(stream).await;
                assert_eq!(frames.request().await, None);
            }
        }
    })
    .await;
    let client = client(&server);
    for _ in 0..3 {
        let exchange = client.ask().await;
        assert_eq!(exchange.trace.outcome, Outcome::Ok, "{:?}", exchange.trace.error);
    }
    assert_eq!((server.accepted(), taken.load(Ordering::SeqCst)), (3, 3));
}

#[tokio::test]
async fn a_request_that_a_leaving_connection_did_not_take_has_no_response() {
    let server = Server::start(|number, stream| async move {
        let mut frames = Frames::open(stream).await;
        let stream = frames.request().await.unwrap();
        if number == 0 {
            frames.go_away(0).await;
        } else {
            frames.whole(stream).await;
            frames.request().await;
        }
    })
    .await;
    let client = client(&server);
    let outcomes = [client.ask().await, client.ask().await].map(|asked| asked.trace.outcome);
    // It is not tried again behind the user's back; the next one finds a connection that works.
    assert_eq!(outcomes, [Outcome::NoResponse, Outcome::Ok]);
    assert_eq!(server.accepted(), 2);
}
