//! What is sampled while trials run, and the limits on it.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{LONGEST, Meaning};
use crate::contract::document::join;
use crate::contract::explain::nearest;
use crate::contract::model::Endpoint;
use crate::contract::presets::Preset;
use crate::contract::raw;
use crate::contract::schema::Amount;
use crate::contract::source::{Across, Resource, ResourceKind, ResourceLimit, ResourceUnit, Statistic};
use crate::units::format_duration;

const RESOURCES: &str = "/resources";
const LIMITS: &str = "/slo/resources";
/// The period of sampling when the contract does not say.
const DEFAULT_EVERY: Duration = Duration::from_secs(1);
/// The shortest period: more often a page costs the endpoint more than it tells.
const SHORTEST_EVERY: Duration = Duration::from_millis(100);
/// How long a reading of a ready-made set may take when the contract does not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);

impl Meaning<'_> {
    /// The resources, each name once; of a launched endpoint its CPU time and memory come by themselves.
    pub(super) fn resources(&mut self, written: raw::Resources, endpoint: Option<&Endpoint>) -> Option<Vec<Resource>> {
        let listed = written.listed;
        let mut resources: Option<Vec<Resource>> = Some(Vec::new());
        let mut names = BTreeSet::new();
        for (index, entry) in written.entries.into_iter().enumerate() {
            let pointer = if listed { join(RESOURCES, &index.to_string()) } else { RESOURCES.to_owned() };
            let found = entry.and_then(|entry| self.entry(entry, &pointer, endpoint));
            if let Some(twice) = found.iter().flatten().find(|resource| !names.insert(resource.name.clone())) {
                let message =
                    format!("the resource `{}` is there already; give this entry a `name` of its own", twice.name);
                self.fault(&pointer, message);
            }
            resources = resources.zip(found).map(|(mut all, found)| {
                all.extend(found);
                all
            });
        }
        let mut resources = resources?;
        if endpoint?.launch.is_some() {
            let own = Preset::Process.resources(None, DEFAULT_EVERY, DEFAULT_TIMEOUT);
            resources.extend(own.into_iter().filter(|resource| !names.contains(&resource.name)));
        }
        Some(resources)
    }

    fn entry(
        &mut self,
        written: raw::ResourceEntry,
        pointer: &str,
        endpoint: Option<&Endpoint>,
    ) -> Option<Vec<Resource>> {
        let every = self.every(&written, pointer);
        let is_there = |written: bool, key: &str| written || self.refused.contains(&join(pointer, key));
        let ways = [
            ("preset", is_there(written.preset.is_some(), "preset")),
            ("gauge", is_there(written.gauge.is_some(), "gauge")),
            ("counter", is_there(written.counter.is_some(), "counter")),
        ];
        let named: Vec<&str> = ways.into_iter().filter(|(_, is_there)| *is_there).map(|(name, _)| name).collect();
        match named.as_slice() {
            ["preset"] => self.set(written, pointer, every, endpoint),
            [_] => self.single(written, pointer, every, endpoint).map(|resource| vec![resource]),
            _ => {
                let what = if named.is_empty() { "one of" } else { "only one of" };
                let message = format!(
                    "write {what} `preset` (a ready-made set), `gauge` (a level) and `counter` (a count that rises)"
                );
                self.fault(pointer, message);
                None
            }
        }
    }

    fn every(&mut self, written: &raw::ResourceEntry, pointer: &str) -> Option<Duration> {
        let at = join(pointer, "every");
        let every = self.above_zero(written.every.as_ref(), &at, DEFAULT_EVERY)?;
        if every < SHORTEST_EVERY || every > LONGEST {
            let message = format!("too often; write at least `{}`", format_duration(SHORTEST_EVERY));
            self.fault(&at, message);
            return None;
        }
        Some(every)
    }

    /// A ready-made set. A name goes before the names of its resources.
    fn set(
        &mut self,
        written: raw::ResourceEntry,
        pointer: &str,
        every: Option<Duration>,
        endpoint: Option<&Endpoint>,
    ) -> Option<Vec<Resource>> {
        for (key, is_there) in
            [("unit", written.unit.is_some()), ("scale", written.scale.is_some()), ("across", written.across.is_some())]
        {
            if is_there {
                self.fault_at_key(&join(pointer, key), "a `preset` knows this of each of its resources; remove it");
            }
        }
        let timeout = self.above_zero(written.timeout.as_ref(), &join(pointer, "timeout"), DEFAULT_TIMEOUT);
        let preset = written.preset?;
        let page = if preset.has_page() {
            let has_url = self.is_written(written.url.as_ref(), &join(pointer, "url"));
            if let Some(port) = preset.page_port().filter(|_| !has_url) {
                let message = format!(
                    "its page is not the endpoint's own; write it, as in `url: http://127.0.0.1:{port}/metrics`"
                );
                self.fault(pointer, message);
                return None;
            }
            Some(self.page(written.url.as_deref(), written.headers, written.ca_file, pointer, endpoint)?)
        } else {
            for (key, is_there) in [
                ("url", written.url.is_some()),
                ("headers", written.headers.is_some()),
                ("ca_file", written.ca_file.is_some()),
            ] {
                if is_there {
                    self.fault_at_key(&join(pointer, key), "this `preset` asks no page of metrics; remove it");
                }
            }
            None
        };
        if preset == Preset::Process && endpoint?.launch.is_none() {
            let message = "this run does not launch the endpoint, whose processes `process` samples; name one with \
                `gauge: { process: { port: 8000, field: memory } }`";
            self.fault(&join(pointer, "preset"), message);
            return None;
        }
        let mut resources = preset.resources(page.as_ref(), every?, timeout?);
        if let Some(name) = &written.name {
            resources.iter_mut().for_each(|resource| resource.name = format!("{}_{}", name.0, resource.name));
        }
        Some(resources)
    }

    fn single(
        &mut self,
        written: raw::ResourceEntry,
        pointer: &str,
        every: Option<Duration>,
        endpoint: Option<&Endpoint>,
    ) -> Option<Resource> {
        for (key, is_there) in [
            ("url", written.url.is_some()),
            ("headers", written.headers.is_some()),
            ("ca_file", written.ca_file.is_some()),
            ("timeout", written.timeout.is_some()),
        ] {
            if is_there {
                self.fault_at_key(&join(pointer, key), "this belongs to a `preset`, or into the source; move it there");
            }
        }
        if !self.is_written(written.name.as_ref(), &join(pointer, "name")) {
            self.fault(pointer, "the resource has no `name`; write one, as in `name: kv_cache_usage`");
        }
        if written.across == Some(Across::Each) {
            let message = "a resource is one number; write `sum` or `max`, or an entry for each with `labels`";
            self.fault(&join(pointer, "across"), message);
            return None;
        }
        let (kind, source, key) = match (written.gauge, written.counter) {
            (Some(source), _) => (ResourceKind::Gauge, source, "gauge"),
            (None, Some(source)) => (ResourceKind::Counter, source, "counter"),
            (None, None) => return None,
        };
        let probe = self.probe(source, &join(pointer, key), endpoint);
        let across = match kind {
            ResourceKind::Gauge => Across::Max,
            ResourceKind::Counter => Across::Sum,
        };
        Some(Resource {
            name: written.name?.0,
            kind,
            unit: written
                .unit
                .unwrap_or_else(|| probe.as_ref().map_or(ResourceUnit::Count, |probe| probe.source.unit())),
            probe: probe?,
            across: written.across.unwrap_or(across),
            scale: written.scale.unwrap_or(1.0),
            every: every?,
        })
    }

    /// The limits on resources, each of something that is sampled.
    pub(super) fn resource_limits(
        &mut self,
        written: Vec<Option<raw::ResourceLimit>>,
        resources: &[Resource],
    ) -> Option<Vec<ResourceLimit>> {
        let mut ids = BTreeSet::new();
        let mut limits = Vec::with_capacity(written.len());
        for (index, limit) in written.into_iter().enumerate() {
            let pointer = join(LIMITS, &index.to_string());
            let limit = limit.and_then(|limit| self.resource_limit(limit, &pointer, resources));
            if let Some(twice) = limit.as_ref().filter(|limit| !ids.insert(limit.id())) {
                self.fault(&pointer, format!("the limit `{}` is written twice; keep one", twice.id()));
            }
            limits.push(limit);
        }
        limits.into_iter().collect()
    }

    fn resource_limit(
        &mut self,
        written: raw::ResourceLimit,
        pointer: &str,
        resources: &[Resource],
    ) -> Option<ResourceLimit> {
        let name = written.resource?;
        let Some(resource) = resources.iter().find(|resource| resource.name == name) else {
            let known: Vec<&str> = resources.iter().map(|resource| resource.name.as_str()).collect();
            let next = match nearest(&name, &known) {
                Some(near) => format!("did you mean `{near}`?"),
                None if known.is_empty() => "name what is sampled under `resources`".to_owned(),
                None => format!("sampled are {}", known.join(", ")),
            };
            let name = super::printable(&name);
            self.fault(&join(pointer, "resource"), format!("no resource `{name}` is sampled; {next}"));
            return None;
        };
        let statistic = match (resource.kind, written.statistic) {
            (ResourceKind::Gauge, None) => Statistic::Max,
            (ResourceKind::Counter, None | Some(Statistic::Rate)) => Statistic::Rate,
            (ResourceKind::Gauge, Some(Statistic::Rate)) => {
                self.fault(&join(pointer, "statistic"), "a level has no rate; write `max`, `median`, `min` or `last`");
                return None;
            }
            (ResourceKind::Gauge, Some(statistic)) => statistic,
            (ResourceKind::Counter, Some(_)) => {
                let message = "a count tells of nothing but its rate; write `rate`, or remove it";
                self.fault(&join(pointer, "statistic"), message);
                return None;
            }
        };
        let at_most = self.amount(written.at_most.as_ref()?, resource.unit, &join(pointer, "at_most"))?;
        Some(ResourceLimit { resource: name, statistic, at_most, unit: resource.unit })
    }

    /// A limit in the resource's unit.
    fn amount(&mut self, written: &Amount, unit: ResourceUnit, pointer: &str) -> Option<f64> {
        let amount = match (written, unit) {
            // A bare number is a share only where nobody can take it for percent.
            (Amount::Number(number), ResourceUnit::Ratio) if *number > 1.0 => None,
            (Amount::Number(number), _) => Some(*number),
            (Amount::Text(text), ResourceUnit::Ratio) => with_unit(text, &[("%", 1.0)]).map(|percent| percent / 100.0),
            (Amount::Text(text), ResourceUnit::Bytes) => with_unit(text, &SIZES),
            (Amount::Text(_), _) => None,
        };
        if amount.is_none() {
            let expected = match unit {
                ResourceUnit::Ratio => "this resource is a share; write it as in `95%`",
                ResourceUnit::Bytes => "this resource is a size; write it as in `70GiB`",
                ResourceUnit::Count | ResourceUnit::Seconds | ResourceUnit::Watts | ResourceUnit::Celsius => {
                    "this resource is a plain number; write it without unit and quotes"
                }
            };
            self.fault(pointer, expected);
        }
        amount.filter(|amount| amount.is_finite())
    }
}

/// Sizes, longest suffix first.
const SIZES: [(&str, f64); 9] = [
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("TiB", 1_099_511_627_776.0),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
    ("B", 1.0),
];

fn with_unit(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let (number, factor) = units.iter().find_map(|(suffix, factor)| Some((text.strip_suffix(suffix)?, factor)))?;
    number.trim().parse::<f64>().ok().map(|number| number * factor)
}
