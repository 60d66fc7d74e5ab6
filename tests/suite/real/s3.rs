//! The store `s3` against a real object storage that checks signatures and rights (`tests/real/s3.sh`).

use std::sync::Arc;

use goodput::baseline::Store;
use goodput::baseline::s3::Bucket;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::{ObjectStoreExt, PutPayload};

use super::Real;
use crate::records::{commit, corrupt, record, records, unavailable};

/// The users of tests/real/s3_server.py: one who may do everything, and one who may only list.
const WRITER: (&str, &str) = ("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY");
const LISTER: (&str, &str) = ("AKIAI44QH8DHBEXAMPLE", "je7MtGbClwBF/2Zp9Utk/h3yCo8nvbEXAMPLEKEY");

const NAME: &str = "Gamma 26B";

/// The storage, and a prefix of its own for one test.
struct Storage {
    real: Real,
    prefix: String,
}

impl Storage {
    fn start(test: &str) -> Option<Self> {
        let real = Real::server("GOODPUT_REAL_S3")?;
        // A server that was started by hand may still hold what an earlier run left.
        let own = real.folder.path().file_name()?.to_string_lossy().into_owned();
        Some(Self { real, prefix: format!("team/{test}{own}") })
    }

    fn builder((key, secret): (&str, &str)) -> AmazonS3Builder {
        AmazonS3Builder::new().with_access_key_id(key).with_secret_access_key(secret)
    }

    fn bucket(&self, user: (&str, &str)) -> Bucket {
        self.bucket_named("baselines", user)
    }

    fn bucket_named(&self, name: &str, user: (&str, &str)) -> Bucket {
        let endpoint = self.real.url.parse().unwrap();
        Bucket::with(Self::builder(user), name, &self.prefix, "us-east-1", Some(&endpoint)).unwrap()
    }

    /// The storage without our code.
    fn bare(&self) -> AmazonS3 {
        let builder = Self::builder(WRITER).with_bucket_name("baselines").with_region("us-east-1");
        builder.with_endpoint(&self.real.url).with_allow_http(true).build().unwrap()
    }

    /// Writes an object beside what the store writes for the contract.
    async fn put(&self, commit: &str, name: &str, content: Vec<u8>) {
        let key = Path::from(format!("{}/records/{FOLDER}/{commit}/{name}", self.prefix));
        self.bare().put(&key, PutPayload::from(content)).await.unwrap();
    }
}

/// The contract's folder: its name ends in the beginning of what `printf 'Gamma 26B' | sha256sum` prints.
const FOLDER: &str = "gamma-26b.dd835934cce0";

#[tokio::test]
async fn what_is_kept_is_found_by_its_commit_and_listed_from_the_newest_on() {
    let Some(storage) = Storage::start("kept") else { return };
    let bucket = storage.bucket(WRITER);
    let [old, new, newest] =
        [('a', "1"), ('b', "2"), ('b', "3")].map(|(digit, mark)| record(NAME, &commit(digit), mark));
    let place = bucket.put(&old).await.unwrap();
    assert_eq!(
        place,
        format!("s3://baselines/{}/records/{FOLDER}/{}/{}.json", storage.prefix, commit('a'), old.digest.as_str())
    );
    // The storage tells time in whole seconds.
    for record in [&new, &newest] {
        tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
        bucket.put(record).await.unwrap();
    }
    bucket.put(&record("another", &commit('b'), "4")).await.unwrap();

    let wanted = [commit('f'), commit('b'), commit('a')];
    let found = bucket.find(NAME, &wanted).await.unwrap();
    assert_eq!(records(found), [newest.clone(), new.clone()]);
    let found = bucket.find(NAME, &wanted[2..]).await.unwrap();
    assert_eq!((found.len(), &found[0].place), (1, &place));
    assert_eq!(found[0].record, old);
    assert_eq!(bucket.find(NAME, &wanted[..1]).await.unwrap(), []);
    assert_eq!(bucket.find("Gamma 27B", &wanted).await.unwrap(), []);

    assert_eq!(records(bucket.list(NAME, 2).await.unwrap()), [newest.clone(), new.clone()]);
    assert_eq!(records(bucket.list(NAME, 9).await.unwrap()), [newest, new, old]);
}

#[tokio::test]
async fn two_that_save_at_once_both_succeed_and_nothing_is_overwritten() {
    let Some(storage) = Storage::start("twice") else { return };
    let bucket = Arc::new(storage.bucket(WRITER));
    let one = record(NAME, &commit('a'), "1");
    let put = |bucket: Arc<Bucket>, record| async move { bucket.put(&record).await };
    let (left, right) =
        tokio::join!(tokio::spawn(put(bucket.clone(), one.clone())), tokio::spawn(put(bucket.clone(), one.clone())));
    assert_eq!(left.unwrap().unwrap(), right.unwrap().unwrap());
    assert_eq!(records(bucket.list(NAME, 9).await.unwrap()), std::slice::from_ref(&one));

    // What lies there stays, whatever it is: it is told when it is read.
    let other = record(NAME, &commit('b'), "2");
    storage.put(&commit('b'), &format!("{}.json", other.digest.as_str()), b"mine".to_vec()).await;
    bucket.put(&other).await.unwrap();
    assert!(corrupt(bucket.find(NAME, &[commit('b')]).await).contains("the baseline is not JSON"));
}

#[tokio::test]
async fn what_is_no_record_is_told_and_never_passed_over() {
    let Some(storage) = Storage::start("garbage") else { return };
    let bucket = storage.bucket(WRITER);
    let mut changed = serde_json::to_value(record(NAME, &commit('b'), "1")).unwrap();
    changed["verdict"] = "FAIL".into();
    for (digit, content, problem) in [
        ('a', b"\x00\xff garbage".to_vec(), "the baseline is not JSON"),
        ('b', serde_json::to_vec(&changed).unwrap(), "the baseline was changed"),
        ('c', b"{\"schema\":\"goodput-baseline/9\"}".to_vec(), "the baseline has the format `goodput-baseline/9`"),
        ('d', vec![b' '; 100_000_000], "the baseline has more than 16 MiB (100000000 bytes)"),
    ] {
        storage.put(&commit(digit), "x.json", content).await;
        let told = corrupt(bucket.find(NAME, &[commit(digit)]).await);
        assert!(told.starts_with("s3://baselines/team/garbage") && told.contains(problem), "{told}");
    }
    assert!(bucket.list(NAME, 9).await.is_err());

    // A note that somebody left beside the records is none, and a record in the wrong folder is not of its commit.
    storage.put(&commit('e'), "README.md", b"hello".to_vec()).await;
    storage.put(&commit('e'), "y.json", serde_json::to_vec(&record(NAME, &commit('f'), "1")).unwrap()).await;
    assert_eq!(bucket.find(NAME, &[commit('e')]).await.unwrap(), []);
}

#[tokio::test]
async fn refusals_name_the_next_step_and_no_secret() {
    let Some(storage) = Storage::start("refused") else { return };
    let record = record(NAME, &commit('a'), "1");
    let wanted = [commit('a')];
    let at = format!("at {} answered", storage.real.url);
    for (name, user, code, step) in [
        ("baselines", (WRITER.0, "wrong-secret"), "SignatureDoesNotMatch", "AWS_SECRET_ACCESS_KEY does not belong to"),
        ("baselines", ("AKIANOBODY", WRITER.1), "InvalidAccessKeyId", "does not know AWS_ACCESS_KEY_ID"),
        ("not-there", WRITER, "NoSuchBucket", "make the bucket"),
    ] {
        let bucket = storage.bucket_named(name, user);
        let answers = [
            unavailable(bucket.find(NAME, &wanted).await),
            unavailable(bucket.list(NAME, 9).await),
            unavailable(bucket.put(&record).await),
        ];
        for told in answers {
            assert!(told.starts_with(&format!("the bucket `{name}` {at} {code}; ")), "{told}");
            assert!(told.contains(step) && !told.contains(user.0) && !told.contains(user.1), "{told}");
        }
    }
    // Who may only list learns which rights are missing, even while there is nothing to read.
    let bucket = storage.bucket(LISTER);
    assert!(unavailable(bucket.find(NAME, &wanted).await).contains("answered 403 without saying why; grant"));
    storage.bucket(WRITER).put(&record).await.unwrap();
    for told in [unavailable(bucket.find(NAME, &wanted).await), unavailable(bucket.put(&record).await)] {
        assert!(told.contains("answered AccessDenied; grant") && told.contains("`s3:PutObject`"), "{told}");
    }
}
