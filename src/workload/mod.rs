//! From cases, a payload template and a seed to ordered requests.

mod cases;
mod content;
mod form;
mod order;
mod sound;
mod template;
#[cfg(test)]
mod tests;
mod turn;

pub use cases::{Case, CaseError, inline_cases, parse_cases};
pub use content::{Content, Shape, check};
pub use form::Form;
pub use order::CaseOrder;
pub use sound::{Samples, Sound};
pub use template::{TemplateError, render};
pub use turn::{Piece, Turn};

use std::collections::BTreeMap;

use serde_json::Value;

use crate::units::{Digest, DigestBuilder};

/// One case, ready to be sent.
#[derive(Debug, Clone, PartialEq)]
pub struct RenderedCase {
    /// The case's name, unique in the workload.
    pub id: String,
    /// What goes over the wire.
    pub content: Content,
    /// How long the sound lasts that it sends; `None` where there is none or its duration is not known.
    pub audio_ns: Option<u64>,
}

/// Everything that can be sent in a run: one body per case, and the digest that names them.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    cases: Vec<RenderedCase>,
    digest: Digest,
}

impl Workload {
    /// Fills the template with every case; `sounds` are the files of sound by the path that cases name.
    ///
    /// # Errors
    /// All faults at once: a placeholder that a case has no field for, or one inside a longer text; a template that does not
    /// have the shape, or sound that cannot be sent in it.
    pub fn build(
        cases: &[Case],
        template: &Value,
        model: &str,
        seed: u64,
        shape: Shape,
        sounds: &BTreeMap<String, Sound>,
    ) -> Result<Self, Vec<TemplateError>> {
        let mut rendered = Vec::with_capacity(cases.len());
        let mut faults = Vec::new();
        for case in cases {
            let sound = case.audio().and_then(|path| sounds.get(path));
            match Content::build(template, case, model, shape, sound) {
                Ok(content) => rendered.push(RenderedCase {
                    id: case.id.clone(),
                    content,
                    audio_ns: sound.and_then(|sound| sound.duration_ns),
                }),
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
            let parts = case.content.parts();
            if parts.len() > 1 {
                digest.word(parts.len() as u64);
            }
            parts.into_iter().for_each(|part| digest.field(part));
        }
        Ok(Self { cases: rendered, digest: digest.finish() })
    }

    /// The cases, in the order they were written.
    pub fn cases(&self) -> &[RenderedCase] {
        &self.cases
    }

    /// SHA-256 over the seed, and every case's name and content.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }
}
