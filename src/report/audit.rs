//! What an audit of the load generator found (`goodput audit`).

use super::figures::{UNBOUNDED, UNMEASURED, grouped};
use super::layout::{Column, Page, lay_out};
use crate::record::{AuditRecord, AuditTrial, MachineRecord, Quantiles};
use crate::units::{Load, format_nanos};

/// Renders an audit for a terminal of `width` columns.
pub fn audit(record: &AuditRecord, width: usize, color: bool) -> String {
    let mut page = Page::new(width, color);
    page.heading(&conclusion(record));
    if let Some(extent) = extent(record) {
        page.paragraph(&extent);
    }
    page.remark(&machine(&record.machine), 0);
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
    match record.trusted_rate {
        Some(trusted) => format!("The load generator can be trusted up to {trusted} on this machine."),
        None => "The load generator cannot be trusted on this machine: it kept no rate.".to_owned(),
    }
}

/// How exact it is at the highest rate that it kept, and what lies above.
fn extent(record: &AuditRecord) -> Option<String> {
    let trusted = Load::RateMilli(record.trusted_rate?);
    let error = record.ttft_error_p99_ns(trusted).map_or_else(String::new, |nanos| {
        format!("At {trusted} it measures TTFTs at most {} too long, at P99. ", format_nanos(nanos))
    });
    let above = record
        .broke_at()
        .map_or_else(|| "No higher rate was tried.".to_owned(), |broke| format!("It did not keep {broke}."));
    Some(error + &above)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::AUDIT_SCHEMA;
    use crate::units::Rate;

    fn times(micros: u64) -> Option<Quantiles> {
        let at = |part| Some(micros * 1_000 * part);
        Some(Quantiles { count: 1_000, p50_ns: at(1), p90_ns: at(2), p95_ns: at(3), p99_ns: at(4), max_ns: at(5) })
    }

    fn trial(per_second: u64, error: Option<Quantiles>, faults: &[&str]) -> AuditTrial {
        let due = per_second * 3;
        AuditTrial {
            rate: Rate::from_milli(per_second * 1_000).expect("a rate"),
            due,
            sent: due,
            dispatch_lag: times(50),
            ttft_error: error,
            cpu_share: Some(0.1),
            faults: faults.iter().map(|fault| (*fault).to_owned()).collect(),
        }
    }

    fn record(trials: Vec<AuditTrial>) -> AuditRecord {
        AuditRecord {
            schema: AUDIT_SCHEMA.to_owned(),
            tool_version: "0.1.0".to_owned(),
            audited_at: "2026-11-29T10:00:00Z".to_owned(),
            machine: MachineRecord {
                system: "linux x86_64".to_owned(),
                cpu_model: Some("A CPU".to_owned()),
                cores: 2,
                kernel: None,
                memory_bytes: Some(8 << 30),
            },
            trusted_rate: AuditRecord::trusted(&trials),
            trials,
        }
    }

    #[test]
    fn an_audit_in_a_terminal() {
        let infinite = times(90).map(|times| Quantiles { p99_ns: None, ..times });
        let record = record(vec![
            trial(50, times(60), &[]),
            trial(1_000, times(80), &[]),
            trial(2_000, infinite, &["dispatch lag p99 9.00 ms is above 5.00 ms", "late"]),
            trial(2_000, None, &["only 1 of 2 due requests were sent"]),
        ]);
        let expected = r#"
The load generator can be trusted up to 1000/s on this machine.
At 1000/s it measures TTFTs at most 320 µs too long, at P99. It did not keep 2000/s.
A CPU, 2 cores, linux x86_64, 8,192 MiB of memory

                           lag  TTFT error
  rate            sent     p99         p50     p99     max  kept
────────────────────────────────────────────────────────────────
  50/s      150 of 150  200 µs     60.0 µs  240 µs  300 µs  yes
1000/s  3,000 of 3,000  200 µs     80.0 µs  320 µs  400 µs  yes
2000/s  6,000 of 6,000  200 µs     90.0 µs       ∞  450 µs  no
  dispatch lag p99 9.00 ms is above 5.00 ms; late
2000/s  6,000 of 6,000  200 µs           —       —       —  no
  only 1 of 2 due requests were sent

TTFT error: measured TTFT minus the time that the endpoint took by its own log. The endpoint had to
share this machine, so the error is an upper bound.
goodput 0.1.0, 2026-11-29T10:00:00Z
"#;
        assert_eq!(audit(&record, 100, false), expected.trim_start_matches('\n'));
    }

    #[test]
    fn it_claims_no_more_than_was_seen() {
        let begin = |trials| audit(&record(trials), 100, false).lines().take(2).collect::<Vec<_>>().join(" ");
        let all = begin(vec![trial(50, times(60), &[])]);
        assert!(all.contains("trusted up to 50/s") && all.ends_with("No higher rate was tried."), "{all}");
        let none = begin(vec![trial(50, times(60), &["late"])]);
        assert_eq!(
            none,
            "The load generator cannot be trusted on this machine: it kept no rate. \
             A CPU, 2 cores, linux x86_64, 8,192 MiB of memory"
        );
    }
}
