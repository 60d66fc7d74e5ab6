//! The store `s3` against servers that do what a test says; what a real storage says is in `real::s3`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use goodput::baseline::Store;
use goodput::baseline::s3::Bucket;
use object_store::aws::AmazonS3Builder;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::records::{commit, corrupt, record, records, unavailable};
use crate::server::{Received, Server, read_head};

const NAME: &str = "gamma-26b-chat";
const SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";

fn bucket(url: &str) -> Bucket {
    let builder = AmazonS3Builder::new().with_access_key_id("AKIAIOSFODNN7EXAMPLE").with_secret_access_key(SECRET);
    Bucket::with(builder, "records", "goodput", "us-east-1", Some(&url.parse().unwrap())).unwrap()
}

/// A server that answers each request with what `script` says of its number and head, and closes.
async fn answering(script: impl Fn(usize, &Received) -> Vec<u8> + Send + Sync + 'static) -> (Server, String) {
    let (script, number) = (Arc::new(script), Arc::new(AtomicUsize::new(0)));
    let server = Server::start(move |_, stream| answer(stream, Arc::clone(&script), Arc::clone(&number))).await;
    let url = format!("http://{}", server.address());
    (server, url)
}

async fn answer(mut stream: TcpStream, script: Arc<impl Fn(usize, &Received) -> Vec<u8>>, number: Arc<AtomicUsize>) {
    let Some(request) = read_head(&mut stream).await else { return };
    let mut body = vec![0; request.header("content-length").map_or(0, |length| length.parse().unwrap())];
    if stream.read_exact(&mut body).await.is_ok() {
        drop(stream.write_all(&script(number.fetch_add(1, Ordering::SeqCst), &request)).await);
        drop(stream.shutdown().await);
        drop(stream.read_to_end(&mut Vec::new()).await);
    }
}

fn reply(status: u16, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status} Said\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

/// An error answer as Amazon documents it ("Error responses" of the API reference).
fn error(status: u16, code: &str) -> Vec<u8> {
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code><Message>It is\nso {SECRET}</Message>\
         <Resource>/records</Resource><RequestId>4442587FB7D0A2F9</RequestId></Error>"
    );
    reply(status, "content-type: application/xml\r\n", body.as_bytes())
}

/// A listing of one object, as Amazon documents it ("ListObjectsV2").
fn listing(size: usize) -> Vec<u8> {
    let key = format!("goodput/records/{NAME}/{}/x.json", commit('a'));
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
         <Name>records</Name><Prefix>goodput/</Prefix><KeyCount>1</KeyCount><MaxKeys>1000</MaxKeys>\
         <IsTruncated>false</IsTruncated><Contents><Key>{key}</Key><LastModified>2026-11-29T02:00:00.000Z</LastModified>\
         <ETag>&quot;70ee1738b6b21e2c8a43f3a5ab0eee71&quot;</ETag><Size>{size}</Size><StorageClass>STANDARD</StorageClass>\
         </Contents></ListBucketResult>"
    );
    reply(200, "content-type: application/xml\r\n", body.as_bytes())
}

const OBJECT: &str = "last-modified: Sun, 29 Nov 2026 02:00:00 GMT\r\netag: \"70ee1738b6b21e2c8a43f3a5ab0eee71\"\r\n";

fn is_listing(request: &Received) -> bool {
    request.head.contains("list-type=2")
}

#[tokio::test]
async fn documented_refusals_name_the_next_step() {
    for (status, code, step) in [
        (403, "AccessDenied", "`s3:ListBucket`"),
        (404, "NoSuchBucket", "make the bucket"),
        (400, "AuthorizationHeaderMalformed", "correct `region`"),
        (403, "RequestTimeTooSkewed", "the clock of this machine is wrong"),
        (400, "ExpiredToken", "the credentials have expired"),
        (403, "SignatureDoesNotMatch", "AWS_SECRET_ACCESS_KEY does not belong to AWS_ACCESS_KEY_ID"),
        (501, "NotImplemented", "lacks conditional writes"),
        (400, "SomethingNew", "the documentation of the storage"),
    ] {
        let (_server, url) = answering(move |_, _| error(status, code)).await;
        let store = bucket(&url);
        for told in [
            unavailable(store.find(NAME, &[commit('a')]).await),
            unavailable(store.list(NAME, 5).await),
            unavailable(store.put(&record(NAME, &commit('a'), "1")).await),
        ] {
            assert!(told.starts_with(&format!("the bucket `records` at {url} answered {code}; ")), "{told}");
            assert!(told.contains(step) && !told.contains(SECRET) && !told.contains("AKIA"), "{told}");
        }
    }
}

#[tokio::test]
async fn what_is_no_storage_is_told() {
    // A page for people reads as a listing of nothing.
    for headers in ["content-type: text/html\r\n".to_owned(), format!("content-type: text/html\r\n{OBJECT}")] {
        let (_server, url) = answering(move |_, _| reply(200, &headers, b"<html>login</html>")).await;
        let store = bucket(&url);
        for told in [unavailable(store.find(NAME, &[commit('a')]).await), unavailable(store.list(NAME, 5).await)] {
            assert!(told.starts_with(&format!("the bucket `records` at {url} ")), "{told}");
            assert!(told.contains("cannot be asked: ") || told.contains("has an object of every name"), "{told}");
        }
    }
    // Amazon names no place to go to: the region is to be known.
    let (_server, url) = answering(|_, _| reply(301, "", b"")).await;
    let told = unavailable(bucket(&url).find(NAME, &[commit('a')]).await);
    assert!(told.contains("answered with a redirect; the bucket lies in another region; correct `region`"), "{told}");
    let (_server, url) = answering(|_, _| reply(403, "", b"no")).await;
    let told = unavailable(bucket(&url).find(NAME, &[commit('a')]).await);
    assert!(told.contains("answered 403 without saying why; grant these credentials"), "{told}");
    let (_server, url) = answering(|_, _| reply(502, "", b"a proxy's page")).await;
    let told = unavailable(bucket(&url).find(NAME, &[commit('a')]).await);
    assert!(told.contains("answered 502 without saying why; is `endpoint`") && !told.contains("page"), "{told}");

    let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let told = unavailable(bucket(&format!("http://{gone}")).put(&record(NAME, &commit('a'), "1")).await);
    assert!(told.contains("Connection refused") && told.contains("is it up"), "{told}");
}

#[tokio::test]
async fn a_fault_that_passes_is_got_over() {
    for fault in [error(503, "SlowDown"), error(500, "InternalError"), Vec::new()] {
        let kept = record(NAME, &commit('a'), "1");
        let text = serde_json::to_vec(&kept).unwrap();
        let (server, url) = answering(move |number, request| match number {
            0 => fault.clone(),
            _ if is_listing(request) => listing(text.len()),
            _ => reply(200, OBJECT, &text),
        })
        .await;
        assert_eq!(records(bucket(&url).find(NAME, &[commit('a')]).await.unwrap()), [kept]);
        assert_eq!(server.accepted(), 3);
    }
    let (server, url) = answering(|_, _| error(500, "InternalError")).await;
    let told = unavailable(bucket(&url).find(NAME, &[commit('a')]).await);
    assert!(told.contains("answered InternalError"), "{told}");
    assert_eq!(server.accepted(), 4);
}

#[tokio::test]
async fn a_body_that_breaks_off_is_no_record_and_no_garbage() {
    let text = serde_json::to_vec(&record(NAME, &commit('a'), "1")).unwrap();
    let (_server, url) = answering(move |_, request| {
        if is_listing(request) {
            return listing(text.len());
        }
        let mut whole = reply(200, OBJECT, &text);
        whole.truncate(whole.len() - 9);
        whole
    })
    .await;
    let told = unavailable(bucket(&url).find(NAME, &[commit('a')]).await);
    assert!(told.contains("cannot be asked: "), "{told}");
}

#[tokio::test]
async fn an_object_that_grew_since_it_was_listed_is_not_read_to_its_end() {
    let (_server, url) = answering(|_, request| match is_listing(request) {
        true => listing(500),
        false => reply(200, OBJECT, &vec![b' '; 100_000_000]),
    })
    .await;
    let told = corrupt(bucket(&url).find(NAME, &[commit('a')]).await);
    assert!(told.contains("the baseline has more than 16 MiB"), "{told}");
    assert!(told.starts_with(&format!("s3://records/goodput/records/{NAME}/{}/x.json: ", commit('a'))), "{told}");
}

#[tokio::test]
async fn a_record_without_a_commit_is_not_kept() {
    let (server, url) = answering(|_, _| reply(200, OBJECT, b"")).await;
    let mut lost = record(NAME, &commit('a'), "1");
    lost.origin.commit = None;
    let told = unavailable(bucket(&url).put(&lost.sealed()).await);
    assert!(told.starts_with("the record names no commit"), "{told}");
    assert_eq!(server.accepted(), 0);
}
