//! The `podman` probe: a container, by the API of Podman.

use super::{Answer, Context};
use crate::contract::ContainerSource;

/// A container, by the API of Podman.
#[derive(Debug)]
pub(super) struct Podman {
    source: ContainerSource,
    context: Context,
}

impl Podman {
    pub(super) fn new(source: &ContainerSource, context: &Context) -> Self {
        Self { source: source.clone(), context: context.clone() }
    }

    pub(super) async fn read(&mut self) -> Answer {
        Err(format!("{:?} in {} is not read yet", self.source, self.context.folder.display()))
    }
}
