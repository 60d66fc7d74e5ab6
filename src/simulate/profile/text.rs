//! The two numbers with units that profiles write as text: times and shares.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de};

use crate::units::{Share, parse_duration};

/// A time of at most a day, in nanoseconds; written `20ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Nanos(
    /// Nanoseconds.
    pub u64,
);

/// The longest time that a profile may write: a day.
const LONGEST: u64 = 86_400_000_000_000;

impl<'de> Deserialize<'de> for Nanos {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor("a duration as in `20ms`", |text: &str| {
            let nanos = parse_duration(text).map_err(|e| e.to_string())?.as_nanos();
            match u64::try_from(nanos) {
                Ok(nanos) if nanos <= LONGEST => Ok(Self(nanos)),
                _ => Err(format!("`{text}` is longer than a day; write at most 24h")),
            }
        }))
    }
}

impl JsonSchema for Nanos {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": r"^[0-9]*\.?[0-9]+ ?(ns|us|µs|ms|s|m|h)$",
            "description": "A number and one of ns, us, ms, s, m, h, as in `20ms`; at most a day."
        })
    }
}

/// A share of a whole; written `5%`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharePart(
    /// The share.
    pub Share,
);

impl Default for SharePart {
    fn default() -> Self {
        Self(Share::ONE.rest())
    }
}

impl<'de> Deserialize<'de> for SharePart {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor("a share as in `5%`", |text: &str| {
            Share::parse(text).map(Self).map_err(|e| e.to_string())
        }))
    }
}

impl JsonSchema for SharePart {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Share".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": r"^[0-9]*\.?[0-9]+ ?%$",
            "description": "A share between 0% and 100%, as in `5%`."
        })
    }
}

/// Reads a text with a function; the first field says what is expected, for values that are no text.
struct TextVisitor<F>(&'static str, F);

impl<T, F: Fn(&str) -> Result<T, String>> de::Visitor<'_> for TextVisitor<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        self.1(text).map_err(E::custom)
    }
}
