//! One line of an exposition page: Prometheus text 0.0.4 and OpenMetrics 1.0, with the quoted names of Prometheus 3.
//!
//! <https://prometheus.io/docs/instrumenting/exposition_formats/> and <https://prometheus.io/docs/specs/om/open_metrics_spec/>.
//! Own code, because the crates that there are do not fit: `openmetrics-parser` is under the LGPL and refuses a whole page for
//! one odd line, `prometheus-parse` passes over a line that it cannot read without a word, and both want the whole page in
//! memory.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::probe::excerpt::quote;
use crate::units::Digest;

/// The labels of a series by their names.
pub(super) type Labels = BTreeMap<String, String>;

/// The most characters of a series' identity that are kept as they are.
const LONGEST_IDENTITY: usize = 300;

/// A line that gives a number.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sample {
    /// The metric's name, as it is written on the page.
    pub(super) name: String,
    /// Its labels.
    pub(super) labels: Labels,
    /// The number; or the word that stands in its place, with what is wrong.
    pub(super) value: Result<f64, String>,
}

/// The name that a line of a sample begins with; `None` where it begins otherwise, as with a quoted name inside of
/// braces.
pub(super) fn name(line: &[u8]) -> Option<&[u8]> {
    let end = line.iter().position(|byte| b" \t{".contains(byte)).unwrap_or(line.len());
    let name = &line[..end];
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"_:".contains(byte);
    (name.iter().all(is_part) && name.first().is_some_and(|byte| !byte.is_ascii_digit())).then_some(name)
}

/// Whether labels or the beginning of a number follow the name that a line begins with.
pub(super) fn goes_on(line: &[u8], name: &[u8]) -> bool {
    let rest = line.get(name.len()..).unwrap_or_default().trim_ascii_start();
    rest.first().is_some_and(|byte| byte.is_ascii_digit() || b"{+-.NnIi".contains(byte))
}

/// Reads a line that gives a number. Its time and its exemplar are read over.
///
/// # Errors
/// What is wrong where name or labels cannot be read.
pub(super) fn parse(line: &str) -> Result<Sample, String> {
    let mut rest = Rest(line.trim_matches([' ', '\t']));
    let mut name = rest.word(|character| " \t{".contains(character)).to_owned();
    let mut labels = Labels::new();
    rest.blanks();
    if rest.take('{') {
        read_labels(&mut rest, &mut name, &mut labels)?;
    }
    if name.is_empty() {
        return Err("names no metric".to_owned());
    }
    rest.blanks();
    let value = value(rest.0);
    Ok(Sample { name, labels, value })
}

fn read_labels(rest: &mut Rest<'_>, name: &mut String, labels: &mut Labels) -> Result<(), String> {
    loop {
        rest.blanks();
        if rest.take('}') {
            return Ok(());
        }
        let is_quoted = rest.0.starts_with('"');
        let label = if is_quoted { rest.quoted()? } else { rest.word(|c| " \t=,}\"".contains(c)).to_owned() };
        rest.blanks();
        if rest.take('=') {
            rest.blanks();
            let value = rest.quoted()?;
            if label.is_empty() {
                return Err("has a label without a name".to_owned());
            }
            if labels.insert(label, value).is_some() {
                return Err("has a label twice".to_owned());
            }
        } else if is_quoted && name.is_empty() {
            *name = label;
        } else {
            return Err("has a label without a value".to_owned());
        }
        rest.blanks();
        if !rest.take(',') && !rest.0.starts_with('}') {
            return Err("has labels that do not end".to_owned());
        }
    }
}

/// Reads what stands behind the labels: a number, perhaps a time, perhaps an exemplar.
fn value(text: &str) -> Result<f64, String> {
    let text = text.split_once(" # ").map_or(text, |(text, _exemplar)| text);
    let mut words = text.split([' ', '\t']).filter(|word| !word.is_empty());
    let number = words.next().ok_or("has no value")?;
    // What Rust reads besides is `infinity` and `nan` in any case, as Go does, whose reader set the format.
    let value = number.parse::<f64>().map_err(|_| format!("has the value {}, which is no number", quote(number)))?;
    match (words.next(), words.next()) {
        (None, _) => Ok(value),
        (Some(time), None) if time.parse::<f64>().is_ok() => Ok(value),
        _ => Err(format!("has {} where one number and perhaps a time were expected", quote(text))),
    }
}

/// What is left of a line.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    fn blanks(&mut self) {
        self.0 = self.0.trim_start_matches([' ', '\t']);
    }

    fn take(&mut self, character: char) -> bool {
        let rest = self.0.strip_prefix(character);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn word(&mut self, ends: impl Fn(char) -> bool) -> &'a str {
        let (word, rest) = self.0.split_at(self.0.find(ends).unwrap_or(self.0.len()));
        self.0 = rest;
        word
    }

    /// A text in double quotes, in which `\\`, `\"` and `\n` are escapes; any other backslash stands for itself.
    fn quoted(&mut self) -> Result<String, String> {
        if !self.take('"') {
            return Err("has a label whose value is not in quotes".to_owned());
        }
        let mut text = String::new();
        let mut characters = self.0.char_indices();
        while let Some((at, character)) = characters.next() {
            match character {
                '"' => {
                    self.0 = &self.0[at + 1..];
                    return Ok(text);
                }
                '\\' => match characters.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, escaped @ ('"' | '\\'))) => text.push(escaped),
                    Some((_, other)) => text.extend(['\\', other]),
                    None => break,
                },
                _ => text.push(character),
            }
        }
        Err("has quotes that do not end".to_owned())
    }
}

/// A series in one order of labels, as a page would write it, without the labels that were asked for: those are the same
/// for all that were found. A very long one is cut and ends in a digest of all of it, so that it stays its own.
pub(super) fn identity(name: &str, labels: &Labels, asked: &Labels) -> String {
    let escaped = |text: &str| text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
    let mut text = String::new();
    for (label, value) in labels.iter().filter(|(label, _)| !asked.contains_key(*label)) {
        let comma = if text.is_empty() { "" } else { "," };
        let label = if is_plain(label, "") { label.clone() } else { format!("\"{}\"", escaped(label)) };
        let _ = write!(text, "{comma}{label}=\"{}\"", escaped(value));
    }
    let text = match (is_plain(name, ":"), text.is_empty()) {
        (true, true) => name.to_owned(),
        (true, false) => format!("{name}{{{text}}}"),
        (false, true) => format!("{{\"{}\"}}", escaped(name)),
        (false, false) => format!("{{\"{}\",{text}}}", escaped(name)),
    };
    match text.char_indices().nth(LONGEST_IDENTITY) {
        Some((end, _)) => format!("{}… {}", &text[..end], Digest::of(text.as_bytes()).short()),
        None => text,
    }
}

/// Whether a name needs no quotes.
fn is_plain(name: &str, besides: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || besides.contains(c);
    name.chars().all(is_part) && !name.starts_with(|c: char| c.is_ascii_digit())
}
