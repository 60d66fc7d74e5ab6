//! YAML text to a JSON value, with the place of every key and value. JSON is YAML's subset and takes the same door.
//!
//! The events of the parser are read here and not its ready-made tree, because what a contract must not hold (repeated keys,
//! aliases, tags, endless nesting) is known only while the text is read.

use std::collections::BTreeMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError};
use serde_json::{Map, Value};

use super::fault::Fault;
use super::scalar;

/// The largest contract that is read, in bytes.
const LARGEST: usize = 1 << 20;
/// How deeply values may nest; a payload for tool calls needs about ten levels.
const DEEPEST: usize = 64;

/// The longest key, in bytes. Keys are repeated in the pointers of faults.
const LONGEST_KEY: usize = 256;
/// The most faults that are told without reading on.
const MOST_FAULTS: usize = 1_000;

/// A line and a column, both from 1; zeros when there is no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Place {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl Place {
    const START: Self = Self { line: 1, column: 1 };

    fn of(marker: Marker) -> Self {
        Self { line: marker.line(), column: marker.col() + 1 }
    }

    /// A fault at this place.
    pub(super) fn fault(self, pointer: impl Into<String>, message: impl Into<String>) -> Fault {
        Fault { line: self.line, column: self.column, pointer: pointer.into(), message: message.into() }
    }
}

/// What was read: the value, the places of its parts, and the faults that did not stop the reading.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) value: Value,
    pub(super) places: Node,
    pub(super) faults: Vec<Fault>,
}

/// The place of one value and of everything in it.
#[derive(Debug, Default)]
pub(super) struct Node {
    place: Place,
    shape: Shape,
}

#[derive(Debug, Default)]
enum Shape {
    #[default]
    Leaf,
    /// A fault was already told about this value.
    Broken,
    List(Vec<Node>),
    Map(BTreeMap<String, Entry>),
}

#[derive(Debug)]
struct Entry {
    key: Place,
    node: Node,
}

impl Node {
    /// Where a reader should look for the value at `pointer`: at the key of a mapping or list, else at the value itself;
    /// for what does not exist, at the nearest thing around it.
    pub(super) fn place(&self, pointer: &str) -> Place {
        let (node, key) = self.find(pointer);
        match node.shape {
            Shape::List(_) | Shape::Map(_) => key.unwrap_or(node.place),
            Shape::Leaf | Shape::Broken => node.place,
        }
    }

    /// Where the key that `pointer` ends with is written.
    pub(super) fn key_place(&self, pointer: &str) -> Place {
        let (node, key) = self.find(pointer);
        key.unwrap_or(node.place)
    }

    /// Whether a fault was already told about the value at `pointer`.
    pub(super) fn is_broken(&self, pointer: &str) -> bool {
        matches!(self.find(pointer).0.shape, Shape::Broken)
    }

    fn find(&self, pointer: &str) -> (&Self, Option<Place>) {
        let mut found = (self, None);
        for step in pointer.split('/').skip(1) {
            let next = match &found.0.shape {
                Shape::List(items) => step.parse::<usize>().ok().and_then(|i| items.get(i)).map(|node| (node, None)),
                Shape::Map(entries) => entries.get(&unescape(step)).map(|entry| (&entry.node, Some(entry.key))),
                Shape::Leaf | Shape::Broken => None,
            };
            match next {
                Some(next) => found = next,
                None => break,
            }
        }
        found
    }
}

/// Appends one step to a JSON pointer.
pub(super) fn join(pointer: &str, step: &str) -> String {
    format!("{pointer}/{}", step.replace('~', "~0").replace('/', "~1"))
}

fn unescape(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

/// What is told of a text as a whole.
#[derive(Debug)]
pub(super) struct Kind {
    too_large: &'static str,
    empty: &'static str,
}

/// A contract.
pub(super) const CONTRACT: Kind = Kind {
    too_large: "the contract is larger than 1 MiB; keep the cases in a file of their own",
    empty: "the contract is empty; `goodput schema` prints what belongs into one",
};

/// The file of reviewed exceptions.
pub(super) const ACCEPTANCES: Kind = Kind {
    too_large: "the file is larger than 1 MiB; remove what has expired",
    empty: "the file is empty; write `version: 1` and `accepted: []`",
};

/// Reads a text.
///
/// # Errors
/// A text that is no YAML, is empty, too large, nests too deeply, uses aliases or holds more than one document.
pub(super) fn read(text: &str, kind: &Kind) -> Result<Document, Fault> {
    if text.len() > LARGEST {
        return Err(Place::START.fault("", kind.too_large));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| syntax_fault(&error, text))?;
        reader.take(event, Place::of(span.start))?;
    }
    match reader.done {
        Some((node, value)) => Ok(Document { value, places: node, faults: reader.faults }),
        None => Err(Place::START.fault("", kind.empty)),
    }
}

fn syntax_fault(error: &ScanError, text: &str) -> Fault {
    let mut place = Place::of(*error.marker());
    let last = text.lines().count().max(1);
    if place.line > last {
        // What is missing at the end is shown at the end of the last line.
        let length = text.lines().last().map_or(0, |line| line.chars().count());
        place = Place { line: last, column: length + 1 };
    }
    let line = text.lines().nth(place.line.saturating_sub(1)).unwrap_or_default();
    let indentation = &line[..line.len() - line.trim_start().len()];
    let tabs = if indentation.contains('\t') { "; indent with spaces, not with tabs" } else { "" };
    place.fault("", format!("not valid YAML: {}{tabs}", error.info()))
}

/// A list or mapping that is still open.
struct Frame {
    start: Place,
    content: Content,
}

enum Content {
    List(Vec<Node>, Vec<Value>),
    Map { entries: BTreeMap<String, Entry>, values: Map<String, Value>, key: Key },
}

/// What a mapping expects next.
enum Key {
    /// A key.
    None,
    /// The value of this key.
    Text(String, Place),
    /// The value of a key that was refused.
    Refused,
}

#[derive(Default)]
struct Reader {
    open: Vec<Frame>,
    done: Option<(Node, Value)>,
    faults: Vec<Fault>,
}

impl Reader {
    fn take(&mut self, event: Event<'_>, place: Place) -> Result<(), Fault> {
        match event {
            Event::DocumentStart(_) if self.done.is_some() => {
                return Err(
                    place.fault("", "a second document begins here; a contract is one document, so remove the `---`")
                );
            }
            Event::SequenceStart(_, tag) => {
                self.refuse_tag(tag.is_some(), place);
                self.enter(place, Content::List(Vec::new(), Vec::new()))?;
            }
            Event::MappingStart(_, tag) => {
                self.refuse_tag(tag.is_some(), place);
                self.enter(place, Content::Map { entries: BTreeMap::new(), values: Map::new(), key: Key::None })?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.leave(),
            Event::Scalar(text, style, _, tag) => self.scalar(&text, style, tag.is_some(), place),
            // Refused, not expanded: a fault in an expanded value would have two places, and nested aliases grow without bound.
            Event::Alias(_) => {
                return Err(place.fault(
                    self.pointer(),
                    "aliases (`*name`) are not read in a contract; write the value out where it is needed",
                ));
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentStart(_) | Event::DocumentEnd => {}
        }
        Ok(())
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, tagged: bool, place: Place) {
        self.refuse_tag(tagged, place);
        let resolved =
            if style == ScalarStyle::Plain { scalar::resolve(text) } else { Ok(Value::String(text.to_owned())) };
        match resolved {
            Ok(value) => self.deliver(Node { place, shape: if tagged { Shape::Broken } else { Shape::Leaf } }, value),
            Err(message) => {
                self.tell(place.fault(self.pointer(), message));
                self.deliver(Node { place, shape: Shape::Broken }, Value::Null);
            }
        }
    }

    fn refuse_tag(&mut self, tagged: bool, place: Place) {
        if tagged {
            let message = "tags (`!name`) are not read in a contract; remove it, and quote the value if it is a text";
            self.tell(place.fault(self.pointer(), message));
        }
    }

    fn tell(&mut self, fault: Fault) {
        if self.faults.len() < MOST_FAULTS {
            self.faults.push(fault);
        }
    }

    fn enter(&mut self, start: Place, content: Content) -> Result<(), Fault> {
        if self.open.len() >= DEEPEST {
            let message = format!("values nest more than {DEEPEST} levels deep; flatten them");
            return Err(start.fault("", message));
        }
        self.open.push(Frame { start, content });
        Ok(())
    }

    fn leave(&mut self) {
        let Some(Frame { start, content }) = self.open.pop() else { return };
        let (shape, value) = match content {
            Content::List(nodes, values) => (Shape::List(nodes), Value::Array(values)),
            Content::Map { entries, values, .. } => (Shape::Map(entries), Value::Object(values)),
        };
        self.deliver(Node { place: start, shape }, value);
    }

    /// Hands a finished value to what it stands in: as the next key, the value of the last key, or the next item.
    fn deliver(&mut self, node: Node, value: Value) {
        let pointer = self.pointer();
        match self.open.last_mut().map(|frame| &mut frame.content) {
            None => self.done = Some((node, value)),
            Some(Content::List(nodes, values)) => {
                nodes.push(node);
                values.push(value);
            }
            Some(Content::Map { entries, values, key }) => match std::mem::replace(key, Key::None) {
                Key::Text(text, place) => {
                    values.insert(text.clone(), value);
                    entries.insert(text, Entry { key: place, node });
                }
                Key::Refused => {}
                Key::None => {
                    let (next, fault) = next_key(entries, &node, value, &pointer);
                    *key = next;
                    if let Some(fault) = fault {
                        self.tell(fault);
                    }
                }
            },
        }
    }

    /// JSON pointer to the value that is being read.
    fn pointer(&self) -> String {
        self.open.iter().fold(String::new(), |pointer, frame| match &frame.content {
            Content::List(nodes, _) => join(&pointer, &nodes.len().to_string()),
            Content::Map { key: Key::Text(text, _), .. } => join(&pointer, text),
            Content::Map { .. } => pointer,
        })
    }
}

/// Accepts or refuses a key.
fn next_key(entries: &BTreeMap<String, Entry>, node: &Node, value: Value, pointer: &str) -> (Key, Option<Fault>) {
    let place = node.place;
    let Value::String(text) = value else {
        let message = "a key must be a text; put it in quotes if it is meant so";
        let known = matches!(node.shape, Shape::Broken);
        return (Key::Refused, (!known).then(|| place.fault(pointer, message)));
    };
    if text.len() > LONGEST_KEY {
        let message = format!("a key is longer than {LONGEST_KEY} bytes; shorten it");
        return (Key::Refused, Some(place.fault(pointer, message)));
    }
    if text == "<<" {
        let message = "merge keys (`<<`) are not read in a contract; write the keys out";
        return (Key::Refused, Some(place.fault(pointer, message)));
    }
    match entries.get(&text) {
        None => (Key::Text(text, place), None),
        Some(first) => {
            let message = format!("the key `{text}` is written twice, first in line {}; keep one", first.key.line);
            (Key::Refused, Some(place.fault(join(pointer, &text), message)))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(line: usize, column: usize) -> Place {
        Place { line, column }
    }

    #[test]
    fn values_keep_their_places() {
        let text = "# note\na: 1\nlist:\n  - x\n  - { \"k/~\": true }\nmap:\n  inner: \"ü\"\n";
        let document = read(text, &CONTRACT).expect("a document");
        assert_eq!(document.value, json!({"a": 1, "list": ["x", {"k/~": true}], "map": {"inner": "ü"}}));
        let places = &document.places;
        for (pointer, place) in [
            ("", at(2, 1)),
            ("/a", at(2, 4)),
            ("/list", at(3, 1)),
            ("/list/0", at(4, 5)),
            ("/list/1", at(5, 5)),
            ("/list/1/k~1~0", at(5, 14)),
            ("/map", at(6, 1)),
            ("/map/inner", at(7, 10)),
            ("/map/absent", at(6, 1)),
        ] {
            assert_eq!(places.place(pointer), place, "{pointer}");
        }
        assert_eq!(places.key_place("/list/1/k~1~0"), at(5, 7));
    }

    #[test]
    fn json_takes_the_same_door() {
        let text = "{\"a\": [1, 2.5, null, \"\\u00e9\"],\n \"b\": {}}";
        let document = read(text, &CONTRACT).expect("a document");
        assert_eq!(Some(document.value), serde_json::from_str(text).ok());
        assert_eq!(document.places.key_place("/b"), at(2, 2));
    }

    #[test]
    fn columns_are_counted_in_characters_also_behind_a_mark_and_carriage_returns() {
        let document = read("\u{feff}é: 1\r\nb: 2\r\n", &CONTRACT).expect("a document");
        assert_eq!(document.places.place("/b"), at(2, 4));
        assert_eq!(document.places.place("/é"), at(1, 4));
    }

    #[test]
    fn what_a_contract_must_not_hold_is_told_and_reading_goes_on() {
        let text = "a: 1\na: 2\n1: x\nt: !x 3\nn: .nan\n<<: { q: 1 }\n[c]: 4\nz: 9\n";
        let document = read(text, &CONTRACT).expect("a document");
        let found: Vec<(usize, usize, &str)> =
            document.faults.iter().map(|f| (f.line, f.column, f.pointer.as_str())).collect();
        assert_eq!(found, [(2, 1, "/a"), (3, 1, ""), (4, 4, "/t"), (5, 4, "/n"), (6, 1, ""), (7, 1, "")]);
        assert_eq!(document.value, json!({"a": 1, "t": 3, "n": null, "z": 9}));
        assert!(document.places.is_broken("/n"));
    }

    #[test]
    fn texts_that_cannot_be_read_on_stop_with_their_place() {
        let deep = "[".repeat(100);
        let block = "- ".repeat(100_000);
        let large = "a".repeat(LARGEST + 1);
        for (text, place, part) in [
            ("", at(1, 1), "empty"),
            ("# only a note\n", at(1, 1), "empty"),
            ("a: 1\n---\nb: 2\n", at(2, 1), "second document"),
            ("a: &x 1\nb: *x\n", at(2, 4), "aliases"),
            (&deep, at(1, 65), "64 levels"),
            (&block, at(1, 129), "64 levels"),
            (&large, at(1, 1), "1 MiB"),
        ] {
            let fault = read(text, &CONTRACT).expect_err("a fault");
            assert_eq!((fault.line, fault.column), (place.line, place.column), "{}", fault.message);
            assert!(fault.message.contains(part), "{}", fault.message);
        }
    }
}
