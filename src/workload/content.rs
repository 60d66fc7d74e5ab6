//! What goes over the wire for one case: a JSON body, a form, or one turn of a conversation.

use bytes::Bytes;
use serde_json::Value;

use super::form::{self, Form};
use super::turn::{self, Turn};
use super::{Case, Sound, TemplateError, render};
use crate::audio::PcmFormat;

/// The case's field that names a file of sound, and the placeholder that stands for it.
pub(super) const AUDIO: &str = "audio";

/// What the payload template of a protocol becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A JSON body.
    Json,
    /// A form (`multipart/form-data`) with a file of sound.
    Form,
    /// The events of one turn over a WebSocket; sound is sent in this format.
    Turn(PcmFormat),
}

impl Shape {
    /// Whether the payload's `$audio` stands for the contents of a file and not for its name.
    pub fn takes_sound(self) -> bool {
        self != Self::Json
    }
}

/// What is sent for one case.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// A JSON body.
    Json(Bytes),
    /// A form.
    Form(Form),
    /// One turn over a WebSocket.
    Turn(Turn),
}

impl Content {
    /// Fills the template with one case and its sound.
    ///
    /// # Errors
    /// All faults at once: what [`check`] finds, and sound that is missing or cannot be sent in this shape.
    pub(super) fn build(
        template: &Value,
        case: &Case,
        model: &str,
        shape: Shape,
        sound: Option<&Sound>,
    ) -> Result<Self, Vec<TemplateError>> {
        match shape {
            Shape::Json => render(template, case, model).map(|body| Self::Json(body.to_string().into())),
            Shape::Form => form::build(template, case, model, sound).map(Self::Form),
            Shape::Turn(format) => turn::build(template, case, model, format, sound).map(Self::Turn),
        }
    }

    /// Every byte in its order, for the digest.
    pub(super) fn parts(&self) -> Vec<&[u8]> {
        match self {
            Self::Json(body) => vec![body],
            Self::Form(form) => vec![form.content_type.as_bytes(), &form.body],
            Self::Turn(turn) => turn.events().map(|event| &event[..]).collect(),
        }
    }

    /// The beginning of it for people, at most `length` characters; sound is left out.
    pub fn shown(&self, length: usize) -> String {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let whole = match self {
            Self::Json(body) => text(body),
            Self::Form(form) => form.shown().to_owned(),
            Self::Turn(turn) => turn.shown(),
        };
        whole.chars().take(length).collect()
    }
}

/// What stands in the way of filling the template with a case, as far as it can be told without its sound.
pub fn check(template: &Value, case: &Case, model: &str, shape: Shape) -> Vec<TemplateError> {
    let faults = match shape {
        Shape::Json => render(template, case, model).err(),
        Shape::Form => form::fields(template, case, model).err(),
        Shape::Turn(_) => turn::filled(template, case, model).err(),
    };
    faults.unwrap_or_default()
}
