//! The `prometheus` probe: a metric on a Prometheus or OpenMetrics page.

use super::{Answer, Context};
use crate::contract::PrometheusSource;

/// A metric on a Prometheus or OpenMetrics page.
#[derive(Debug)]
pub(super) struct Prometheus {
    source: PrometheusSource,
    context: Context,
}

impl Prometheus {
    pub(super) fn new(source: &PrometheusSource, context: &Context) -> Self {
        Self { source: source.clone(), context: context.clone() }
    }

    pub(super) async fn read(&mut self) -> Answer {
        Err(format!("{:?} in {} is not read yet", self.source, self.context.folder.display()))
    }
}
