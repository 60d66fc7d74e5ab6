use std::path::{Path, PathBuf};

use super::*;
use crate::contract::{Across, CommandSource, NvidiaField, NvidiaSource, Probe, ResourceKind, ResourceUnit, Source};

/// Longer than any of these can take; only a hang meets it.
const HANG: Duration = Duration::from_secs(60);

fn context(folder: &Path) -> Context {
    Context { folder: folder.to_owned(), endpoint: None, port: 0 }
}

/// A counter that a shell script prints.
fn counter(name: &str, script: &str, every: Duration) -> Resource {
    let command = ["sh", "-c", script].map(str::to_owned).to_vec();
    Resource {
        name: name.to_owned(),
        kind: ResourceKind::Counter,
        unit: ResourceUnit::Count,
        probe: Probe { source: Source::Command(CommandSource { command }), timeout: HANG },
        across: Across::Sum,
        scale: 1.0,
        every,
    }
}

fn start(resources: &[Resource], folder: &Path) -> Sampler {
    Sampler::start(resources, &context(folder)).unwrap().unwrap()
}

/// Samples until the file is there.
async fn sample_until(sampler: &mut Sampler, file: PathBuf) -> Sampled {
    sampler.begin(3, Instant::now());
    let there = async {
        while !file.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(HANG, there).await.expect("no hang");
    timeout(HANG, sampler.end()).await.expect("no hang")
}

/// Waits until the process whose number the file holds is gone, or only waits to be reaped.
async fn assert_gone(file: &Path) {
    let pid = std::fs::read_to_string(file).expect("the child's number");
    let state = format!("/proc/{}/stat", pid.trim());
    let gone = async {
        while std::fs::read_to_string(&state).is_ok_and(|stat| !stat.contains(") Z ")) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(HANG, gone).await.expect("the child is gone");
}

#[test]
fn nothing_to_sample_needs_no_thread() {
    assert!(Sampler::start(&[], &context(Path::new("/"))).unwrap().is_none());
}

#[tokio::test]
async fn numbers_are_read_from_the_start_of_the_trial_on_and_a_count_that_falls_began_anew() {
    let folder = tempfile::tempdir().unwrap();
    // Reads 5, 7, 1, 2, then says that it is done.
    std::fs::write(folder.path().join("left"), "5\n7\n1\n2\n").unwrap();
    let script = "head -n 1 left; tail -n +2 left > next; mv next left; test -s left || touch done";
    let mut counted = counter("counted", script, Duration::from_millis(50));
    counted.scale = 0.5;
    let mut sampler = start(&[counted], folder.path());
    let sampled = sample_until(&mut sampler, folder.path().join("done")).await;
    let numbers: Vec<_> = sampled.samples.iter().filter_map(|s| Some((s.value?, s.began_anew))).collect();
    assert_eq!(numbers[..4], [(2.5, false), (3.5, false), (0.5, true), (1.0, false)]);
    assert!(sampled.samples.iter().all(|sample| (sample.trial, sample.name.as_str()) == (3, "counted")));
    assert!(sampled.samples.is_sorted_by_key(|sample| sample.at_ns));
    assert_eq!(sampled.samples.len() as u64, sampled.record.due);
    let lags = sampled.record.lag.unwrap();
    assert_eq!(lags.count, sampled.record.due - sampled.record.missed);
    assert!(sampled.record.took.unwrap().p50_ns > Some(0) && sampled.record.cpu_seconds > Some(0.0));
    // A trial of which nothing was begun has nothing.
    assert!(sampler.end().await.samples.is_empty());
}

#[tokio::test]
async fn a_source_that_hangs_holds_up_neither_the_trial_nor_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let hanging = counter("hanging", "echo $$ > pid; mv pid child; sleep 1000", Duration::from_millis(40));
    let quick = counter(
        "quick",
        "echo x >> read; wc -l < read; test $(wc -l < read) -lt 5 || touch done",
        Duration::from_millis(40),
    );
    let mut sampler = start(&[hanging, quick], folder.path());
    let sampled = sample_until(&mut sampler, folder.path().join("done")).await;
    let of = |name: &str| sampled.samples.iter().filter(|s| s.name == name).cloned().collect::<Vec<_>>();
    assert!(of("quick").iter().filter(|sample| sample.value.is_some()).count() >= 5);
    let hanging = of("hanging");
    let failures: Vec<&str> = hanging.iter().map(|sample| sample.failure.as_deref().unwrap()).collect();
    assert_eq!(failures[0], "was not back when the trial ended");
    // At least four periods of the other one passed meanwhile.
    assert!(failures.len() >= 4, "{failures:?}");
    assert!(failures[1..].iter().all(|why| *why == "left out: the reading before was not back yet"), "{failures:?}");
    assert!(hanging.iter().enumerate().skip(1).all(|(tick, s)| s.at_ns / 40_000_000 == tick as u64));
    assert!(sampled.record.missed >= failures.len() as u64 - 1);
    assert_gone(&folder.path().join("child")).await;
}

#[tokio::test]
async fn a_sampler_that_is_dropped_leaves_nothing_running() {
    let folder = tempfile::tempdir().unwrap();
    let hanging = counter("hanging", "echo $$ > pid; mv pid child; sleep 1000", HANG);
    let mut sampler = start(&[hanging], folder.path());
    sampler.begin(0, Instant::now());
    let child = folder.path().join("child");
    while !child.exists() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    drop(sampler);
    assert_gone(&child).await;
}

#[tokio::test]
async fn the_thread_goes_behind_others_with_all_that_it_starts() {
    let folder = tempfile::tempdir().unwrap();
    let nice = counter("nice", "nice; touch done", Duration::from_millis(50));
    let mut sampler = start(&[nice], folder.path());
    let sampled = sample_until(&mut sampler, folder.path().join("done")).await;
    if cfg!(target_os = "linux") {
        // What runs behind others already stays where it is.
        let own = rustix::process::getpriority_process(None).unwrap();
        assert_eq!(sampled.samples[0].value, Some(f64::from(own.max(5))), "{sampled:?}");
    }
}

#[tokio::test]
async fn fields_of_the_same_gpus_are_asked_by_one_call() {
    let folder = tempfile::tempdir().unwrap();
    // Its rows are those of `nvidia-smi`: index, UUID, and what was asked in alphabetical order or not.
    let script = "echo \"$1\" >> asked; case $1 in *memory.used*temperature.gpu*) echo '0, GPU-a, 1, 61';; \
        *temperature.gpu*memory.used*) echo '0, GPU-a, 61, 1';; *power.draw*) echo '0, GPU-a, 99.5';; esac; \
        test $(wc -l < asked) -lt 3 || touch done";
    let command = ["sh", "-c", script, "nvidia-smi"].map(str::to_owned).to_vec();
    let gpu = |field, gpus: &[&str]| {
        let gpus = gpus.iter().map(|gpu| (*gpu).to_owned()).collect();
        let mut resource = counter(&format!("{field:?}"), "", Duration::from_secs(3_600));
        resource.kind = ResourceKind::Gauge;
        resource.probe.source = Source::Nvidia(NvidiaSource { field, gpus, command: command.clone() });
        resource
    };
    let mut often = gpu(NvidiaField::Temperature, &[]);
    (often.name, often.every) = ("often".to_owned(), HANG);
    let resources = [
        gpu(NvidiaField::Temperature, &[]),
        // Another choice of GPUs and another period are questions of their own.
        gpu(NvidiaField::Power, &["0"]),
        gpu(NvidiaField::MemoryUsed, &[]),
        often,
    ];
    let mut sampler = start(&resources, folder.path());
    let sampled = sample_until(&mut sampler, folder.path().join("done")).await;
    let asked = std::fs::read_to_string(folder.path().join("asked")).unwrap();
    assert_eq!((asked.lines().count(), sampled.record.due), (3, 3), "{asked}");
    let of = |name: &str| sampled.samples.iter().find(|sample| sample.name == name).unwrap().value;
    assert_eq!((of("Temperature"), of("MemoryUsed"), of("Power")), (Some(61.0), Some(1_048_576.0), Some(99.5)));
}

#[test]
fn a_thread_that_does_not_answer_has_missed_every_sample() {
    let resources =
        [counter("often", "echo 1", Duration::from_secs(2)), counter("once", "echo 1", Duration::from_secs(1_000))];
    let start = Instant::now() - Duration::from_secs(5);
    let sampled = unanswered(&resources, 7, start, "why");
    // One in each of its periods of two seconds.
    let told: Vec<_> = sampled.samples.iter().map(|s| (s.name.as_str(), s.at_ns / 2_000_000_000, s.value)).collect();
    assert_eq!(told, [("often", 0, None), ("once", 0, None), ("often", 1, None), ("often", 2, None)]);
    assert!(sampled.samples.iter().all(|sample| sample.failure.as_deref() == Some("why")));
    assert_eq!((sampled.record.due, sampled.record.missed), (4, 4));
}
