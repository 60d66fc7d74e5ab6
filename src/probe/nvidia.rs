//! The `nvidia` probe: NVIDIA GPUs, by `nvidia-smi`.

use super::{Answer, Context};
use crate::contract::NvidiaSource;

/// NVIDIA GPUs, by `nvidia-smi`.
#[derive(Debug)]
pub(super) struct Nvidia {
    source: NvidiaSource,
    context: Context,
}

impl Nvidia {
    pub(super) fn new(source: &NvidiaSource, context: &Context) -> Self {
        Self { source: source.clone(), context: context.clone() }
    }

    pub(super) async fn read(&mut self) -> Answer {
        Err(format!("{:?} in {} is not read yet", self.source, self.context.folder.display()))
    }
}
