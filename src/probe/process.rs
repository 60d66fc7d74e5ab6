//! The `process` probe: a process of this machine.

use super::{Answer, Context};
use crate::contract::ProcessSource;

/// A process of this machine.
#[derive(Debug)]
pub(super) struct Process {
    source: ProcessSource,
    context: Context,
}

impl Process {
    pub(super) fn new(source: &ProcessSource, context: &Context) -> Self {
        Self { source: source.clone(), context: context.clone() }
    }

    pub(super) async fn read(&mut self) -> Answer {
        Err(format!("{:?} in {} is not read yet", self.source, self.context.folder.display()))
    }
}
