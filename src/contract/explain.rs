//! What a schema validator finds, told so that a person knows what to write instead.

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;

use super::document::join;
use super::fault::printable;
use super::{schema, secrets};

/// How much of a wrong value is repeated, in characters.
const ECHO: usize = 40;

/// One thing that the schema refuses.
#[derive(Debug)]
pub(super) struct Refusal {
    /// JSON pointer to it.
    pub(super) pointer: String,
    /// What is wrong and what to write instead.
    pub(super) message: String,
    /// What has to go so that the rest can be read.
    pub(super) refused: Refused,
}

/// What has to go so that the rest can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// The key and its value.
    Key,
    /// The value.
    Value,
    /// Nothing: something is missing.
    Nothing,
}

/// Tells one finding of the validator. A finding about alternatives is told about the alternative that was meant.
pub(super) fn explain(error: &ValidationError<'_>, schema: &Value) -> Vec<Refusal> {
    let pointer = error.instance_path().as_str().to_owned();
    let place = Place { error, part: part_of(error, schema), pointer: &pointer };
    let message = match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            return unexpected.iter().take(super::MOST_FINDINGS).map(|key| place.unknown_key(key)).collect();
        }
        ValidationErrorKind::Required { property } => {
            let message = place.missing_key(property.as_str().unwrap_or_default());
            return vec![Refusal { pointer, message, refused: Refused::Nothing }];
        }
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            let choices = choices(place.part);
            match context.iter().find(|branch| choices.is_empty() && fits_type(branch, &pointer)) {
                Some(branch) => return branch.iter().flat_map(|inner| explain(inner, schema)).collect(),
                None => place.wrong_choice(&choices),
            }
        }
        ValidationErrorKind::Enum { .. } => match choices(place.part) {
            // A list of numbers says in its title what they are.
            numbers if numbers.is_empty() => place.wrong_form(),
            words => place.wrong_choice(&words),
        },
        ValidationErrorKind::Type { .. } => place.wrong_type(),
        ValidationErrorKind::Pattern { .. } => place.wrong_form(),
        ValidationErrorKind::Constant { expected_value } => {
            format!("{} is not read by this build; write {expected_value}", place.echo())
        }
        kind => place.out_of_bounds(kind),
    };
    vec![Refusal { pointer, message, refused: Refused::Value }]
}

/// The part of the schema that the finding is about.
fn part_of<'a>(error: &ValidationError<'_>, schema: &'a Value) -> &'a Value {
    let keyword = error.schema_path().as_str();
    let part = keyword.rsplit_once('/').map_or("", |(part, _)| part);
    schema.pointer(part).unwrap_or(&Value::Null)
}

/// Whether an alternative failed inside the value and not by the value's type.
fn fits_type(branch: &[ValidationError<'_>], pointer: &str) -> bool {
    !branch
        .iter()
        .any(|e| matches!(e.kind(), ValidationErrorKind::Type { .. }) && e.instance_path().as_str() == pointer)
}

/// The words of a closed list, whether they are described one by one or not.
fn choices(part: &Value) -> Vec<&str> {
    let listed = part.get("enum").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let described = part.get("oneOf").and_then(Value::as_array).into_iter().flatten();
    listed.chain(described.filter_map(|branch| branch.get("const").and_then(Value::as_str))).collect()
}

struct Place<'a> {
    error: &'a ValidationError<'a>,
    part: &'a Value,
    pointer: &'a str,
}

impl Place<'_> {
    fn value(&self) -> &Value {
        self.error.instance()
    }

    fn text_of_part(&self, key: &str) -> Option<&str> {
        self.part.get(key).and_then(Value::as_str)
    }

    fn unknown_key(&self, key: &str) -> Refusal {
        let present = self.value().as_object();
        let known: Vec<&str> = self
            .part
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .map(|(name, _)| name.as_str())
            .filter(|name| present.is_none_or(|map| !map.contains_key(*name)))
            .collect();
        let next_step = match nearest(key, &known) {
            Some(name) => format!("did you mean `{name}`?"),
            None if known.is_empty() => "every key that can stand here is written already; remove it".to_owned(),
            None => format!("what can still stand here: {}", known.join(", ")),
        };
        let message = format!("unknown key `{}`; {next_step}", cut(key));
        Refusal { pointer: join(self.pointer, key), message, refused: Refused::Key }
    }

    fn missing_key(&self, key: &str) -> String {
        let about = self.part.pointer(&format!("/properties/{key}/description")).and_then(Value::as_str);
        let about = about.and_then(first_clause).map(|text| format!(" ({})", lower_first(text)));
        format!("the key `{key}` is missing{}", about.unwrap_or_default())
    }

    fn wrong_choice(&self, choices: &[&str]) -> String {
        let echo = self.echo();
        if choices.is_empty() {
            let expected = lower_first(self.text_of_part("description").unwrap_or_default());
            return format!("{echo} does not fit here; write {}", expected.trim_end_matches('.'));
        }
        let Some(word) = self.value().as_str() else {
            return format!("{echo} is not one of {}", choices.join(", "));
        };
        let is_protocol = choices == schema::protocol_names();
        let shown = if is_protocol { schema::main_protocol_names() } else { choices.to_vec() };
        match nearest(word, choices) {
            Some(near) => format!("{echo} is not known here; did you mean `{near}`?"),
            None => format!("{echo} is not one of {}", shown.join(", ")),
        }
    }

    fn wrong_form(&self) -> String {
        match self.text_of_part("title") {
            Some(title) => format!("{} is not {title}{}", self.echo(), self.unit_hint()),
            None => format!("{} does not have the form that is asked for here", self.echo()),
        }
    }

    fn wrong_type(&self) -> String {
        let value = self.value();
        if value.is_null() {
            return "the key has no value; write one or remove the key".to_owned();
        }
        if self.part.get("title").is_some() && !self.pointer.is_empty() {
            return self.wrong_form();
        }
        let expected = self.text_of_part("type").unwrap_or_default();
        let hint = match (expected, value) {
            ("string", Value::Number(_) | Value::Bool(_)) => "; put it in quotes".to_owned(),
            ("integer" | "number", Value::String(text)) if text.parse::<f64>().is_ok() => {
                "; write it without quotes".to_owned()
            }
            ("integer" | "number", _) => self.example(),
            _ => String::new(),
        };
        format!("expected {}, found {}{hint}", type_word(expected), self.described())
    }

    fn example(&self) -> String {
        let first = self.part.pointer("/examples/0");
        first.map(|example| format!("; write a plain number, as in `{example}`")).unwrap_or_default()
    }

    /// A bare number where a unit is asked for: the number with each unit that the examples use.
    fn unit_hint(&self) -> String {
        let bare = match self.value() {
            Value::Number(number) => number.to_string(),
            Value::String(text) if text.parse::<f64>().is_ok() => text.clone(),
            _ => return String::new(),
        };
        let examples = self.part.get("examples").and_then(Value::as_array).into_iter().flatten();
        let mut units: Vec<&str> = examples
            .filter_map(Value::as_str)
            .map(|e| e.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.'))
            .collect();
        units.dedup();
        // A share below one may be meant as a fraction or as a very small percentage: no guess is better than a wrong one.
        let is_fraction = units.contains(&"%") && bare.parse::<f64>().is_ok_and(|v| v <= 1.0);
        if units.is_empty() || is_fraction || bare.starts_with('-') {
            return String::new();
        }
        let guesses: Vec<String> = units.iter().map(|unit| format!("`{bare}{unit}`")).collect();
        format!("; did you mean {}?", guesses.join(" or "))
    }

    fn out_of_bounds(&self, kind: &ValidationErrorKind) -> String {
        let echo = self.echo();
        match kind {
            ValidationErrorKind::Minimum { limit } => format!("{echo} is too small; write at least {limit}"),
            ValidationErrorKind::Maximum { limit } => format!("{echo} is too large; write at most {limit}"),
            ValidationErrorKind::ExclusiveMinimum { limit } => format!("{echo} is too small; write more than {limit}"),
            ValidationErrorKind::ExclusiveMaximum { limit } => format!("{echo} is too large; write less than {limit}"),
            ValidationErrorKind::MinItems { .. } => "the list is empty; write at least one entry".to_owned(),
            ValidationErrorKind::MinLength { .. } => "the text is empty; write one".to_owned(),
            ValidationErrorKind::MaxLength { limit } => {
                format!("the text is too long; write at most {limit} characters")
            }
            _ => self.error.masked_with("the value").to_string(),
        }
    }

    /// The value in backticks, unless it may be a secret.
    fn echo(&self) -> String {
        if secrets::pointer_may_hold(self.pointer) {
            return "the value".to_owned();
        }
        match self.value() {
            Value::String(text) => format!("`{}`", cut(text)),
            Value::Array(_) => "a list".to_owned(),
            Value::Object(_) => "a mapping".to_owned(),
            plain => format!("`{plain}`"),
        }
    }

    fn described(&self) -> String {
        let echo = self.echo();
        match self.value() {
            _ if secrets::pointer_may_hold(self.pointer) => "something else".to_owned(),
            Value::String(_) => format!("the text {echo}"),
            Value::Number(_) => format!("the number {echo}"),
            _ => echo,
        }
    }
}

/// The beginning of a description, up to its first full stop or semicolon; the point in a number is none.
fn first_clause(text: &str) -> Option<&str> {
    text.split(['\n', ';']).next()?.split(". ").next().map(|clause| clause.trim_end_matches('.'))
}

fn type_word(name: &str) -> &str {
    match name {
        "string" => "a text",
        "integer" => "a whole number",
        "number" => "a number",
        "object" => "a mapping of keys to values",
        "array" => "a list",
        other => other,
    }
}

/// The start of a text, printable.
fn cut(text: &str) -> String {
    let start: String = text.chars().take(ECHO).collect();
    let end = if text.chars().nth(ECHO).is_some() { "…" } else { "" };
    format!("{}{end}", printable(&start))
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_lowercase().to_string()).unwrap_or_default();
    format!("{first}{}", chars.as_str())
}

/// The known word that was probably meant: at most a third of it is wrong.
pub(super) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    // The distance of two texts takes time with the product of their lengths, and nobody means a short word by a long one.
    if word.len() > ECHO {
        return None;
    }
    let plain = |text: &str| text.to_ascii_lowercase().replace('-', "_");
    known
        .iter()
        .map(|name| (strsim::damerau_levenshtein(&plain(word), &plain(name)), *name))
        .filter(|(distance, name)| *distance <= (name.chars().count() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_near_words_are_suggested() {
        let known = ["url", "protocol", "idle_timeout", "timeout"];
        for (word, near) in [
            ("protocl", Some("protocol")),
            ("idle-timeout", Some("idle_timeout")),
            ("Timeout", Some("timeout")),
            ("uri", Some("url")),
            ("repeats", None),
            ("x", None),
        ] {
            assert_eq!(nearest(word, &known), near, "{word}");
        }
        assert_eq!(nearest(&"timeout".repeat(1000), &known), None);
    }
}
