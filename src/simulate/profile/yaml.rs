//! YAML to Rust types through serde, with the line and column of what is wrong.
//!
//! The enums in [`KINDS`] are mappings whose key `kind` names the variant. serde's own internally tagged enums would lose
//! the positions, because they buffer their content; here the tag is found in the tree.

use saphyr::{LoadableYamlNode, MarkedYaml, Marker, Scalar, YamlData};
use serde::de::{self, DeserializeOwned, DeserializeSeed, IntoDeserializer, Visitor};

use super::{ProfileError, fault_at};

/// The deepest nesting that is read, so that hostile text cannot exhaust the stack.
const DEEPEST: usize = 64;

/// The enums that are written with `kind`; the others are a mapping with the variant's name as its only key.
const KINDS: [&str; 2] = ["Model", "What"];

/// Reads one YAML document; no document at all is an empty mapping.
pub(super) fn read<T: DeserializeOwned>(text: &str) -> Result<T, ProfileError> {
    if deepest_flow(text) > DEEPEST {
        return Err(fault_at("line 1, column 1", format!("nested deeper than {DEEPEST} levels")));
    }
    let documents =
        MarkedYaml::load_from_str(text).map_err(|error| fault_at(place(*error.marker()), error.info().to_owned()))?;
    if let Some(second) = documents.get(1) {
        return Err(fault_at(place(second.span.start), "a second document; a profile is one"));
    }
    let empty = MarkedYaml::from(YamlData::Mapping(Default::default()));
    let node = match documents.first() {
        Some(node) if !matches!(node.data, YamlData::Value(Scalar::Null)) => node,
        _ => &empty,
    };
    T::deserialize(Node(node)).map_err(|error| {
        let place = error.marker.map_or_else(|| "line 1, column 1".to_owned(), place);
        fault_at(place, error.problem)
    })
}

fn place(marker: Marker) -> String {
    format!("line {}, column {}", marker.line(), marker.col() + 1)
}

/// An upper bound of how deep the brackets of the text nest.
fn deepest_flow(text: &str) -> usize {
    let (mut depth, mut deepest) = (0usize, 0usize);
    for byte in text.bytes() {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// A fault with the innermost place that is known.
#[derive(Debug, thiserror::Error)]
#[error("{problem}")]
struct Fault {
    problem: String,
    marker: Option<Marker>,
}

impl Fault {
    fn at(mut self, marker: Marker) -> Self {
        self.marker.get_or_insert(marker);
        self
    }
}

fn nearest(written: &str, known: &'static [&'static str]) -> String {
    let best = known.iter().max_by(|a, b| strsim::jaro(written, a).total_cmp(&strsim::jaro(written, b)));
    match best {
        Some(best) if strsim::jaro(written, best) > 0.7 => format!("did you mean `{best}`?"),
        _ => format!("known are {}", known.join(", ")),
    }
}

impl de::Error for Fault {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self { problem: message.to_string(), marker: None }
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::custom(format!("unknown key `{field}`; {}", nearest(field, expected)))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Self::custom(format!("unknown kind `{variant}`; {}", nearest(variant, expected)))
    }
}

/// One node of the tree, as serde reads it.
#[derive(Clone, Copy)]
struct Node<'a>(&'a MarkedYaml<'a>);

impl Node<'_> {
    fn text(&self) -> Option<&str> {
        match &self.0.data {
            YamlData::Value(Scalar::String(text)) => Some(text),
            _ => None,
        }
    }
}

impl<'de> de::Deserializer<'de> for Node<'_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let start = self.0.span.start;
        match &self.0.data {
            YamlData::Value(Scalar::Null) => visitor.visit_unit(),
            YamlData::Value(Scalar::Boolean(value)) => visitor.visit_bool(*value),
            YamlData::Value(Scalar::Integer(value)) => match u64::try_from(*value) {
                Ok(value) => visitor.visit_u64(value),
                Err(_) => visitor.visit_i64(*value),
            },
            YamlData::Value(Scalar::FloatingPoint(value)) => visitor.visit_f64(value.into_inner()),
            YamlData::Value(Scalar::String(text)) => visitor.visit_str(text),
            YamlData::Sequence(items) => visitor.visit_seq(de::value::SeqDeserializer::new(items.iter().map(Node))),
            YamlData::Mapping(entries) => {
                visitor.visit_map(Entries { rest: entries.iter().collect(), next: 0, tag: None })
            }
            _ => Err(de::Error::custom("neither a text, a number, a list nor a mapping")),
        }
        .map_err(|fault: Fault| fault.at(start))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.0.data {
            YamlData::Value(Scalar::Null) => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let start = self.0.span.start;
        let with_kind = KINDS.contains(&name);
        let chosen = match &self.0.data {
            YamlData::Value(Scalar::String(_)) => Some(Variant { tag: self, content: Content::None }),
            YamlData::Mapping(entries) if with_kind => entries
                .iter()
                .find(|(key, _)| Node(key).text() == Some("kind"))
                .map(|(_, tag)| Variant { tag: Node(tag), content: Content::Beside(self) }),
            YamlData::Mapping(entries) if entries.len() == 1 => entries
                .iter()
                .next()
                .map(|(tag, content)| Variant { tag: Node(tag), content: Content::Inside(Node(content)) }),
            _ => None,
        };
        let missing = || match with_kind {
            true => format!("`kind` is missing; write `kind:` with one of {}", variants.join(", ")),
            false => format!("not one choice; write one of {} and its value", variants.join(", ")),
        };
        let variant = chosen.ok_or_else(|| <Fault as de::Error>::custom(missing()).at(start))?;
        visitor.visit_enum(variant).map_err(|fault| fault.at(start))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

impl<'de> IntoDeserializer<'de, Fault> for Node<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// The entries of a mapping; with a tag, without the one that names the variant.
struct Entries<'a> {
    rest: Vec<(&'a MarkedYaml<'a>, &'a MarkedYaml<'a>)>,
    next: usize,
    tag: Option<&'static str>,
}

impl<'de> de::MapAccess<'de> for Entries<'_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        while let Some((key, _)) = self.rest.get(self.next) {
            self.next += 1;
            if self.tag.is_some() && Node(key).text() == self.tag {
                continue;
            }
            return seed.deserialize(Node(key)).map(Some).map_err(|fault| fault.at(key.span.start));
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Fault> {
        let (_, value) = self.rest[self.next - 1];
        seed.deserialize(Node(value)).map_err(|fault| fault.at(value.span.start))
    }
}

/// Where the content of a variant is.
enum Content<'a> {
    /// Nowhere: the variant's name stands alone.
    None,
    /// In the same mapping as `kind`.
    Beside(Node<'a>),
    /// Under the variant's name.
    Inside(Node<'a>),
}

struct Variant<'a> {
    tag: Node<'a>,
    content: Content<'a>,
}

impl<'a> Variant<'a> {
    fn entries(mapping: Node<'a>) -> Entries<'a> {
        let rest = mapping.0.data.as_mapping().map(|entries| entries.iter().collect()).unwrap_or_default();
        Entries { rest, next: 0, tag: Some("kind") }
    }
}

impl<'de, 'a> de::EnumAccess<'de> for Variant<'a> {
    type Error = Fault;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Fault> {
        let value = seed.deserialize(self.tag).map_err(|fault| fault.at(self.tag.0.span.start))?;
        Ok((value, self))
    }
}

impl<'de> de::VariantAccess<'de> for Variant<'_> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        let name = self.tag.text().unwrap_or_default();
        let extra = match self.content {
            Content::None => None,
            Content::Beside(node) => {
                Self::entries(node).rest.into_iter().map(|(key, _)| Node(key)).find(|key| key.text() != Some("kind"))
            }
            Content::Inside(node) => Some(node),
        };
        match extra {
            None => Ok(()),
            Some(key) => {
                let problem = format!("unknown key `{}`; `{name}` takes none", key.text().unwrap_or("?"));
                Err(<Fault as de::Error>::custom(problem).at(key.0.span.start))
            }
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Fault> {
        match self.content {
            Content::None => seed.deserialize(de::value::MapDeserializer::new(std::iter::empty::<((), ())>())),
            Content::Beside(node) => seed.deserialize(de::value::MapAccessDeserializer::new(Self::entries(node))),
            Content::Inside(node) => seed.deserialize(node),
        }
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Fault> {
        Err(de::Error::invalid_type(de::Unexpected::TupleVariant, &visitor))
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value, Fault> {
        match self.content {
            Content::None => visitor.visit_map(Entries { rest: Vec::new(), next: 0, tag: None }),
            Content::Beside(node) => visitor.visit_map(Self::entries(node)),
            Content::Inside(node) => de::Deserializer::deserialize_any(node, visitor),
        }
    }
}
