//! Archives of artifacts, which another host stores.

use http::{Method, StatusCode};
use url::Url;

use super::refusal::{Cause, Failure, plain};
use super::session::{Matter, Session, WAITS, causes};

/// What became of a download.
#[derive(Debug)]
pub enum Archive {
    /// The archive.
    Bytes(Vec<u8>),
    /// It was removed.
    Gone,
    /// It has more bytes than were allowed; at least so many.
    TooLarge(u64),
}

impl Session<'_> {
    /// Downloads an archive of at most `most` bytes, from wherever GitHub says that it lies.
    ///
    /// # Errors
    /// When it cannot be had.
    pub async fn archive(&mut self, path: &[&str], most: u64, matter: &Matter<'_>) -> Result<Archive, Failure> {
        let address = self.address(path, &[])?;
        let reply = self.ask(&Method::GET, &address, None::<&()>, matter, false).await?;
        match reply.status {
            StatusCode::GONE => return Ok(Archive::Gone),
            StatusCode::FOUND | StatusCode::SEE_OTHER | StatusCode::TEMPORARY_REDIRECT => {}
            _ => return Err(self.refused(&reply, matter)),
        }
        let place = reply.header("location").and_then(|place| Url::parse(place).ok());
        // What is fetched without encryption could be replaced on its way.
        let is_safe = |place: &Url| place.scheme() == "https" || place.scheme() == self.site.api.scheme();
        let place = place.filter(is_safe).ok_or_else(|| {
            let text = format!("{} was asked {} and named no address to get it from", self.site, matter.what);
            Failure::new(Cause::Other, text)
        })?;
        self.download(place, most).await
    }

    async fn download(&mut self, place: Url, most: u64) -> Result<Archive, Failure> {
        let host = place.host_str().unwrap_or_default().to_owned();
        let mut waits = WAITS.iter();
        loop {
            self.count()?;
            // The address carries its own right to read and is never repeated in a message.
            let failure = match self.fetch(place.clone(), most).await {
                Ok(archive) => return Ok(archive),
                Err(failure) => failure,
            };
            match waits.next() {
                Some(wait) => tokio::time::sleep(*wait).await,
                None => {
                    let text = format!(
                        "the artifact cannot be downloaded from {host}: {failure}; try again, and see that this machine may reach \
                         {host}"
                    );
                    return Err(Failure::new(Cause::Unanswered, text));
                }
            }
        }
    }

    async fn fetch(&self, place: Url, most: u64) -> Result<Archive, String> {
        let told = |error: reqwest::Error| plain(&causes(&error.without_url()));
        let mut reply = self.storage.get(place).send().await.map_err(told)?;
        match reply.status() {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND | StatusCode::GONE => return Ok(Archive::Gone),
            status => return Err(format!("answered {status}")),
        }
        if let Some(length) = reply.content_length().filter(|length| *length > most) {
            return Ok(Archive::TooLarge(length));
        }
        let mut bytes = Vec::new();
        while let Some(part) = reply.chunk().await.map_err(told)? {
            bytes.extend_from_slice(&part);
            if bytes.len() as u64 > most {
                return Ok(Archive::TooLarge(bytes.len() as u64));
            }
        }
        Ok(Archive::Bytes(bytes))
    }
}
