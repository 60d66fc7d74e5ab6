//! From cases, a payload template and a seed to ordered requests.

mod cases;
mod order;
mod template;

pub use cases::{Case, CaseError, inline_cases, parse_cases};
pub use order::CaseOrder;
pub use template::{TemplateError, render};

use bytes::Bytes;
use serde_json::Value;

use crate::units::{Digest, DigestBuilder};

/// One case, ready to be sent.
#[derive(Debug, Clone, PartialEq)]
pub struct RenderedCase {
    /// The case's name, unique in the workload.
    pub id: String,
    /// The request body as it goes over the wire.
    pub body: Bytes,
}

/// Everything that can be sent in a run: one body per case, and the digest that names them.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    cases: Vec<RenderedCase>,
    digest: Digest,
}

impl Workload {
    /// Fills the template with every case.
    ///
    /// # Errors
    /// All faults at once: a placeholder that a case has no field for, or one inside a longer text.
    pub fn build(cases: &[Case], template: &Value, model: &str, seed: u64) -> Result<Self, Vec<TemplateError>> {
        let mut rendered = Vec::with_capacity(cases.len());
        let mut faults = Vec::new();
        for case in cases {
            match render(template, case, model) {
                Ok(body) => rendered.push(RenderedCase { id: case.id.clone(), body: body.to_string().into() }),
                Err(mut found) => faults.append(&mut found),
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let mut digest = DigestBuilder::default();
        digest.word(seed);
        for case in &rendered {
            digest.field(case.id.as_bytes());
            digest.field(&case.body);
        }
        Ok(Self { cases: rendered, digest: digest.finish() })
    }

    /// The cases, in the order they were written.
    pub fn cases(&self) -> &[RenderedCase] {
        &self.cases
    }

    /// SHA-256 over the seed, and every case's name and body.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }
}
