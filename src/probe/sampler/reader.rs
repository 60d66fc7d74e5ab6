//! One reading that answers one resource or several.

use std::time::{Duration, Instant};

use crate::contract::{Across, MetricsPage, NvidiaField, NvidiaSource, Resource, Source};
use crate::probe::nvidia::Cards;
use crate::probe::prometheus::MetricsReader;
use crate::probe::{Answer, Context, Prober, reading, too_late};
use crate::record::Reading;

/// Reads the numbers of a group of resources, in their order.
#[derive(Debug)]
pub(super) enum Reader {
    /// A source that nobody shares.
    Alone(Prober),
    /// A source that is asked once for all of them.
    Shared {
        source: Shared,
        /// What each takes of its series.
        across: Vec<Across>,
        timeout: Duration,
    },
}

/// A source that answers several questions at once.
#[derive(Debug)]
pub(super) enum Shared {
    /// A metrics page.
    Page(MetricsReader),
    /// GPUs, with what is asked of them.
    Gpus(Cards, Vec<NvidiaField>),
}

impl Reader {
    /// A reader for resources that can be read together, as [`are_read_together`] says; at least one.
    pub(super) fn new(first: &Resource, others: &[&Resource], context: &Context) -> Self {
        let all = || std::iter::once(first).chain(others.iter().copied());
        let source = match place(first) {
            Some(Place::Page(page)) => {
                let questions = all().filter_map(|resource| match &resource.probe.source {
                    Source::Prometheus(source) => Some(source.clone()),
                    _ => None,
                });
                Shared::Page(MetricsReader::new(page, questions.collect()))
            }
            Some(Place::Gpus(gpus)) => {
                let fields = all().filter_map(|resource| match &resource.probe.source {
                    Source::Nvidia(source) => Some(source.field),
                    _ => None,
                });
                Shared::Gpus(Cards::new(gpus, context), fields.collect())
            }
            None => return Self::Alone(Prober::new(&first.probe, first.across, context)),
        };
        let across = all().map(|resource| resource.across).collect();
        Self::Shared { source, across, timeout: first.probe.timeout }
    }

    /// Reads once, for no longer than the timeout that the group shares; one answer for each of its resources.
    pub(super) async fn read(&mut self) -> Vec<Reading> {
        match self {
            Self::Alone(prober) => vec![prober.read().await],
            Self::Shared { source, across, timeout } => {
                let start = Instant::now();
                let answers = tokio::time::timeout(*timeout, source.ask()).await;
                let took_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
                let answers = answers.unwrap_or_else(|_| vec![Err(too_late(*timeout)); across.len()]);
                let taken = answers.into_iter().zip(across);
                taken.map(|(answer, across)| reading(answer, *across, took_ns)).collect()
            }
        }
    }
}

impl Shared {
    async fn ask(&mut self) -> Vec<Answer> {
        match self {
            Self::Page(reader) => reader.read().await,
            Self::Gpus(cards, fields) => {
                let answers = cards.ask(&fields.iter().copied().collect()).await;
                let of = |field: &NvidiaField| match &answers {
                    Ok(answers) => answers.get(field).cloned().unwrap_or_else(|| Err("was not answered".to_owned())),
                    Err(failure) => Err(failure.clone()),
                };
                fields.iter().map(of).collect()
            }
        }
    }
}

/// Whether one reading answers both: they share a source, when it is read and how long that may take.
pub(super) fn are_read_together(one: &Resource, other: &Resource) -> bool {
    let same_source = match (place(one), place(other)) {
        (Some(Place::Page(one)), Some(Place::Page(other))) => one == other,
        (Some(Place::Gpus(one)), Some(Place::Gpus(other))) => one.command == other.command && one.gpus == other.gpus,
        _ => false,
    };
    same_source && one.every == other.every && one.probe.timeout == other.probe.timeout
}

/// What a source that can be shared reads from.
enum Place<'a> {
    Page(&'a MetricsPage),
    Gpus(&'a NvidiaSource),
}

fn place(resource: &Resource) -> Option<Place<'_>> {
    match &resource.probe.source {
        Source::Prometheus(source) => Some(Place::Page(&source.page)),
        Source::Nvidia(source) => Some(Place::Gpus(source)),
        _ => None,
    }
}
