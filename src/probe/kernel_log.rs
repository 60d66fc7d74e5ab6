//! The `kernel_log` probe: lines of the kernel's log.

use super::{Answer, Context};
use crate::contract::KernelLogSource;

/// Lines of the kernel's log.
#[derive(Debug)]
pub(super) struct KernelLog {
    source: KernelLogSource,
    context: Context,
}

impl KernelLog {
    pub(super) fn new(source: &KernelLogSource, context: &Context) -> Self {
        Self { source: source.clone(), context: context.clone() }
    }

    pub(super) async fn read(&mut self) -> Answer {
        Err(format!("{:?} in {} is not read yet", self.source, self.context.folder.display()))
    }
}
