//! What is said of pods, against the meaning that the API's description gives its fields.

use serde_json::{Value, json};

use super::*;

const RUNS: &str = "2026-11-20T08:00:07Z";

fn running() -> Value {
    json!({ "running": { "startedAt": RUNS } })
}

fn ended(reason: &str) -> Value {
    json!({ "terminated": { "exitCode": 137, "reason": reason, "finishedAt": RUNS } })
}

fn waiting(reason: &str) -> Value {
    json!({ "waiting": { "reason": reason } })
}

fn container(name: &str, restarts: f64, state: &Value, last: &Value) -> Value {
    json!({ "name": name, "restartCount": restarts, "state": state, "lastState": last })
}

fn pod_with(name: &str, uid: &str, phase: &str, containers: &[Value]) -> Value {
    let names: Vec<Value> = containers.iter().map(|container| json!({ "name": container["name"] })).collect();
    json!({
        "metadata": { "name": name, "uid": uid },
        "spec": { "containers": names },
        "status": { "phase": phase, "containerStatuses": containers },
    })
}

/// A running pod `a` with uid `u1` and one container `vllm`.
fn pod(restarts: f64, state: &Value, last: &Value) -> Value {
    pod_with("a", "u1", "Running", &[container("vllm", restarts, state, last)])
}

fn answer(pods: &mut Pods, list: &[Value]) -> Answer {
    let list: Vec<Pod> = list.iter().map(|pod| serde_json::from_value(pod.clone()).expect("a pod")).collect();
    pods.answer(&list, "selector `app=vllm`")
}

/// The numbers of the answers to one list after the other; of a failure its text.
fn values(field: PodField, lists: &[&[Value]]) -> Vec<Result<Vec<f64>, String>> {
    let mut pods = Pods::new(field, None);
    let values = |answer: Answer| answer.map(|series| series.into_iter().map(|series| series.value).collect());
    lists.iter().map(|list| values(answer(&mut pods, list))).collect()
}

fn failure(field: PodField, list: &[Value]) -> String {
    answer(&mut Pods::new(field, None), list).expect_err("no answer")
}

fn told(of: &str, since: &str, value: f64) -> crate::record::Series {
    crate::record::Series { of: of.to_owned(), since: Some(since.to_owned()), value }
}

#[test]
fn every_container_that_runs_beside_the_others_has_its_number() {
    let mut list = pod_with("a", "u1", "Running", &[container("vllm", 2.0, &running(), &json!({}))]);
    list["spec"]["initContainers"] = json!([{ "name": "fetch" }, { "name": "proxy", "restartPolicy": "Always" }]);
    list["status"]["initContainerStatuses"] = json!([
        container("fetch", 9.0, &ended("Completed"), &json!({})),
        container("proxy", 1.0, &running(), &json!({}))
    ]);
    list["status"]["ephemeralContainerStatuses"] = json!([container("debug", 0.0, &waiting("Pulling"), &json!({}))]);
    let list = [list];
    let all = answer(&mut Pods::new(PodField::RestartCount, None), &list);
    assert_eq!(all, Ok(vec![told("a/vllm", "u1", 2.0), told("a/proxy", "u1", 1.0)]));
    let one = answer(&mut Pods::new(PodField::RestartCount, Some("proxy".to_owned())), &list);
    assert_eq!(one, Ok(vec![told("a/proxy", "u1", 1.0)]));
    let none = answer(&mut Pods::new(PodField::RestartCount, Some("fetch".to_owned())), &list);
    assert_eq!(none, Err("pod a has no container `fetch`; it has vllm, proxy".to_owned()));
}

#[test]
fn a_start_is_known_by_its_pod_and_its_instant() {
    let list = [pod(2.0, &running(), &json!({}))];
    let series = answer(&mut Pods::new(PodField::StartTime, None), &list);
    assert_eq!(series, Ok(vec![told("a/vllm", &format!("u1 started {RUNS}"), 1.0)]));
    let list = [pod(2.0, &json!({ "running": {} }), &json!({}))];
    assert_eq!(failure(PodField::StartTime, &list), "container a/vllm has no startedAt");
}

#[test]
fn kills_for_want_of_memory_are_counted_one_by_one() {
    let oom = |restarts| [pod(restarts, &running(), &ended("OOMKilled"))];
    let [clean, first, second] = [[pod(0.0, &running(), &json!({}))], oom(1.0), oom(2.0)];
    let counted = values(PodField::OomKilled, &[&clean, &first, &first, &second]);
    assert_eq!(counted, [Ok(vec![0.0]), Ok(vec![1.0]), Ok(vec![1.0]), Ok(vec![2.0])]);
    // One that happened before the run is no rise, the next one is.
    assert_eq!(values(PodField::OomKilled, &[&first, &first, &second]), [Ok(vec![1.0]), Ok(vec![1.0]), Ok(vec![2.0])]);
    // An end for another reason does not take the earlier one back.
    let crash = [pod(2.0, &running(), &ended("Error"))];
    assert_eq!(values(PodField::OomKilled, &[&first, &crash]), [Ok(vec![1.0]), Ok(vec![1.0])]);
    // Ended and not yet restarted, and then restarted: the same end.
    let down = [pod(0.0, &ended("OOMKilled"), &json!({}))];
    assert_eq!(values(PodField::OomKilled, &[&clean, &down, &first]), [Ok(vec![0.0]), Ok(vec![1.0]), Ok(vec![1.0])]);
    // Two ends between two readings, both of which show.
    let both = [pod(1.0, &ended("OOMKilled"), &ended("OOMKilled"))];
    assert_eq!(values(PodField::OomKilled, &[&clean, &both]), [Ok(vec![0.0]), Ok(vec![2.0])]);
}

#[test]
fn ends_that_nobody_saw_may_have_been_kills() {
    let clean = [pod(0.0, &running(), &json!({}))];
    let three = [pod(3.0, &running(), &ended("Error"))];
    let unseen = "container a/vllm ended more often than Kubernetes tells the reasons of";
    assert_eq!(values(PodField::OomKilled, &[&clean, &three]), [Ok(vec![0.0]), Err(unseen.to_owned())]);
    // A node that lost its memory counts from 0 again.
    assert_eq!(values(PodField::OomKilled, &[&three, &clean]), [Ok(vec![0.0]), Err(unseen.to_owned())]);
    // Before the run they are no matter.
    assert_eq!(values(PodField::OomKilled, &[&three, &three]), [Ok(vec![0.0]), Ok(vec![0.0])]);
    // A kill among them is told all the same, with the doubt in `since`.
    let mut pods = Pods::new(PodField::OomKilled, None);
    assert!(answer(&mut pods, &clean).is_ok());
    let series = answer(&mut pods, &[pod(3.0, &running(), &ended("OOMKilled"))]);
    assert_eq!(series, Ok(vec![told("a/vllm", &format!("u1; {unseen}"), 1.0)]));
}

#[test]
fn a_container_that_does_not_run_has_no_number_unless_it_rose() {
    for (state, how) in [
        (waiting("CrashLoopBackOff"), "it waits (CrashLoopBackOff)"),
        (json!({ "waiting": {} }), "it waits (no reason given)"),
        (ended("Error"), "it ended with code 137 (Error)"),
        (json!({}), "it has no state yet"),
    ] {
        let stopped = [pod(4.0, &state, &ended("Error"))];
        let text = format!("container a/vllm is not running: {how}");
        for field in [PodField::RestartCount, PodField::StartTime] {
            assert_eq!(failure(field, &stopped), text);
        }
        let before = [pod(3.0, &running(), &json!({}))];
        let rose = values(PodField::RestartCount, &[&before, &stopped, &stopped]);
        assert_eq!(rose, [Ok(vec![3.0]), Ok(vec![4.0]), Err(text)]);
    }
}

#[test]
fn a_pod_on_its_way_leaves_everything_unanswered() {
    let fine = pod(0.0, &running(), &json!({}));
    let other = |phase| pod_with("b", "u2", phase, &[container("vllm", 0.0, &running(), &json!({}))]);
    let mut deleted = other("Running");
    deleted["metadata"]["deletionTimestamp"] = json!(RUNS);
    let mut unscheduled = other("Pending");
    unscheduled["status"] = json!({ "phase": "Pending" });
    let mut without = other("Running");
    without["status"] = json!({ "phase": "Running" });
    let mut new = other("Running");
    new.as_object_mut().expect("a pod").remove("status");
    for (odd, text) in [
        (deleted, "pod b is being deleted; wait for the end of the rollout"),
        (unscheduled, "pod b is Pending; wait until it runs"),
        (other("Unknown"), "pod b is Unknown; wait until it runs"),
        (new, "pod b is new; wait until it runs"),
        (without, "container vllm of pod b has no status yet"),
    ] {
        for field in [PodField::RestartCount, PodField::OomKilled, PodField::StartTime] {
            assert_eq!(failure(field, &[fine.clone(), odd.clone()]), text);
        }
    }
}

#[test]
fn pods_that_ended_are_gone_and_were_never_there_before_the_run() {
    let fine = pod(0.0, &running(), &json!({}));
    let evicted = json!({
        "metadata": { "name": "b", "uid": "u2" },
        "spec": { "containers": [{ "name": "vllm" }] },
        "status": { "phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory." },
    });
    for field in [PodField::RestartCount, PodField::OomKilled, PodField::StartTime] {
        let answered = answer(&mut Pods::new(field, None), &[fine.clone(), evicted.clone()]).expect("an answer");
        assert_eq!(answered.iter().map(|series| series.of.as_str()).collect::<Vec<_>>(), ["a/vllm"]);
        let text = "no running pod for selector `app=vllm`: 1 have ended";
        assert_eq!(failure(field, std::slice::from_ref(&evicted)), text);
        assert_eq!(failure(field, &[]), "no pod for selector `app=vllm`; `kubectl get pods` lists them");
    }
}

#[test]
fn a_kill_that_ends_a_pod_is_told() {
    let alive = [pod_with("a", "u1", "Running", &[container("vllm", 0.0, &running(), &json!({}))])];
    let killed = [pod_with("a", "u1", "Failed", &[container("vllm", 0.0, &ended("OOMKilled"), &json!({}))])];
    let gone = "no running pod for selector `app=vllm`: 1 have ended".to_owned();
    let told = values(PodField::OomKilled, &[&alive, &killed, &killed]);
    assert_eq!(told, [Ok(vec![0.0]), Ok(vec![1.0]), Err(gone.clone())]);
    assert_eq!(values(PodField::OomKilled, &[&killed]), [Err(gone)]);
    let other = pod_with("b", "u2", "Running", &[container("vllm", 0.0, &running(), &json!({}))]);
    let beside = [killed[0].clone(), other];
    assert_eq!(values(PodField::OomKilled, &[&beside, &beside]), [Ok(vec![1.0, 0.0]), Ok(vec![1.0, 0.0])]);
}

#[test]
fn a_pod_that_replaced_another_under_its_name_began_anew() {
    let mut pods = Pods::new(PodField::OomKilled, None);
    let of = |uid, last: &Value| [pod_with("a", uid, "Running", &[container("vllm", 1.0, &running(), last)])];
    assert_eq!(answer(&mut pods, &of("u1", &ended("OOMKilled"))), Ok(vec![told("a/vllm", "u1", 1.0)]));
    assert_eq!(answer(&mut pods, &of("u2", &ended("OOMKilled"))), Ok(vec![told("a/vllm", "u2", 2.0)]));
}

#[test]
fn what_is_listed_twice_or_no_count_is_refused() {
    let twice = pod(0.0, &running(), &json!({}));
    assert_eq!(failure(PodField::RestartCount, &[twice.clone(), twice]), "a container is listed twice");
    let status = container("vllm", 0.0, &running(), &json!({}));
    let twice = pod_with("a", "u1", "Running", &[status.clone(), status]);
    assert_eq!(failure(PodField::RestartCount, &[twice]), "container vllm of pod a is listed twice");
    let odd = pod(-1.0, &running(), &json!({}));
    assert_eq!(failure(PodField::RestartCount, &[odd]), "restartCount of a/vllm is -1, which is no count");
    let odd = pod_with("a\u{1b}[2J", "u1", "Running", &[]);
    assert_eq!(failure(PodField::RestartCount, &[odd]), "`a\\u{1b}[2J` is no name of Kubernetes");
}
