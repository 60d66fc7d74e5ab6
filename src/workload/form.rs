//! A payload as a form (RFC 7578): every key of the template is a field, and `$audio` the file.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::content::AUDIO;
use super::{Case, Sound, TemplateError, render};
use crate::units::Digest;

/// A form, ready to be sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Form {
    /// `multipart/form-data` with the boundary.
    pub content_type: Arc<str>,
    /// The body.
    pub body: Bytes,
    shown: Arc<str>,
}

impl Form {
    /// The fields for people, one a line, without the file's bytes.
    pub(super) fn shown(&self) -> &str {
        &self.shown
    }
}

/// A field of a form.
#[derive(Debug, PartialEq)]
pub(super) enum Field {
    Text(String, String),
    File(String),
}

/// The fields that the template and a case make. A list becomes a field for each of its entries.
///
/// # Errors
/// All faults at once: a placeholder that the case cannot fill, and a value that no field can hold.
pub(super) fn fields(template: &Value, case: &Case, model: &str) -> Result<Vec<Field>, Vec<TemplateError>> {
    let fault = |pointer: String, problem: &str| vec![TemplateError { pointer, problem: problem.to_owned() }];
    let filled = render(template, case, model)?;
    let (Value::Object(template), Value::Object(filled)) = (template, filled) else {
        return Err(fault(String::new(), "a form is a mapping of fields"));
    };
    let mut fields = Vec::new();
    for (name, value) in filled {
        let pointer = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
        if template.get(&name) == Some(&Value::from(format!("${AUDIO}"))) {
            if !value.is_string() {
                return Err(fault(pointer, "the case's field `audio` is not the path of a file"));
            }
            fields.push(Field::File(name));
            continue;
        }
        let values = if let Value::Array(values) = value { values } else { vec![value] };
        for value in values {
            let text = match value {
                Value::String(text) => text,
                Value::Number(_) | Value::Bool(_) => value.to_string(),
                _ => return Err(fault(pointer, "a field of a form is a text, a number, a boolean or a list of them")),
            };
            fields.push(Field::Text(name.clone(), text));
        }
    }
    if !fields.iter().any(|field| matches!(field, Field::File(_))) {
        return Err(fault(String::new(), "no field holds the sound; write `file: $audio`"));
    }
    Ok(fields)
}

/// The form of one case.
///
/// # Errors
/// As [`fields`], and sound that is missing.
pub(super) fn build(
    template: &Value,
    case: &Case,
    model: &str,
    sound: Option<&Sound>,
) -> Result<Form, Vec<TemplateError>> {
    let fields = fields(template, case, model)?;
    let Some(sound) = sound else {
        let problem = format!("the case `{}` has no sound", case.id);
        return Err(vec![TemplateError { pointer: String::new(), problem }]);
    };
    // The boundary must not occur in a part; one that is a digest of the sound cannot have been put there on purpose, and
    // is the same in every run.
    let boundary = format!("goodput-{}", Digest::of(&sound.file).short());
    let (mut body, mut shown) = (Vec::new(), String::new());
    for field in &fields {
        let (head, shown_value, bytes): (String, String, &[u8]) = match field {
            Field::Text(name, text) => (disposition(name), text.clone(), text.as_bytes()),
            Field::File(name) => (
                format!(
                    "{}; filename=\"{}\"\r\nContent-Type: {}",
                    disposition(name),
                    quoted(&sound.name),
                    media_type(&sound.name)
                ),
                format!("({}, {} bytes)", sound.name, sound.file.len()),
                &sound.file,
            ),
        };
        body.extend_from_slice(format!("--{boundary}\r\n{head}\r\n\r\n").as_bytes());
        body.extend_from_slice(bytes);
        body.extend_from_slice(b"\r\n");
        let (Field::Text(name, _) | Field::File(name)) = field;
        shown.push_str(&format!("{name}: {shown_value}\n"));
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    let content_type = format!("multipart/form-data; boundary={boundary}");
    Ok(Form { content_type: content_type.into(), body: body.into(), shown: shown.into() })
}

fn disposition(name: &str) -> String {
    format!("Content-Disposition: form-data; name=\"{}\"", quoted(name))
}

/// A name within quotes, as browsers write it (WHATWG HTML, multipart/form-data encoding).
fn quoted(name: &str) -> String {
    name.replace('\r', "%0D").replace('\n', "%0A").replace('"', "%22")
}

fn media_type(name: &str) -> &'static str {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    match extension.as_deref() {
        Some("wav") => "audio/wav",
        Some("mp3" | "mpga" | "mpeg") => "audio/mpeg",
        Some("flac") => "audio/flac",
        Some("ogg" | "oga" | "opus") => "audio/ogg",
        Some("m4a" | "mp4") => "audio/mp4",
        Some("webm") => "audio/webm",
        _ => "application/octet-stream",
    }
}
