//! The `nvidia` probe: GPUs, by `nvidia-smi --query-gpu=… --format=csv,noheader,nounits`. The names of what is asked are those
//! of `nvidia-smi --help-query-gpu`.

mod cell;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use cell::{names, value};

use super::command;
use super::excerpt::quote;
use super::run_command::Capture;
use super::{Answer, Context};
use crate::contract::{NvidiaField, NvidiaSource};
use crate::record::Series;

/// The most output that is looked at, in bytes: some hundred GPUs.
const OUTPUT_LIMIT: usize = 64 * 1024;

/// One field of GPUs.
#[derive(Debug)]
pub(super) struct Nvidia {
    field: NvidiaField,
    cards: Cards,
}

impl Nvidia {
    pub(super) fn new(source: &NvidiaSource, context: &Context) -> Self {
        Self { field: source.field, cards: Cards::new(source, context) }
    }

    pub(super) async fn read(&mut self) -> Answer {
        let mut answers = self.cards.ask(&BTreeSet::from([self.field])).await?;
        answers.remove(&self.field).unwrap_or_else(|| Err("was not answered".to_owned()))
    }
}

/// GPUs of this machine. One question answers several fields.
#[derive(Debug)]
pub(super) struct Cards {
    /// The program with its first arguments.
    command: Vec<String>,
    folder: PathBuf,
    /// Indices or UUIDs of those that are asked; all when empty.
    gpus: Vec<String>,
    /// Before driver 535 the reasons of a slow clock had another name.
    is_old: bool,
}

/// What `nvidia-smi` said to one question.
enum Reply {
    /// Its rows.
    Rows(String),
    /// It does not know this name.
    Refused(String),
}

impl Cards {
    /// The GPUs that a source names.
    pub(super) fn new(source: &NvidiaSource, context: &Context) -> Self {
        Self {
            command: source.command.clone(),
            folder: context.folder.clone(),
            gpus: source.gpus.clone(),
            is_old: false,
        }
    }

    /// Asks for several fields at once: one answer for each.
    ///
    /// # Errors
    /// When the program does not answer at all.
    pub(super) async fn ask(
        &mut self,
        fields: &BTreeSet<NvidiaField>,
    ) -> Result<BTreeMap<NvidiaField, Answer>, String> {
        let mut answers = BTreeMap::new();
        let mut open: Vec<NvidiaField> = fields.iter().copied().collect();
        while !open.is_empty() {
            match self.query(&open).await? {
                Reply::Rows(rows) => {
                    answers.extend(self.read_rows(&rows, &open)?);
                    open.clear();
                }
                // Every round knows an older name or asks for less.
                Reply::Refused(name) => {
                    match open.iter().position(|field| names(*field, self.is_old).contains(&name.as_str())) {
                        Some(at) if open[at] == NvidiaField::Throttled && !self.is_old => self.is_old = true,
                        Some(at) => {
                            let failure =
                                format!("`{}` does not know {}; a newer driver may", self.program(), quote(&name));
                            answers.insert(open.remove(at), Err(failure));
                        }
                        None => return Err(format!("`{}` does not know {}", self.program(), quote(&name))),
                    }
                }
            }
        }
        Ok(answers)
    }

    fn program(&self) -> &str {
        self.command.first().map_or("", String::as_str)
    }

    async fn query(&self, fields: &[NvidiaField]) -> Result<Reply, String> {
        let asked = fields.iter().flat_map(|field| names(*field, self.is_old).iter().copied());
        let asked: Vec<&str> = ["index", "uuid"].into_iter().chain(asked).collect();
        let question = [format!("--query-gpu={}", asked.join(",")), "--format=csv,noheader,nounits".to_owned()];
        let command: Vec<String> = self.command.iter().cloned().chain(question).collect();
        let mut stdout = Capture::first(OUTPUT_LIMIT);
        // The prober gives up in time, which kills the command.
        let status = command::status(&command, &self.folder, Duration::MAX, &mut stdout).await?;
        let printed = stdout.lossy();
        match status.failure() {
            None if stdout.is_cut() => Err(format!("`{}` printed more than {OUTPUT_LIMIT} bytes", self.program())),
            None => Ok(Reply::Rows(printed)),
            Some(failure) => match refused(&printed).or_else(|| refused(status.complaint())) {
                Some(name) => Ok(Reply::Refused(name.to_owned())),
                // It complains on its standard output.
                None if printed.trim().is_empty() => Err(format!("`{}` {failure}", self.program())),
                None => Err(format!("`{}` {failure}; it printed {}", self.program(), quote(printed.trim()))),
            },
        }
    }

    fn read_rows(&self, rows: &str, fields: &[NvidiaField]) -> Result<BTreeMap<NvidiaField, Answer>, String> {
        let mut cards: Vec<Vec<&str>> = Vec::new();
        let width = 2 + fields.iter().map(|field| names(*field, self.is_old).len()).sum::<usize>();
        for row in rows.lines().filter(|row| !row.trim().is_empty()) {
            let cells: Vec<&str> = row.split(',').map(str::trim).collect();
            if cells.len() != width || cells[0].parse::<u32>().is_err() {
                return Err(format!(
                    "`{}` printed {} where {width} values of a GPU were expected",
                    self.program(),
                    quote(row)
                ));
            }
            if cards.iter().any(|card| card[0] == cells[0] || card[1] == cells[1]) {
                return Err(format!("`{}` lists GPU {} twice", self.program(), quote(cells[0])));
            }
            cards.push(cells);
        }
        let cards = self.chosen(cards)?;
        let mut at = 2;
        let mut answers = BTreeMap::new();
        for field in fields {
            let names = names(*field, self.is_old);
            let cells = at..at + names.len();
            at = cells.end;
            let series = cards.iter().map(|card| {
                let of = format!("GPU {}", card[0]);
                let value =
                    value(*field, names, &card[cells.clone()]).map_err(|failure| format!("{of} gives {failure}"))?;
                Ok(Series { of, since: Some(card[1].to_owned()), value })
            });
            answers.insert(*field, series.collect());
        }
        Ok(answers)
    }

    /// The GPUs that are asked, of all that there are.
    fn chosen<'a>(&self, mut cards: Vec<Vec<&'a str>>) -> Result<Vec<Vec<&'a str>>, String> {
        let is = |card: &[&str], gpu: &String| card[0] == gpu || card[1] == gpu;
        if let Some(missing) = self.gpus.iter().find(|gpu| !cards.iter().any(|card| is(card, gpu))) {
            let known: Vec<String> = cards.iter().map(|card| format!("{} is {}", card[0], card[1])).collect();
            return Err(format!(
                "there is no GPU {}; `{}` lists {}",
                quote(missing),
                self.program(),
                quote(&known.join(", "))
            ));
        }
        if cards.is_empty() {
            return Err(format!("`{}` lists no GPU", self.program()));
        }
        cards.retain(|card| self.gpus.is_empty() || self.gpus.iter().any(|gpu| is(card, gpu)));
        Ok(cards)
    }
}

/// The name that `nvidia-smi` says it does not know: `Field "…" is not a valid field to query.`
fn refused(printed: &str) -> Option<&str> {
    printed.split_once("Field \"")?.1.split_once("\" is not a valid field to query").map(|(name, _)| name)
}
