//! The `kubernetes` probe: pods, by the API of Kubernetes.

use super::{Answer, Context};
use crate::contract::KubernetesSource;

/// Pods, by the API of Kubernetes.
#[derive(Debug)]
pub(super) struct Kubernetes {
    source: KubernetesSource,
    context: Context,
}

impl Kubernetes {
    pub(super) fn new(source: &KubernetesSource, context: &Context) -> Self {
        Self { source: source.clone(), context: context.clone() }
    }

    pub(super) async fn read(&mut self) -> Answer {
        Err(format!("{:?} in {} is not read yet", self.source, self.context.folder.display()))
    }
}
