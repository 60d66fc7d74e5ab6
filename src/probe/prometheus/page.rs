//! A page that is read while it comes: only the series that somebody asked for are kept.

use std::collections::{BTreeMap, BTreeSet};

use super::exposition::{self, Labels, Sample, identity};
use crate::contract::PrometheusSource;
use crate::probe::Answer;
use crate::probe::LARGEST_EXACT;
use crate::probe::excerpt::quote;
use crate::record::Series;

/// The longest line that is read, in bytes.
const LONGEST_LINE: usize = 1024 * 1024;

/// The most series that one question may match.
const MOST_SERIES: usize = 1_000;

/// The most names of a page that are remembered for hints.
const MOST_NAMES: usize = 2_000;

/// The longest name that is remembered for hints, in bytes.
const LONGEST_NAME: usize = 200;

/// The series that tells since when all others of a process count, where they do not tell it themselves.
const PROCESS_START: &str = "process_start_time_seconds";

/// A page on its way, with what is sought on it.
#[derive(Debug)]
pub(super) struct Scan<'a> {
    sought: Vec<Sought<'a>>,
    /// Who asks for a sample of this name: the index in `sought`, the index of the candidate, and as what.
    readers: BTreeMap<String, Vec<(usize, usize, As)>>,
    starts: Vec<(Labels, f64)>,
    /// The line that has not ended yet.
    line: Vec<u8>,
    lines: u64,
    /// The page is OpenMetrics, which says where it ends.
    is_openmetrics: bool,
    has_samples: bool,
    has_ended: bool,
    names: BTreeSet<String>,
    /// The first line that begins like no sample and no comment.
    odd: Option<String>,
}

/// One question, with what was found so far.
#[derive(Debug)]
struct Sought<'a> {
    source: &'a PrometheusSource,
    candidates: Vec<Candidate>,
}

/// A name that the metric may have on the page.
#[derive(Debug, Default)]
struct Candidate {
    name: String,
    is_present: bool,
    is_declared: bool,
    /// Its series with the labels asked for, each with its line; one more than may be at most.
    series: Vec<(u64, Sample)>,
    created: BTreeMap<Labels, f64>,
    /// A line that cannot be read.
    fault: Option<String>,
}

/// As what a sample is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum As {
    Series,
    Created,
}

impl<'a> Scan<'a> {
    /// Nothing read yet.
    pub(super) fn new(sources: &'a [PrometheusSource], is_openmetrics: bool) -> Self {
        let sought: Vec<Sought<'_>> = sources.iter().map(Sought::new).collect();
        let mut readers: BTreeMap<String, Vec<_>> = BTreeMap::new();
        for (index, candidates) in sought.iter().map(|sought| &sought.candidates).enumerate() {
            for (candidate, Candidate { name, .. }) in candidates.iter().enumerate() {
                readers.entry(name.clone()).or_default().push((index, candidate, As::Series));
                let created = format!("{}_created", name.strip_suffix("_total").unwrap_or(name));
                readers.entry(created).or_default().push((index, candidate, As::Created));
            }
        }
        Self {
            sought,
            readers,
            starts: Vec::new(),
            line: Vec::new(),
            lines: 0,
            is_openmetrics,
            has_samples: false,
            has_ended: false,
            names: BTreeSet::new(),
            odd: None,
        }
    }

    /// Reads on. What is told of a failure completes "the page …", as everywhere here.
    pub(super) fn push(&mut self, mut bytes: &[u8]) -> Result<(), String> {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            self.extend_line(&bytes[..end])?;
            let line = std::mem::take(&mut self.line);
            self.read_line(&line);
            self.line = line;
            self.line.clear();
            bytes = &bytes[end + 1..];
        }
        self.extend_line(bytes)
    }

    fn extend_line(&mut self, bytes: &[u8]) -> Result<(), String> {
        if self.line.len() + bytes.len() > LONGEST_LINE {
            let limit = LONGEST_LINE / 1024 / 1024;
            return Err(format!("has a line {} longer than {limit} MiB; is it a page of metrics?", self.lines + 1));
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn read_line(&mut self, line: &[u8]) {
        self.lines += 1;
        let line = line.trim_ascii();
        if line.is_empty() || self.has_ended {
            return;
        }
        if let Some(comment) = line.strip_prefix(b"#") {
            return self.read_comment(comment);
        }
        let name = exposition::name(line);
        if name.is_some_and(|name| exposition::goes_on(line, name)) {
            self.has_samples = true;
        } else if !line.starts_with(b"{") {
            self.odd.get_or_insert_with(|| quote(&String::from_utf8_lossy(line)));
        }
        match name.map(String::from_utf8_lossy) {
            Some(name) => {
                self.remember(&name);
                if name == PROCESS_START || self.readers.contains_key(&*name) {
                    self.read_sample(Some(&name), line);
                }
            }
            None if line.starts_with(b"{") => self.read_sample(None, line),
            None => {}
        }
    }

    fn read_comment(&mut self, comment: &[u8]) {
        self.has_ended = self.is_openmetrics && comment == b" EOF";
        let comment = String::from_utf8_lossy(comment);
        let mut words = comment.split_ascii_whitespace();
        if words.next() == Some("TYPE")
            && let Some(name) = words.next()
        {
            let name = name.trim_matches('"');
            let candidates = self.sought.iter_mut().flat_map(|sought| &mut sought.candidates);
            candidates.filter(|candidate| candidate.name == name).for_each(|candidate| candidate.is_declared = true);
        }
    }

    /// Reads a line whose name is wanted, or stands inside of its braces.
    fn read_sample(&mut self, name: Option<&str>, line: &[u8]) {
        let text = std::str::from_utf8(line).map_err(|_| "is not UTF-8".to_owned());
        match text.and_then(exposition::parse) {
            Ok(sample) => {
                if name.is_none() {
                    self.has_samples = true;
                    self.remember(&sample.name);
                }
                self.keep(sample);
            }
            Err(problem) => {
                let shown = quote(&String::from_utf8_lossy(line));
                let Some(name) = name else {
                    self.odd.get_or_insert(shown);
                    return;
                };
                let fault = format!("line {} {problem}: {shown}", self.lines);
                for (sought, candidate, read_as) in self.readers.get(name).into_iter().flatten() {
                    if *read_as == As::Series {
                        let candidate = &mut self.sought[*sought].candidates[*candidate];
                        candidate.is_present = true;
                        candidate.fault.get_or_insert_with(|| fault.clone());
                    }
                }
            }
        }
    }

    fn keep(&mut self, sample: Sample) {
        if let (PROCESS_START, Ok(value)) = (sample.name.as_str(), &sample.value)
            && value.is_finite()
            && self.starts.len() < MOST_SERIES
        {
            self.starts.push((sample.labels.clone(), *value));
        }
        for (sought, candidate, read_as) in self.readers.get(&sample.name).into_iter().flatten() {
            let Sought { source, candidates } = &mut self.sought[*sought];
            let candidate = &mut candidates[*candidate];
            candidate.is_present |= *read_as == As::Series;
            if !is_within(&source.labels, &sample.labels) {
                continue;
            }
            match (read_as, &sample.value) {
                (As::Series, _) if candidate.series.len() <= MOST_SERIES => {
                    candidate.series.push((self.lines, sample.clone()));
                }
                (As::Created, Ok(value)) if value.is_finite() && candidate.created.len() < MOST_SERIES => {
                    candidate.created.insert(sample.labels.clone(), *value);
                }
                _ => {}
            }
        }
    }

    fn remember(&mut self, name: &str) {
        if self.names.len() < MOST_NAMES && name.len() <= LONGEST_NAME && !self.names.contains(name) {
            self.names.insert(name.to_owned());
        }
    }

    /// What was found, one answer for each question, in their order; or why the page does not count at all.
    pub(super) fn finish(mut self) -> Result<Vec<Answer>, String> {
        // The last line of OpenMetrics may lack its line feed; a value that is cut short would be another number.
        let last = std::mem::take(&mut self.line);
        let is_cut = if self.is_openmetrics {
            self.read_line(&last);
            !self.has_ended
        } else {
            !last.trim_ascii().is_empty() && last.trim_ascii() != b"# EOF"
        };
        match (&self.odd, self.has_samples, is_cut) {
            (Some(odd), false, _) => {
                Err(format!("is no page of metrics, it begins {odd}; look at the path of its URL"))
            }
            (None, false, true) if !last.is_empty() => {
                let begins = quote(&String::from_utf8_lossy(&last));
                Err(format!("is no page of metrics, it is {begins}; look at the path of its URL"))
            }
            (_, _, true) if self.is_openmetrics => Err("ends without `# EOF`, so that it was cut short".to_owned()),
            (_, _, true) => Err(format!("ends in the middle of line {}, so that it was cut short", self.lines + 1)),
            (None, false, false) => Err("holds no metric at all".to_owned()),
            (_, true, false) => Ok((0..self.sought.len()).map(|index| self.answer(&self.sought[index])).collect()),
        }
    }

    fn answer(&self, sought: &Sought<'_>) -> Answer {
        let labels = &sought.source.labels;
        match sought.candidates.iter().find(|candidate| candidate.is_present) {
            Some(candidate) => candidate.answer(labels, &self.starts),
            None => Err(self.absent(sought)),
        }
    }

    fn absent(&self, sought: &Sought<'_>) -> String {
        let names = sought.source.metrics.iter().map(|name| quote(name)).collect::<Vec<_>>().join(" or ");
        if sought.candidates.iter().any(|candidate| candidate.is_declared) {
            return format!("declares {names} and holds no series of it yet");
        }
        const SHOWN: usize = 3;
        const ALIKE: f64 = 0.7;
        let likeness =
            |name: &str| sought.source.metrics.iter().map(|wanted| strsim::jaro(wanted, name)).fold(0.0, f64::max);
        let mut near: Vec<(f64, &String)> = self.names.iter().map(|name| (likeness(name), name)).collect();
        near.retain(|(likeness, _)| *likeness > ALIKE);
        near.sort_by(|one, other| other.0.total_cmp(&one.0));
        let near: Vec<String> = near.iter().take(SHOWN).map(|(_, name)| quote(name)).collect();
        match near.is_empty() {
            true => format!("holds no metric {names}, and none of a similar name"),
            false => format!("holds no metric {names}; the nearest there are {}", near.join(", ")),
        }
    }
}

impl<'a> Sought<'a> {
    fn new(source: &'a PrometheusSource) -> Self {
        // A counter that OpenMetrics calls `x` is written as `x_total`.
        let named = |name: &String| [name.clone(), format!("{name}_total")];
        let candidate = |name| Candidate { name, ..Candidate::default() };
        Self { source, candidates: source.metrics.iter().flat_map(named).map(candidate).collect() }
    }
}

impl Candidate {
    fn answer(&self, asked: &Labels, starts: &[(Labels, f64)]) -> Answer {
        let name = quote(&self.name);
        if let Some(fault) = &self.fault {
            return Err(format!("gives {name} in a form that cannot be read: {fault}"));
        }
        if self.series.is_empty() {
            let labels = quote(&identity(&self.name, asked, &Labels::new()));
            return Err(format!("holds {name}, but no series {labels}; look at `labels`"));
        }
        if self.series.len() > MOST_SERIES {
            return Err(format!("holds more than {MOST_SERIES} series of {name}; narrow them by `labels`"));
        }
        let mut lines: BTreeMap<&Labels, u64> = BTreeMap::new();
        for (line, sample) in &self.series {
            if let Some(earlier) = lines.insert(&sample.labels, *line) {
                let series = quote(&identity(&self.name, &sample.labels, &Labels::new()));
                return Err(format!(
                    "holds {series} twice, in lines {earlier} and {line}, so that it has no one value"
                ));
            }
        }
        self.series.iter().map(|(line, sample)| self.series_of(*line, sample, asked, starts)).collect()
    }

    fn series_of(
        &self,
        line: u64,
        sample: &Sample,
        asked: &Labels,
        starts: &[(Labels, f64)],
    ) -> Result<Series, String> {
        let name = quote(&self.name);
        let value =
            *sample.value.as_ref().map_err(|problem| format!("gives {name} in line {line}, which {problem}"))?;
        if value.is_finite() && value.abs() > LARGEST_EXACT {
            let problem = "too large to be compared exactly (limit 2^53)";
            return Err(format!("gives {name} in line {line} as {value:e}, which is {problem}"));
        }
        let own = self.created.get(&sample.labels).copied();
        let since = own.or_else(|| process_start(&sample.labels, starts)).map(instant);
        Ok(Series { of: identity(&self.name, &sample.labels, asked), since, value })
    }
}

/// When the process started that a series is of: the page may hold several, then the one whose labels are all among the
/// series' and are the most.
fn process_start(labels: &Labels, starts: &[(Labels, f64)]) -> Option<f64> {
    let fitting = starts.iter().filter(|(of, _)| is_within(of, labels));
    fitting.max_by_key(|(of, _)| of.len()).map(|(_, start)| *start)
}

/// An instant that is given in seconds since 1970, for people. Nothing starts anew within a millisecond.
fn instant(seconds: f64) -> String {
    let timestamp = jiff::Timestamp::from_millisecond((seconds * 1e3).round() as i64);
    timestamp.map_or_else(|_| seconds.to_string(), |timestamp| timestamp.to_string())
}

fn is_within(some: &Labels, all: &Labels) -> bool {
    some.iter().all(|(label, value)| all.get(label) == Some(value))
}
