//! The file of reviewed exceptions: which named losses may be, until when, and why.

use jiff::civil::Date;
use serde_json::Value;

use super::document::{Document, join};
use super::fault::{Fault, printable};
use super::meaning::MARGIN_PPM;
use super::{Found, all_faults, document, raw, read_as, schema_of, secrets};
use crate::units::Share;

/// The largest loss that can be accepted.
const MOST_PPM: u32 = 900_000;
/// The smallest loss that can be accepted: the smallest margin.
const LEAST_PPM: u32 = *MARGIN_PPM.start();
/// What the names of the rows of a comparison end with.
const CHANGE: &str = "_change";
/// The one of them that has no largest loss.
const CONTRACT: &str = "contract_change";

/// A reviewed exception: one named loss that may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedLoss {
    /// The row that it is about, as `capacity_change`.
    pub row: String,
    /// Why the loss is accepted.
    pub reason: String,
    /// The first day on which it no longer holds.
    pub expires: Date,
    /// The largest loss that it covers; of `contract_change` `None`.
    pub at_most: Option<Share>,
    /// The commit that the baseline was measured at, or its beginning, in lower case. Against another it does not hold.
    pub baseline: Option<String>,
    /// Who accepted it.
    pub by: Option<String>,
}

/// The JSON Schema (draft 2020-12) of the file of reviewed exceptions, as committed in `schemas/accepted.schema.json`.
pub fn accepted_schema() -> Value {
    schema_of::<raw::Acceptances>()
}

/// Reads the file of reviewed exceptions, YAML or JSON.
///
/// # Errors
/// Every fault of form and meaning that can be told; at a fault of YAML's syntax the reading ends.
pub fn parse_acceptances(text: &str) -> Result<Vec<AcceptedLoss>, Vec<Fault>> {
    let Document { value, places, faults } =
        document::read(text, &document::ACCEPTANCES).map_err(|fault| vec![fault])?;
    let Found { written, refused, values, told } = read_as::<raw::Acceptances>(&value, &places, &accepted_schema());
    let mut reader = Reader { places: &places, refused: &refused, faults };
    let losses = written.and_then(|written| reader.losses(written));
    let faults = all_faults(reader.faults, told, &values);
    match losses {
        Some(losses) if faults.is_empty() => Ok(losses),
        None if faults.is_empty() => Err(vec![places.place("").fault("", "something required is missing")]),
        _ => Err(faults),
    }
}

/// Reads the meaning of the file.
struct Reader<'a> {
    places: &'a document::Node,
    refused: &'a std::collections::BTreeSet<String>,
    faults: Vec<Fault>,
}

impl Reader<'_> {
    fn fault(&mut self, pointer: &str, message: impl Into<String>) {
        self.faults.push(self.places.place(pointer).fault(pointer, message));
    }

    fn losses(&mut self, written: raw::Acceptances) -> Option<Vec<AcceptedLoss>> {
        let mut losses: Vec<Option<AcceptedLoss>> = Vec::new();
        for (index, loss) in written.accepted?.into_iter().enumerate() {
            let at = join("/accepted", &index.to_string());
            let loss = loss.and_then(|loss| self.loss(loss, &at));
            let is_same = |other: &AcceptedLoss| {
                loss.as_ref().is_some_and(|loss| (&loss.row, &loss.baseline) == (&other.row, &other.baseline))
            };
            if losses.iter().flatten().any(is_same) {
                self.fault(&at, "the same row is accepted twice against the same baseline; keep one entry");
            }
            losses.push(loss);
        }
        losses.into_iter().collect()
    }

    fn loss(&mut self, written: raw::AcceptedLoss, at: &str) -> Option<AcceptedLoss> {
        let row = self.row(written.row.map(|row| row.0), &join(at, "row"));
        let reason = self.text(written.reason, &join(at, "reason"));
        let expires = self.date(written.expires.map(|date| date.0), &join(at, "expires"));
        let at_most = self.at_most(row.as_deref(), written.at_most.map(|share| share.0), at);
        let by = match written.by {
            Some(by) => self.text(Some(by), &join(at, "by")).map(Some),
            None => (!self.refused.contains(&join(at, "by"))).then_some(None),
        };
        if self.refused.contains(&join(at, "baseline")) {
            return None;
        }
        let baseline = written.baseline.map(|commit| commit.0.to_ascii_lowercase());
        Some(AcceptedLoss { row: row?, reason: reason?, expires: expires?, at_most: at_most?, baseline, by: by? })
    }

    fn row(&mut self, written: Option<String>, pointer: &str) -> Option<String> {
        let row = written?;
        if !row.ends_with(CHANGE) {
            let message = format!(
                "`{row}` is no change since a baseline, and nothing else can be accepted; name a row such as `capacity_change`, or have the contract changed"
            );
            self.fault(pointer, message);
            return None;
        }
        Some(row)
    }

    /// The largest loss, which every change has but that of the contract.
    fn at_most(&mut self, row: Option<&str>, written: Option<String>, at: &str) -> Option<Option<Share>> {
        let pointer = join(at, "at_most");
        let is_written = written.is_some() || self.refused.contains(&pointer);
        let Some(row) = row else { return Some(None) };
        if row == CONTRACT {
            if is_written {
                self.fault(&pointer, format!("`{row}` has no largest loss; remove the key"));
            }
            return (!is_written).then_some(None);
        }
        if !is_written {
            self.fault(at, format!("the largest loss of `{row}` is missing; write it, as in `at_most: 8%`"));
        }
        let written = written?;
        let share = match Share::parse(&written) {
            Ok(share) => share,
            Err(error) => {
                self.fault(&pointer, printable(&error.to_string()));
                return None;
            }
        };
        if !(LEAST_PPM..=MOST_PPM).contains(&share.ppm()) {
            self.fault(&pointer, format!("{share} cannot be accepted; write 0.1% to 90%"));
            return None;
        }
        Some(Some(share))
    }

    /// A day of the calendar.
    fn date(&mut self, written: Option<String>, pointer: &str) -> Option<Date> {
        let written = written?;
        let date = Date::strptime("%Y-%m-%d", &written).ok();
        if date.is_none() {
            self.fault(
                pointer,
                format!("`{}` is no day of the calendar; write one, as in `2026-12-31`", printable(&written)),
            );
        }
        date
    }

    /// A text of one line that shows something, and no secret: every report shows it.
    fn text(&mut self, written: Option<String>, pointer: &str) -> Option<String> {
        let text = written?;
        let fault = if text.trim().is_empty() {
            "the text is blank; write what a reader of the report must know"
        } else if text.chars().any(char::is_control) {
            "the text holds control characters; write it on one line without them"
        } else if secrets::value_looks_so(&text) {
            "looks like a secret, and every report shows it; remove it"
        } else {
            return Some(text.trim().to_owned());
        };
        self.fault(pointer, fault);
        None
    }
}
