//! Reading JSON that was written loosely: only what is measured is read, and a value of another shape than expected is
//! taken for an absent one, not for a fault of the reply.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A text; empty when it is absent or something else.
#[derive(Debug, Default)]
pub(super) struct Text<'a>(Cow<'a, str>);

impl Text<'_> {
    /// The text.
    pub(super) fn get(&self) -> &str {
        &self.0
    }
}

/// An object that is read as `T`; absent when it is `null` or something else.
#[derive(Debug)]
pub(super) struct Maybe<T>(Option<T>);

impl<T> Maybe<T> {
    /// The object.
    pub(super) fn get(&self) -> Option<&T> {
        self.0.as_ref()
    }
}

impl<T> Default for Maybe<T> {
    fn default() -> Self {
        Self(None)
    }
}

/// A list of objects; empty when it is absent or something else, and without the items that are no objects.
#[derive(Debug)]
pub(super) struct List<T>(Vec<T>);

impl<T> List<T> {
    /// The objects.
    pub(super) fn items(&self) -> &[T] {
        &self.0
    }
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// A whole number; absent when it is `null` or something else.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Number(Option<i64>);

impl Number {
    /// The number.
    pub(super) fn get(self) -> Option<i64> {
        self.0
    }
}

/// A text or a list of typed parts.
#[derive(Debug)]
pub(super) enum TextOr<'a, T> {
    /// A text; empty when it is absent or something else.
    Text(Text<'a>),
    /// A list.
    List(List<T>),
}

impl<T> Default for TextOr<'_, T> {
    fn default() -> Self {
        Self::Text(Text::default())
    }
}

/// The visitor methods for shapes that are taken for an absent value.
macro_rules! absent {
    (scalar) => {
        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("any JSON value")
        }
    };
    (number) => {
        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
    };
    (text) => {
        fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
    };
    (list) => {
        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            while list.next_element::<IgnoredAny>()?.is_some() {}
            Ok(Self::Value::default())
        }
    };
    (object) => {
        fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
            while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok(Self::Value::default())
        }
    };
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;
    absent!(scalar);
    absent!(number);
    absent!(list);
    absent!(object);

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Text(Cow::Owned(text.to_owned())))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

struct MaybeVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for MaybeVisitor<T> {
    type Value = Maybe<T>;
    absent!(scalar);
    absent!(number);
    absent!(text);
    absent!(list);

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(object)).map(|value| Maybe(Some(value)))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Maybe<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(MaybeVisitor(PhantomData))
    }
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
    type Value = List<T>;
    absent!(scalar);
    absent!(number);
    absent!(text);
    absent!(object);

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        read_list(list)
    }
}

fn read_list<'de, T: Deserialize<'de>, A: SeqAccess<'de>>(mut list: A) -> Result<List<T>, A::Error> {
    let mut items = Vec::new();
    while let Some(Maybe(item)) = list.next_element::<Maybe<T>>()? {
        items.extend(item);
    }
    Ok(List(items))
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ListVisitor(PhantomData))
    }
}

struct TextOrVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for TextOrVisitor<T> {
    type Value = TextOr<'de, T>;
    absent!(scalar);
    absent!(number);
    absent!(object);

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(TextOr::Text(Text(Cow::Borrowed(text))))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(TextOr::Text(Text(Cow::Owned(text.to_owned()))))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        read_list(list).map(TextOr::List)
    }
}

impl<'de: 'a, 'a, T: Deserialize<'de>> Deserialize<'de> for TextOr<'a, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrVisitor(PhantomData))
    }
}

struct NumberVisitor;

impl<'de> Visitor<'de> for NumberVisitor {
    type Value = Number;
    absent!(scalar);
    absent!(text);
    absent!(list);
    absent!(object);

    fn visit_i64<E>(self, number: i64) -> Result<Number, E> {
        Ok(Number(Some(number)))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Number, E> {
        Ok(Number(i64::try_from(number).ok()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Number, E> {
        // Some servers count in floating point; 2^53 is where such a count stops being exact.
        let whole = number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0;
        Ok(Number(whole.then_some(number as i64)))
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberVisitor)
    }
}
