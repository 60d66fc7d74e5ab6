//! The stability probes of one run: asked before the first trial and after every trial.

use std::pin::pin;
use std::time::Duration;

use futures_util::future::join_all;
use jiff::Timestamp;
use serde::Serialize;

use super::interrupt::Interrupt;
use crate::contract::{StabilityProbe, StabilityRow};
use crate::judge::broke;
use crate::probe::{Context, Prober};
use crate::record::{ProbeKind, ProbeRecord, ReadAt, Reading, TrialReading};

/// How long probes may still take behind the load once the run was interrupted.
const PATIENCE: Duration = Duration::from_secs(5);

/// When probes are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum When {
    /// Before the first trial.
    Before,
    /// Anew before the trial with this number: something else had the machine since the last reading.
    Anew(u32),
    /// After the trial with this number.
    Trial(u32),
}

/// A line of `probes.jsonl`.
#[derive(Debug, Serialize)]
pub(super) struct ProbeLine {
    /// When it was read (RFC 3339).
    at: String,
    name: String,
    when: When,
    reading: Reading,
}

/// The probes with what they answered.
#[derive(Debug)]
pub(super) struct Probes {
    rows: Vec<Row>,
    /// The trial after which they were asked last.
    asked_after: Option<u32>,
}

#[derive(Debug)]
struct Row {
    asks: StabilityProbe,
    prober: Prober,
    record: ProbeRecord,
}

impl Row {
    /// Whether it broke between each two readings that follow each other.
    fn broke(&self) -> Vec<bool> {
        let stretches = self.record.stretches().into_iter();
        let broke = |stretch: Vec<(ReadAt, &Reading)>| {
            let readings: Vec<&Reading> = stretch.into_iter().map(|(_, reading)| reading).collect();
            broke(&self.asks, &readings)
        };
        stretches.flat_map(broke).collect()
    }
}

impl Probes {
    /// Probes that were not asked yet.
    pub(super) fn new(rows: &[StabilityRow], context: &Context) -> Self {
        let row = |row: &StabilityRow| Row {
            asks: row.probe.clone(),
            prober: Prober::stability(&row.probe, context),
            record: unread(row),
        };
        Self { rows: rows.iter().map(row).collect(), asked_after: None }
    }

    /// From here on asks of an endpoint that was started anew.
    pub(super) fn renew(&mut self, context: &Context) {
        for row in &mut self.rows {
            row.prober = Prober::stability(&row.asks, context);
        }
    }

    /// Asks all of them once, at the same time. After the load they are asked even when the run was interrupted, because their
    /// answers are evidence; but those that keep an interrupted run waiting are left without an answer.
    pub(super) async fn ask(
        &mut self,
        when: When,
        interrupt: &Interrupt,
        mask: impl Fn(&str) -> String,
    ) -> Vec<ProbeLine> {
        if let When::Trial(trial) = when {
            self.asked_after = Some(trial);
        }
        let asked = self.rows.iter_mut().map(|Row { prober, record, .. }| async {
            let mut out_of_patience = pin!(out_of_patience(when, interrupt));
            let mut reading = tokio::select! {
                biased;
                () = &mut out_of_patience => return None,
                reading = prober.read() => reading,
            };
            reading.failure = reading.failure.as_deref().map(&mask);
            for series in &mut reading.series {
                series.of = mask(&series.of);
                series.since = series.since.as_deref().map(&mask);
            }
            match when {
                When::Before => record.before = Some(reading.clone()),
                When::Anew(trial) => record.anew.push(TrialReading { trial, reading: reading.clone() }),
                When::Trial(trial) => record.between.push(TrialReading { trial, reading: reading.clone() }),
            }
            Some(ProbeLine { at: Timestamp::now().to_string(), name: record.name.clone(), when, reading })
        });
        join_all(asked).await.into_iter().flatten().collect()
    }

    /// The rows that broke between the last two times that they were asked.
    pub(super) fn broke(&self) -> Vec<String> {
        let broken = self.rows.iter().filter(|row| row.broke().last() == Some(&true));
        broken.map(|row| row.record.name.clone()).collect()
    }

    /// Whether a row broke between any two times that it was asked.
    pub(super) fn any_broke(&self) -> bool {
        self.rows.iter().any(|row| row.broke().contains(&true))
    }

    /// The rows that cannot pass any more after the first time that they were asked, each with why.
    pub(super) fn lost_before(&self) -> Vec<String> {
        let told = |row: &Row| {
            let before = row.record.before.as_ref().filter(|_| !row.record.automatic)?;
            let is_exit_code = row.record.kind == ProbeKind::ExitCode;
            let unhealthy = before.value.filter(|code| is_exit_code && code.abs() > 0.0);
            let why = unhealthy.map(|code| format!("exits with code {code}"));
            let why = why.or_else(|| before.failure.as_ref().map(|failure| format!("gives nothing: {failure}")))?;
            Some(format!("`{}` {why}; this run cannot pass", row.record.name))
        };
        self.rows.iter().filter_map(told).collect()
    }

    /// No trial follows: what was read last was read after the last drain.
    pub(super) fn end(&mut self) {
        for Row { record, .. } in &mut self.rows {
            record.after = record.between.pop_if(|last| Some(last.trial) == self.asked_after).map(|last| last.reading);
        }
    }

    /// What was read.
    pub(super) fn records(&self) -> Vec<ProbeRecord> {
        self.rows.iter().map(|row| row.record.clone()).collect()
    }
}

/// Resolves when a probe of an interrupted run is no longer waited for.
async fn out_of_patience(when: When, interrupt: &Interrupt) {
    interrupt.token().cancelled().await;
    if matches!(when, When::Trial(_)) {
        tokio::time::sleep(PATIENCE).await;
    }
}

fn unread(row: &StabilityRow) -> ProbeRecord {
    let (kind, source, max_increase) = match &row.probe {
        StabilityProbe::Counter { probe, max_increase, .. } => {
            (ProbeKind::Counter, probe.source.name(), Some(*max_increase))
        }
        StabilityProbe::LastCode { probe } => (ProbeKind::LastCode, probe.source.name(), None),
        StabilityProbe::Unchanged { probe } => (ProbeKind::Unchanged, probe.source.name(), None),
        StabilityProbe::ExitCode { .. } => (ProbeKind::ExitCode, "command", None),
    };
    ProbeRecord {
        name: row.name.clone(),
        kind,
        source: source.to_owned(),
        automatic: row.automatic,
        max_increase,
        before: None,
        between: Vec::new(),
        anew: Vec::new(),
        after: None,
    }
}
