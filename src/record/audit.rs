//! What an audit of the load generator found: up to which rate, and how exactly, it can be trusted on one machine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::model::Quantiles;
use crate::units::{Load, Rate};

/// The version of `audit.json` that this build writes and reads.
pub const AUDIT_SCHEMA: &str = "goodput-audit/1";

/// `audit.json`: the load generator against an endpoint whose answer is known, at rising rates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuditRecord {
    /// The version of this format.
    pub schema: String,
    /// The version of the tool that was audited.
    pub tool_version: String,
    /// When the audit began (RFC 3339).
    pub audited_at: String,
    /// The machine that it ran on.
    pub machine: MachineRecord,
    /// The highest rate that was kept, as every lower one was; `null` when not even the lowest was. Thousandths of a request
    /// per second.
    #[serde(rename = "trusted_rate_milli")]
    pub trusted_rate: Option<Rate>,
    /// The trials in the order in which they were made, by rising rate; a rate that was not kept was tried twice.
    pub trials: Vec<AuditTrial>,
}

/// What tells one machine from another; no name of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MachineRecord {
    /// Operating system and instruction set.
    pub system: String,
    /// The processor, by its own name.
    pub cpu_model: Option<String>,
    /// Processors that this process may use.
    pub cores: u32,
    /// The release of the kernel.
    pub kernel: Option<String>,
    /// All of its memory.
    pub memory_bytes: Option<u64>,
}

/// One trial of an audit, at one rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuditTrial {
    /// The rate of arrivals, in thousandths of a request per second.
    #[serde(rename = "rate_milli")]
    pub rate: Rate,
    /// Requests of the window that were due.
    pub due: u64,
    /// Of those, requests that the generator handed to the network.
    pub sent: u64,
    /// How late the generator handed them over.
    pub dispatch_lag: Option<Quantiles>,
    /// Measured TTFT minus the time that the endpoint took by its own log; a request without either counts as infinite.
    pub ttft_error: Option<Quantiles>,
    /// CPU time of the generator per second and core.
    pub cpu_share: Option<f64>,
    /// Why the rate was not kept; empty when it was.
    pub faults: Vec<String>,
}

impl AuditTrial {
    /// Whether the generator kept this rate, and how exactly it measured is known.
    pub fn is_kept(&self) -> bool {
        self.faults.is_empty() && self.error_p99_ns().is_some()
    }

    fn error_p99_ns(&self) -> Option<u64> {
        self.ttft_error.and_then(|error| error.p99_ns)
    }
}

impl AuditRecord {
    /// The highest rate of these trials, given by rising rate, that was kept as every lower one was.
    pub fn trusted(trials: &[AuditTrial]) -> Option<Rate> {
        let is_kept = |rate: Rate| trials.iter().any(|trial| trial.rate == rate && trial.is_kept());
        trials.iter().map(|trial| trial.rate).take_while(|rate| is_kept(*rate)).last()
    }

    /// The rate at which the generator did not keep its plan; `None` when every rate that was tried was kept.
    pub fn broke_at(&self) -> Option<Rate> {
        self.trials.iter().map(|trial| trial.rate).find(|rate| self.trusted_rate.is_none_or(|trusted| *rate > trusted))
    }

    /// The 99th percentile of the error of a measured TTFT, in nanoseconds, at the lowest audited rate that is not below
    /// `load`. `None` above the trusted rate, and for a number of clients, which is no rate.
    pub fn ttft_error_p99_ns(&self, load: Load) -> Option<u64> {
        let (rate, trusted) = load.rate().zip(self.trusted_rate)?;
        let nearest = self.trials.iter().filter(|trial| trial.is_kept() && (rate..=trusted).contains(&trial.rate));
        nearest.min_by_key(|trial| trial.rate)?.error_p99_ns()
    }

    /// Whether a load is above the rate that it vouches for; a number of clients, to which no schedule is kept, never is.
    pub fn is_exceeded_by(&self, load: Load) -> bool {
        load.rate().is_some_and(|rate| self.trusted_rate.is_none_or(|trusted| rate > trusted))
    }

    /// Why it says nothing of this machine and this version of the tool; `None` when it does.
    pub fn foreign_to(&self, machine: &MachineRecord, tool_version: &str) -> Option<String> {
        if self.tool_version != tool_version {
            return Some(format!("it is of goodput {}, and this is {tool_version}", self.tool_version));
        }
        self.machine.difference_to(machine).map(|difference| format!("it is of another machine: {difference}"))
    }
}

impl MachineRecord {
    /// The first thing in which this machine differs from the one at hand. Kernels count memory a little differently from
    /// start to start, so 2 % of it tell nothing.
    fn difference_to(&self, here: &Self) -> Option<String> {
        let differs = |what: &str, there: &str, here: &str| {
            (there != here).then(|| format!("{what} `{there}` there, `{here}` here"))
        };
        let or_unknown = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
        let mebibytes =
            |memory: Option<u64>| memory.map_or_else(|| "unknown".to_owned(), |bytes| format!("{} MiB", bytes >> 20));
        let same_memory = match (self.memory_bytes, here.memory_bytes) {
            (Some(there), Some(here)) => there.abs_diff(here) <= there.max(here) / 50,
            (there, here) => there == here,
        };
        differs("system", &self.system, &here.system)
            .or_else(|| differs("CPU", &or_unknown(&self.cpu_model), &or_unknown(&here.cpu_model)))
            .or_else(|| differs("cores", &self.cores.to_string(), &here.cores.to_string()))
            .or_else(|| differs("kernel", &or_unknown(&self.kernel), &or_unknown(&here.kernel)))
            .or_else(|| {
                differs("memory", &mebibytes(self.memory_bytes), &mebibytes(here.memory_bytes)).filter(|_| !same_memory)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(per_second: u64) -> Rate {
        Rate::from_milli(per_second * 1_000).expect("a rate")
    }

    /// Rates, each with the error's P99 in microseconds; without one it was not kept.
    fn audit(rates: &[(u64, Option<u64>)]) -> AuditRecord {
        let trial = |&(per_second, error): &(u64, Option<u64>)| AuditTrial {
            rate: rate(per_second),
            due: 100,
            sent: 100,
            dispatch_lag: None,
            ttft_error: error.map(|micros| Quantiles {
                count: 100,
                p50_ns: Some(1),
                p90_ns: Some(1),
                p95_ns: Some(1),
                p99_ns: Some(micros * 1_000),
                max_ns: Some(micros * 1_000),
            }),
            cpu_share: None,
            faults: if error.is_some() { Vec::new() } else { vec!["late".to_owned()] },
        };
        let trials: Vec<AuditTrial> = rates.iter().map(trial).collect();
        AuditRecord {
            schema: AUDIT_SCHEMA.to_owned(),
            tool_version: "1.0.0".to_owned(),
            audited_at: String::new(),
            machine: machine(),
            trusted_rate: AuditRecord::trusted(&trials),
            trials,
        }
    }

    fn machine() -> MachineRecord {
        MachineRecord {
            system: "linux x86_64".to_owned(),
            cpu_model: Some("A CPU".to_owned()),
            cores: 2,
            kernel: Some("6.1".to_owned()),
            memory_bytes: Some(8 << 30),
        }
    }

    #[test]
    fn trust_ends_below_the_first_rate_that_failed_twice() {
        for (rates, trusted, broke_at) in [
            (&[(50, Some(1)), (100, Some(1))][..], Some(100), None),
            (&[(50, Some(1)), (100, None), (100, Some(1)), (200, Some(2))], Some(200), None),
            (&[(50, Some(1)), (100, None), (100, None)], Some(50), Some(100)),
            (&[(50, None), (50, None)], None, Some(50)),
            // A rate above one that failed would not count even if it had been tried.
            (&[(50, Some(1)), (100, None), (100, None), (200, Some(1))], Some(50), Some(100)),
            (&[], None, None),
        ] {
            let audit = audit(rates);
            assert_eq!((audit.trusted_rate, audit.broke_at()), (trusted.map(rate), broke_at.map(rate)), "{rates:?}");
        }
    }

    #[test]
    fn an_error_that_is_not_known_is_no_trust() {
        let mut audit = audit(&[(50, Some(1)), (100, Some(1))]);
        audit.trials[1].ttft_error = None;
        assert_eq!(AuditRecord::trusted(&audit.trials), Some(rate(50)));
    }

    #[test]
    fn the_error_is_that_of_the_next_rate_up() {
        let audit = audit(&[(50, Some(10)), (100, None), (100, Some(30)), (200, Some(20)), (500, None), (500, None)]);
        let at = |per_second: u64| audit.ttft_error_p99_ns(Load::RateMilli(rate(per_second)));
        assert_eq!([1, 50, 51, 100, 150, 200].map(at), [10, 10, 30, 30, 20, 20].map(|micros| Some(micros * 1_000)));
        assert_eq!((at(201), at(500)), (None, None));
        assert_eq!(audit.ttft_error_p99_ns(Load::Clients(4)), None);
    }

    #[test]
    fn an_audit_speaks_of_one_machine_and_one_version() {
        let audit = audit(&[(50, Some(1))]);
        assert_eq!(audit.foreign_to(&machine(), "1.0.0"), None);
        assert_eq!(audit.foreign_to(&machine(), "1.1.0").as_deref(), Some("it is of goodput 1.0.0, and this is 1.1.0"));
        type Edit = fn(&mut MachineRecord);
        let edits: [(Edit, Option<&str>); 6] = [
            (|here| here.system = "linux aarch64".to_owned(), Some("system")),
            (|here| here.cpu_model = None, Some("CPU `A CPU` there, `unknown` here")),
            (|here| here.cores = 4, Some("cores `2` there, `4` here")),
            (|here| here.kernel = Some("6.2".to_owned()), Some("kernel")),
            (|here| here.memory_bytes = Some(16 << 30), Some("memory `8192 MiB` there, `16384 MiB` here")),
            (|here| here.memory_bytes = Some((8 << 30) + (1 << 20)), None),
        ];
        for (edit, expected) in edits {
            let mut here = machine();
            edit(&mut here);
            let found = audit.foreign_to(&here, "1.0.0");
            match expected {
                None => assert_eq!(found, None),
                Some(text) => assert!(found.as_deref().is_some_and(|found| found.contains(text)), "{text}: {found:?}"),
            }
        }
    }
}
