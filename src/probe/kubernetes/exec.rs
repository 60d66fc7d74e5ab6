//! Credentials from a program, as managed clusters have them (`client.authentication.k8s.io`).
//!
//! The program runs as a probe's command does: without input, in a group of its own, and killed with it when the reading
//! is given up. What it prints is a secret and is in no message.

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use secrecy::{SecretSlice, SecretString};
use serde::Deserialize;
use serde_json::json;

use super::kubeconfig::{Cluster, ExecConfig, secret};
use super::target::pem_pair;
use crate::probe::api::instant;
use crate::probe::excerpt::{plain, quote};
use crate::probe::run_command::{Capture, RunError, run_with};
use crate::units::format_duration;

/// The versions of the exchange that are spoken; they differ in nothing that is used here.
const VERSIONS: [&str; 2] = ["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"];

/// Longest time that a program may take; the probe's own timeout is usually shorter.
const WITHIN: Duration = Duration::from_secs(60);

/// The largest output that is read, in bytes.
const OUTPUT_LIMIT: usize = 256 * 1024;

/// The most of its complaints that a message quotes from, in bytes.
const COMPLAINT_LIMIT: usize = 200;

/// How long before its end a credential is no longer used, in seconds.
const MARGIN: i64 = 30;

/// A program that issues credentials.
#[derive(Debug)]
pub(super) struct Plugin {
    command: Vec<String>,
    environment: Vec<(String, String)>,
}

/// A credential.
#[derive(Debug, Clone)]
pub(super) struct Issued {
    pub(super) token: Option<SecretString>,
    /// Certificate and key, as PEM.
    pub(super) identity: Option<SecretSlice<u8>>,
    ends: Option<Timestamp>,
}

impl Issued {
    /// Whether it can still be used. One without an end is used until the server refuses it.
    pub(super) fn is_valid(&self, now: Timestamp) -> bool {
        self.ends.is_none_or(|ends| now.as_second() + MARGIN < ends.as_second())
    }
}

impl Plugin {
    /// A relative path of a program starts at `folder`, that of the kubeconfig; a bare name is looked for on PATH.
    ///
    /// # Errors
    /// When the program wants to talk to a person, or in a way that is not spoken here.
    pub(super) fn new(exec: ExecConfig, folder: &Path, cluster: &Cluster) -> Result<Self, String> {
        if !VERSIONS.contains(&exec.api_version.as_str()) {
            return Err(format!(
                "`exec` has the unknown apiVersion {}; known are {}",
                quote(&exec.api_version),
                VERSIONS.join(", ")
            ));
        }
        if exec.interactive_mode.as_deref() == Some("Always") {
            return Err("`exec` wants to ask a person, and here is none; log in another way".to_owned());
        }
        let program =
            if exec.command.contains('/') { folder.join(&exec.command).display().to_string() } else { exec.command };
        let mut spec = json!({ "interactive": false });
        if exec.provide_cluster_info {
            spec["cluster"] = json!({
                "server": cluster.server,
                "certificate-authority-data": cluster.certificate_authority_data,
                "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
                "proxy-url": cluster.proxy_url,
            });
        }
        let info = json!({ "apiVersion": exec.api_version, "kind": "ExecCredential", "spec": spec });
        let mut environment: Vec<_> = exec.env.into_iter().map(|variable| (variable.name, variable.value)).collect();
        environment.push(("KUBERNETES_EXEC_INFO".to_owned(), info.to_string()));
        let command = std::iter::once(program).chain(exec.args).collect();
        Ok(Self { command, environment })
    }

    /// Asks the program.
    ///
    /// # Errors
    /// When it does not answer with a credential.
    pub(super) async fn issue(&self) -> Result<Issued, String> {
        let (mut stdout, mut stderr) = (Capture::first(OUTPUT_LIMIT), Capture::last(COMPLAINT_LIMIT));
        let here = Path::new(".");
        let ended = run_with(&self.command, &self.environment, here, WITHIN, &mut stdout, &mut stderr).await;
        let program = quote(self.command.first().map_or("", String::as_str));
        let status = ended.map_err(|error| match error {
            RunError::Start(error) => format!("cannot start the credential plugin {program}: {error}; install it"),
            RunError::Wait(error) => format!("lost the credential plugin {program}: {error}"),
            RunError::TimedOut => {
                format!("the credential plugin {program} took longer than {}", format_duration(WITHIN))
            }
        })?;
        if !status.success() {
            let complaint = plain(stderr.lossy().trim());
            return Err(format!("the credential plugin {program} failed ({status}); stderr ends `{complaint}`"));
        }
        let issued = stdout.text().filter(|_| !stdout.is_cut()).and_then(parse);
        issued.ok_or_else(|| {
            format!("the credential plugin {program} printed no ExecCredential with a token or a certificate")
        })
    }
}

#[derive(Deserialize)]
struct ExecCredential {
    #[serde(rename = "apiVersion")]
    api_version: String,
    kind: String,
    status: CredentialStatus,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CredentialStatus {
    #[serde(default, deserialize_with = "secret")]
    token: Option<SecretString>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
    #[serde(default, deserialize_with = "instant")]
    expiration_timestamp: Option<Timestamp>,
}

fn parse(printed: &str) -> Option<Issued> {
    let credential: ExecCredential = serde_json::from_str(printed).ok()?;
    if credential.kind != "ExecCredential" || !VERSIONS.contains(&credential.api_version.as_str()) {
        return None;
    }
    let CredentialStatus { token, client_certificate_data, client_key_data, expiration_timestamp } = credential.status;
    let identity = client_certificate_data.zip(client_key_data);
    let identity = identity.map(|(certificate, key)| pem_pair(certificate.into_bytes(), key.into_bytes()));
    let is_something = token.is_some() || identity.is_some();
    is_something.then_some(Issued { token, identity, ends: expiration_timestamp })
}
