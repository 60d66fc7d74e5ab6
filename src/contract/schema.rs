//! The JSON Schema of contracts, generated from the raw types, and the leaf types that carry a unit or a closed list.

use std::borrow::Cow;

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::raw;
use crate::observe::Protocol;
use crate::units::{Rate, Share, UnitError, parse_duration};

/// The version of the contract format that this build reads.
pub(super) const VERSION: u64 = 1;
/// The most clients of a closed loop.
pub(super) const MOST_CLIENTS: u64 = 100_000;
/// The most requests of one trial, warm-up and drain included.
pub const MOST_REQUESTS: u64 = 10_000_000;

/// The JSON Schema (draft 2020-12) that contracts are validated against, as committed in `schemas/contract.schema.json`.
pub fn schema() -> Value {
    schema_of::<raw::Contract>()
}

/// The schema of what is written by hand.
pub(super) fn schema_of<T: JsonSchema>() -> Value {
    SchemaSettings::draft2020_12()
        .with_transform(RecursiveTransform(refuse_null))
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value()
}

/// Takes `null` out of what optional fields may be: a key without a value is a mistake, not a wish for the default.
fn refuse_null(schema: &mut Schema) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    let Some(Value::Array(branches)) = schema.get_mut("anyOf") else { return };
    branches.retain(|branch| branch != &serde_json::json!({ "type": "null" }));
    if let [Value::Object(only)] = branches.as_slice() {
        let only = only.clone();
        schema.remove("anyOf");
        for (key, value) in only {
            if schema.get(&key).is_none() {
                schema.insert(key, value);
            }
        }
    }
}

/// A leaf whose text has a unit or a closed form. The title completes "`…` is not …".
macro_rules! text_type {
    ($(#[$doc:meta])* $name:ident, $schema:expr) => {
        $(#[$doc])*
        #[derive(Debug, Deserialize)]
        #[serde(transparent)]
        pub(super) struct $name(pub(super) String);

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    };
}

/// What a duration looks like.
const DURATION: &str = "^[0-9]*\\.?[0-9]+ ?(ns|us|µs|ms|s|m|h)$";

text_type!(
    /// A duration such as `75ms`.
    DurationText,
    unit_text(DURATION, ["75ms", "3s"], parse_duration("").err())
);
text_type!(
    /// A rate such as `4/s`.
    RateText,
    unit_text("^[0-9]*\\.?[0-9]+ ?/[sm]$", ["4/s", "0.5/s"], Rate::parse("").err())
);
text_type!(
    /// A share such as `99.9%`.
    ShareText,
    unit_text("^[0-9]*\\.?[0-9]+ ?%$", ["99%", "99.9%"], Share::parse("").err())
);
text_type!(
    /// A name of the verdict's rows.
    RowName,
    json_schema!({
        "type": "string",
        "title": "a row's name; write lower-case letters, digits, `_` and `-`, as in `oom_count`",
        "pattern": "^[a-z0-9_-]{1,64}$",
    })
);
text_type!(
    /// A row of the verdict by its name, also one of a percentile such as `ttft_p99.9`.
    ChangeRow,
    json_schema!({
        "type": "string",
        "title": "a row's name; write it as the report shows it, as in `capacity_change`",
        "pattern": "^[a-z0-9_.-]{1,100}$",
    })
);
text_type!(
    /// A day.
    DateText,
    json_schema!({
        "type": "string",
        "title": "a day; write year, month and day, as in `2026-12-31`",
        "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
    })
);
text_type!(
    /// A commit or its beginning.
    CommitText,
    json_schema!({
        "type": "string",
        "title": "a commit; write at least 7 of its hexadecimal digits, in quotes",
        "pattern": "^[0-9a-fA-F]{7,64}$",
    })
);
text_type!(
    /// The name of an environment variable.
    EnvironmentName,
    json_schema!({
        "type": "string",
        "title": "the name of an environment variable; write it without `$`, as in `SERVING_TOKEN`",
        "pattern": "^[A-Za-z_][A-Za-z0-9_]*$",
    })
);
text_type!(
    /// A dialect, by name or by the name of its adapter.
    ProtocolName,
    json_schema!({ "type": "string", "enum": protocol_names() })
);

/// Every name that a protocol can be written with, its adapter's included.
pub(super) fn protocol_names() -> Vec<&'static str> {
    main_protocol_names().into_iter().chain(Protocol::ALL.iter().map(|p| p.adapter())).collect()
}

/// The names by which protocols are told.
pub(super) fn main_protocol_names() -> Vec<&'static str> {
    Protocol::ALL.iter().map(|p| p.name()).collect()
}

/// The schema of a number with a unit. Its title is what the unit's own reader says, so that the two never differ.
fn unit_text(pattern: &str, examples: [&str; 2], refusal: Option<UnitError>) -> Schema {
    json_schema!({
        "type": "string",
        "title": refusal.map(|error| error.expected),
        "pattern": pattern,
        "examples": examples,
    })
}

/// The limit of a percentile: a duration, or for a ratio a plain number. Which of the two its metric asks for is a matter of
/// meaning.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum AtMost {
    /// A text that looks like a duration.
    Duration(DurationText),
    /// A plain number.
    Ratio(f64),
}

impl JsonSchema for AtMost {
    fn schema_name() -> Cow<'static, str> {
        "AtMost".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        // A pattern is held against texts alone.
        json_schema!({
            "type": ["string", "number"],
            "title": parse_duration("").err().map(|error| error.expected),
            "pattern": DURATION,
            "examples": ["75ms", "3s", 0.5],
        })
    }
}

/// The limit of a resource: a plain number, a share, or a size. Which of them its unit asks for is a matter of meaning.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum Amount {
    /// A text with a unit.
    Text(String),
    /// A plain number.
    Number(f64),
}

impl JsonSchema for Amount {
    fn schema_name() -> Cow<'static, str> {
        "Amount".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["string", "number"],
            "title": "an amount; write a share, a size or a plain number, as in `95%`, `70GiB` or `32`",
            "pattern": "^[0-9]*\\.?[0-9]+ ?(%|B|[kMGT]B|[KMGT]iB)$",
            "minimum": 0,
            "examples": ["95%", "70GiB", 32],
        })
    }
}

/// An unsigned whole number, written in any way that means one: `300`, `300.0`, `3e2`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Whole(pub(super) u64);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = serde_json::Number::deserialize(deserializer)?;
        // Up to 2^53 a float is the very number that was written.
        let exact = |value: f64| {
            (value.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&value)).then_some(value as u64)
        };
        number
            .as_u64()
            .or_else(|| number.as_f64().and_then(exact))
            .map(Self)
            .ok_or_else(|| serde::de::Error::custom("not a whole number of at most 64 bits"))
    }
}

impl JsonSchema for Whole {
    fn schema_name() -> Cow<'static, str> {
        "Whole".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 0, "maximum": u64::MAX })
    }
}
