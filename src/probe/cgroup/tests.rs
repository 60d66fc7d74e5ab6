use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::*;
use crate::contract::ProcessOf;

/// The file of cgroup-v2.rst, with the counts given.
fn events(kills: u32) -> String {
    format!("low 0\nhigh 12\nmax 340\noom 5\noom_kill {kills}\noom_group_kill 0\n")
}

/// A tree in which control groups of both versions and a `/proc` are written down.
struct Tree(TempDir);

impl Tree {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    /// A group of version 2.
    fn two(&self, folder: &str, kills: u32) {
        for name in ["cgroup.procs", "cgroup.controllers", "cgroup.events"] {
            self.write(&format!("{folder}/{name}"), "");
        }
        self.write(&format!("{folder}/memory.events"), &events(kills));
        self.write(&format!("{folder}/memory.current"), "1048576\n");
        self.write(&format!("{folder}/memory.peak"), "2097152\n");
    }

    /// A group of version 1.
    fn one(&self, folder: &str, kills: u32) {
        self.write(&format!("{folder}/cgroup.procs"), "");
        self.write(
            &format!("{folder}/memory.oom_control"),
            &format!("oom_kill_disable 0\nunder_oom 1\noom_kill {kills}\n"),
        );
        self.write(&format!("{folder}/memory.usage_in_bytes"), "4096\n");
        self.write(&format!("{folder}/memory.max_usage_in_bytes"), "8192\n");
    }

    /// A process with the groups that it is in, as `/proc` tells them.
    fn process(&self, pid: u32, parent: u32, groups: &str) {
        self.write(
            &format!("proc/{pid}/stat"),
            &format!("{pid} (vllm) S {parent} {pid} 1 0 -1 0 0 0 0 0 1 1 1 0 20 0 1 0 12345 9000 3 99 0 0\n"),
        );
        self.write(&format!("proc/{pid}/cgroup"), groups);
        self.write("server.pid", &format!("{pid}\n"));
    }

    /// A mounted hierarchy, as `/proc/self/mountinfo` tells it.
    fn mount(&self, root: &str, point: &str, system: &str) {
        let before = fs::read_to_string(self.path("proc/self/mountinfo")).unwrap_or_default();
        let point = self.path(point).display().to_string().replace(' ', "\\040");
        self.write(
            "proc/self/mountinfo",
            &format!("{before}35 31 0:32 {root} {point} rw,relatime shared:9 - {system}\n"),
        );
    }

    async fn folder(&self, name: &str, field: CgroupField) -> Answer {
        let source = CgroupSource { of: CgroupOf::Path(self.path(name)), field };
        Cgroup::new(&source, &context()).read().await
    }

    fn of_process(&self, field: CgroupField) -> Cgroup {
        let finder = Finder::new(&ProcessOf::PidFile(self.path("server.pid")), &context()).within(&self.path("proc"));
        Cgroup { field, of: Of::Processes { finder, known: BTreeSet::new() } }
    }
}

fn context() -> Context {
    Context { folder: PathBuf::from("/"), endpoint: None, port: 8000 }
}

fn values(answer: &Answer) -> Vec<(&str, f64)> {
    answer.as_ref().expect("an answer").iter().map(|series| (series.of.as_str(), series.value)).collect()
}

#[tokio::test]
async fn both_versions_answer_from_their_documented_files() {
    let tree = Tree::new();
    tree.two("two", 3);
    tree.one("one", 2);
    for (folder, field, expected) in [
        ("two", CgroupField::OomKill, 3.0),
        ("two", CgroupField::MemoryPeak, 2_097_152.0),
        ("two", CgroupField::MemoryUsed, 1_048_576.0),
        ("one", CgroupField::OomKill, 2.0),
        ("one", CgroupField::MemoryPeak, 8192.0),
        ("one", CgroupField::MemoryUsed, 4096.0),
    ] {
        let answer = tree.folder(folder, field).await;
        let path = tree.path(folder).display().to_string();
        assert_eq!(values(&answer), [(path.as_str(), expected)], "{folder} {field:?}");
    }
}

#[tokio::test]
async fn a_group_that_is_made_anew_counts_since_another_time() {
    let tree = Tree::new();
    tree.two("group", 7);
    let since = async || tree.folder("group", CgroupField::OomKill).await.expect("an answer")[0].since.clone();
    let first = since().await;
    assert!(first.is_some());
    assert_eq!(since().await, first);
    fs::rename(tree.path("group"), tree.path("old")).expect("a folder");
    tree.two("group", 7);
    assert_ne!(since().await, first);
}

#[tokio::test]
async fn what_tells_of_no_memory_says_why() {
    let tree = Tree::new();
    for name in ["root/cgroup.procs", "root/cgroup.controllers", "bare/cgroup.procs", "bare/cgroup.controllers"] {
        tree.write(name, "");
    }
    tree.write("bare/cgroup.events", "populated 1\n");
    tree.write("cpu/cgroup.procs", "");
    tree.write("plain/file", "");
    tree.one("old", 0);
    tree.write("old/memory.oom_control", "oom_kill_disable 0\nunder_oom 1\n");
    tree.two("before_5_19", 0);
    fs::remove_file(tree.path("before_5_19/memory.peak")).expect("the file");
    tree.two("garbage", 0);
    tree.write("garbage/memory.events", "oom_kill many\n");
    tree.write("garbage/memory.current", "max\n");
    tree.two("twice", 0);
    tree.write("twice/memory.events", "oom_kill 1\noom_kill 1\n");
    tree.two("huge", 0);
    tree.write("huge/memory.current", &"9".repeat(1_000_000));
    for (folder, field, expected) in [
        ("root", CgroupField::OomKill, "is the root of the control groups"),
        ("bare", CgroupField::OomKill, "has no memory controller"),
        ("cpu", CgroupField::OomKill, "is not one of the memory controller"),
        ("plain", CgroupField::OomKill, "is no control group"),
        ("none", CgroupField::OomKill, "there is no control group"),
        ("old", CgroupField::OomKill, "has no line `oom_kill`; that is there from Linux 4.13 on"),
        ("before_5_19", CgroupField::MemoryPeak, "it is there from Linux 5.19 on"),
        ("garbage", CgroupField::OomKill, "holds `many` where a number was expected"),
        ("garbage", CgroupField::MemoryUsed, "holds `max` where a number was expected"),
        ("twice", CgroupField::OomKill, "two lines `oom_kill`"),
        ("huge", CgroupField::MemoryUsed, "where a number was expected"),
    ] {
        let failure = tree.folder(folder, field).await.expect_err(folder);
        assert!(failure.contains(expected), "{folder}: {failure}");
        assert!(failure.len() < 600 && !failure.contains('\n'), "{folder}: {failure}");
    }
}

#[tokio::test]
async fn a_process_is_found_in_the_hierarchy_that_counts_its_memory() {
    // Version 1 with its memory controller beside version 2 without one, as systemd's hybrid mode has it.
    let hybrid = Tree::new();
    hybrid.one("sys fs/memory/serving/vllm", 4);
    hybrid.process(42, 1, "12:cpu,cpuacct:/\n4:memory:/serving/vllm\n0::/serving.scope\n");
    hybrid.mount("/", "sys fs/cpu", "cgroup cgroup rw,cpu,cpuacct");
    hybrid.mount("/", "sys fs/memory", "cgroup cgroup rw,memory");
    hybrid.mount("/", "sys fs/unified", "cgroup2 cgroup2 rw");
    let answer = hybrid.of_process(CgroupField::OomKill).read().await;
    assert_eq!(values(&answer), [(hybrid.path("sys fs/memory/serving/vllm").display().to_string().as_str(), 4.0)]);

    // A container without a namespace of its own: its group is what is mounted.
    let container = Tree::new();
    container.two("cgroup", 1);
    container.process(42, 1, "0::/docker/4f1a\n");
    container.mount("/docker/4f1a", "cgroup", "cgroup2 cgroup2 ro");
    let answer = container.of_process(CgroupField::OomKill).read().await;
    assert_eq!(values(&answer), [(container.path("cgroup").display().to_string().as_str(), 1.0)]);

    for (groups, mount, expected) in [
        ("0::/../../system.slice/vllm.service\n", "/", "is outside of this container"),
        ("0::/docker/4f1a\n", "/docker/9999", "is not mounted here"),
        ("3:cpu:/\n", "/", "in no control group of the memory controller"),
        ("4:memory:/\n", "/", "of the memory controller is not mounted here"),
    ] {
        let tree = Tree::new();
        tree.process(42, 1, groups);
        tree.mount(mount, "cgroup", "cgroup2 cgroup2 rw");
        let failure = tree.of_process(CgroupField::OomKill).read().await.expect_err(groups);
        assert!(failure.contains(expected), "{failure}");
    }
}

#[tokio::test]
async fn the_group_of_a_process_that_was_killed_is_still_asked() {
    let tree = Tree::new();
    tree.two("cgroup/vllm", 0);
    tree.process(42, 1, "0::/vllm\n");
    tree.mount("/", "cgroup", "cgroup2 cgroup2 rw");
    let path = tree.path("cgroup/vllm").display().to_string();
    let mut probe = tree.of_process(CgroupField::OomKill);
    assert_eq!(values(&probe.read().await), [(path.as_str(), 0.0)]);
    fs::remove_dir_all(tree.path("proc/42")).expect("the process");
    tree.process(77, 1, "0::/other\n");
    tree.write("server.pid", "42\n");
    tree.write("cgroup/vllm/memory.events", &events(1));
    assert_eq!(values(&probe.read().await), [(path.as_str(), 1.0)]);
    fs::remove_dir_all(tree.path("cgroup/vllm")).expect("the group");
    assert!(probe.read().await.is_err_and(|failure| failure.contains("does not run")));
}

#[tokio::test]
async fn a_kill_counts_once_where_groups_lie_in_one_another() {
    let two = Tree::new();
    two.two("cgroup/vllm", 5);
    two.two("cgroup/vllm/worker", 5);
    two.process(43, 42, "0::/vllm/worker\n");
    two.process(42, 1, "0::/vllm\n");
    two.mount("/", "cgroup", "cgroup2 cgroup2 rw");
    let answer = two.of_process(CgroupField::OomKill).read().await;
    assert_eq!(values(&answer), [(two.path("cgroup/vllm").display().to_string().as_str(), 5.0)]);

    // Version 1 counts a kill where it happened, so that those below are added, and memory in all groups above.
    let one = Tree::new();
    one.one("cgroup/vllm", 1);
    one.one("cgroup/vllm/worker", 2);
    one.process(43, 42, "4:memory:/vllm/worker\n");
    one.process(42, 1, "4:memory:/vllm\n");
    one.mount("/", "cgroup", "cgroup cgroup rw,memory");
    let answer = one.of_process(CgroupField::OomKill).read().await;
    assert_eq!(values(&answer).iter().map(|(_, value)| *value).collect::<Vec<_>>(), [3.0]);
    // Below the root of version 1 lies the whole machine, of which it says nothing.
    std::fs::write(one.path("cgroup/vllm/release_agent"), "").unwrap();
    let answer = one.of_process(CgroupField::OomKill).read().await;
    assert_eq!(values(&answer).iter().map(|(_, value)| *value).collect::<Vec<_>>(), [1.0, 2.0]);
    let answer = one.of_process(CgroupField::MemoryUsed).read().await;
    assert_eq!(values(&answer).len(), 1);
}

#[test]
fn a_group_in_a_path_is_a_whole_part_of_it() {
    assert!(!is_counted_above(Path::new("/a/bc"), &[&PathBuf::from("/a/b")], CgroupField::MemoryUsed));
}
