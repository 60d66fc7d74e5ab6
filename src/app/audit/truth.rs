//! What the generator measured, beside what the endpoint's own log says of the same requests.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::Deserialize;

use crate::app::exit::Failure;
use crate::observe::Outcome;
use crate::record::{Quantiles, RecordSink, RequestRecord, quantiles};
use crate::schedule::Segment;

/// The TTFT of every request of a trial's window, by the number of its arrival; `None` where there was no whole reply.
#[derive(Debug, Default)]
pub(super) struct Heard(Vec<(u64, Option<u64>)>);

impl RecordSink for Heard {
    fn record(&mut self, record: &RequestRecord) -> io::Result<()> {
        if record.segment == Segment::Window {
            let ttft = record.first_output_ns.and_then(|at| at.checked_sub(record.begins_ns()));
            self.0.push((record.arrival, ttft.filter(|_| record.outcome == Outcome::Ok)));
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How long the endpoint took to its first output, in nanoseconds, by `x-request-id`.
#[derive(Debug, Default)]
pub(super) struct Truth(BTreeMap<String, u64>);

/// A line of the endpoint's log, as far as it matters here.
#[derive(Deserialize)]
struct Served {
    request_id: Option<String>,
    received_ns: u64,
    first_write_ns: Option<u64>,
}

impl Truth {
    /// Reads the log of an endpoint that has ended.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            Failure::internal(format!("failed to read the endpoint's own log {}: {error}", path.display()))
                .hint("the audit works in the folder for temporary files; free space there")
        })?;
        Ok(Self::of(&text))
    }

    /// A line that is none leaves its request without a truth.
    fn of(text: &str) -> Self {
        let taken = |line: &str| {
            let served: Served = serde_json::from_str(line).ok()?;
            Some((served.request_id?, served.first_write_ns?.checked_sub(served.received_ns)?))
        };
        Self(text.lines().filter_map(taken).collect())
    }

    /// Measured TTFT minus the time that the endpoint took, over the window of a trial. What is between the two is the
    /// generator's lateness at both ends, connecting, and both ways over the network. A request without either counts as
    /// infinite.
    pub(super) fn errors(&self, run_id: &str, trial: u32, heard: &Heard) -> Option<Quantiles> {
        let error = |(arrival, ttft): &(u64, Option<u64>)| {
            Some(ttft.as_ref()?.abs_diff(*self.0.get(&format!("{run_id}-{trial}-{arrival}"))?))
        };
        let known: Vec<u64> = heard.0.iter().filter_map(error).collect();
        let unknown = heard.0.len() - known.len();
        quantiles(known, unknown as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_is_what_the_endpoint_does_not_account_for() {
        let log = r#"{"request_id":"audit-ready-0","received_ns":5,"first_write_ns":9}
{"request_id":"audit-3-10","received_ns":1000,"first_write_ns":21000,"last_write_ns":30000}
{"request_id":"audit-3-11","received_ns":2000,"first_write_ns":22500}
{"request_id":"audit-2-12","received_ns":2000,"first_write_ns":22500}
{"request_id":"audit-3-13","received_ns":3000,"first_write_ns":null}
{"request_id":null,"received_ns":1,"first_write_ns":2}
{"request_id":"audit-3-14","rec"#;
        let truth = Truth::of(log);
        // 20,000 and 20,500 ns were the endpoint's.
        let heard = Heard(vec![(10, Some(20_700)), (11, Some(20_600))]);
        let found = truth.errors("audit", 3, &heard).expect("two errors");
        assert_eq!((found.count, found.p50_ns, found.p99_ns, found.max_ns), (2, Some(100), Some(700), Some(700)));
        // No reply, another trial's request, no output by the log, a torn line: none of them has an error that is known.
        for unknown in [(10, None), (12, Some(20_000)), (13, Some(20_000)), (14, Some(20_000))] {
            let found = truth.errors("audit", 3, &Heard(vec![(11, Some(20_600)), unknown])).expect("two requests");
            assert_eq!((found.count, found.p50_ns, found.p99_ns), (2, Some(100), None), "{unknown:?}");
        }
        assert_eq!(truth.errors("audit", 3, &Heard::default()), None);
    }
}
