//! HTTP/1 as servers really speak it: what is reused, and what ends in which outcome.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use goodput::contract::{Endpoint, HttpVersion};
use goodput::observe::{Outcome, Warning};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpSocket;

use crate::client::{Client, HANG, REST, ask_once, assert_ok, endpoint, error};
use crate::server::{ENDLESS_HEAD, EVENTS, Server, answer_all, answer_once, read_head, read_request, reply, until};

#[tokio::test]
async fn a_kept_connection_carries_every_request() {
    let server = Server::start(|_, stream| answer_all(stream, reply(""))).await;
    let client = Client::to(&server.url());
    assert_ok(&client.ask().await);
    tokio::time::sleep(REST).await;
    for _ in 0..20 {
        assert_ok(&client.ask().await);
    }
    assert_eq!(server.accepted(), 1);
    assert_eq!(client.pool.open_connections(), 1);
}

/// What llama.cpp's server does after every stream: it promises to keep the connection, and closes it.
#[tokio::test]
async fn a_server_that_breaks_its_promise_to_keep_connections_costs_no_failure() {
    let server = Server::start(|_, mut stream| async move {
        read_request(&mut stream).await;
        stream.write_all(reply("keep-alive: timeout=5, max=100\r\n").as_bytes()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
    })
    .await;
    let client = Client::to(&server.url());
    for _ in 0..20 {
        assert_ok(&client.ask().await);
    }
    assert_eq!(server.accepted(), 20);
}

#[tokio::test]
async fn a_server_that_closes_idle_connections_costs_no_failure() {
    let closed = Arc::new(AtomicUsize::new(0));
    let server = Server::start({
        let closed = Arc::clone(&closed);
        move |_, mut stream| {
            let closed = Arc::clone(&closed);
            async move {
                read_request(&mut stream).await;
                stream.write_all(reply("").as_bytes()).await.unwrap();
                drop(stream);
                closed.fetch_add(1, Ordering::SeqCst);
            }
        }
    })
    .await;
    let client = Client::to(&server.url());
    for asked in 1..=10 {
        assert_ok(&client.ask().await);
        until(|| closed.load(Ordering::SeqCst) == asked).await;
        // The runtime hears of the closed connection the next time that it waits for anything.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(server.accepted(), 10);
}

#[tokio::test]
async fn replies_that_end_with_their_connection_are_whole() {
    for head in [
        "HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n".to_owned(),
        ENDLESS_HEAD.to_owned(),
        format!(
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\nContent-Type: text/event-stream\r\n\r\n",
            EVENTS.len()
        ),
    ] {
        let bytes = format!("{head}{EVENTS}");
        let server = Server::start(move |_, stream| answer_once(stream, bytes.clone())).await;
        let client = Client::to(&server.url());
        for _ in 0..2 {
            assert_ok(&client.ask().await);
        }
        assert_eq!(server.accepted(), 2, "{head}");
    }
}

#[tokio::test]
async fn interim_replies_are_no_replies() {
    let interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </s>; rel=preload\r\n\r\n";
    let exchange = ask_once(format!("{interim}{}", reply(""))).await;
    assert_ok(&exchange);
    assert_eq!(exchange.trace.status, Some(200));
}

#[tokio::test]
async fn compressed_bytes_are_not_what_was_asked_for() {
    let exchange = ask_once(reply("Content-Encoding: gzip\r\n")).await;
    assert_eq!(exchange.trace.outcome, Outcome::ProtocolError);
    assert!(error(&exchange).contains("gzip"), "{}", error(&exchange));
    assert_ok(&ask_once(reply("Content-Encoding: identity\r\n")).await);
}

#[tokio::test]
async fn identity_is_what_is_asked_for() {
    let server = Server::start(|_, mut stream| async move {
        let request = read_request(&mut stream).await.unwrap();
        let asked = [request.header("accept-encoding"), request.header("accept"), request.header("x-request-id")];
        assert_eq!(asked, [Some("identity"), Some("text/event-stream"), Some("test-1")], "{}", request.head);
        stream.write_all(reply("").as_bytes()).await.unwrap();
    })
    .await;
    // A failed assertion closes the connection without a reply.
    assert_ok(&Client::to(&server.url()).ask().await);
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let bytes = "HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n";
    let exchange = ask_once(bytes).await;
    assert_eq!((exchange.trace.outcome, exchange.trace.status), (Outcome::HttpError, Some(302)));
}

#[tokio::test]
async fn a_content_type_that_does_not_fit_is_told_from_a_body_that_does_not() {
    let typed = |content_type: &str, body: &str| {
        let length = body.len();
        format!("HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n{body}")
    };
    let exchange = ask_once(typed("text/plain", EVENTS)).await;
    assert_ok(&exchange);
    assert!(exchange.trace.warnings.contains(&Warning::ContentType), "{:?}", exchange.trace.warnings);
    for (content_type, body) in [
        ("text/html", "<html>sign in</html>"),
        ("image/png", "\u{89}PNG\r\n\u{1a}\nIHDR"),
        ("application/json", "{\"choices\":[]}"),
    ] {
        let exchange = ask_once(typed(content_type, body)).await;
        assert_eq!(exchange.trace.outcome, Outcome::ProtocolError, "{content_type}: {}", error(&exchange));
    }
}

#[tokio::test]
async fn an_answer_before_the_request_was_read_is_the_answer() {
    let server = Server::start(|_, mut stream| async move {
        read_head(&mut stream).await;
        let refusal = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 8\r\n\r\ntoo long";
        stream.write_all(refusal.as_bytes()).await.unwrap();
        tokio::time::sleep(HANG).await;
    })
    .await;
    let client = Client::to(&server.url());
    // More than the sockets' buffers hold, so that sending it cannot end.
    let body = Bytes::from(vec![b'x'; 32 << 20]);
    for accepted in 1..=2 {
        let exchange = client.send(body.clone()).await;
        assert_eq!((exchange.trace.outcome, exchange.trace.status), (Outcome::HttpError, Some(413)));
        assert_eq!(error(&exchange), "too long");
        // The rest of the request is still to come on that connection: nothing else may go there.
        assert_eq!(server.accepted(), accepted);
    }
}

/// An answer to nothing is no answer to the request, however well it reads.
#[tokio::test]
async fn a_reply_that_is_over_before_the_request_was_sent_is_no_answer_to_it() {
    let server = Server::start(|_, mut stream| async move {
        stream.write_all(reply("").as_bytes()).await.unwrap();
        tokio::time::sleep(HANG).await;
    })
    .await;
    let client = Client::to(&server.url());
    // More than the sockets' buffers hold, so that sending it cannot end.
    let exchange = client.send(Bytes::from(vec![b'x'; 32 << 20])).await;
    assert_eq!(exchange.trace.outcome, Outcome::ProtocolError, "{}", error(&exchange));
    assert!(error(&exchange).contains("before the request was sent"), "{}", error(&exchange));
    assert_eq!(client.pool.open_connections(), 0);
}

#[tokio::test]
async fn a_reply_that_nobody_asked_for_is_not_the_next_requests() {
    let unasked = reply("").replace("\"ok\"", "\"no\"");
    for pause in [Duration::ZERO, REST / 2] {
        let unasked = unasked.clone();
        let server = Server::start(move |_, mut stream| {
            let unasked = unasked.clone();
            async move {
                while read_request(&mut stream).await.is_some() {
                    // Without a pause both come in one write.
                    let (mut now, mut later) = (reply(""), unasked.clone());
                    if pause.is_zero() {
                        now.push_str(&std::mem::take(&mut later));
                    }
                    drop(stream.write_all(now.as_bytes()).await);
                    tokio::time::sleep(pause).await;
                    drop(stream.write_all(later.as_bytes()).await);
                }
            }
        })
        .await;
        let client = Client::to(&server.url());
        for asked in 1..=3 {
            let exchange = client.ask().await;
            assert_ok(&exchange);
            assert_eq!(exchange.trace.texts.unwrap().text, "ok");
            assert_eq!(server.accepted(), asked, "such a connection carries nothing more");
            tokio::time::sleep(REST).await;
        }
    }
}

#[tokio::test]
async fn a_status_line_that_is_none_is_a_protocol_error() {
    for bytes in [
        &b"SSH-2.0-OpenSSH_9.6\r\n\r\n"[..],
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"\x15\x03\x03\x00\x02\x02\x46\r\n\r\n",
        b"data: {}\n\n",
        b"HTTP/1.1 200 OK\r\nno colon here\r\n\r\n",
    ] {
        let exchange = ask_once(bytes).await;
        let shown = String::from_utf8_lossy(bytes);
        assert_eq!(exchange.trace.outcome, Outcome::ProtocolError, "{shown}: {}", error(&exchange));
    }
}

#[tokio::test]
async fn a_connection_that_ends_before_a_status_line_is_no_response() {
    for bytes in [&b""[..], b"HTTP/1.1 2"] {
        let exchange = ask_once(bytes).await;
        assert_eq!(exchange.trace.outcome, Outcome::NoResponse, "{}", error(&exchange));
        assert!(exchange.sent_ns.is_some(), "it was sent all the same");
    }
}

#[tokio::test]
async fn a_slow_accept_is_the_users_wait_and_no_failure() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let wait = Duration::from_millis(300);
    let server = Server::on(socket.listen(1).unwrap(), wait, |_, stream| answer_all(stream, reply("")));
    let client = Client::to(&server.url());
    let due_ns = client.clock.now_ns();
    for exchange in join_all((0..6).map(|_| client.ask())).await {
        assert_ok(&exchange);
        assert!(exchange.trace.first_output_ns.unwrap() - due_ns >= wait.as_nanos() as u64 - 50_000_000);
    }
}

#[tokio::test]
async fn where_nobody_listens_there_is_no_connection() {
    let server = Server::start(|_, stream| answer_all(stream, reply(""))).await;
    let (url, address) = (server.url(), server.address());
    drop(server);
    until(|| std::net::TcpStream::connect(address).is_err()).await;
    let exchange = Client::to(&url).ask().await;
    assert_eq!((exchange.trace.outcome, exchange.sent_ns), (Outcome::ConnectError, None));
    assert!(error(&exchange).starts_with(&format!("no connection to {address}: ")), "{}", error(&exchange));
}

#[tokio::test]
async fn a_name_that_does_not_resolve_is_no_connection() {
    // RFC 6761 keeps `.invalid` from ever being a name.
    let exchange = Client::to("http://goodput.invalid:8000/v1").ask().await;
    assert_eq!(exchange.trace.outcome, Outcome::ConnectError, "{}", error(&exchange));
    assert!(error(&exchange).contains("goodput.invalid:8000"), "{}", error(&exchange));
}

#[tokio::test]
async fn a_url_of_http2_is_not_answered_by_http1() {
    let server = Server::start(|_, stream| answer_once(stream, reply(""))).await;
    let mut endpoint = endpoint(&server.url());
    endpoint.http = HttpVersion::Http2;
    endpoint.idle_timeout = Duration::from_millis(500);
    let exchange = Client::of(&endpoint).ask().await;
    assert!(
        matches!(exchange.trace.outcome, Outcome::ProtocolError | Outcome::NoResponse | Outcome::Timeout),
        "{:?}: {}",
        exchange.trace.outcome,
        error(&exchange)
    );
}

/// Interim replies are no reply, however many come.
#[tokio::test]
async fn endless_interim_replies_end_at_the_limit() {
    let server = Server::start(|_, mut stream| async move {
        read_request(&mut stream).await;
        let interim = b"HTTP/1.1 100 Continue\r\n\r\n".repeat(1_000);
        while stream.write_all(&interim).await.is_ok() {}
    })
    .await;
    let limited = Endpoint { timeout: Duration::from_secs(2), ..endpoint(&server.url()) };
    let exchange = Client::of(&limited).ask().await;
    assert_eq!((exchange.trace.outcome, exchange.trace.status), (Outcome::Timeout, None), "{}", error(&exchange));
}
