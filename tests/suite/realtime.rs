//! Turns over a WebSocket, against a server that is built on another WebSocket library than the client, and one that
//! writes frames byte by byte.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use goodput::contract::Endpoint;
use goodput::drive::Exchange;
use goodput::observe::{Outcome, OutputKind, Protocol, REALTIME_AUDIO};
use goodput::workload::{Case, Content, Shape, Sound, Workload};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};
use tokio_websockets::{CloseCode, Limits, Message, ServerBuilder, WebSocketStream};

use crate::client::{Client, endpoint, error};
use crate::server::{Server, answer_once, read_head};

const MS: u64 = 1_000_000;

/// A session as the server saw it.
#[derive(Debug, Clone, Default)]
struct Seen {
    path: String,
    headers: http::HeaderMap,
    /// The client's events, each with the time since the session was open.
    events: Vec<(Duration, Value)>,
    closed: bool,
}

type Shared = Arc<Mutex<Vec<Seen>>>;

/// One session, open.
struct Session {
    socket: WebSocketStream<TcpStream>,
    opened: Instant,
    seen: Seen,
}

impl Session {
    async fn open(stream: TcpStream) -> Self {
        let builder = ServerBuilder::new().limits(Limits::unlimited());
        let (request, socket) = builder.accept(stream).await.expect("a handshake");
        let path = request.uri().path_and_query().expect("a path").to_string();
        let seen = Seen { path, headers: request.headers().clone(), ..Seen::default() };
        Self { socket, opened: Instant::now(), seen }
    }

    async fn send(&mut self, event: Value) {
        self.socket.send(Message::text(event.to_string())).await.expect("the client is there");
    }

    /// Reads events up to one of this type.
    async fn until(&mut self, kind: &str) {
        while let Some(Ok(message)) = self.socket.next().await {
            let Some(text) = message.as_text() else { break };
            let event: Value = serde_json::from_str(text).expect("an event");
            let found = event["type"] == kind;
            self.seen.events.push((self.opened.elapsed(), event));
            if found {
                return;
            }
        }
        panic!("no {kind} came: {:?}", self.seen.events);
    }

    /// Waits for the client's farewell and keeps what was seen.
    async fn end(mut self, shared: &Shared) {
        let farewell = self.socket.next().await;
        self.seen.closed = farewell.is_some_and(|message| message.is_ok_and(|message| message.is_close()));
        shared.lock().expect("no panic").push(self.seen);
    }
}

fn realtime(server: &Server) -> Endpoint {
    let url = format!("ws://{}/v1/realtime?model=m", server.address());
    Endpoint {
        protocol: Protocol::OpenaiRealtime,
        input_audio: Some(REALTIME_AUDIO),
        output_audio: Some(REALTIME_AUDIO),
        idle_timeout: Duration::from_secs(1),
        ..endpoint(&url)
    }
}

/// The protocol's own payload for these fields, with this sound.
fn turn(fields: Value, sound: Option<Vec<u8>>) -> Content {
    let Value::Object(fields) = fields else { panic!("fields") };
    let template = Protocol::OpenaiRealtime.default_payload("", [None; 2], |field| fields.contains_key(field));
    let sounds = sound.map(|file| ("speech.wav".to_owned(), Sound::new("speech.wav".to_owned(), file.into())));
    let case = Case { id: "one".to_owned(), fields };
    let sounds = sounds.into_iter().collect();
    let workload = Workload::build(&[case], &template, "m", 1, Shape::Turn(REALTIME_AUDIO), &sounds);
    workload.expect("a workload").cases()[0].content.clone()
}

fn text_turn() -> Content {
    turn(json!({ "prompt": "Hello" }), None)
}

/// Half a second of sound.
fn speech() -> Vec<u8> {
    let samples: Vec<u8> = (0..24_000u32).map(|n| (n * 7 % 253) as u8).collect();
    let mut file = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0".to_vec();
    file.extend(24_000u32.to_le_bytes());
    file.extend(48_000u32.to_le_bytes());
    file.extend(b"\x02\0\x10\0data");
    file.extend((samples.len() as u32).to_le_bytes());
    file.extend(samples);
    file
}

fn delta(text: &str) -> Value {
    json!({ "type": "response.output_text.delta", "delta": text })
}

fn done() -> Value {
    let usage = json!({ "input_tokens": 7, "output_tokens": 2, "total_tokens": 9 });
    json!({ "type": "response.done", "response": { "status": "completed", "usage": usage } })
}

/// Sound of so many milliseconds as an event: each is 48 bytes.
fn sound(ms: usize) -> Value {
    use base64::Engine as _;
    let bytes = vec![1u8; 48 * ms];
    json!({ "type": "response.output_audio.delta", "delta": base64::engine::general_purpose::STANDARD.encode(bytes) })
}

async fn ask(server: &Server, content: Content) -> Exchange {
    Client::of(&realtime(server)).send_content(content, None).await
}

#[tokio::test]
async fn a_text_turn_is_a_session_of_its_own() {
    let shared = Shared::default();
    let server = Server::start({
        let shared = Arc::clone(&shared);
        move |_, stream| {
            let shared = Arc::clone(&shared);
            async move {
                let mut session = Session::open(stream).await;
                session.send(json!({ "type": "session.created", "session": {} })).await;
                session.until("response.create").await;
                session.socket.send(Message::ping("p")).await.expect("the client is there");
                for event in [json!({ "type": "response.created" }), delta("Open "), delta("water"), done()] {
                    session.send(event).await;
                }
                let pong = session.socket.next().await;
                assert!(pong.is_some_and(|message| message.is_ok_and(|message| message.is_pong())));
                session.end(&shared).await;
            }
        }
    })
    .await;
    let exchange = ask(&server, text_turn()).await;
    let trace = &exchange.trace;
    assert_eq!((trace.outcome, trace.status), (Outcome::Ok, Some(101)), "{}", error(&exchange));
    assert_eq!((trace.output_chunks, trace.input_tokens, trace.output_tokens), (2, Some(7), Some(2)));
    assert_eq!(trace.texts.as_ref().map(|texts| texts.text.as_str()), Some("Open water"));
    assert_eq!((exchange.speech_end_ns, trace.audio_ns), (None, None));
    assert!(exchange.sent_ns < trace.first_output_ns, "{exchange:?}");
    crate::server::until(|| !shared.lock().expect("no panic").is_empty()).await;
    let seen = shared.lock().expect("no panic")[0].clone();
    assert!(seen.closed, "the client says farewell");
    assert_eq!(seen.path, "/v1/realtime?model=m");
    assert_eq!(seen.headers["x-request-id"], "test-1");
    assert!(seen.headers.get("content-type").is_none() && seen.headers["user-agent"].to_str().is_ok());
    let kinds: Vec<&str> = seen.events.iter().filter_map(|(_, event)| event["type"].as_str()).collect();
    assert_eq!(kinds, ["session.update", "conversation.item.create", "response.create"]);
    let format = json!({ "type": "audio/pcm", "rate": 24_000 });
    assert_eq!(seen.events[0].1["session"]["audio"]["output"]["format"], format);
    assert_eq!(seen.events[1].1["item"]["content"][0], json!({ "type": "input_text", "text": "Hello" }));
}

#[tokio::test]
async fn speech_is_paced_in_real_time_and_the_time_counts_from_its_end() {
    let shared = Shared::default();
    let server = Server::start({
        let shared = Arc::clone(&shared);
        move |_, stream| {
            let shared = Arc::clone(&shared);
            async move {
                let mut session = Session::open(stream).await;
                session.until("response.create").await;
                sleep(Duration::from_millis(50)).await;
                session.send(json!({ "type": "response.output_audio_transcript.delta", "delta": "Hi" })).await;
                session.send(sound(100)).await;
                sleep(Duration::from_millis(250)).await;
                session.send(sound(60)).await;
                session.send(done()).await;
                session.end(&shared).await;
            }
        }
    })
    .await;
    let client = Client::of(&realtime(&server));
    let due_ns = client.clock.now_ns();
    let exchange = client.send_content(turn(json!({ "audio": "speech.wav" }), Some(speech())), None).await;
    let trace = &exchange.trace;
    assert_eq!(trace.outcome, Outcome::Ok, "{}", error(&exchange));
    let speech_end_ns = exchange.speech_end_ns.expect("it spoke");
    assert!(speech_end_ns >= due_ns + 500 * MS, "speech ends half a second after it was due");
    assert!(exchange.sent_ns.is_some_and(|sent| sent >= speech_end_ns), "{exchange:?}");
    assert!(trace.first_output_ns.is_some_and(|first| first >= speech_end_ns + 50 * MS), "{exchange:?}");
    assert_eq!(trace.first_output_kind, Some(OutputKind::Content));
    assert!(trace.first_audio_ns >= trace.first_output_ns && trace.last_output_ns > trace.first_audio_ns);
    assert_eq!((trace.audio_ns, trace.audio_bytes), (Some(160 * MS), 160 * 48));
    // The transcript and the first sound are two messages; the listener's gap is the last.
    let gap_ns = *trace.chunk_gaps_ns.last().expect("gaps");
    assert_eq!(trace.underrun_ns, Some(gap_ns.saturating_sub(100 * MS)));

    crate::server::until(|| !shared.lock().expect("no panic").is_empty()).await;
    let seen = shared.lock().expect("no panic")[0].clone();
    let pieces: Vec<&(Duration, Value)> =
        seen.events.iter().filter(|(_, event)| event["type"] == "input_audio_buffer.append").collect();
    assert_eq!(pieces.len(), 5);
    // The session was open a little after the turn was due, so the server's clock began later than the speech.
    let opened = pieces
        .iter()
        .zip(1u32..)
        .all(|((at, _), nth)| *at + Duration::from_millis(60) >= nth * Duration::from_millis(100));
    assert!(opened, "no piece comes before it was spoken: {:?}", pieces.iter().map(|(at, _)| at).collect::<Vec<_>>());
    let kinds: Vec<&str> = seen.events.iter().filter_map(|(_, event)| event["type"].as_str()).collect();
    assert_eq!(kinds[0], "session.update");
    assert_eq!(kinds[6..], ["input_audio_buffer.commit", "response.create"]);
}

/// How a server may treat a client that has said what it wants.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Close(u16),
    CloseWithoutCode,
    Drop,
    Raw(&'static [u8]),
    LongPing,
    Oversize,
    EndlessFragments,
    OnlyPings,
    /// The same frame for ever, as fast as it can be written.
    Flood(&'static [u8]),
}

async fn meet(fate: Fate, stream: TcpStream) {
    let mut session = Session::open(stream).await;
    session.until("response.create").await;
    session.send(delta("x")).await;
    match fate {
        Fate::Close(code) => {
            let code = CloseCode::try_from(code).expect("a code");
            drop(session.socket.send(Message::close(Some(code), "overloaded")).await);
        }
        Fate::CloseWithoutCode => drop(session.socket.send(Message::close(None, "")).await),
        Fate::Drop => return,
        Fate::Raw(bytes) => drop(session.socket.get_mut().write_all(bytes).await),
        // A control frame holds at most 125 bytes.
        Fate::LongPing => {
            let stream = session.socket.get_mut();
            drop(stream.write_all(&[&b"\x89\x7e\x01\0"[..], &[b'x'; 256]].concat()).await);
        }
        // A text frame whose head promises a tebibyte.
        Fate::Oversize => drop(session.socket.get_mut().write_all(b"\x81\x7f\0\0\x01\0\0\0\0\0").await),
        Fate::EndlessFragments => {
            let mut fragment = b"\x00\x7f\0\0\0\0\0\x10\0\0".to_vec();
            fragment.resize(10 + (1 << 20), b'x');
            let stream = session.socket.get_mut();
            let mut head: &[u8] = b"\x01\x01x";
            while stream.write_all(head).await.is_ok() {
                head = &fragment;
            }
        }
        Fate::Flood(frame) => {
            let frames = frame.repeat((64 << 10) / frame.len());
            while session.socket.get_mut().write_all(&frames).await.is_ok() {}
        }
        Fate::OnlyPings => {
            while session.socket.send(Message::ping("still here")).await.is_ok() {
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
    drop(session.socket.into_inner().read_to_end(&mut Vec::new()).await);
}

#[tokio::test]
async fn sessions_that_go_wrong_end_in_the_right_outcome() {
    use Outcome::{ProtocolError, StreamError, Timeout, TruncatedStream};
    for (fate, outcome, code, said) in [
        (Fate::Close(1000), TruncatedStream, Some(1000), ""),
        (Fate::Close(1011), StreamError, Some(1011), "overloaded"),
        (Fate::Close(1013), StreamError, Some(1013), "1013"),
        (Fate::CloseWithoutCode, TruncatedStream, Some(1005), ""),
        (Fate::Drop, TruncatedStream, Some(1006), ""),
        // Reserved bits, a reserved opcode, a masked frame, a text that is no UTF-8, a fragment of nothing, a long ping.
        (Fate::Raw(b"\xf1\x01x"), ProtocolError, None, "Reserved bits"),
        (Fate::Raw(b"\x83\x01x"), ProtocolError, None, "nvalid opcode"),
        (Fate::Raw(b"\x81\x81\0\0\0\0x"), ProtocolError, None, "masked"),
        (Fate::Raw(b"\x81\x01\xff"), ProtocolError, None, "UTF-8"),
        (Fate::Raw(b"\x80\x01x"), ProtocolError, None, "ontinue frame"),
        (Fate::LongPing, ProtocolError, None, "ontrol frame"),
        (Fate::Oversize, ProtocolError, None, "too long"),
        (Fate::EndlessFragments, ProtocolError, None, "too long"),
        (Fate::OnlyPings, Timeout, None, "idle"),
        // Pings, pongs and empty pieces of a message are none; a message that says nothing is one, and has the whole time.
        (Fate::Flood(b"\x89\x00"), Timeout, None, "idle"),
        (Fate::Flood(b"\x8a\x00"), Timeout, None, "idle"),
        (Fate::Flood(b"\x81\x02{}"), Timeout, None, "total"),
    ] {
        let server = Server::start(move |_, stream| meet(fate, stream)).await;
        let endpoint = Endpoint { timeout: Duration::from_secs(3), ..realtime(&server) };
        let exchange = Client::of(&endpoint).send_content(text_turn(), None).await;
        let trace = &exchange.trace;
        assert_eq!((trace.outcome, trace.output_chunks), (outcome, 1), "{fate:?}: {}", error(&exchange));
        assert!(error(&exchange).contains(said), "{fate:?}: {}", error(&exchange));
        if code.is_some() || outcome != ProtocolError {
            assert_eq!(trace.close_code, code, "{fate:?}");
        }
    }
}

/// The server's whole reply leaves together with its handshake, before any event of the client can have come.
#[tokio::test]
async fn an_answer_to_nothing_is_no_answer() {
    let server = Server::start(|_, mut stream: TcpStream| async move {
        let request = read_head(&mut stream).await.expect("a request").head;
        let (mut ours, theirs) = tokio::io::duplex(1 << 16);
        ours.write_all(request.as_bytes()).await.expect("room");
        let (_, mut socket) = ServerBuilder::new().accept(theirs).await.expect("a handshake");
        for event in [delta("x"), done()] {
            socket.send(Message::text(event.to_string())).await.expect("room");
        }
        drop(socket);
        let mut reply = Vec::new();
        ours.read_to_end(&mut reply).await.expect("the reply");
        stream.write_all(&reply).await.expect("the client is there");
        drop(stream.read_to_end(&mut Vec::new()).await);
    })
    .await;
    let exchange = ask(&server, text_turn()).await;
    assert_eq!(exchange.trace.outcome, Outcome::ProtocolError);
    assert!(error(&exchange).contains("before the turn was sent"), "{}", error(&exchange));
}

#[tokio::test]
async fn sessions_that_are_not_opened_end_as_requests_do() {
    let unauthorised = "HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\ncontent-length: 35\r\n\r\n\
                        {\"error\":{\"message\":\"no such token\"}}";
    let wrong_key = "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\
                     sec-websocket-accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n";
    let in_pieces = "HTTP/1.1 403 Forbidden\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n|\
                     14\r\n{\"error\":{\"message\":\r\n|e\r\n\"not allowed\"}}\r\n0\r\n\r\n";
    let other = "HTTP/1.1 101 Switching Protocols\r\nupgrade: h2c\r\nconnection: Upgrade\r\n\r\n";
    for (reply, outcome, status, said) in [
        (in_pieces, Outcome::HttpError, Some(403), "not allowed"),
        (other, Outcome::ProtocolError, None, "another protocol"),
        (unauthorised, Outcome::HttpError, Some(401), "no such token"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", Outcome::ProtocolError, Some(200), "WebSocket"),
        (wrong_key, Outcome::ProtocolError, None, "Sec-WebSocket-Accept"),
        ("no HTTP at all\r\n\r\n", Outcome::ProtocolError, None, ""),
        ("", Outcome::NoResponse, None, ""),
    ] {
        let server = Server::start(move |_, mut stream: TcpStream| async move {
            drop(read_head(&mut stream).await);
            for piece in reply.split('|') {
                drop(stream.write_all(piece.as_bytes()).await);
                sleep(Duration::from_millis(20)).await;
            }
            drop(stream.shutdown().await);
            drop(stream.read_to_end(&mut Vec::new()).await);
        })
        .await;
        let exchange = ask(&server, text_turn()).await;
        let found = (exchange.trace.outcome, exchange.trace.status, exchange.sent_ns);
        assert_eq!(found, (outcome, status, None), "{reply}: {}", error(&exchange));
        assert!(error(&exchange).contains(said), "{reply}: {}", error(&exchange));
    }
    // A server of plain HTTP that waits for a body that never comes does not hold the turn beyond its limit.
    let server = Server::start(|_, stream| answer_once(stream, "")).await;
    let slow = Endpoint { timeout: Duration::from_millis(700), ..realtime(&server) };
    let exchange = Client::of(&slow).send_content(text_turn(), None).await;
    assert!(matches!(exchange.trace.outcome, Outcome::Timeout | Outcome::NoResponse), "{exchange:?}");
}

#[tokio::test]
async fn a_reply_is_read_the_same_however_its_frames_are_cut() {
    let frames = |fragmented: bool| {
        let mut bytes = Vec::new();
        for event in [delta("Open "), delta("water"), done()] {
            let text = event.to_string().into_bytes();
            let (first, rest) = if fragmented { text.split_at(9) } else { text.split_at(text.len()) };
            for (op, part) in [(0x01u8, first), (0x00, rest)] {
                if part.is_empty() {
                    continue;
                }
                let last = !fragmented || op == 0;
                let size = part.len() as u16;
                bytes.push(if last { op | 0x80 } else { op });
                // A control frame between fragments is allowed.
                bytes.push(126);
                bytes.extend(size.to_be_bytes());
                bytes.extend(part);
                if !last {
                    bytes.extend(b"\x89\x00");
                }
            }
        }
        bytes
    };
    for (fragmented, step) in [(false, 1), (true, 1), (true, 7), (false, usize::MAX)] {
        let bytes = frames(fragmented);
        let server = Server::start(move |_, stream| {
            let bytes = bytes.clone();
            async move {
                let mut session = Session::open(stream).await;
                session.until("response.create").await;
                let mut stream = session.socket.into_inner();
                for piece in bytes.chunks(step) {
                    drop(stream.write_all(piece).await);
                    tokio::task::yield_now().await;
                }
                drop(stream.read_to_end(&mut Vec::new()).await);
            }
        })
        .await;
        let exchange = ask(&server, text_turn()).await;
        let trace = &exchange.trace;
        assert_eq!((trace.outcome, trace.output_chunks), (Outcome::Ok, 2), "{}", error(&exchange));
        assert_eq!(trace.texts.as_ref().map(|texts| texts.text.as_str()), Some("Open water"));
    }
}

/// What proxies make of the header is still an upgrade.
#[tokio::test]
async fn an_upgrade_is_told_by_its_words_and_not_by_their_company() {
    let server = Server::start(|_, mut stream: TcpStream| async move {
        let request = read_head(&mut stream).await.expect("a request");
        let key = request.header("sec-websocket-key").expect("a key");
        let accept = tokio_tungstenite::tungstenite::handshake::derive_accept_key(key.as_bytes());
        let head = format!(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n\
             Sec-WebSocket-Accept: {accept}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.expect("the client is there");
        let mut socket = ServerBuilder::new().serve(stream);
        while let Some(Ok(message)) = socket.next().await {
            if message.as_text().is_some_and(|text| text.contains("response.create")) {
                for event in [delta("x"), done()] {
                    drop(socket.send(Message::text(event.to_string())).await);
                }
            }
        }
    })
    .await;
    let exchange = ask(&server, text_turn()).await;
    assert_eq!((exchange.trace.outcome, exchange.trace.status), (Outcome::Ok, Some(101)), "{}", error(&exchange));
}
