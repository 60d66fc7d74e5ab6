//! The store `s3`: one object for each record in a bucket of an S3-compatible object storage.
//!
//! The key says for which contract and commit a record is: `<prefix>/records/<contract>/<commit>/<digest>.json`. So nothing is
//! ever overwritten, two writers cannot disturb each other, and a commit's records are found by one listing.
//!
//! Credentials come from the environment as for every other program that speaks to Amazon S3 (`AWS_ACCESS_KEY_ID`,
//! `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, a web identity, the role of a container or machine).

mod answer;

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::{
    BackoffConfig, ClientOptions, Error, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutPayload, RetryConfig,
};
use url::Url;

use self::answer::refusal;
use super::{Answer, Found, LARGEST_RECORD, MOST_AT_COMMIT, Store, StoreFailure, slug};
use crate::record::BaselineRecord;

/// How long one request may take.
const REQUEST: Duration = Duration::from_secs(20);

/// How long making a connection may take.
const CONNECT: Duration = Duration::from_secs(5);

/// How long one question to the store may take, with everything that is asked for it again.
const PATIENCE: Duration = Duration::from_secs(60);

/// The most keys of one listing: it is in the order of keys, so that the newest are known only at its end.
const MOST_KEYS: usize = 20_000;

/// A bucket of an S3-compatible object storage.
#[derive(Debug)]
pub struct Bucket {
    store: AmazonS3,
    /// The bucket's name.
    name: String,
    /// What every key begins with; empty or without a slash at either end.
    prefix: String,
    /// The storage's address, for messages; `None` at Amazon.
    endpoint: Option<String>,
}

impl Bucket {
    /// A bucket with the credentials of the environment; nothing is asked yet.
    ///
    /// # Errors
    /// When what the environment says cannot be used.
    pub fn new(bucket: &str, prefix: &str, region: &str, endpoint: Option<&Url>) -> Result<Self, StoreFailure> {
        Self::with(AmazonS3Builder::from_env(), bucket, prefix, region, endpoint)
    }

    /// A bucket with the credentials that `builder` has.
    ///
    /// # Errors
    /// When what `builder` says cannot be used.
    pub fn with(
        builder: AmazonS3Builder,
        bucket: &str,
        prefix: &str,
        region: &str,
        endpoint: Option<&Url>,
    ) -> Result<Self, StoreFailure> {
        let mut options = ClientOptions::new().with_timeout(REQUEST).with_connect_timeout(CONNECT);
        let mut builder = builder.with_bucket_name(bucket).with_region(region).with_retry(retries());
        if let Some(endpoint) = endpoint {
            options = options.with_allow_http(endpoint.scheme() == "http");
            // A storage of one's own has rarely a name for each bucket.
            builder =
                builder.with_endpoint(endpoint.as_str().trim_end_matches('/')).with_virtual_hosted_style_request(false);
        }
        let endpoint = endpoint.map(|endpoint| endpoint.as_str().trim_end_matches('/').to_owned());
        let named = answer::place(bucket, endpoint.as_deref());
        let store = builder.with_client_options(options).build().map_err(|error| refusal(&named, &error))?;
        Ok(Self { store, name: bucket.to_owned(), prefix: prefix.trim_matches('/').to_owned(), endpoint })
    }

    /// The folder of a contract's records.
    fn folder(&self, contract: &str) -> Path {
        let parts = self.prefix.split('/').filter(|part| !part.is_empty());
        Path::from_iter(parts.chain(["records", slug(contract).as_str()]))
    }

    /// The bucket, for people.
    fn place(&self) -> String {
        answer::place(&self.name, self.endpoint.as_deref())
    }

    fn place_of(&self, key: &Path) -> String {
        format!("s3://{}/{key}", self.name)
    }

    fn refusal(&self, error: &Error) -> StoreFailure {
        refusal(&self.place(), error)
    }

    /// Gives a question up when it takes too long.
    async fn in_time<T>(&self, question: impl Future<Output = Result<T, StoreFailure>>) -> Result<T, StoreFailure> {
        tokio::time::timeout(PATIENCE, question).await.unwrap_or_else(|_| {
            Err(StoreFailure::Unavailable(format!(
                "{} did not answer within {} s; is the storage slow, or far away?",
                self.place(),
                PATIENCE.as_secs()
            )))
        })
    }

    /// The records that lie in a folder.
    async fn listed(&self, folder: &Path) -> Result<Vec<ObjectMeta>, StoreFailure> {
        let listing = self.store.list(Some(folder)).take(MOST_KEYS + 1);
        let objects: Vec<ObjectMeta> = listing.try_collect().await.map_err(|error| self.refusal(&error))?;
        if objects.len() > MOST_KEYS {
            return Err(StoreFailure::Unavailable(format!(
                "{} holds more than {MOST_KEYS} objects; remove old records there, as with a lifecycle rule",
                self.place_of(folder)
            )));
        }
        Ok(objects.into_iter().filter(|object| object.location.extension() == Some("json")).collect())
    }

    /// Reads one record; `None` when it was removed since it was listed.
    async fn read(&self, object: &ObjectMeta) -> Result<Option<Found>, StoreFailure> {
        let place = self.place_of(&object.location);
        let corrupt = |problem: String| StoreFailure::Corrupt { place: place.clone(), problem };
        if object.size > LARGEST_RECORD {
            return Err(corrupt(too_large(object.size)));
        }
        let Some(text) = self.download(object).await? else { return Ok(None) };
        let record = BaselineRecord::parse(&text).map_err(corrupt)?;
        Ok(Some(Found { record, place }))
    }

    /// The bytes of an object, no more than a record may have.
    async fn download(&self, object: &ObjectMeta) -> Result<Option<Vec<u8>>, StoreFailure> {
        let reply = match self.store.get(&object.location).await {
            Ok(reply) => reply,
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(self.refusal(&error)),
        };
        let mut text = Vec::new();
        let mut parts = reply.into_stream();
        while let Some(part) = parts.next().await {
            let part: Bytes = part.map_err(|error| self.refusal(&error))?;
            text.extend_from_slice(&part);
            // The listing may be older than the object.
            if text.len() as u64 > LARGEST_RECORD {
                let place = self.place_of(&object.location);
                return Err(StoreFailure::Corrupt { place, problem: too_large(text.len() as u64) });
            }
        }
        Ok(Some(text))
    }

    async fn find_all(&self, contract: &str, commits: &[String]) -> Result<Vec<Found>, StoreFailure> {
        for commit in commits {
            let folder = self.folder(contract).join(commit.as_str());
            let mut found = Vec::new();
            for object in newest_first(self.listed(&folder).await?).into_iter().take(MOST_AT_COMMIT) {
                // What a record says of itself counts, not where somebody put it.
                found.extend(self.read(&object).await?.filter(|found| {
                    found.record.name == contract && found.record.origin.commit.as_ref() == Some(commit)
                }));
            }
            if !found.is_empty() {
                return Ok(found);
            }
        }
        self.must_be_a_storage().await?;
        Ok(Vec::new())
    }

    /// Asks for an object that is not there. A page for people, as that of a login, reads as a listing of nothing: where all
    /// listings were empty, only this tells an empty history from an address that is no storage's.
    async fn must_be_a_storage(&self) -> Result<(), StoreFailure> {
        let parts = self.prefix.split('/').filter(|part| !part.is_empty());
        match self.store.head(&Path::from_iter(parts.chain(["no-record"]))).await {
            Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.refusal(&error)),
            Ok(_) => Err(StoreFailure::Unavailable(format!(
                "{} has an object of every name; is `endpoint` the address of an object storage, and not of a page?",
                self.place()
            ))),
        }
    }

    async fn newest(&self, contract: &str, most: usize) -> Result<Vec<Found>, StoreFailure> {
        let mut found = Vec::new();
        for object in newest_first(self.listed(&self.folder(contract)).await?).into_iter().take(most) {
            found.extend(self.read(&object).await?.filter(|found| found.record.name == contract));
        }
        if found.is_empty() {
            self.must_be_a_storage().await?;
        }
        Ok(found)
    }

    async fn keep(&self, record: &BaselineRecord) -> Result<String, StoreFailure> {
        let Some(commit) = &record.origin.commit else {
            return Err(StoreFailure::Unavailable(
                "the record names no commit, so that no change could find it; measure in a git repository".to_owned(),
            ));
        };
        let name = format!("{}.json", record.digest.as_str());
        let key = self.folder(&record.name).join(commit.as_str()).join(name.as_str());
        let text = serde_json::to_vec(record)
            .map_err(|error| StoreFailure::Unavailable(format!("the record cannot be written as JSON: {error}")))?;
        // Two runs that save the same record at once both succeed: the key is the content.
        match self.store.put_opts(&key, PutPayload::from(text), PutMode::Create.into()).await {
            Ok(_) | Err(Error::AlreadyExists { .. }) => Ok(self.place_of(&key)),
            Err(error) => Err(self.refusal(&error)),
        }
    }
}

impl Store for Bucket {
    fn name(&self) -> &'static str {
        "s3"
    }

    fn find<'a>(&'a self, contract: &'a str, commits: &'a [String]) -> Answer<'a, Vec<Found>> {
        Box::pin(self.in_time(self.find_all(contract, commits)))
    }

    fn list<'a>(&'a self, contract: &'a str, most: usize) -> Answer<'a, Vec<Found>> {
        Box::pin(self.in_time(self.newest(contract, most)))
    }

    fn put<'a>(&'a self, record: &'a BaselineRecord) -> Answer<'a, String> {
        Box::pin(self.in_time(self.keep(record)))
    }
}

/// A short fault of the storage is got over, a long one is told.
fn retries() -> RetryConfig {
    let backoff =
        BackoffConfig { init_backoff: Duration::from_millis(200), max_backoff: Duration::from_secs(2), base: 2.0 };
    RetryConfig { backoff, max_retries: 3, retry_timeout: Duration::from_secs(30) }
}

fn newest_first(mut objects: Vec<ObjectMeta>) -> Vec<ObjectMeta> {
    objects.sort_by(|a, b| b.last_modified.cmp(&a.last_modified).then_with(|| a.location.cmp(&b.location)));
    objects
}

fn too_large(bytes: u64) -> String {
    format!("has more than {} MiB ({bytes} bytes): it is no baseline record", LARGEST_RECORD >> 20)
}
