//! Pods as the Kubernetes API lists them, and what is said of their containers.
//!
//! - A container is known as `pod/container`, and its pod's uid is part of since when it counts: a pod that was replaced under the
//!   same name began anew, and one that was replaced under another name is gone.
//! - Init containers count only where they run beside the others (`restartPolicy: Always`, sidecars); ephemeral ones never.
//! - A pod that has ended (`Failed`, evicted ones among them, or `Succeeded`) has no numbers any more. One that ended before the
//!   run is no part of what is under test; one that ends during it is gone, which no row passes.
//! - A pod that starts or is being deleted has no numbers that hold, so that nothing is answered while one is there.
//! - Kubernetes tells how the last end of a container came about and how many there were. `oom_killed` counts the
//!   `OOMKilled` among the ends that show from reading to reading, so that a second kill is a rise by one. If more ends
//!   happened between two readings than show, the others may have been kills, and nothing is answered.
//! - A process that is killed for want of memory without its container ending is not in this API at all; `kernel_log`
//!   and `cgroup` see it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;

use crate::contract::PodField;
use crate::probe::Answer;
use crate::probe::api::{count, instant};
use crate::probe::excerpt::{plain, quote};
use crate::probe::sightings::{Answered, Sighting};

/// The longest name and the longest uid of an object in Kubernetes.
const LONGEST_NAME: usize = 253;

/// What is asked of pods, with what was seen of them before.
#[derive(Debug)]
pub(super) struct Pods {
    field: PodField,
    container: Option<String>,
    answered: Answered,
    ends: BTreeMap<String, Ends>,
}

/// The ends of one container, as far as they were seen.
#[derive(Debug)]
struct Ends {
    uid: String,
    /// How many there were.
    all: f64,
    /// How many of those that showed were kills for want of memory.
    kills: f64,
}

impl Pods {
    /// Nothing seen yet. Without `container`, all of a pod count.
    pub(super) fn new(field: PodField, container: Option<String>) -> Self {
        Self { field, container, answered: Answered::default(), ends: BTreeMap::new() }
    }

    /// The answer to a list of pods; `asked` names what was asked for.
    ///
    /// # Errors
    /// When there are none, when some are on their way, and when a container does not run.
    pub(super) fn answer(&mut self, pods: &[Pod], asked: &str) -> Answer {
        let (mut seen, mut ended) = (Vec::new(), 0);
        for pod in pods {
            let name = pod.name()?;
            let has_ended = match (&pod.metadata.deletion_timestamp, pod.status.phase.as_deref()) {
                (Some(_), _) => return Err(format!("pod {name} is being deleted; wait for the end of the rollout")),
                (None, Some("Running")) => false,
                (None, Some("Failed" | "Succeeded")) => true,
                (None, phase) => {
                    return Err(format!("pod {name} is {}; wait until it runs", plain(phase.unwrap_or("new"))));
                }
            };
            for container in pod.containers(self.container.as_deref(), has_ended)? {
                seen.push((has_ended, self.sighting(pod, name, container)?));
            }
            ended += usize::from(has_ended);
        }
        let gone = (ended == pods.len()).then(|| match ended {
            0 => format!("no pod for {asked}; `kubectl get pods` lists them"),
            _ => format!("no running pod for {asked}: {ended} have ended"),
        });
        // Of a pod that ended, only what speaks against it is told.
        let speaks = |sighting: &Sighting| self.field == PodField::OomKilled && sighting.value > 0.0;
        let seen: Vec<Sighting> = seen
            .into_iter()
            .filter(|(has_ended, sighting)| !has_ended || speaks(sighting))
            .map(|(has_ended, seen)| if has_ended { Sighting { doubt: gone.clone(), ..seen } } else { seen })
            .collect();
        match gone {
            Some(gone) if seen.is_empty() => Err(gone),
            _ => self.answered.answer(seen),
        }
    }

    fn sighting(&mut self, pod: &Pod, name: &str, container: &ContainerStatus) -> Result<Sighting, String> {
        let of = format!("{name}/{}", object_name(&container.name)?);
        let uid = object_name(&pod.metadata.uid)?.to_owned();
        let restarts = count(&format!("restartCount of {of}"), container.restart_count)?;
        let stopped = container.stopped().map(|how| format!("container {of} is not running: {how}"));
        let (since, value, doubt) = match self.field {
            PodField::RestartCount => (uid, restarts, stopped),
            PodField::OomKilled => {
                let (kills, unseen) = self.kills(&of, &uid, container, restarts);
                let unseen =
                    unseen.then(|| format!("container {of} ended more often than Kubernetes tells the reasons of"));
                (uid, kills, unseen.or(stopped))
            }
            PodField::StartTime => match &container.state.running {
                Some(Running { started_at: Some(start) }) => (format!("{uid} started {start}"), 1.0, None),
                Some(Running { started_at: None }) => return Err(format!("container {of} has no startedAt")),
                None => (uid, 1.0, stopped),
            },
        };
        Ok(Sighting { of, since, value, doubt })
    }

    /// How many kills for want of memory were seen, and whether some may have gone unseen since the last reading.
    fn kills(&mut self, of: &str, uid: &str, container: &ContainerStatus, restarts: f64) -> (f64, bool) {
        let shown: Vec<&Terminated> = [&container.state, &container.last_state]
            .into_iter()
            .filter_map(|state| state.terminated.as_ref())
            .collect();
        // A container whose last end shows in `state` was not restarted after it.
        let all = restarts + if container.state.terminated.is_some() { 1.0 } else { 0.0 };
        let is_first = self.answered.is_empty() && !self.ends.contains_key(of);
        let (before, kills) = match self.ends.get(of) {
            Some(ends) if ends.uid == uid => (ends.all, ends.kills),
            Some(ends) => (0.0, ends.kills),
            None => (0.0, 0.0),
        };
        // A count that fell lost its memory, and with it how often the container ended since.
        let new = if all < before { f64::INFINITY } else { all - before };
        let newly_shown = shown.iter().zip(1..).filter(|(_, place)| f64::from(*place) <= new);
        let (mut taken, mut kills) = (0.0, kills);
        for (end, _) in newly_shown {
            taken += 1.0;
            kills += f64::from(u8::from(end.reason.as_deref() == Some("OOMKilled")));
        }
        self.ends.insert(of.to_owned(), Ends { uid: uid.to_owned(), all, kills });
        (kills, !is_first && new > taken)
    }
}

/// A list of pods, or one page of it.
#[derive(Debug, Deserialize)]
pub(super) struct PodList {
    pub(super) kind: String,
    #[serde(default)]
    pub(super) metadata: ListMeta,
    pub(super) items: Vec<Pod>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct ListMeta {
    #[serde(rename = "continue")]
    pub(super) next: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Pod {
    metadata: ObjectMeta,
    spec: PodSpec,
    #[serde(default)]
    status: PodStatus,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ObjectMeta {
    name: String,
    uid: String,
    #[serde(default, deserialize_with = "instant")]
    deletion_timestamp: Option<Timestamp>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodSpec {
    containers: Vec<Container>,
    #[serde(default)]
    init_containers: Vec<Container>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Container {
    name: String,
    restart_policy: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodStatus {
    phase: Option<String>,
    #[serde(default)]
    container_statuses: Vec<ContainerStatus>,
    #[serde(default)]
    init_container_statuses: Vec<ContainerStatus>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContainerStatus {
    name: String,
    restart_count: f64,
    #[serde(default)]
    state: State,
    #[serde(default)]
    last_state: State,
}

#[derive(Debug, Default, Deserialize)]
struct State {
    running: Option<Running>,
    waiting: Option<Waiting>,
    terminated: Option<Terminated>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Running {
    #[serde(default, deserialize_with = "instant")]
    started_at: Option<Timestamp>,
}

#[derive(Debug, Deserialize)]
struct Waiting {
    reason: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Terminated {
    exit_code: i64,
    reason: Option<String>,
}

impl Pod {
    fn name(&self) -> Result<&str, String> {
        object_name(&self.metadata.name)
    }

    /// The containers that are asked for. A pod that has ended may have lost their status.
    fn containers(&self, only: Option<&str>, has_ended: bool) -> Result<Vec<&ContainerStatus>, String> {
        let is_sidecar = |container: &&Container| container.restart_policy.as_deref() == Some("Always");
        let of = |container: &Container| container.name.clone();
        let mut names: Vec<String> = self.spec.containers.iter().map(of).collect();
        names.extend(self.spec.init_containers.iter().filter(is_sidecar).map(of));
        if let Some(only) = only {
            if !names.iter().any(|name| name == only) {
                let has = plain(&names.join(", "));
                return Err(format!("pod {} has no container {}; it has {has}", self.name()?, quote(only)));
            }
            names.retain(|name| name == only);
        }
        let statuses = || self.status.container_statuses.iter().chain(&self.status.init_container_statuses);
        let mut found = Vec::new();
        for name in names {
            let mut of_name = statuses().filter(|status| status.name == name);
            match (of_name.next(), of_name.next()) {
                (Some(status), None) => found.push(status),
                (Some(_), Some(_)) => {
                    return Err(format!("container {} of pod {} is listed twice", plain(&name), self.name()?));
                }
                (None, _) if has_ended => {}
                (None, _) => {
                    return Err(format!("container {} of pod {} has no status yet", plain(&name), self.name()?));
                }
            }
        }
        Ok(found)
    }
}

impl ContainerStatus {
    /// Why it does not run; `None` when it does.
    fn stopped(&self) -> Option<String> {
        let State { running, waiting, terminated } = &self.state;
        let reason = |reason: &Option<String>| plain(reason.as_deref().unwrap_or("no reason given"));
        match (running, waiting, terminated) {
            (Some(_), _, _) => None,
            (None, Some(waiting), _) => Some(format!("it waits ({})", reason(&waiting.reason))),
            (None, None, Some(end)) => Some(format!("it ended with code {} ({})", end.exit_code, reason(&end.reason))),
            (None, None, None) => Some("it has no state yet".to_owned()),
        }
    }
}

/// A name or uid as Kubernetes makes them: letters, digits, `-`, `.` and, in names of nodes' own pods, `_` and `:`.
fn object_name(text: &str) -> Result<&str, String> {
    let is_fine = (1..=LONGEST_NAME).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte));
    if is_fine { Ok(text) } else { Err(format!("{} is no name of Kubernetes", quote(text))) }
}

#[cfg(test)]
mod tests;
