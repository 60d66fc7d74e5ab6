//! What an audit of the load generator found (`goodput audit`).

use super::figures::{UNBOUNDED, UNMEASURED, grouped};
use super::layout::{Column, Page, lay_out};
use crate::record::{AuditRecord, AuditTrial, MachineRecord, Quantiles};
use crate::units::{Load, format_nanos};

/// Renders an audit for a terminal of `width` columns.
pub fn audit(record: &AuditRecord, width: usize, color: bool) -> String {
    let mut page = Page::new(width, color);
    page.heading(&conclusion(record));
    page.paragraph(&machine(&record.machine));
    page.blank();
    let lines = lay_out(columns(&record.trials), page.width());
    page.table_header(&lines);
    for (line, trial) in lines.rows.iter().zip(&record.trials) {
        page.table_row(line, None);
        page.remark_if((!trial.faults.is_empty()).then(|| trial.faults.join("; ")).as_ref(), 2);
    }
    page.blank();
    page.remark(
        "TTFT error: measured TTFT minus the time that the endpoint took by its own log. The endpoint had to share this \
         machine, so the error is an upper bound.",
        0,
    );
    page.remark(&format!("goodput {}, {}", record.tool_version, record.audited_at), 0);
    page.finish()
}

fn conclusion(record: &AuditRecord) -> String {
    let Some(trusted) = record.trusted_rate else {
        return "The load generator cannot be trusted on this machine: it kept no rate.".to_owned();
    };
    let error = record.ttft_error_p99_ns(Load::RateMilli(trusted)).map_or_else(String::new, |nanos| {
        format!(", where it measures TTFTs at most {} too long, at P99", format_nanos(nanos))
    });
    let end = record
        .broke_at()
        .map_or_else(|| "; no higher rate was tried".to_owned(), |broke| format!("; it did not keep {broke}"));
    format!("The load generator can be trusted up to {trusted} on this machine{error}{end}.")
}

fn machine(machine: &MachineRecord) -> String {
    let cpu = machine.cpu_model.as_deref().unwrap_or("unknown CPU");
    let cores = if machine.cores == 1 { "1 core".to_owned() } else { format!("{} cores", machine.cores) };
    let kernel = machine.kernel.as_ref().map_or_else(String::new, |release| format!(", kernel {release}"));
    let memory =
        machine.memory_bytes.map_or_else(String::new, |bytes| format!(", {} MiB of memory", grouped(bytes >> 20)));
    format!("{cpu}, {cores}, {}{kernel}{memory}", machine.system)
}

fn columns(trials: &[AuditTrial]) -> Vec<Column> {
    type Pick = fn(&Quantiles) -> Option<u64>;
    let column = |value: &dyn Fn(&AuditTrial) -> String| -> Vec<String> { trials.iter().map(value).collect() };
    let time = |found: Option<Quantiles>, pick: Pick| match found.as_ref().map(pick) {
        None => UNMEASURED.to_owned(),
        Some(None) => UNBOUNDED.to_owned(),
        Some(Some(nanos)) => format_nanos(nanos),
    };
    let lag = |pick: Pick| column(&|trial| time(trial.dispatch_lag, pick));
    let error = |pick: Pick| column(&|trial| time(trial.ttft_error, pick));
    let grouped_under = |group: &'static str, column: Column| Column { group, ..column };
    vec![
        Column::numbers("rate", column(&|trial| trial.rate.to_string())),
        Column::numbers("sent", column(&|trial| format!("{} of {}", grouped(trial.sent), grouped(trial.due)))),
        grouped_under("lag", Column::numbers("p99", lag(|lag| lag.p99_ns))),
        grouped_under("TTFT error", Column::numbers("p50", error(|error| error.p50_ns))),
        grouped_under("TTFT error", Column::numbers("p99", error(|error| error.p99_ns))),
        grouped_under("TTFT error", Column::numbers("max", error(|error| error.max_ns))),
        Column::words("kept", column(&|trial| if trial.is_kept() { "yes" } else { "no" }.to_owned())),
    ]
}
