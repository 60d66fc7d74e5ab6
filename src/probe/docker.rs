//! The `docker` probe: a container, by the API of Docker Engine.
//!
//! Written against the published description of version 1.56 of the API; what is asked has been in it since 1.25. The
//! address is the contract's `host`, else `$DOCKER_HOST`, else the socket of a usual installation. Contexts of the `docker`
//! command and TLS are not read: name the address, or forward it.
//!
//! `RestartCount` rises when the restart policy acts, and starts again at 0 when somebody restarts the container by hand or the
//! daemon restarts, so the instant of the last start is part of `since`. `OOMKilled` tells of any process in the
//! container that was killed since that start.

use super::container::{Container, Engine};
use super::{Answer, Context};
use crate::contract::ContainerSource;

const ENGINE: Engine = Engine {
    name: "Docker",
    version_header: "api-version",
    prefix: &[],
    list: "docker ps --all",
    permission: "add this user to the group `docker`",
    start: "is Docker running? name another address with `host` or $DOCKER_HOST",
};

const SOCKET: &str = "unix:///var/run/docker.sock";

/// A container, by the API of Docker.
#[derive(Debug)]
pub(super) struct Docker(Container);

impl Docker {
    pub(super) fn new(source: &ContainerSource, context: &Context) -> Self {
        let host = std::env::var("DOCKER_HOST").ok().filter(|host| !host.is_empty());
        let usual = host.unwrap_or_else(|| SOCKET.to_owned());
        Self(Container::new(&ENGINE, source, usual, &context.folder))
    }

    pub(super) async fn read(&mut self) -> Answer {
        self.0.read().await
    }
}
