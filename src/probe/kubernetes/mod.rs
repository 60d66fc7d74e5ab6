//! The `kubernetes` probe: pods, by the API of Kubernetes (`GET /api/v1/namespaces/{namespace}/pods`).
//!
//! The `kube` crate was looked at and not taken. It starts a credential plugin and waits for it on the thread that asks, so that
//! a plugin that hangs cannot be given up; it reads replies of any size; and it brings 26 crates, about 50 s of compiling,
//! for one request. What is left out here in exchange is refused where a kubeconfig has it: impersonation, passwords,
//! `auth-provider`, `tls-server-name`, SOCKS proxies. Proxies of the environment are not used, as nowhere in this program.

mod exec;
mod files;
mod kubeconfig;
mod pods;
mod target;

use std::sync::Arc;

use http::{HeaderValue, StatusCode, header};
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use self::exec::Issued;
use self::files::read_small;
use self::pods::{Pod, PodList, Pods};
use self::target::{Bearer, Surroundings, Target};
use super::api::{Reply, address, get};
use super::excerpt::{plain, quote};
use super::{Answer, Context};
use crate::contract::KubernetesSource;

/// How many pods a page may hold.
const PAGE: usize = 100;

/// The largest page that is read, in bytes; a pod has some ten thousand.
const PAGE_LIMIT: usize = 16 * 1024 * 1024;

/// How many pods one row may be about.
const MOST_PODS: usize = 1000;

/// The longest mark of the next page.
const LONGEST_MARK: usize = 64 * 1024;

/// Pods, by the API of Kubernetes.
#[derive(Debug)]
pub(super) struct Kubernetes {
    source: KubernetesSource,
    context: Context,
    surroundings: Surroundings,
    /// Found once: somebody who switches the current context must not switch what a run is about.
    target: Option<Arc<Target>>,
    issued: Option<Issued>,
    pods: Pods,
}

/// Why a page did not come.
enum Refusal {
    /// The credentials were not accepted.
    Unauthorized(String),
    /// The list is not kept any more from which this page was to be the next one.
    Expired(String),
    Other(String),
}

impl Refusal {
    fn into_text(self) -> String {
        match self {
            Self::Unauthorized(text) | Self::Expired(text) | Self::Other(text) => text,
        }
    }
}

/// One reading: whom it asks, for what, and with which credentials.
struct Asking<'a> {
    server: &'a Url,
    client: reqwest::Client,
    token: Option<SecretString>,
    namespace: &'a str,
    selector: &'a str,
}

impl Kubernetes {
    pub(super) fn new(source: &KubernetesSource, context: &Context) -> Self {
        Self::among(source, context, Surroundings::of_process())
    }

    fn among(source: &KubernetesSource, context: &Context, surroundings: Surroundings) -> Self {
        let pods = Pods::new(source.field, source.container.clone());
        let (source, context) = (source.clone(), context.clone());
        Self { source, context, surroundings, target: None, issued: None, pods }
    }

    pub(super) async fn read(&mut self) -> Answer {
        let target = match &self.target {
            Some(target) => Arc::clone(target),
            None => Arc::new(Target::find(&self.source, &self.surroundings, &self.context.folder).await?),
        };
        self.target = Some(Arc::clone(&target));
        let namespace = self.source.namespace.clone().unwrap_or_else(|| target.namespace.clone());
        let selector = self.source.selector.clone();
        let was_issued = self.issued.is_some();
        let mut listed = self.list(&target, &namespace, &selector).await;
        // What a plugin issued earlier may have been withdrawn since.
        if was_issued && matches!(listed, Err(Refusal::Unauthorized(_))) {
            self.issued = None;
            listed = self.list(&target, &namespace, &selector).await;
        }
        let pods = listed.map_err(Refusal::into_text)?;
        let asked =
            format!("selector {} in namespace {} at {}", quote(&selector), quote(&namespace), shown(&target.server));
        self.pods.answer(&pods, &asked)
    }

    async fn list(&mut self, target: &Target, namespace: &str, selector: &str) -> Result<Vec<Pod>, Refusal> {
        let (token, identity) = match &target.bearer {
            Bearer::None => (None, None),
            Bearer::Token(token) => (Some(token.clone()), None),
            Bearer::File(path) => (Some(token_in(path).await.map_err(Refusal::Other)?), None),
            Bearer::Plugin(plugin) => {
                let issued = match self.issued.take().filter(|issued| issued.is_valid(Timestamp::now())) {
                    Some(issued) => issued,
                    None => plugin.issue().await.map_err(Refusal::Other)?,
                };
                let Issued { token, identity, .. } = self.issued.insert(issued);
                (token.clone(), identity.clone())
            }
        };
        let client = target.client(identity.as_ref()).map_err(Refusal::Other)?;
        let asking = Asking { server: &target.server, client, token, namespace, selector };
        match asking.list().await {
            // The list changed for too long while it was read; once more from its beginning.
            Err(Refusal::Expired(_)) => asking.list().await,
            listed => listed,
        }
    }
}

impl Asking<'_> {
    async fn list(&self) -> Result<Vec<Pod>, Refusal> {
        let mut pods = Vec::new();
        let mut mark: Option<String> = None;
        loop {
            let page = self.page(mark.as_deref()).await?;
            pods.extend(page.items);
            let next = page.metadata.next.filter(|mark| !mark.is_empty());
            if pods.len() > MOST_PODS || next.as_ref().is_some_and(|next| next.len() > LONGEST_MARK) {
                let selector = quote(self.selector);
                return Err(Refusal::Other(format!(
                    "selector {selector} matches more than {MOST_PODS} pods; narrow it"
                )));
            }
            if next.is_some() && next == mark {
                return Err(Refusal::Other(format!("{} lists the same page again and again", shown(self.server))));
            }
            match next {
                Some(next) => mark = Some(next),
                None => return Ok(pods),
            }
        }
    }

    async fn page(&self, mark: Option<&str>) -> Result<PodList, Refusal> {
        let at = shown(self.server);
        let url = self.address(mark).map_err(Refusal::Other)?;
        let authorization = self.authorization().map_err(Refusal::Other)?;
        let reply = get(&self.client, url, authorization, PAGE_LIMIT).await.map_err(|error| {
            Refusal::Other(format!("no reply from Kubernetes at {at}: {}", self.masked(&error.cause)))
        })?;
        if reply.status != StatusCode::OK {
            return Err(self.refusal(&reply));
        }
        let page: PodList = serde_json::from_slice(&reply.body).map_err(|error| {
            let error = plain(&self.masked(&error.to_string()));
            Refusal::Other(format!("Kubernetes at {at} sent no list of pods: {error}"))
        })?;
        if page.kind != "PodList" {
            let kind = quote(&self.masked(&page.kind));
            return Err(Refusal::Other(format!("Kubernetes at {at} sent {kind} where a PodList was expected")));
        }
        Ok(page)
    }

    fn address(&self, mark: Option<&str>) -> Result<Url, String> {
        let mut url = address(self.server, &["api", "v1", "namespaces", self.namespace, "pods"])?;
        let mut query = url.query_pairs_mut();
        query.append_pair("labelSelector", self.selector).append_pair("limit", &PAGE.to_string());
        if let Some(mark) = mark {
            query.append_pair("continue", mark);
        }
        drop(query);
        Ok(url)
    }

    fn authorization(&self) -> Result<Option<HeaderValue>, String> {
        let Some(token) = &self.token else { return Ok(None) };
        let mut value = HeaderValue::from_str(&format!("Bearer {}", token.expose_secret()))
            .map_err(|_| "the token holds characters that no header can carry".to_owned())?;
        value.set_sensitive(true);
        Ok(Some(value))
    }

    fn refusal(&self, reply: &Reply) -> Refusal {
        let token = self.token.as_ref().map_or("", |token| token.expose_secret());
        let said = format!("Kubernetes at {} answered {}", shown(self.server), reply.complaint(&[token]));
        let namespace = plain(self.namespace);
        match reply.status.as_u16() {
            401 => Refusal::Unauthorized(format!(
                "{said}; the credentials are not accepted, `kubectl auth whoami` tells more"
            )),
            403 => Refusal::Other(format!(
                "{said}; this user needs the verb `list` on `pods`: `kubectl auth can-i list pods -n {namespace}`"
            )),
            404 => Refusal::Other(format!("{said}; is this the address of a Kubernetes API server?")),
            410 => Refusal::Expired(format!("{said}; the list changes faster than it can be read")),
            429 => Refusal::Other(format!("{said}; it is overloaded{}", retry_after(reply))),
            _ => Refusal::Other(said),
        }
    }

    /// Without the token, which a server may echo.
    fn masked(&self, text: &str) -> String {
        match &self.token {
            Some(token) if !token.expose_secret().is_empty() => text.replace(token.expose_secret(), "***"),
            _ => text.to_owned(),
        }
    }
}

fn retry_after(reply: &Reply) -> String {
    let seconds = reply.headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse::<u32>().ok());
    seconds.map_or(String::new(), |seconds| format!(" and asks to wait for {seconds} s"))
}

async fn token_in(path: &std::path::Path) -> Result<SecretString, String> {
    let bytes = read_small(path).await.map_err(|error| format!("cannot read the token {error}"))?;
    let text = String::from_utf8(bytes).map_err(|_| "the file of the token is not UTF-8".to_owned())?;
    match text.trim() {
        "" => Err("the file of the token is empty".to_owned()),
        token => Ok(SecretString::from(token)),
    }
}

/// An address for a message.
fn shown(server: &Url) -> String {
    plain(server.as_str().trim_end_matches('/'))
}
