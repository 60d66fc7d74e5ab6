//! Counters and health checks read before and after the load.

use std::collections::BTreeSet;
use std::time::Duration;

use super::Meaning;
use crate::contract::document::join;
use crate::contract::metric::Objective;
use crate::contract::model::Slo;
use crate::contract::raw;
use crate::contract::source::{Across, CommandSource, Probe, Source, StabilityProbe, StabilityRow};

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

impl Meaning<'_> {
    /// The rows; `None` when one is wrong. Their names must differ from those of the objectives, beside which they stand.
    pub(super) fn stability(
        &mut self,
        written: Vec<Option<raw::StabilityRow>>,
        slo: Option<&Slo>,
    ) -> Option<Vec<StabilityRow>> {
        let mut names: BTreeSet<String> =
            slo.map(|slo| slo.objectives.iter().map(Objective::id).collect()).unwrap_or_default();
        let mut rows = Vec::with_capacity(written.len());
        for (index, row) in written.into_iter().enumerate() {
            let pointer = join("/stability", &index.to_string());
            if let Some(name) = row.as_ref().and_then(|row| row.name.as_ref())
                && !names.insert(name.0.clone())
            {
                let message = format!("the name `{}` is used by another row of the verdict; write another", name.0);
                self.fault(&join(&pointer, "name"), message);
            }
            rows.push(row.and_then(|row| self.row(row, &pointer)));
        }
        rows.into_iter().collect()
    }

    fn row(&mut self, written: raw::StabilityRow, pointer: &str) -> Option<StabilityRow> {
        let counter_at = join(pointer, "counter");
        let exit_code_at = join(pointer, "exit_code");
        let has_counter = self.is_written(written.counter.as_ref(), &counter_at);
        let has_exit_code = self.is_written(written.exit_code.as_ref(), &exit_code_at);
        if has_counter == has_exit_code {
            let what = if has_counter { "only one of" } else { "one of" };
            self.fault(
                pointer,
                format!("write {what} `counter` (a number that must not rise) and `exit_code` (a health check)"),
            );
        }
        if written.max_increase.is_some() && has_exit_code && !has_counter {
            let message = "an exit code does not rise; remove it, or read a number with `counter`";
            self.fault_at_key(&join(pointer, "max_increase"), message);
        }
        let counter = written.counter.and_then(|probe| self.command_probe(probe, &counter_at));
        let exit_code = written.exit_code.and_then(|probe| self.command_probe(probe, &exit_code_at));
        let probe = match (counter, exit_code) {
            (Some((command, timeout)), None) => StabilityProbe::Counter {
                probe: Probe { source: Source::Command(command), timeout },
                across: Across::Sum,
                max_increase: written.max_increase.unwrap_or_default(),
            },
            (None, Some((command, timeout))) => StabilityProbe::ExitCode { command, timeout },
            _ => return None,
        };
        Some(StabilityRow { name: written.name?.0, probe, automatic: false })
    }

    fn command_probe(&mut self, written: raw::CommandProbe, pointer: &str) -> Option<(CommandSource, Duration)> {
        let command = self.command(written.command, &join(pointer, "command"));
        let timeout = self.above_zero(written.timeout.as_ref(), &join(pointer, "timeout"), DEFAULT_TIMEOUT);
        Some((CommandSource { command: command? }, timeout?))
    }
}
