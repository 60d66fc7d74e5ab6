//! temporary
use super::*;
use crate::schedule::TrialCounts;
use crate::units::{Digest, Load};
#[derive(Debug, Default)]
pub struct TrialAccumulator {}
impl TrialAccumulator {
    pub fn push(&mut self, _r: &RequestRecord) {}
}
#[derive(Debug)]
pub struct TrialFacts {
    pub trial: u32,
    pub seed: u64,
    pub load: Load,
    pub schedule_digest: Digest,
    pub planned: Option<TrialCounts>,
    pub window_ns: u64,
    pub complete: bool,
    pub health: HealthRecord,
}
pub fn grade(_l: &crate::contract::RequestLimits, _r: &mut RequestRecord) {}
