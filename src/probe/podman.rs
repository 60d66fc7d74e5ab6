//! The `podman` probe: a container, by Podman's own API (libpod).
//!
//! Podman requires a version in every path, announces its own in the reply to `/_ping`, and gives the old shape of a reply to
//! who names an old one; the fields that are asked have been the same since 4.0. The address is the contract's `host`, else
//! `$CONTAINER_HOST`, else the socket of this user, else the system's; `podman system service` or its systemd socket serves
//! it.
//!
//! `OOMKilled` is noted when the container ends, so a killed child that the container survives is not seen; and Podman 4.3 on
//! control groups of version 1 was seen to end a container for want of memory and note nothing. Such a container has
//! stopped or started anew, which no row passes; for the children there is the `cgroup` probe.

use std::path::{Path, PathBuf};

use super::container::{Container, Engine};
use super::{Answer, Context};
use crate::contract::ContainerSource;

const ENGINE: Engine = Engine {
    name: "Podman",
    version_header: "libpod-api-version",
    prefix: &["libpod"],
    list: "podman ps --all",
    permission: "ask as the user whose containers they are",
    start: "start it with `systemctl --user start podman.socket`, or name another address with `host` or $CONTAINER_HOST",
};

const SYSTEM_SOCKET: &str = "/run/podman/podman.sock";

/// A container, by the API of Podman.
#[derive(Debug)]
pub(super) struct Podman(Container);

impl Podman {
    pub(super) fn new(source: &ContainerSource, context: &Context) -> Self {
        Self(Container::new(&ENGINE, source, usual_host(), &context.folder))
    }

    pub(super) async fn read(&mut self) -> Answer {
        self.0.read().await
    }
}

fn usual_host() -> String {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    if let Some(host) = variable("CONTAINER_HOST") {
        return host;
    }
    let of_user = variable("XDG_RUNTIME_DIR").map(|folder| Path::new(&folder).join("podman/podman.sock"));
    let socket = of_user.filter(|socket| socket.exists()).unwrap_or_else(|| PathBuf::from(SYSTEM_SOCKET));
    format!("unix://{}", socket.display())
}
