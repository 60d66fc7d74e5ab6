//! One measured request at a time through the driver, for tests that bring their own server.

use std::time::Duration;

use bytes::Bytes;
use goodput::contract::{Endpoint, HttpVersion};
use goodput::drive::{Clock, Exchange, Order, Pool, Target, exchange};
use goodput::observe::{Outcome, Protocol};
use goodput::workload::{Content, RenderedCase};
use tokio_util::sync::CancellationToken;

use crate::server::{Server, answer_once};

/// Longer than any of these can take; only a hang meets it.
pub(crate) const HANG: Duration = Duration::from_secs(60);

/// Long enough for a connection to show that its server keeps it open; from then on connections are used again at once.
pub(crate) const REST: Duration = Duration::from_millis(80);

/// An endpoint with nothing special about it.
pub(crate) fn endpoint(url: &str) -> Endpoint {
    Endpoint {
        url: url.parse().expect("a URL"),
        protocol: Protocol::OpenaiChat,
        model: "m".to_owned(),
        headers: Vec::new(),
        timeout: Duration::from_secs(20),
        idle_timeout: Duration::from_secs(10),
        http: HttpVersion::Auto,
        ca_file: None,
        proxy: None,
        input_audio: None,
        output_audio: None,
        launch: None,
    }
}

/// Connections towards one endpoint.
pub(crate) struct Client {
    pub(crate) clock: Clock,
    pub(crate) pool: Pool,
    target: Target,
}

impl Client {
    pub(crate) fn of(endpoint: &Endpoint) -> Self {
        let clock = Clock::start();
        Self { clock, pool: Pool::new(clock), target: Target::new(endpoint).expect("a target") }
    }

    pub(crate) fn to(url: &str) -> Self {
        Self::of(&endpoint(url))
    }

    /// Sends a small request that is due now.
    pub(crate) async fn ask(&self) -> Exchange {
        self.send(Bytes::from_static(br#"{"model":"m","stream":true}"#)).await
    }

    /// Sends a request with this body that is due now.
    pub(crate) async fn send(&self, body: Bytes) -> Exchange {
        self.send_content(Content::Json(body), None).await
    }

    /// Sends this content, with so much sound in it, due now.
    pub(crate) async fn send_content(&self, content: Content, audio_ns: Option<u64>) -> Exchange {
        let case = RenderedCase { id: "one".to_owned(), content, audio_ns };
        let order = Order::of(&case, "test-1".to_owned(), self.clock.now_ns(), true);
        let cancel = CancellationToken::new();
        let asking = exchange(&self.pool, &self.target, self.clock, order, &cancel);
        tokio::time::timeout(HANG, asking).await.expect("no hang")
    }
}

/// Asks a server that answers every request with these bytes and then closes.
pub(crate) async fn ask_once(bytes: impl AsRef<[u8]> + Clone + Send + 'static) -> Exchange {
    let server = Server::start(move |_, stream| answer_once(stream, bytes.clone())).await;
    let exchange = Client::to(&server.url()).ask().await;
    assert_eq!(server.accepted(), 1, "nothing is tried twice");
    exchange
}

/// What went wrong, if anything did.
pub(crate) fn error(exchange: &Exchange) -> &str {
    exchange.trace.error.as_deref().unwrap_or_default()
}

/// The whole reply of [`crate::server::EVENTS`] arrived.
#[track_caller]
pub(crate) fn assert_ok(exchange: &Exchange) {
    let trace = &exchange.trace;
    assert_eq!((trace.outcome, trace.output_tokens), (Outcome::Ok, Some(1)), "{:?}", trace.error);
}
