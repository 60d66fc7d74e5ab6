//! The `docker` probe: a container, by the API of Docker.

use super::{Answer, Context};
use crate::contract::ContainerSource;

/// A container, by the API of Docker.
#[derive(Debug)]
pub(super) struct Docker {
    source: ContainerSource,
    context: Context,
}

impl Docker {
    pub(super) fn new(source: &ContainerSource, context: &Context) -> Self {
        Self { source: source.clone(), context: context.clone() }
    }

    pub(super) async fn read(&mut self) -> Answer {
        Err(format!("{:?} in {} is not read yet", self.source, self.context.folder.display()))
    }
}
