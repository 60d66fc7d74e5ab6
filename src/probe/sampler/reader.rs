//! One reading that answers one resource or several.

use std::time::{Duration, Instant};

use crate::contract::{Across, MetricsPage, Resource, Source};
use crate::probe::prometheus::MetricsReader;
use crate::probe::{Context, Prober, reading, too_late};
use crate::record::Reading;

/// Reads the numbers of a group of resources, in their order.
#[derive(Debug)]
pub(super) enum Reader {
    /// A source that nobody shares.
    Alone(Prober),
    /// A metrics page, fetched once for all of them.
    Page {
        reader: MetricsReader,
        /// What each takes of its series.
        across: Vec<Across>,
        timeout: Duration,
    },
}

impl Reader {
    /// A reader for resources that can be read together, as [`are_read_together`] says; at least one.
    pub(super) fn new(first: &Resource, others: &[&Resource], context: &Context) -> Self {
        let all = || std::iter::once(first).chain(others.iter().copied());
        match page(first) {
            Some(page) => {
                let sources = all().filter_map(|resource| match &resource.probe.source {
                    Source::Prometheus(source) => Some(source.clone()),
                    _ => None,
                });
                let reader = MetricsReader::new(page, sources.collect());
                let across = all().map(|resource| resource.across).collect();
                Self::Page { reader, across, timeout: first.probe.timeout }
            }
            None => Self::Alone(Prober::new(&first.probe, first.across, context)),
        }
    }

    /// Reads once, for no longer than the timeout that the group shares; one answer for each of its resources.
    pub(super) async fn read(&mut self) -> Vec<Reading> {
        match self {
            Self::Alone(prober) => vec![prober.read().await],
            Self::Page { reader, across, timeout } => {
                let start = Instant::now();
                let answers = tokio::time::timeout(*timeout, reader.read()).await;
                let took_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
                let answers = answers.unwrap_or_else(|_| vec![Err(too_late(*timeout)); across.len()]);
                let taken = answers.into_iter().zip(across);
                taken.map(|(answer, across)| reading(answer, *across, took_ns)).collect()
            }
        }
    }
}

/// Whether one reading answers both: they share a page, when it is read and how long that may take.
pub(super) fn are_read_together(one: &Resource, other: &Resource) -> bool {
    let same_page = page(one).is_some_and(|page_of_one| Some(page_of_one) == page(other));
    same_page && one.every == other.every && one.probe.timeout == other.probe.timeout
}

fn page(resource: &Resource) -> Option<&MetricsPage> {
    match &resource.probe.source {
        Source::Prometheus(source) => Some(&source.page),
        _ => None,
    }
}
