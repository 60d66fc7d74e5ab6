//! What must hold: limits of one request, objectives over a window, and the load.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Known, Meaning};
use crate::contract::document::join;
use crate::contract::model::{LatencyMetric, Objective, RequestLimits, Slo};
use crate::contract::raw::{self, Metric, TrafficModel};
use crate::contract::schema::DurationText;
use crate::observe::Protocol;
use crate::units::{Load, Share, format_duration};

const OBJECTIVES: &str = "/slo/objectives";
const REQUEST: &str = "/slo/request";
const AT_LOAD: &str = "/slo/at_load";
const AT_CONCURRENCY: &str = "/slo/at_concurrency";

impl Meaning<'_> {
    /// What must hold, and the largest latency limit in it as far as it could be read.
    pub(super) fn slo(&mut self, written: &raw::Slo, known: Known) -> (Option<Slo>, Option<Duration>) {
        let request = self.request_limits(written.request.as_ref(), known);
        let limited = self.is_written(written.request.as_ref(), REQUEST)
            && written.request.as_ref().is_none_or(|r| r.ttft.is_some() || r.tpot.is_some() || r.e2e.is_some());
        let objectives = self.objectives(written.objectives.as_deref().unwrap_or_default(), known, limited);
        let at = self.at(written, known.traffic);
        let of_objectives = objectives.iter().flatten().filter_map(|objective| match objective {
            Objective::Latency { at_most, .. } => Some(*at_most),
            Objective::SuccessRate { .. } | Objective::Attainment { .. } => None,
        });
        let largest = request.set().map(|(_, limit)| limit).chain(of_objectives).max();
        let objectives: Option<Vec<Objective>> = objectives.into_iter().collect();
        let slo = objectives.zip(at).map(|(objectives, at)| Slo { request, objectives, at });
        (slo, largest)
    }

    fn request_limits(&mut self, written: Option<&raw::RequestLimits>, known: Known) -> RequestLimits {
        let Some(written) = written else { return RequestLimits::default() };
        let tpot = join(REQUEST, "tpot");
        if written.tpot.is_some() {
            self.needs_stream(LatencyMetric::Tpot, known.protocol, &tpot);
        }
        RequestLimits {
            ttft: self.latency_limit(written.ttft.as_ref(), &join(REQUEST, "ttft"), known),
            tpot: self.latency_limit(written.tpot.as_ref(), &tpot, known),
            e2e: self.latency_limit(written.e2e.as_ref(), &join(REQUEST, "e2e"), known),
        }
    }

    /// A latency limit; one beyond the timeout would never be what a request is judged by.
    fn latency_limit(&mut self, written: Option<&DurationText>, pointer: &str, known: Known) -> Option<Duration> {
        let limit = self.limit(written, pointer)?;
        if let Some(timeout) = known.timeout.filter(|timeout| *timeout < limit) {
            let message = format!(
                "longer than the `timeout` of {}, which ends a request before; lower the limit or raise `endpoint.timeout`",
                format_duration(timeout)
            );
            self.fault(pointer, message);
            return None;
        }
        Some(limit)
    }

    fn needs_stream(&mut self, metric: LatencyMetric, protocol: Option<Protocol>, pointer: &str) -> bool {
        let Some(protocol) = protocol.filter(|p| metric == LatencyMetric::Tpot && !p.streams()) else { return true };
        let message = format!(
            "`tpot` needs a stream, and `{}` reads one body; use a streamed protocol or `e2e`",
            protocol.name()
        );
        self.fault_at_key(pointer, message);
        false
    }

    fn objectives(
        &mut self,
        written: &[Option<raw::Objective>],
        known: Known,
        limited: bool,
    ) -> Vec<Option<Objective>> {
        let mut seen = BTreeSet::new();
        let mut objectives = Vec::with_capacity(written.len());
        for (index, written) in written.iter().enumerate() {
            let pointer = join(OBJECTIVES, &index.to_string());
            let objective = written.as_ref().and_then(|written| self.objective(written, &pointer, known, limited));
            let id = objective.map(|objective| objective.id());
            if let Some(id) = id.filter(|id| !seen.insert(id.clone())) {
                self.fault(&pointer, format!("the objective `{id}` is written twice; keep one limit for it"));
            }
            objectives.push(objective);
        }
        objectives
    }

    fn objective(&mut self, written: &raw::Objective, pointer: &str, known: Known, limited: bool) -> Option<Objective> {
        match written.metric? {
            Metric::Ttft => self.latency(LatencyMetric::Ttft, written, pointer, known),
            Metric::Tpot => self.latency(LatencyMetric::Tpot, written, pointer, known),
            Metric::E2e => self.latency(LatencyMetric::E2e, written, pointer, known),
            Metric::SuccessRate => {
                self.floor("success_rate", written, pointer).map(|at_least| Objective::SuccessRate { at_least })
            }
            Metric::Attainment => {
                if !limited {
                    let message = "`attainment` is the share of requests within the limits of `slo.request`, and none is set; \
                        write one, as in `request: { ttft: 3s }`, or use `success_rate`";
                    self.fault(&join(pointer, "metric"), message);
                }
                self.floor("attainment", written, pointer).map(|at_least| Objective::Attainment { at_least })
            }
        }
    }

    fn latency(
        &mut self,
        metric: LatencyMetric,
        written: &raw::Objective,
        pointer: &str,
        known: Known,
    ) -> Option<Objective> {
        let name = metric.name();
        let streams = self.needs_stream(metric, known.protocol, &join(pointer, "metric"));
        let has_floor = self.is_written(written.at_least.as_ref(), &join(pointer, "at_least"));
        if has_floor {
            let message = format!("`{name}` is a latency and has no floor; write `percentile` and `at_most`");
            self.fault_at_key(&join(pointer, "at_least"), message);
        }
        let has_limit = self.is_written(written.at_most.as_ref(), &join(pointer, "at_most"));
        let has_percentile = self.is_written(written.percentile.as_ref(), &join(pointer, "percentile"));
        if !has_limit && !has_floor {
            self.fault(pointer, format!("the limit of `{name}` is missing; write it, as in `at_most: 3s`"));
        }
        if !has_percentile {
            self.fault(pointer, format!("the percentile of `{name}` is missing; write it, as in `percentile: 99`"));
        }
        let quantile = self.percentile(written.percentile, &join(pointer, "percentile"));
        let at_most = self.latency_limit(written.at_most.as_ref(), &join(pointer, "at_most"), known);
        let objective = Objective::Latency { metric, quantile: quantile?, at_most: at_most? };
        streams.then_some(objective)
    }

    /// The percentile as a share; its bounds are the schema's.
    fn percentile(&mut self, written: Option<f64>, pointer: &str) -> Option<Share> {
        let percent = written?;
        let share = Share::parse(&format!("{percent}%")).ok().filter(|share| *share < Share::ONE);
        if share.is_none() {
            self.fault(pointer, format!("`{percent}` is finer than a part per million; write at most four decimals"));
        }
        share
    }

    fn floor(&mut self, name: &str, written: &raw::Objective, pointer: &str) -> Option<Share> {
        if self.is_written(written.percentile.as_ref(), &join(pointer, "percentile")) {
            let message = format!("`{name}` is a share over all requests and has no percentile; remove it");
            self.fault_at_key(&join(pointer, "percentile"), message);
        }
        let has_limit = self.is_written(written.at_most.as_ref(), &join(pointer, "at_most"));
        if has_limit {
            let message = format!("`{name}` is a share that must be reached; write `at_least`, as in `at_least: 99%`");
            self.fault_at_key(&join(pointer, "at_most"), message);
        }
        let floor_at = join(pointer, "at_least");
        if !self.is_written(written.at_least.as_ref(), &floor_at) && !has_limit {
            self.fault(pointer, format!("the floor of `{name}` is missing; write it, as in `at_least: 99%`"));
        }
        let floor = self.share(written.at_least.as_ref(), &floor_at)?;
        if floor.ppm() == 0 {
            self.fault(&floor_at, "a floor of zero always holds; write a share above zero");
            return None;
        }
        Some(floor)
    }

    /// The load that must hold, of the kind that the traffic model has.
    fn at(&mut self, written: &raw::Slo, traffic: Option<TrafficModel>) -> Option<Load> {
        let closed = traffic? == TrafficModel::Closed;
        let has_load = self.is_written(written.at_load.as_ref(), AT_LOAD);
        let has_clients = self.is_written(written.at_concurrency.as_ref(), AT_CONCURRENCY);
        if closed && has_load {
            self.fault_at_key(AT_LOAD, "a closed loop has no rate; write `at_concurrency: 8`, a number of clients");
        } else if closed && !has_clients {
            self.fault("/slo", "the number of clients that must hold is missing; write it, as in `at_concurrency: 8`");
        } else if !closed && has_clients {
            self.fault_at_key(
                AT_CONCURRENCY,
                "an open loop has a rate; write `at_load: 4/s`, or `model: closed` in `traffic`",
            );
        } else if !closed && !has_load {
            self.fault("/slo", "the load that must hold is missing; write it, as in `at_load: 4/s`");
        }
        if closed {
            written.at_concurrency.and_then(|clients| u32::try_from(clients.0).ok()).map(Load::Clients)
        } else {
            self.rate(written.at_load.as_ref(), AT_LOAD).map(Load::RateMilli)
        }
    }
}
