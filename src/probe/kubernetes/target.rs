//! Which cluster is asked, and as whom.
//!
//! The order is that of `kubectl`: the contract's `kubeconfig`, else the files of `$KUBECONFIG`, else `~/.kube/config`, else
//! the service account of the pod that this runs in.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use reqwest::{Certificate, Client, Identity};
use secrecy::{ExposeSecret, SecretSlice, SecretString};
use url::Url;

use super::exec::Plugin;
use super::files::{data_or_file, read_small};
use super::kubeconfig::{Cluster, Kubeconfig, Named, Setting, User, find, shaped};
use crate::contract::KubernetesSource;
use crate::probe::api::client;
use crate::probe::excerpt::{plain, quote};

/// Where a pod finds its service account.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// What the environment says about clusters.
#[derive(Debug, Clone)]
pub(super) struct Surroundings {
    /// `$KUBECONFIG`: files with `:` between them.
    pub(super) kubeconfig: Option<OsString>,
    /// `$HOME`.
    pub(super) home: Option<PathBuf>,
    /// `$KUBERNETES_SERVICE_HOST` and `$KUBERNETES_SERVICE_PORT`, which a pod has.
    pub(super) service: Option<(String, String)>,
    /// The folder of the pod's service account.
    pub(super) account: PathBuf,
}

impl Surroundings {
    /// Those of this process.
    pub(super) fn of_process() -> Self {
        let text = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        Self {
            kubeconfig: std::env::var_os("KUBECONFIG").filter(|value| !value.is_empty()),
            home: std::env::var_os("HOME").map(PathBuf::from),
            service: text("KUBERNETES_SERVICE_HOST").zip(text("KUBERNETES_SERVICE_PORT")),
            account: PathBuf::from(ACCOUNT),
        }
    }

    /// The kubeconfig files that there are.
    fn files(&self) -> Vec<PathBuf> {
        let listed = self.kubeconfig.as_ref().map(|list| std::env::split_paths(list).collect::<Vec<_>>());
        let usual = || self.home.iter().map(|home| home.join(".kube/config")).collect();
        let files = listed.unwrap_or_else(usual);
        files.into_iter().filter(|path| path.exists()).collect()
    }
}

/// A cluster and who asks it.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) server: Url,
    /// The namespace of the context; the contract's own comes first.
    pub(super) namespace: String,
    pub(super) trust: Trust,
    pub(super) bearer: Bearer,
    /// Certificate and key, as PEM.
    pub(super) identity: Option<SecretSlice<u8>>,
}

/// Which certificate of the server is taken.
#[derive(Debug, Default)]
pub(super) struct Trust {
    /// Certificates, as PEM; those of the system where there are none.
    pub(super) authority: Option<Vec<u8>>,
    /// Any.
    pub(super) insecure: bool,
    pub(super) proxy: Option<Url>,
}

/// Where the token of a request is from.
#[derive(Debug)]
pub(super) enum Bearer {
    None,
    Token(SecretString),
    /// Read for every reading, because such tokens are renewed.
    File(PathBuf),
    Plugin(Box<Plugin>),
}

impl Target {
    /// What the contract, the environment and the files name.
    ///
    /// # Errors
    /// When they name nothing, or something that cannot be used.
    pub(super) async fn find(source: &KubernetesSource, around: &Surroundings, folder: &Path) -> Result<Self, String> {
        let files = source.kubeconfig.as_ref().map_or_else(|| around.files(), |file| vec![folder.join(file)]);
        if files.is_empty() && source.context.is_none() {
            return Self::of_pod(around).await;
        }
        let config = Kubeconfig::read(&files).await?;
        let context = source.context.clone().or_else(|| config.current_context.clone());
        let context = context.ok_or("the kubeconfig has no current context; write `context`")?;
        let named = find(&config.contexts, &context).ok_or_else(|| {
            let known: Vec<&str> = config.contexts.iter().map(|context| context.name.as_str()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { plain(&known.join(", ")) };
            format!("the kubeconfig has no context {}; it has {known}", quote(&context))
        })?;
        Self::of_context(&config, named).await.map_err(|error| format!("context {}: {error}", quote(&context)))
    }

    async fn of_pod(around: &Surroundings) -> Result<Self, String> {
        let (host, port) = around
            .service
            .as_ref()
            .ok_or("there is no kubeconfig and this is no pod; write `kubeconfig`, or set $KUBECONFIG")?;
        let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        let server = Url::parse(&format!("https://{host}:{port}"))
            .map_err(|_| "$KUBERNETES_SERVICE_HOST and its port are no address".to_owned())?;
        let told = |error| format!("cannot read the pod's service account {error}");
        let authority = read_small(&around.account.join("ca.crt")).await.map_err(told)?;
        let namespace = read_small(&around.account.join("namespace")).await.map_err(told)?;
        Ok(Self {
            server,
            namespace: String::from_utf8_lossy(&namespace).trim().to_owned(),
            trust: Trust { authority: Some(authority), ..Trust::default() },
            bearer: Bearer::File(around.account.join("token")),
            identity: None,
        })
    }

    async fn of_context(config: &Kubeconfig, context: &Named<Setting>) -> Result<Self, String> {
        let Setting { cluster, user, namespace } = &context.value;
        let cluster =
            find(&config.clusters, cluster).ok_or_else(|| format!("there is no cluster {}", quote(cluster)))?;
        let server = server(&cluster.value.server)?;
        let trust = trust(cluster).await?;
        let namespace = namespace.clone().filter(|name| !name.is_empty()).unwrap_or_else(|| "default".to_owned());
        let (bearer, identity) = match find(&config.users, user) {
            Some(user) => credentials(user, &cluster.value)
                .await
                .map_err(|error| format!("user {}: {error}", quote(&user.name)))?,
            None if user.is_empty() => (Bearer::None, None),
            None => return Err(format!("there is no user {}", quote(user))),
        };
        if server.scheme() == "http" && !matches!(bearer, Bearer::None) {
            return Err("the server's address is `http://`, over which no token is sent".to_owned());
        }
        Ok(Self { server, namespace, trust, bearer, identity })
    }

    /// A client for the cluster; `issued` is the certificate and key that a plugin gave, as PEM.
    ///
    /// # Errors
    /// When certificates or the proxy make no sense.
    pub(super) fn client(&self, issued: Option<&SecretSlice<u8>>) -> Result<Client, String> {
        let mut builder = client().tls_danger_accept_invalid_certs(self.trust.insecure);
        if let Some(pem) = &self.trust.authority {
            let authority = Certificate::from_pem_bundle(pem).ok().filter(|certificates| !certificates.is_empty());
            builder = builder.tls_certs_only(authority.ok_or("the certificate authority holds no PEM certificate")?);
        }
        if let Some(pem) = issued.or(self.identity.as_ref()) {
            let identity = Identity::from_pem(pem.expose_secret());
            builder = builder.identity(identity.map_err(|_| "the client certificate and key are no PEM pair")?);
        }
        if let Some(proxy) = &self.trust.proxy {
            builder = builder.proxy(reqwest::Proxy::all(proxy.clone()).map_err(|_| "`proxy-url` makes no sense")?);
        }
        builder
            .build()
            .map_err(|_| "cannot build the HTTP client; look at the client certificate and its key".to_owned())
    }
}

fn server(written: &str) -> Result<Url, String> {
    // `kubectl` takes an address without a scheme as plain HTTP.
    let address = if written.contains("://") { written.to_owned() } else { format!("http://{written}") };
    let fits =
        |url: &Url| ["http", "https"].contains(&url.scheme()) && url.username().is_empty() && url.password().is_none();
    Url::parse(&address).ok().filter(fits).ok_or_else(|| "the cluster's `server` is no address of a server".to_owned())
}

async fn trust(cluster: &Named<Cluster>) -> Result<Trust, String> {
    let Cluster { tls_server_name, certificate_authority, certificate_authority_data, proxy_url, .. } = &cluster.value;
    if tls_server_name.as_ref().is_some_and(|name| !name.is_empty()) {
        return Err("`tls-server-name` is not supported; name the server as its certificate does".to_owned());
    }
    let file = certificate_authority.as_ref().filter(|file| !file.is_empty()).map(|file| cluster.path(file));
    let authority =
        data_or_file("certificate authority", certificate_authority_data.as_deref(), file.as_deref()).await?;
    let proxy = match proxy_url.as_deref().filter(|url| !url.is_empty()) {
        Some(url) => {
            let proxy = Url::parse(url).ok().filter(|url| ["http", "https"].contains(&url.scheme()));
            Some(proxy.ok_or("`proxy-url` is no `http://` or `https://` address")?)
        }
        None => None,
    };
    Ok(Trust { authority, insecure: cluster.value.insecure_skip_tls_verify.unwrap_or_default(), proxy })
}

async fn credentials(
    user: &Named<serde_json::Value>,
    cluster: &Cluster,
) -> Result<(Bearer, Option<SecretSlice<u8>>), String> {
    let shape = |()| "its entry is not understood; `kubectl config view` shows it".to_owned();
    let written: User = shaped(user.value.clone()).map_err(shape)?;
    let is_written = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
    for (is_there, key) in [
        (is_written(&written.impersonate), "as"),
        (is_written(&written.username), "username"),
        (written.auth_provider.is_some(), "auth-provider"),
    ] {
        if is_there {
            return Err(format!("`{key}` is not supported; use a token, a client certificate or `exec`"));
        }
    }
    let path = |file: &Option<String>| file.as_ref().filter(|file| !file.is_empty()).map(|file| user.path(file));
    let certificate = written.client_certificate_data.as_deref();
    let certificate =
        data_or_file("client certificate", certificate, path(&written.client_certificate).as_deref()).await?;
    let key = written.client_key_data.as_ref().map(ExposeSecret::expose_secret);
    let key = data_or_file("client key", key, path(&written.client_key).as_deref()).await?;
    let identity = match (certificate, key) {
        (Some(certificate), Some(key)) => Some(pem_pair(certificate, key)),
        (None, None) => None,
        _ => return Err("a client certificate needs its key, and a key its certificate".to_owned()),
    };
    let token = written.token.filter(|token| !token.expose_secret().is_empty());
    let bearer = match (path(&written.token_file), token, written.exec) {
        (Some(file), _, _) => Bearer::File(file),
        (None, Some(token), _) => Bearer::Token(token),
        (None, None, Some(exec)) => Bearer::Plugin(Box::new(Plugin::new(exec, &user.path(""), cluster)?)),
        (None, None, None) => Bearer::None,
    };
    Ok((bearer, identity))
}

/// A certificate and its key in one text.
pub(super) fn pem_pair(mut certificate: Vec<u8>, key: Vec<u8>) -> SecretSlice<u8> {
    certificate.push(b'\n');
    certificate.extend(key);
    certificate.into()
}

#[cfg(test)]
mod tests;
