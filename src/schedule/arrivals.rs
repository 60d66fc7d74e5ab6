//! Open-loop arrival instants (method, section 3.2).

use super::{ARRIVAL_STREAM, ArrivalProcess, Segment, TrialCounts, Words};
use crate::units::{Digest, DigestBuilder, Rate};

/// One planned request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// When it is due, in nanoseconds since the trial's start.
    pub offset_ns: u64,
    /// The segment it belongs to.
    pub segment: Segment,
}

/// The whole plan of one open-loop trial, sorted by time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    arrivals: Vec<Arrival>,
    window_ns: u64,
    digest: Digest,
}

impl Schedule {
    /// A schedule of one's own: arrivals in order of time, and the length of the window that holds the measured ones.
    pub fn new(arrivals: Vec<Arrival>, window_ns: u64) -> Self {
        let mut digest = DigestBuilder::default();
        for arrival in &arrivals {
            digest.word(arrival.offset_ns);
        }
        Self { arrivals, window_ns, digest: digest.finish() }
    }

    /// The arrivals, in order of time.
    pub fn arrivals(&self) -> &[Arrival] {
        &self.arrivals
    }

    /// `D(N)`: the length of the window in nanoseconds, so that `N / D(N)` is the offered load.
    pub fn window_ns(&self) -> u64 {
        self.window_ns
    }

    /// From the first due instant of the window to its last; `None` for an empty window.
    pub fn window_span_ns(&self) -> Option<u64> {
        let mut window = self.arrivals.iter().filter(|arrival| arrival.segment == Segment::Window);
        let first = window.next()?.offset_ns;
        Some(window.next_back().map_or(0, |last| last.offset_ns - first))
    }

    /// SHA-256 over the little-endian offsets.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }
}

/// `D(c) = ⌊(c·10¹² + ⌊λ_milli/2⌋) / λ_milli⌋`: the length of a segment of `count` arrivals.
pub fn segment_nanos(count: u64, rate: Rate) -> u64 {
    let milli = u128::from(rate.milli());
    ((u128::from(count) * 1_000_000_000_000 + milli / 2) / milli) as u64
}

/// Lays out the arrivals of one trial. The same arguments give the same offsets on every platform.
pub fn open_loop(process: ArrivalProcess, rate: Rate, counts: TrialCounts, seed: u64) -> Schedule {
    let segments =
        [(Segment::WarmUp, counts.warm_up), (Segment::Window, counts.window), (Segment::Drain, counts.drain)];
    let mut arrivals = Vec::with_capacity(counts.total() as usize);
    match process {
        ArrivalProcess::Constant => {
            let mut index = 0u64;
            for (segment, count) in segments {
                for _ in 0..count {
                    let offset = u128::from(index) * 1_000_000_000_000 / u128::from(rate.milli());
                    arrivals.push(Arrival { offset_ns: offset as u64, segment });
                    index += 1;
                }
            }
        }
        ArrivalProcess::Poisson => {
            let mut words = Words::new(seed, ARRIVAL_STREAM);
            let mut start = 0u64;
            for (segment, count) in segments {
                let length = segment_nanos(count, rate);
                let mut offsets: Vec<u64> = (0..count).map(|_| start + words.next_below(length)).collect();
                offsets.sort_unstable();
                arrivals.extend(offsets.into_iter().map(|offset_ns| Arrival { offset_ns, segment }));
                start += length;
            }
        }
    }
    Schedule::new(arrivals, segment_nanos(counts.window, rate))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::workload::CaseOrder;

    const REFERENCE: &str = include_str!("../../tests/fixtures/reference/arrival_schedules.json");

    fn reference() -> Value {
        serde_json::from_str(REFERENCE).expect("the reference is JSON")
    }

    #[test]
    fn schedules_equal_the_reference_on_every_platform() {
        for item in reference()["items"].as_array().expect("items") {
            let id = item["id"].as_str().expect("id");
            let number = |pointer: &str| item.pointer(pointer).and_then(Value::as_u64).unwrap_or_default();
            let process = match item["kind"].as_str().expect("kind") {
                "conditioned-poisson" => ArrivalProcess::Poisson,
                "constant" => ArrivalProcess::Constant,
                other => panic!("{id}: unknown kind {other}"),
            };
            let counts = TrialCounts {
                warm_up: number("/counts/warmup"),
                window: number("/counts/measured") + number("/count"),
                drain: number("/counts/cooldown"),
            };
            let rate = Rate::from_milli(number("/rate_milli")).expect("a rate");
            let schedule = open_loop(process, rate, counts, number("/seed"));
            assert_eq!(schedule.digest().as_str(), item["sha256_le_u64_offsets"].as_str().expect("digest"), "{id}");
            let first: Vec<u64> = schedule.arrivals().iter().take(6).map(|a| a.offset_ns).collect();
            let expected: Vec<u64> =
                item["first_offsets_ns"].as_array().expect("offsets").iter().filter_map(Value::as_u64).collect();
            assert_eq!(first, expected, "{id}");
        }
    }

    #[test]
    fn words_and_case_orders_equal_the_reference() {
        assert_eq!(Words::new(42, 0).next_word(), 0x5927_3471_198f_a887);
        for row in reference()["case_order"].as_array().expect("case_order") {
            let number = |key: &str| row[key].as_u64().expect(key);
            let expected: Vec<u64> = row["order"].as_array().expect("order").iter().filter_map(Value::as_u64).collect();
            let cases = number("cases") as usize;
            let order: Vec<u64> =
                CaseOrder::new(cases, number("seed")).take(expected.len()).map(|i| i as u64).collect();
            assert_eq!(order, expected, "{row}");
        }
    }
}
