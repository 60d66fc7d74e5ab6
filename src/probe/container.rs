//! What the APIs of Docker and Podman have in common: the address, the version and the description of a container.
//!
//! The version is the one that the server announces on `/_ping`, the only path that both serve without one. Docker also
//! serves the others without a version, but its description calls that deprecated and bound to go; a fixed version would
//! be too old for some servers and too new for others.

use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use reqwest::Client;
use serde::Deserialize;
use url::Url;

use super::Answer;
use super::api::{Reply, Unreached, address, client, count, get};
use super::excerpt::{plain, quote};
use super::sightings::{Answered, Sighting};
use crate::contract::{ContainerField, ContainerSource};

/// The largest description of a container that is read, in bytes; usual ones have some ten thousand.
const DESCRIPTION_LIMIT: usize = 4 * 1024 * 1024;

/// The largest reply to `/_ping` that is read, in bytes.
const PING_LIMIT: usize = 64 * 1024;

/// The port of `tcp://` where none is written, as the engines have it.
const PORT: u16 = 2375;

/// How one engine differs from the other.
#[derive(Debug)]
pub(super) struct Engine {
    /// Its name in messages.
    pub(super) name: &'static str,
    /// The header on `/_ping` with its version.
    pub(super) version_header: &'static str,
    /// What stands between the version and `containers` in a path.
    pub(super) prefix: &'static [&'static str],
    /// The command that lists containers.
    pub(super) list: &'static str,
    /// What to do where the socket is not for this user.
    pub(super) permission: &'static str,
    /// What to do where nothing listens.
    pub(super) start: &'static str,
}

/// One container of one engine.
#[derive(Debug)]
pub(super) struct Container {
    engine: &'static Engine,
    source: ContainerSource,
    /// The address as it was written.
    host: String,
    folder: PathBuf,
    server: Option<Server>,
    answered: Answered,
}

impl Container {
    /// A container that was not asked for yet. `usual` is the engine's address where the contract names none.
    pub(super) fn new(engine: &'static Engine, source: &ContainerSource, usual: String, folder: &Path) -> Self {
        let host = source.host.clone().unwrap_or(usual);
        let folder = folder.to_owned();
        Self { engine, source: source.clone(), host, folder, server: None, answered: Answered::default() }
    }

    /// Asks once.
    pub(super) async fn read(&mut self) -> Answer {
        let server = match &self.server {
            Some(server) => server.clone(),
            None => Server::at(&self.host, &self.folder)?,
        };
        self.server = Some(server.clone());
        let version = self.version(&server).await?;
        let body = self.describe(&server, &version).await?;
        let described: Described = serde_json::from_slice(&body).map_err(|error| {
            let error = plain(&error.to_string());
            format!("{} sent no description of container {}: {error}", self.at(), quote(&self.source.container))
        })?;
        let sighting = self.sighting(&described)?;
        let is_old = self.source.field == ContainerField::OomKilled && sighting.value > 0.0 && self.answered.is_empty();
        if is_old {
            let name = quote(&self.source.container);
            return Err(format!(
                "a process of container {name} was killed for want of memory before this run, so that another one would not show; \
                 restart the container"
            ));
        }
        self.answered.answer(vec![sighting])
    }

    /// The engine and where it is.
    fn at(&self) -> String {
        format!("{} at {}", self.engine.name, plain(&self.host))
    }

    /// The version of the API that the server announces.
    async fn version(&self, server: &Server) -> Result<String, String> {
        let url = address(&server.base, &["_ping"])?;
        let reply = get(&server.client, url, None, PING_LIMIT).await.map_err(|error| self.unreached(&error))?;
        if !reply.status.is_success() {
            return Err(self.refused("/_ping", &reply));
        }
        let version = reply.headers.get(self.engine.version_header).and_then(|value| value.to_str().ok());
        let is_version = |text: &&str| {
            (1..=20).contains(&text.len())
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte))
        };
        version.filter(is_version).map(str::to_owned).ok_or_else(|| {
            let (engine, header) = (self.engine.name, self.engine.version_header);
            format!("what answers at {} is not {engine}: its reply to `/_ping` has no `{header}`", plain(&self.host))
        })
    }

    /// The description of the container, as JSON.
    async fn describe(&self, server: &Server, version: &str) -> Result<Vec<u8>, String> {
        let name = self.source.container.as_str();
        let version = format!("v{version}");
        let mut segments = vec![version.as_str()];
        segments.extend(self.engine.prefix);
        segments.extend(["containers", name, "json"]);
        let url = address(&server.base, &segments)?;
        let path = url.path().to_owned();
        let reply = get(&server.client, url, None, DESCRIPTION_LIMIT).await.map_err(|error| self.unreached(&error))?;
        match reply.status.as_u16() {
            200 => Ok(reply.body),
            404 => Err(format!("no container {} in {}; `{}` lists them", quote(name), self.at(), self.engine.list)),
            _ => Err(self.refused(&path, &reply)),
        }
    }

    fn refused(&self, path: &str, reply: &Reply) -> String {
        let hint = match reply.status.as_u16() {
            401 | 403 => "; does a proxy before it allow `/_ping` and `/containers`?",
            _ => "",
        };
        format!("{} answered GET {} with {}{hint}", self.at(), quote(path), reply.complaint(&[]))
    }

    fn unreached(&self, error: &Unreached) -> String {
        let hint = match error.kind {
            Some(io::ErrorKind::PermissionDenied) => format!("; {}", self.engine.permission),
            Some(io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => format!("; {}", self.engine.start),
            _ => String::new(),
        };
        format!("no reply from {}: {}{hint}", self.at(), error.cause)
    }

    fn sighting(&self, described: &Described) -> Result<Sighting, String> {
        let name = quote(&self.source.container);
        let State { status, oom_killed, started_at, exit_code } = &described.state;
        let told = |error: String| format!("{} told of container {name}: {error}", self.at());
        let id = described.id.get(..12).filter(|id| id.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let id = id.ok_or_else(|| told(format!("Id is {}, which is none", quote(&described.id))))?;
        let started: Timestamp = started_at
            .parse()
            .map_err(|_| told(format!("State.StartedAt is {}, which is no time", quote(started_at))))?;
        let value = match self.source.field {
            ContainerField::RestartCount => count("RestartCount", described.restart_count).map_err(told)?,
            ContainerField::OomKilled => f64::from(u8::from(*oom_killed)),
            ContainerField::StartTime => 1.0,
        };
        let code = exit_code.filter(|_| status == "exited").map_or(String::new(), |code| format!(" with code {code}"));
        let doubt =
            (status != "running").then(|| format!("container {name} is not running but {}{code}", plain(status)));
        Ok(Sighting { of: self.source.container.clone(), since: format!("{id} started {started}"), value, doubt })
    }
}

/// What is read of a description. The types are those of both APIs' descriptions; a field that is missing is an error.
#[derive(Debug, Deserialize)]
struct Described {
    #[serde(rename = "Id")]
    id: String,
    #[serde(rename = "RestartCount")]
    restart_count: f64,
    #[serde(rename = "State")]
    state: State,
}

#[derive(Debug, Deserialize)]
struct State {
    #[serde(rename = "Status")]
    status: String,
    #[serde(rename = "OOMKilled")]
    oom_killed: bool,
    #[serde(rename = "StartedAt")]
    started_at: String,
    #[serde(rename = "ExitCode")]
    exit_code: Option<i64>,
}

/// An engine's address, and the client for it.
#[derive(Debug, Clone)]
struct Server {
    client: Client,
    base: Url,
}

impl Server {
    /// A relative path of a socket starts at the contract's folder.
    fn at(host: &str, folder: &Path) -> Result<Self, String> {
        let unfit = || {
            let host = host.rsplit_once('@').map_or(host, |(_, rest)| rest);
            format!(
                "{} is no address of an engine; write `unix:///path`, `tcp://host:port` or `http://host:port`",
                quote(host)
            )
        };
        // Nothing here speaks TLS, and reading the system's certificates takes its time.
        let builder = client().tls_certs_only([]);
        let (builder, base) = match host.split_once("://") {
            Some(("unix", path)) if !path.is_empty() => {
                (builder.unix_socket(folder.join(path)), Url::parse("http://localhost"))
            }
            Some(("tcp" | "http", rest)) => (builder, Url::parse(&format!("http://{rest}"))),
            _ => return Err(unfit()),
        };
        let mut base = base.map_err(|_| unfit())?;
        let is_plain = base.username().is_empty() && base.password().is_none() && base.query().is_none();
        if !is_plain {
            return Err(unfit());
        }
        if host.starts_with("tcp:") && base.port().is_none() {
            base.set_port(Some(PORT)).map_err(|()| unfit())?;
        }
        let client =
            builder.build().map_err(|error| format!("cannot build the HTTP client: {}", plain(&error.to_string())))?;
        Ok(Self { client, base })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(host: &str) -> Result<String, String> {
        Server::at(host, Path::new("/")).map(|server| server.base.to_string())
    }

    #[test]
    fn an_address_is_a_socket_or_plain_http() {
        assert_eq!(base("unix:///run/docker.sock"), Ok("http://localhost/".to_owned()));
        assert_eq!(base("tcp://10.0.0.1:2376"), Ok("http://10.0.0.1:2376/".to_owned()));
        assert_eq!(base("tcp://engine"), Ok("http://engine:2375/".to_owned()));
        assert_eq!(base("http://engine/behind"), Ok("http://engine/behind".to_owned()));
        for odd in ["", "unix://", "/run/docker.sock", "ssh://host", "https://host", "npipe:////./pipe/x", "tcp://"] {
            let failure = base(odd).expect_err(odd);
            assert!(failure.contains("is no address of an engine; write `unix:///path`"), "{failure}");
        }
        let failure = base("http://user:s3cret@engine").expect_err("credentials");
        assert!(!failure.contains("s3cret"), "{failure}");
    }
}
