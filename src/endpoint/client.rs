//! The HTTP client for everything that is not measured.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use url::Url;

use crate::contract::HttpVersion;

/// Longest time to open a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The file of certificates cannot be read.
    #[error("cannot read ca_file `{}`; name a PEM file, relative to the contract", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file holds no certificate, or a broken one.
    #[error("ca_file `{}` {problem}; it must hold PEM blocks `BEGIN CERTIFICATE`", path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// TLS cannot be set up.
    #[error("cannot set up TLS")]
    Tls(#[from] rustls::Error),
    /// The client cannot be built, which a proxy that makes no sense can cause.
    #[error("cannot build the HTTP client; look at `proxy`")]
    Build(#[from] reqwest::Error),
}

/// A client that trusts the system's certificates and those of `ca_file`, goes through `proxy` or none (the environment's
/// proxies are not used), follows no redirect and sends no cookie.
///
/// # Errors
/// When `ca_file` cannot be read or holds no certificate, or the proxy makes no sense.
pub fn http_client(
    ca_file: Option<&Path>,
    proxy: Option<&Url>,
    http: HttpVersion,
) -> Result<reqwest::Client, ClientError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(trusted_roots(ca_file)?)
        .with_no_client_auth();
    let builder = reqwest::Client::builder()
        .user_agent(concat!("goodput/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT_WITHIN)
        .no_proxy();
    let (builder, protocols): (_, &[&[u8]]) = match http {
        HttpVersion::Auto => (builder, &[b"h2", b"http/1.1"]),
        HttpVersion::Http1 => (builder.http1_only(), &[b"http/1.1"]),
        HttpVersion::Http2 => (builder.http2_prior_knowledge(), &[b"h2"]),
    };
    tls.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    let builder = builder.tls_backend_preconfigured(tls);
    let builder = match proxy {
        Some(proxy) => builder.proxy(reqwest::Proxy::all(proxy.clone())?),
        None => builder,
    };
    Ok(builder.build()?)
}

/// The system's certificates and those of `ca_file`. A system without any is no error: plain HTTP needs none, and TLS
/// says so itself.
///
/// # Errors
/// When `ca_file` cannot be read, holds no certificate or a broken one.
pub fn trusted_roots(ca_file: Option<&Path>) -> Result<RootCertStore, ClientError> {
    let mut roots = RootCertStore::empty();
    // One unreadable certificate among the system's is common and concerns no one but its issuer.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = ca_file {
        let pem = std::fs::read(path).map_err(|source| ClientError::Unreadable { path: path.to_owned(), source })?;
        let refuse = |problem: String| ClientError::NoCertificate { path: path.to_owned(), problem };
        let mut found = false;
        for certificate in CertificateDer::pem_slice_iter(&pem) {
            let certificate = certificate.map_err(|error| refuse(format!("is not readable: {error}")))?;
            roots.add(certificate).map_err(|error| refuse(format!("holds a broken certificate: {error}")))?;
            found = true;
        }
        if !found {
            return Err(refuse("holds no certificate".to_owned()));
        }
    }
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(content: Option<&[u8]>) -> String {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("ca.pem");
        if let Some(content) = content {
            std::fs::write(&path, content).expect("the file is written");
        }
        http_client(Some(&path), None, HttpVersion::Auto).expect_err("no client").to_string()
    }

    #[test]
    fn a_certificate_file_that_is_none_is_refused_with_the_next_step() {
        assert!(refusal(None).starts_with("cannot read ca_file"));
        assert!(refusal(Some(b"")).contains("holds no certificate; it must hold PEM blocks"));
        let broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(refusal(Some(broken)).contains("holds a broken certificate"));
    }

    #[test]
    fn a_client_needs_neither_certificate_file_nor_proxy() {
        assert!(http_client(None, None, HttpVersion::Auto).is_ok());
        let proxy = Url::parse("http://127.0.0.1:3128").expect("a URL");
        assert!(http_client(None, Some(&proxy), HttpVersion::Http1).is_ok());
    }
}
