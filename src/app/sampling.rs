//! The sampling of resources around every trial of a run.

use std::ops::Range;
use std::time::Instant;

use super::exit::Failure;
use crate::contract::Resource;
use crate::endpoint::Secrets;
use crate::probe::{Context, Sampled, Sampler};
use crate::record::{ResourceSample, TrialFacts, resource_records};
use crate::schedule::{PlannedTrial, TrialShape, segment_nanos};

/// The resources of a run, and what samples them.
#[derive(Debug)]
pub(super) struct Sampling {
    resources: Vec<Resource>,
    /// `None` where the contract has no resources.
    sampler: Option<Sampler>,
}

impl Sampling {
    /// Gets ready to sample; nothing is read yet.
    pub(super) fn start(resources: &[Resource], context: &Context) -> Result<Self, Failure> {
        let sampler = Sampler::start(resources, context).map_err(|error| {
            Failure::internal(format!("failed to start the thread that samples resources: {error}"))
        })?;
        Ok(Self { resources: resources.to_vec(), sampler })
    }

    /// A trial starts at this instant.
    pub(super) fn begin(&mut self, planned: &PlannedTrial, start: Instant) {
        if let Some(sampler) = &mut self.sampler {
            sampler.begin(planned.trial, start);
        }
    }

    /// The trial has ended: adds what was sampled in its window to its facts, and returns every sample.
    pub(super) async fn end(
        &mut self,
        planned: &PlannedTrial,
        facts: &mut TrialFacts,
        secrets: &Secrets,
    ) -> Vec<ResourceSample> {
        let Some(sampler) = &mut self.sampler else { return Vec::new() };
        let Sampled { mut samples, record } = sampler.end().await;
        for failure in samples.iter_mut().filter_map(|sample| sample.failure.as_mut()) {
            *failure = secrets.mask(failure).into_owned();
        }
        facts.resources = resource_records(&self.resources, &samples, window(planned, facts.window_ns));
        facts.health.sampling = Some(record);
        samples
    }
}

/// The time of a trial's window, in nanoseconds since its start.
fn window(planned: &PlannedTrial, length_ns: u64) -> Range<u64> {
    let begin = match planned.shape {
        TrialShape::Open { rate, counts, .. } => segment_nanos(counts.warm_up, rate),
        TrialShape::Closed(plan) => plan.warm_up_ns,
    };
    begin..begin.saturating_add(length_ns)
}
