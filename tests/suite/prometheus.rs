//! The `prometheus` probe over real sockets: what servers may do to it, and what it sends them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use goodput::contract::{Across, Header, HeaderSource, MetricsPage, Preset, Probe, PrometheusSource, Source};
use goodput::probe::{Context, Prober};
use goodput::record::Reading;
use goodput::simulate::run_command;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::client::HANG;
use crate::server::{Server, read_head};

/// A question for `x` on a page.
fn asks(url: &str) -> PrometheusSource {
    PrometheusSource {
        page: MetricsPage { url: url.parse().unwrap(), headers: Vec::new(), ca_file: None },
        metrics: vec!["x".to_owned()],
        labels: BTreeMap::new(),
    }
}

fn prober(source: PrometheusSource, timeout: Duration) -> Prober {
    let context = Context { folder: PathBuf::from("/"), endpoint: None, port: 1 };
    Prober::new(&Probe { source: Source::Prometheus(source), timeout }, Across::Sum, &context)
}

async fn read(prober: &mut Prober) -> Reading {
    tokio::time::timeout(HANG, prober.read()).await.unwrap()
}

/// What is read, once, from a server that gives every connection to this script; its address stands as `URL`.
async fn read_from<F, R>(timeout: Duration, script: F) -> Reading
where
    F: Fn(TcpStream) -> R + Send + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    let server = Server::start(move |_, stream| script(stream)).await;
    let url = format!("http://{}/metrics", server.address());
    let mut reading = read(&mut prober(asks(&url), timeout)).await;
    reading.failure = reading.failure.map(|failure| failure.replace(&url, "URL"));
    reading
}

/// What is read from a server that answers so to every request.
async fn read_reply(reply: impl Into<Vec<u8>>) -> Reading {
    let reply: Arc<Vec<u8>> = Arc::new(reply.into());
    read_from(HANG, move |stream| answer(stream, Arc::clone(&reply))).await
}

async fn answer(mut stream: TcpStream, reply: Arc<Vec<u8>>) {
    if read_head(&mut stream).await.is_some() {
        drop(stream.write_all(&reply).await);
        drop(stream.shutdown().await);
        drop(stream.read_to_end(&mut Vec::new()).await);
    }
}

fn page(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n{body}", body.len())
}

/// The failure of a reading that has no number.
#[track_caller]
fn failure(reading: Reading) -> String {
    assert_eq!((reading.value, reading.series.len()), (None, 0), "{reading:?}");
    let failure = reading.failure.unwrap();
    assert!(failure.chars().count() < 700 && !failure.contains('\n'), "{failure}");
    failure
}

#[tokio::test]
async fn a_page_is_read_with_one_request_that_asks_for_both_formats_plainly() {
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&heads);
    let reading = read_from(HANG, move |mut stream| {
        let seen = Arc::clone(&seen);
        async move {
            let head = read_head(&mut stream).await.unwrap();
            seen.lock().unwrap().push(head);
            answer_with(stream, &page("200 OK", "content-type: text/plain; version=0.0.4\r\n", "x 4.2e1\n")).await;
        }
    })
    .await;
    assert_eq!((reading.value, reading.failure), (Some(42.0), None));
    let heads = heads.lock().unwrap();
    assert_eq!(heads.len(), 1);
    let accept = heads[0].header("accept").unwrap();
    assert!(accept.starts_with("application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4"), "{accept}");
    assert_eq!(heads[0].header("accept-encoding"), Some("identity"));
    assert!(heads[0].head.starts_with("GET /metrics HTTP/1.1\r\n"), "{:?}", heads[0]);
}

async fn answer_with(mut stream: TcpStream, reply: &str) {
    drop(stream.write_all(reply.as_bytes()).await);
    drop(stream.shutdown().await);
    drop(stream.read_to_end(&mut Vec::new()).await);
}

#[tokio::test]
async fn nobody_there_and_nobody_answering() {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let url = format!("http://{gone}/metrics");
    let told = failure(read(&mut prober(asks(&url), HANG)).await);
    assert!(told.starts_with(&format!("the page {url} cannot be read: Connection refused")), "{told}");
    assert!(told.ends_with("; is the server up, and does it listen there?"), "{told}");

    let soon = Duration::from_millis(300);
    let late = "took longer than 300ms and was given up";
    let silent = read_from(soon, |mut stream| async move { drop(stream.read_to_end(&mut Vec::new()).await) }).await;
    assert_eq!(failure(silent), late);
    for begun in
        ["HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx 1\n"]
    {
        let begins = read_from(soon, move |mut stream| async move {
            read_head(&mut stream).await;
            stream.write_all(begun.as_bytes()).await.unwrap();
            drop(stream.read_to_end(&mut Vec::new()).await);
        });
        assert_eq!(failure(begins.await), late);
    }
}

#[tokio::test]
async fn answers_that_are_no_page_of_metrics() {
    let html = page("200 OK", "content-type: text/html\r\n", "<html>\nx 1\n</html>\n");
    let json = page("200 OK", "content-type: application/json\r\n", "{\"x\": 1}\n");
    for (reply, told) in [
        (
            html,
            "the page URL is HTML and no page of metrics, it begins `<html>\\nx 1\\n</html>`; look at the path of its URL",
        ),
        (json, "the page URL is JSON and no page of metrics, it begins `{\"x\": 1}`; look at the path of its URL"),
        (
            page("200 OK", "", "<!doctype html>\n<p>hello\n"),
            "the page URL is no page of metrics, it begins `<!doctype html>`; look at the path of its URL",
        ),
        (
            page("200 OK", "content-encoding: gzip\r\n", "x 1\n"),
            "the page URL is compressed with `gzip`, which was not asked for",
        ),
        (page("204 No Content", "", ""), "the page URL holds no metric at all"),
        (page("206 Partial Content", "", "x 1\n"), "the page URL answers 206: `x 1`"),
        (
            page("404 Not Found", "", "404 page not found\n"),
            "the page URL answers 404: `404 page not found`; look at the path of its URL",
        ),
        (
            page("501 Not Implemented", "", "Start it with `--metrics`"),
            "the page URL answers 501: `Start it with `--metrics``",
        ),
        (
            page("302 Found", "location: /login\r\n", ""),
            "the page URL answers 302 and points to `/login`; redirects are not followed",
        ),
        (
            page("200 OK", "content-type: application/openmetrics-text; version=1.0.0\r\n", "x_total 1\n"),
            "the page URL ends without `# EOF`, so that it was cut short",
        ),
        (page("200 OK", "", "x 12\nx{a"), "the page URL ends in the middle of line 2, so that it was cut short"),
        (
            page("200 OK", "", "x 1\nx 2\n"),
            "the page URL holds `x` twice, in lines 1 and 2, so that it has no one value",
        ),
        (page("200 OK", "", "x nan\n"), "gave NaN where a finite number was expected"),
    ] {
        assert_eq!(failure(read_reply(reply).await), told);
    }
    let cut = failure(read_reply("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nx 1\n").await);
    assert!(cut.starts_with("the page URL was cut short after 4 bytes: "), "{cut}");
    let garbage = failure(read_reply(b"\x00\xff\xfe garbage\r\n\r\n".to_vec()).await);
    assert!(garbage.starts_with("the page URL cannot be read: "), "{garbage}");
    let bytes = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n\xff\x00\x1b[m\n".to_vec();
    let told = failure(read_reply(bytes).await);
    assert!(told.starts_with("the page URL is no page of metrics, it begins `\u{fffd}\\0\\u{1b}[m`"), "{told}");
}

/// How much of this was written before the reader went away.
async fn pour(mut stream: TcpStream, piece: &[u8], times: usize, written: &AtomicUsize) {
    read_head(&mut stream).await;
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n").await.unwrap();
    for _ in 0..times {
        if stream.write_all(piece).await.is_err() {
            return;
        }
        written.fetch_add(piece.len(), Ordering::SeqCst);
    }
}

/// The most memory that this process ever held, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// The failure of a reading off a page that would be 1 GiB, how much of it was written, and by how much memory grew.
async fn flood(piece: Vec<u8>) -> (String, usize, u64) {
    let written = Arc::new(AtomicUsize::new(0));
    let times = (1 << 30) / piece.len();
    let (before, counted, piece) = (peak(), Arc::clone(&written), Arc::new(piece));
    let reading = read_from(HANG, move |stream| {
        let (written, piece) = (Arc::clone(&counted), Arc::clone(&piece));
        async move { pour(stream, &piece, times, &written).await }
    });
    let told = failure(reading.await);
    (told, written.load(Ordering::SeqCst), peak() - before)
}

/// What sockets may hold besides what was read.
const BUFFERS: usize = 32 << 20;

#[tokio::test]
async fn a_huge_page_is_refused_at_its_limit_in_little_memory() {
    const LINE: &[u8] = b"some_other_metric_of_this_server{a=\"b\",c=\"d\"} 1.5e3\n";
    let (told, written, _) = flood(LINE.repeat(1_000)).await;
    assert_eq!(told, "the page URL is larger than 64 MiB; is it a page of metrics?");
    assert!(written < (64 << 20) + BUFFERS, "{written}");
}

#[tokio::test]
async fn an_endless_line_is_refused_at_its_limit_in_little_memory() {
    let (told, written, _) = flood(vec![b'x'; 4_096]).await;
    assert_eq!(told, "the page URL has a line 1 longer than 1 MiB; is it a page of metrics?");
    assert!(written < (1 << 20) + BUFFERS, "{written}");
}

#[tokio::test]
#[expect(clippy::print_stderr, reason = "a test that did nothing must say so")]
async fn a_flood_of_the_wanted_series_costs_no_more_than_may_be_kept() {
    const LINE: &[u8] = b"x{a=\"b\"} 1\n";
    if std::env::var_os("NEXTEST").is_none() {
        eprintln!("left out: memory can be measured only where a test has a process of its own, under cargo nextest");
        return;
    }
    let (told, _, grown) = flood(LINE.repeat(1_000)).await;
    assert_eq!(told, "the page URL is larger than 64 MiB; is it a page of metrics?");
    assert!(grown < 32 * 1024, "{grown} KiB");
}

/// A variable that every test of cargo has.
const VARIABLE: &str = "CARGO_MANIFEST_DIR";

fn with_secret(mut source: PrometheusSource, variable: &str) -> PrometheusSource {
    let value = HeaderSource::Environment { variable: variable.to_owned(), prefix: "Bearer ".to_owned() };
    source.page.headers = vec![Header { name: "authorization".to_owned(), value }];
    source
}

#[tokio::test]
async fn secrets_are_sent_and_never_told() {
    let secret = std::env::var(VARIABLE).unwrap();
    let sent = secret.clone();
    let server = Server::start(move |number, mut stream| {
        let sent = sent.clone();
        async move {
            let head = read_head(&mut stream).await.unwrap();
            assert_eq!(head.header("authorization"), Some(format!("Bearer {sent}").as_str()));
            let reply = match number {
                0 => page("401 Unauthorized", "", &format!("bad token {sent}\n")),
                1 => page("403 Forbidden", "", &format!("{{\"seen\":\"{}\"}}", sent.replace('/', "\\/"))),
                2 => page("307 Temporary Redirect", &format!("location: /?token={sent}\r\n"), ""),
                3 => page("200 OK", "", &format!("<p>{sent}</p>\n")),
                4 => page("200 OK", "", &format!("x{{token=\"{sent}\"}} nope\n")),
                5 => page("200 OK", "", &format!("x{{token=\"{sent}\"}} 1\nx{{token=\"{sent}\"}} 1\n")),
                _ => page("200 OK", "", &format!("x{{token=\"{sent}\"}} 1\n")),
            };
            answer_with(stream, &reply).await;
        }
    })
    .await;
    let url = format!("http://{}/metrics", server.address());
    let mut probe = prober(with_secret(asks(&format!("{url}?key={secret}")), VARIABLE), HANG);
    for told in [
        "answers 401: `bad token ***`; give the header that it asks for in `headers`",
        "answers 403: `{\"seen\":\"***\"}`; give the header that it asks for in `headers`",
        "answers 307 and points to `/?token=***`; redirects are not followed",
        "is no page of metrics, it begins `<p>***</p>`; look at the path of its URL",
        "gives `x` in line 1, which has the value `nope`, which is no number",
        "holds `x{token=\"***\"}` twice, in lines 1 and 2, so that it has no one value",
    ] {
        assert_eq!(failure(read(&mut probe).await), format!("the page {url} {told}"));
    }
    let reading = read(&mut probe).await;
    assert_eq!(reading.value, Some(1.0));
    assert_eq!(reading.series[0].of, "x{token=\"***\"}");
    assert!(!format!("{probe:?}").contains(&format!("Bearer {secret}")));
}

#[tokio::test]
async fn a_secret_that_is_not_set_is_said_before_anything_is_sent() {
    let server = Server::start(|_, _| async {}).await;
    let url = format!("http://{}/metrics", server.address());
    let told = failure(read(&mut prober(with_secret(asks(&url), "NO_SUCH_VARIABLE_HERE"), HANG)).await);
    let problem = "header `authorization`: the environment variable `NO_SUCH_VARIABLE_HERE` is not set; set it to the secret \
                   before the run";
    assert_eq!(told, format!("the page {url} cannot be asked: {problem}"));
    assert_eq!(server.accepted(), 0);
    let mut source = asks(&url);
    source.page.ca_file = Some(PathBuf::from("/no/such/file.pem"));
    let told = failure(read(&mut prober(source, HANG)).await);
    assert!(told.contains("cannot be asked: cannot read ca_file `/no/such/file.pem`"), "{told}");
}

#[tokio::test]
async fn a_metric_may_come_later_and_a_server_may_begin_anew_between_readings() {
    let pages = [
        "process_start_time_seconds 1.7e9\ny 1\n",
        "process_start_time_seconds 1.7e9\nx_total 5\n",
        "process_start_time_seconds 1.7e9\nx_total 6\n",
        "process_start_time_seconds 1700000060\nx_total 6\n",
    ];
    // Connections stay open or close as the server likes.
    let server = Server::start(move |connection, mut stream| async move {
        let first = if connection == 0 { 0 } else { 2 };
        for text in &pages[first..first + 2] {
            if read_head(&mut stream).await.is_none() {
                return;
            }
            drop(stream.write_all(page("200 OK", "", text).as_bytes()).await);
        }
    })
    .await;
    let mut probe = prober(asks(&format!("http://{}/metrics", server.address())), HANG);
    let told = failure(read(&mut probe).await);
    assert!(told.ends_with("/metrics holds no metric `x`, and none of a similar name"), "{told}");
    let mut readings = Vec::new();
    for _ in 0..3 {
        let reading = read(&mut probe).await;
        assert_eq!(reading.failure, None);
        readings.push((reading.value.unwrap(), reading.series[0].since.clone().unwrap()));
    }
    let (first, second) = ("2023-11-14T22:13:20Z".to_owned(), "2023-11-14T22:14:20Z".to_owned());
    assert_eq!(readings, [(5.0, first.clone()), (6.0, first), (6.0, second)]);
    assert_eq!(server.accepted(), 2, "a connection is used again");
}

/// Two slots, which the second request has after a step of half a second, and replies that last 14 seconds.
const PROFILE: &str = "version: 1
model: { kind: batch, slots: 2, step_base: 500ms, step_per_request: 1ms, prefill_per_token: 1us, kv_tokens: 256 }
prompt_tokens: { per_word: 1 }
output_tokens: 28
";

#[tokio::test]
async fn the_simulated_endpoint_is_read_by_its_set() {
    let folder = tempfile::tempdir().unwrap();
    let profile = folder.path().join("simulated.yaml");
    std::fs::write(&profile, PROFILE).unwrap();
    let (told, listening) = tokio::sync::oneshot::channel();
    let shutdown = CancellationToken::new();
    let any_port = "127.0.0.1:0".parse().unwrap();
    let listens = |url: &str| told.send(url.to_owned()).unwrap();
    let serving = run_command(Some(profile), any_port, None, shutdown.clone(), listens);
    let reading = async {
        let url = listening.await.unwrap();
        let host = url.strip_prefix("http://").unwrap();
        let body = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"one two three four"}]}"#;
        let length = body.len();
        let request = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        );
        let mut open = Vec::new();
        for _ in 0..3 {
            let mut stream = TcpStream::connect(host).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            open.push(stream);
        }
        let page = asks(&format!("{url}/metrics")).page;
        let context = Context { folder: PathBuf::from("/"), endpoint: None, port: 1 };
        let resources = Preset::Simulated.resources(Some(&page), HANG, HANG);
        let mut probers: Vec<Prober> =
            resources.iter().map(|resource| Prober::new(&resource.probe, resource.across, &context)).collect();
        // Two of three requests run, each with 4 tokens of prompt and 28 of output out of 256: 64/256.
        let expected = [("kv_cache_usage", 0.25), ("requests_running", 2.0), ("requests_waiting", 1.0)];
        loop {
            let mut values = Vec::new();
            for (resource, prober) in resources.iter().zip(&mut probers) {
                values.push((resource.name.as_str(), read(prober).await.value.unwrap()));
            }
            if values == expected {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let both = async {
        tokio::select! {
            served = serving => panic!("it ended: {served:?}"),
            () = reading => {}
        }
    };
    tokio::time::timeout(HANG, both).await.unwrap();
}
