//! Where requests go, made ready to be used thousands of times a second.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, CONNECTION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_VERSION, UPGRADE, USER_AGENT,
};
use http::{Method, Request, Uri};
use http_body_util::Full;
use rustls::pki_types::ServerName;
use tokio::sync::OnceCell;
use url::{Host, Url};

use crate::audio::PcmFormat;
use crate::contract::{Endpoint, Header, HttpVersion};
use crate::endpoint::{ClientError, HeaderError, Secrets, add_headers, header_value, trusted_roots};
use crate::observe::Protocol;
use crate::workload::Content;

/// Joins server logs and records.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// An endpoint that cannot be asked at all.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// A header that cannot be sent.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// The URL has no host, or cannot be a request's target.
    #[error("the url `{url}` {problem}")]
    Url {
        /// The URL.
        url: String,
        /// What is wrong.
        problem: String,
    },
    /// The trusted certificates cannot be used.
    #[error(transparent)]
    Certificates(#[from] ClientError),
}

/// A host and port to connect to, resolved once.
#[derive(Debug)]
pub(super) struct Address {
    host: String,
    port: u16,
    resolved: OnceCell<Vec<SocketAddr>>,
}

impl Address {
    fn of(url: &Url) -> Result<Self, TargetError> {
        let fault = |problem: &str| TargetError::Url { url: url.to_string(), problem: problem.to_owned() };
        let host = match url.host().ok_or_else(|| fault("names no host"))? {
            Host::Ipv6(address) => address.to_string(),
            other => other.to_string(),
        };
        let port = url.port_or_known_default().ok_or_else(|| fault("names no port"))?;
        Ok(Self { host, port, resolved: OnceCell::new() })
    }

    /// The socket addresses; looked up once, so that no measured request pays for it again.
    pub(super) async fn resolve(&self) -> std::io::Result<&[SocketAddr]> {
        self.resolved
            .get_or_try_init(|| async {
                tokio::net::lookup_host((self.host.as_str(), self.port)).await.map(Iterator::collect)
            })
            .await
            .map(Vec::as_slice)
    }

    pub(super) fn authority(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

/// TLS towards the endpoint.
#[derive(Debug, Clone)]
pub(super) struct Tls {
    pub(super) config: Arc<rustls::ClientConfig>,
    pub(super) name: ServerName<'static>,
}

/// Where requests go.
#[derive(Debug)]
pub struct Target {
    pub(super) endpoint: Address,
    pub(super) proxy: Option<Address>,
    pub(super) tls: Option<Tls>,
    /// Whether everything goes through a WebSocket, for which a proxy opens a tunnel.
    pub(super) socket: bool,
    pub(super) http: HttpVersion,
    pub(super) protocol: Protocol,
    pub(super) timeout: Duration,
    pub(super) idle_timeout: Duration,
    /// The format of sound that comes back without a container.
    pub(super) output_audio: Option<PcmFormat>,
    pub(super) secrets: Secrets,
    uri: Uri,
    absolute_uri: Uri,
    headers: HeaderMap,
}

impl Target {
    /// Reads the environment for header values and the file of trusted certificates.
    ///
    /// # Errors
    /// When a variable is missing, a header is none, or certificates cannot be read.
    pub fn new(endpoint: &Endpoint) -> Result<Self, TargetError> {
        let url = &endpoint.url;
        let address = Address::of(url)?;
        let socket = endpoint.protocol == Protocol::OpenaiRealtime;
        let tls = matches!(url.scheme(), "https" | "wss").then(|| tls_towards(url, endpoint)).transpose()?;
        let fault =
            |error: http::uri::InvalidUri| TargetError::Url { url: url.to_string(), problem: error.to_string() };
        let path = url[url::Position::BeforePath..url::Position::AfterQuery].to_owned();
        let absolute = url[url::Position::BeforeScheme..url::Position::AfterQuery].to_owned();
        let mut secrets = Secrets::default();
        let headers = headers(endpoint, &mut secrets)?;
        Ok(Self {
            proxy: endpoint.proxy.as_ref().map(Address::of).transpose()?,
            endpoint: address,
            tls,
            socket,
            http: endpoint.http,
            protocol: endpoint.protocol,
            timeout: endpoint.timeout,
            idle_timeout: endpoint.idle_timeout,
            output_audio: endpoint.output_audio,
            secrets,
            uri: path.parse().map_err(fault)?,
            absolute_uri: absolute.parse().map_err(fault)?,
            headers,
        })
    }

    /// Masks the secrets of these headers too, wherever this target's own are: a launched endpoint may log what its metrics page
    /// was asked with.
    pub fn mask_also(&mut self, headers: &[Header]) {
        // A header that cannot be sent is told where it is to be sent.
        for header in headers {
            let _ = add_headers(&mut HeaderMap::new(), std::slice::from_ref(header), &mut self.secrets);
        }
    }

    /// The secrets that this target's headers carry.
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// The dialect spoken.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Opens and closes a connection to the endpoint, within two seconds.
    ///
    /// # Errors
    /// What stood in the way.
    pub async fn try_connect(&self) -> Result<(), String> {
        const LONGEST: Duration = Duration::from_secs(2);
        let address = self.proxy.as_ref().unwrap_or(&self.endpoint);
        match tokio::time::timeout(LONGEST, super::connect::connect_tcp(address)).await {
            Ok(Ok(_connection)) => Ok(()),
            Ok(Err(failure)) => Err(failure.error),
            Err(_) => Err(format!("no connection to {} within 2 s", address.authority())),
        }
    }

    /// The headers of a request with this content, secrets masked, for people.
    pub fn shown_headers(&self, content: &Content) -> Vec<(String, String)> {
        let id = HeaderValue::from_static("");
        let mut headers = match content {
            Content::Turn(_) => self.upgrade("", &id).into_parts().0.headers,
            Content::Json(_) => self.headers.clone(),
            Content::Form(form) => self.request(Bytes::new(), Some(&form.content_type), &id).into_parts().0.headers,
        };
        // Another one with every request.
        headers.remove(REQUEST_ID);
        headers.remove(SEC_WEBSOCKET_KEY);
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let mut shown: Vec<(String, String)> = headers
            .iter()
            .map(|(name, value)| (name.to_string(), self.secrets.mask(&text(value)).into_owned()))
            .collect();
        shown.sort();
        shown
    }

    /// One request; a form has a content type of its own.
    pub(super) fn request(
        &self,
        body: Bytes,
        content_type: Option<&str>,
        request_id: &HeaderValue,
    ) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.headers_mut() = self.headers.clone();
        request.headers_mut().insert(REQUEST_ID, request_id.clone());
        if let Some(value) = content_type.and_then(|text| HeaderValue::from_str(text).ok()) {
            request.headers_mut().insert(CONTENT_TYPE, value);
        }
        request
    }

    /// Names the path, or the whole URL where a plain HTTP proxy takes the request.
    pub(super) fn for_http1(&self, mut request: Request<Full<Bytes>>) -> Request<Full<Bytes>> {
        let through_plain_proxy = self.proxy.is_some() && self.tls.is_none() && !self.socket;
        *request.uri_mut() = if through_plain_proxy { self.absolute_uri.clone() } else { self.uri.clone() };
        request
    }

    /// Names the whole URL; the `Host` header belongs to HTTP/1.1 alone.
    pub(super) fn for_http2(&self, mut request: Request<Full<Bytes>>) -> Request<Full<Bytes>> {
        *request.uri_mut() = self.absolute_uri.clone();
        request.headers_mut().remove(HOST);
        request
    }

    /// The request that opens a WebSocket (RFC 6455, section 4.1).
    pub(super) fn upgrade(&self, key: &str, request_id: &HeaderValue) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::default());
        let headers = request.headers_mut();
        headers.clone_from(&self.headers);
        for name in [CONTENT_TYPE, ACCEPT, ACCEPT_ENCODING] {
            headers.remove(name);
        }
        headers.insert(REQUEST_ID, request_id.clone());
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        if let Ok(key) = HeaderValue::from_str(key) {
            headers.insert(SEC_WEBSOCKET_KEY, key);
        }
        request
    }
}

/// All headers of every request: ours, then the contract's, which may replace `accept`, `content-type` and `user-agent`.
fn headers(endpoint: &Endpoint, secrets: &mut Secrets) -> Result<HeaderMap, TargetError> {
    let mut headers = HeaderMap::new();
    let host = &endpoint.url[url::Position::BeforeHost..url::Position::AfterPort];
    headers.insert(HOST, header_value("host", host)?);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static(endpoint.protocol.accept()));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers.insert(USER_AGENT, HeaderValue::from_static(concat!("goodput/", env!("CARGO_PKG_VERSION"))));
    add_headers(&mut headers, &endpoint.headers, secrets)?;
    Ok(headers)
}

fn tls_towards(url: &Url, endpoint: &Endpoint) -> Result<Tls, TargetError> {
    let fault = |problem: String| TargetError::Url { url: url.to_string(), problem };
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_owned();
    let name =
        ServerName::try_from(host).map_err(|error| fault(format!("has a host that TLS cannot name: {error}")))?;
    let roots = trusted_roots(endpoint.ca_file.as_deref())?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| fault(format!("cannot be reached over TLS: {error}")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = match endpoint.http {
        HttpVersion::Auto if endpoint.protocol == Protocol::OpenaiRealtime => vec![b"http/1.1".to_vec()],
        HttpVersion::Auto => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        HttpVersion::Http1 => vec![b"http/1.1".to_vec()],
        HttpVersion::Http2 => vec![b"h2".to_vec()],
    };
    Ok(Tls { config: Arc::new(config), name })
}
