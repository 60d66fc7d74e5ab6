//! The `cgroup` probe: a control group, version 1 or 2.

use super::{Answer, Context};
use crate::contract::CgroupSource;

/// A control group, version 1 or 2.
#[derive(Debug)]
pub(super) struct Cgroup {
    source: CgroupSource,
    context: Context,
}

impl Cgroup {
    pub(super) fn new(source: &CgroupSource, context: &Context) -> Self {
        Self { source: source.clone(), context: context.clone() }
    }

    pub(super) async fn read(&mut self) -> Answer {
        Err(format!("{:?} in {} is not read yet", self.source, self.context.folder.display()))
    }
}
