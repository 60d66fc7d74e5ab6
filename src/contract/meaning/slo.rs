//! What must hold: limits of one request, objectives over a window, and the load.

use std::collections::BTreeSet;
use std::time::Duration;

use super::evidence::FLOOR;
use super::{Known, Meaning};
use crate::contract::document::join;
use crate::contract::metric::{MetricUnit, Objective, RequestLimits, RequestMetric};
use crate::contract::model::Slo;
use crate::contract::raw::{self, Metric, TrafficModel};
use crate::contract::schema::{AtMost, DurationText};
use crate::contract::source::Resource;
use crate::observe::Protocol;
use crate::units::{Load, Rate, Share, format_duration, parse_duration, parse_ratio};

const OBJECTIVES: &str = "/slo/objectives";
const REQUEST: &str = "/slo/request";
const AT_LOAD: &str = "/slo/at_load";
const AT_CONCURRENCY: &str = "/slo/at_concurrency";
const CAPACITY: &str = "/slo/capacity";

impl Meaning<'_> {
    /// What must hold, and the largest limit in it on how long a request may take, as far as it could be read.
    pub(super) fn slo(
        &mut self,
        mut written: raw::Slo,
        known: Known,
        sampled: Option<&[Resource]>,
    ) -> (Option<Slo>, Option<Duration>) {
        // Where what is sampled could not be read, nothing is known of its names.
        let limits = written.resources.take().unwrap_or_default();
        let resources = match sampled {
            Some(sampled) => self.resource_limits(limits, sampled),
            None => Some(Vec::new()),
        };
        let written = &written;
        let request = self.request_limits(written.request.as_ref(), known);
        let is_limited = |limits: &raw::RequestLimits| {
            limits.rtf.is_some() || limits.durations().iter().any(|(_, limit)| limit.is_some())
        };
        // A limit that was refused was meant to be one.
        let limited = self.refused.iter().any(|pointer| pointer.starts_with(REQUEST))
            || written.request.as_ref().is_some_and(is_limited);
        let objectives = self.objectives(written.objectives.as_deref().unwrap_or_default(), known, limited);
        let at = self.at(written, known.traffic);
        let of_objectives = objectives.iter().flatten().filter_map(Objective::limit);
        let waits = request.set().chain(of_objectives).filter(|(metric, _)| metric.is_wait());
        let largest = waits.map(|(_, limit)| Duration::from_nanos(limit)).max();
        let objectives: Option<Vec<Objective>> = objectives.into_iter().collect();
        let capacity = self.capacity(written, known.traffic);
        let slo = objectives.zip(at).zip(resources).map(|((objectives, at), resources)| Slo {
            request,
            objectives,
            resources,
            at,
            capacity,
        });
        (slo, largest)
    }

    fn request_limits(&mut self, written: Option<&raw::RequestLimits>, known: Known) -> RequestLimits {
        let Some(written) = written else { return RequestLimits::default() };
        let mut limits = Vec::new();
        for (metric, limit) in written.durations() {
            let pointer = join(REQUEST, metric.name());
            if self.is_written(limit, &pointer) {
                self.fits_protocol(metric, known, &pointer);
                limits.extend(self.duration_limit(metric, limit, &pointer, known).map(|limit| (metric, limit)));
            }
        }
        let rtf = join(REQUEST, RequestMetric::Rtf.name());
        if self.is_written(written.rtf.as_ref(), &rtf) {
            self.fits_protocol(RequestMetric::Rtf, known, &rtf);
            let limit = written.rtf.and_then(|limit| self.ratio_limit(limit, &rtf));
            limits.extend(limit.map(|limit| (RequestMetric::Rtf, limit)));
        }
        limits.into_iter().collect()
    }

    /// A limit in nanoseconds. One beyond the timeout would never be what a request is judged by; and a listener can be
    /// spared every silence, while nothing else takes no time.
    fn duration_limit(
        &mut self,
        metric: RequestMetric,
        written: Option<&DurationText>,
        pointer: &str,
        known: Known,
    ) -> Option<u64> {
        let may_be_zero = metric == RequestMetric::Underrun;
        let limit = if may_be_zero { self.duration(written, pointer)? } else { self.limit(written, pointer)? };
        if let Some(timeout) = known.timeout.filter(|timeout| metric.is_wait() && *timeout < limit) {
            let message = format!(
                "longer than the `timeout` of {}, which ends a request before; lower the limit or raise `endpoint.timeout`",
                format_duration(timeout)
            );
            self.fault(pointer, message);
            return None;
        }
        u64::try_from(limit.as_nanos()).ok()
    }

    /// A limit in parts per million.
    fn ratio_limit(&mut self, written: f64, pointer: &str) -> Option<u64> {
        let limit = self.unit(parse_ratio(&written.to_string()), pointer)?;
        if limit == 0 {
            self.fault(pointer, "zero can never be met; write a number above zero");
            return None;
        }
        Some(limit)
    }

    /// Tells where a protocol cannot show a metric, with what to use instead.
    pub(super) fn fits_protocol(&mut self, metric: RequestMetric, known: Known, pointer: &str) -> bool {
        let misfit = known.protocol.and_then(|protocol| misfit(metric, protocol));
        let fits = misfit.is_none();
        if let Some(message) = misfit {
            self.fault_at_key(pointer, message);
        }
        fits
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
        let written_metric = written.metric?;
        if let Some(metric) = written_metric.of_requests() {
            return self.percentile_of(metric, written, pointer, known);
        }
        if written_metric == Metric::SuccessRate {
            return self.floor("success_rate", written, pointer).map(|at_least| Objective::SuccessRate { at_least });
        }
        if !limited {
            let message = "`attainment` is the share of requests within the limits of `slo.request`, and none is set; \
                write one, as in `request: { ttft: 3s }`, or use `success_rate`";
            self.fault(&join(pointer, "metric"), message);
        }
        self.floor("attainment", written, pointer).map(|at_least| Objective::Attainment { at_least })
    }

    fn percentile_of(
        &mut self,
        metric: RequestMetric,
        written: &raw::Objective,
        pointer: &str,
        known: Known,
    ) -> Option<Objective> {
        let name = metric.name();
        let (noun, example) = match metric.unit() {
            MetricUnit::Nanoseconds => ("latency", "3s"),
            MetricUnit::PartsPerMillion => ("ratio", "0.5"),
        };
        let fits = self.fits_protocol(metric, known, &join(pointer, "metric"));
        let has_floor = self.is_written(written.at_least.as_ref(), &join(pointer, "at_least"));
        if has_floor {
            let message = format!("`{name}` is a {noun} and has no floor; write `percentile` and `at_most`");
            self.fault_at_key(&join(pointer, "at_least"), message);
        }
        let limit_at = join(pointer, "at_most");
        let has_limit = self.is_written(written.at_most.as_ref(), &limit_at);
        let has_percentile = self.is_written(written.percentile.as_ref(), &join(pointer, "percentile"));
        if !has_limit && !has_floor {
            self.fault(pointer, format!("the limit of `{name}` is missing; write it, as in `at_most: {example}`"));
        }
        if !has_percentile {
            self.fault(pointer, format!("the percentile of `{name}` is missing; write it, as in `percentile: 99`"));
        }
        let quantile = self.percentile(written.percentile, &join(pointer, "percentile"));
        let at_most = if has_limit { self.at_most(metric, written.at_most.as_ref(), &limit_at, known) } else { None };
        let objective = Objective::Percentile { metric, quantile: quantile?, at_most: at_most? };
        fits.then_some(objective)
    }

    /// The limit of a percentile, in the metric's unit; `None` where the form was refused, which is told for a duration.
    fn at_most(&mut self, metric: RequestMetric, written: Option<&AtMost>, pointer: &str, known: Known) -> Option<u64> {
        match (metric.unit(), written) {
            (MetricUnit::Nanoseconds, Some(AtMost::Duration(limit))) => {
                self.duration_limit(metric, Some(limit), pointer, known)
            }
            (MetricUnit::Nanoseconds, Some(AtMost::Ratio(number))) => {
                let refusal = parse_duration(&number.to_string()).err()?;
                let hint =
                    if *number > 0.0 { format!("; did you mean `{number}ms` or `{number}s`?") } else { String::new() };
                self.fault(pointer, format!("{refusal}{hint}"));
                None
            }
            (MetricUnit::Nanoseconds, None) => None,
            (MetricUnit::PartsPerMillion, Some(AtMost::Ratio(limit))) => self.ratio_limit(*limit, pointer),
            (MetricUnit::PartsPerMillion, _) => {
                let message = format!(
                    "`{}` is a plain number, processing time / duration of the sound; write it without unit and quotes, as in `at_most: 0.5`",
                    metric.name()
                );
                self.fault(pointer, message);
                None
            }
        }
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

    /// The floor of the capacity, which only an open loop has.
    fn capacity(&mut self, written: &raw::Slo, traffic: Option<TrafficModel>) -> Option<Rate> {
        if traffic == Some(TrafficModel::Closed) && self.is_written(written.capacity.as_ref(), CAPACITY) {
            let message = "a closed loop offers no load of its own, so its capacity is no rate; remove it, or measure in an open loop (`model: poisson`)";
            self.fault_at_key(CAPACITY, message);
            return None;
        }
        self.rate(written.capacity.as_ref()?.at_least.as_ref(), FLOOR)
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

/// Why a protocol cannot show a metric, and what to use instead; `None` where it can.
fn misfit(metric: RequestMetric, protocol: Protocol) -> Option<String> {
    use Protocol::{OpenaiChatJson, OpenaiRealtime, OpenaiSpeech, OpenaiTranscription};
    let speaks = matches!(protocol, OpenaiSpeech | OpenaiRealtime);
    let (needs, but, instead) = match (metric, protocol) {
        (RequestMetric::Tpot | RequestMetric::Itl, OpenaiChatJson) => {
            ("a stream", "reads one body", "a streamed protocol or `e2e`")
        }
        (RequestMetric::Tpot, OpenaiSpeech) => ("tokens", "replies with sound", "`rtf`"),
        (RequestMetric::Itl, OpenaiSpeech) => ("a stream of messages", "replies with plain sound", "`underrun`"),
        (RequestMetric::Tpot | RequestMetric::Itl, OpenaiTranscription) => {
            ("a stream of tokens", "may reply with one body", "`rtf` or `e2e`")
        }
        (RequestMetric::Rtf, _) if !speaks && protocol != OpenaiTranscription => {
            ("sound", "carries text alone", "`e2e`")
        }
        (RequestMetric::FirstAudio, _) if !speaks => ("a reply with sound", "replies with text", "`ttft`"),
        (RequestMetric::Underrun, OpenaiTranscription) => ("a reply with sound", "replies with text", "`rtf`"),
        (RequestMetric::Underrun, OpenaiChatJson) => ("a reply with sound", "replies with text", "`e2e`"),
        (RequestMetric::Underrun, _) if !speaks => ("a reply with sound", "replies with text", "`itl`"),
        _ => return None,
    };
    Some(format!("`{}` needs {needs}, and `{}` {but}; use {instead}", metric.name(), protocol.name()))
}
