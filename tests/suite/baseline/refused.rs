//! Records that are there and are not taken.

use std::collections::BTreeMap;

use goodput::baseline::write_record;
use goodput::judge::{Reason, Status};
use goodput::record::{BaselineRecord, NotPassed, RecordStep, RecordTrial, SeedCapacity};
use goodput::units::{Digest, Load, Rate};

use super::choice::keep;
use super::scene::{Scene, changed, chosen, git, missing, of_pull_request, record};

fn row(id: &str, status: Status) -> NotPassed {
    NotPassed { id: id.to_owned(), status, reason: Reason::Broken }
}

/// Whether a record that lies behind the base, and then at the base itself, is taken; and what is told of the first.
async fn taken(change: impl Fn(&mut BaselineRecord)) -> (bool, bool, String) {
    let scene = Scene::new("{ from: [branch] }");
    let main = scene.commits(2);
    git(&scene.clone, &["switch", "--quiet", "--create", "topic"]);
    scene.commit("code", "changed");
    keep(&scene.clone, &[changed(&main[0], &change)]).await;
    let behind = chosen(&scene.clone, &of_pull_request(&main[1])).await;
    keep(&scene.clone, &[changed(&main[1], &change)]).await;
    let at = chosen(&scene.clone, &of_pull_request(&main[1])).await;
    let told = behind.missing.map(|missing| missing.note).unwrap_or_default();
    (behind.record.is_some(), at.record.is_some(), told)
}

#[tokio::test]
async fn what_is_no_evidence_or_failed_is_no_baseline_unless_accepted() {
    for (change, fits, word) in [
        (
            &|record: &mut BaselineRecord| record.invalid.push("plausibility: implausible_result".to_owned()),
            false,
            "no evidence",
        ),
        (
            &|record: &mut BaselineRecord| {
                record.verdict = Status::Fail;
                record.not_passed = vec![row("ttft_p95", Status::Fail), row("capacity_change", Status::Accepted)];
            },
            false,
            "`ttft_p95`",
        ),
        (
            &|record: &mut BaselineRecord| {
                record.verdict = Status::Fail;
                record.not_passed = vec![row("capacity_change", Status::Accepted)];
            },
            true,
            "",
        ),
        (
            &|record: &mut BaselineRecord| {
                record.verdict = Status::Unknown;
                record.not_passed = vec![row("capacity_change", Status::Unknown)];
            },
            true,
            "",
        ),
        (&|record: &mut BaselineRecord| record.origin.changed_files = Some(true), false, "files changed"),
        (&|record: &mut BaselineRecord| record.finished_at = "2026-10-31T12:00:00Z".to_owned(), false, "30 days old"),
        (&|record: &mut BaselineRecord| record.finished_at = "2026-10-31T12:00:01Z".to_owned(), true, ""),
        (&|record: &mut BaselineRecord| record.finished_at = "2026-11-30T12:05:00Z".to_owned(), true, ""),
        (&|record: &mut BaselineRecord| record.finished_at = "2026-11-30T12:07:00Z".to_owned(), false, "clocks differ"),
    ] as [(&dyn Fn(&mut BaselineRecord), bool, &str); 9]
    {
        let (behind, at, told) = taken(change).await;
        assert_eq!((behind, at), (fits, fits), "{word}: {told}");
        assert!(told.contains(word), "{told}");
    }
}

#[tokio::test]
async fn what_was_measured_for_a_change_counts_at_the_very_base_only() {
    let (behind, at, told) = taken(|record| record.origin.event = Some("pull_request".to_owned())).await;
    assert_eq!((behind, at), (false, true));
    assert!(told.contains("`pull_request`"), "{told}");
    let (behind, at, told) = taken(|record| {
        record.origin.branch = Some("topic".to_owned());
        record.origin.is_default_branch = Some(false);
    })
    .await;
    assert_eq!((behind, at), (false, true));
    assert!(told.contains("`topic`"), "{told}");
}

#[tokio::test]
async fn behind_a_record_that_does_not_fit_the_next_is_taken() {
    let scene = Scene::new("{ from: [branch] }");
    let main = scene.commits(4);
    let failed = changed(&main[2], |record| record.not_passed = vec![row("goodput", Status::Fail)]);
    keep(&scene.clone, &[failed, record(&main[1])]).await;
    let used = chosen(&scene.clone, &of_pull_request(&main[2])).await;
    assert_eq!(used.record, Some(record(&main[1])), "{used:#?}");
}

/// A record that is there and cannot be read is never an empty history, even where another store has one.
#[tokio::test]
async fn a_record_that_cannot_be_read_ends_the_search() {
    let whole = |commit: &str| serde_json::to_string(&record(commit)).unwrap();
    for (damage, told) in [
        (&|text: String| text.replace("\"chat\"", "\"chatty\""), "was changed"),
        (&|text: String| text[..text.len() / 2].to_owned(), "is not JSON"),
        (&|text: String| text.replace("goodput-baseline/1", "goodput-baseline/9"), "`goodput-baseline/9`"),
        (&|_| "{}".to_owned(), "no `schema`"),
        (&|_| String::new(), "is not JSON"),
    ] as [(&dyn Fn(String) -> String, &str); 5]
    {
        let scene = Scene::new("{ from: [file, branch] }");
        let main = scene.commits(1);
        keep(&scene.clone, &[record(&main[0])]).await;
        let base = scene.commit("gate/baseline.json", &damage(whole(&main[0])));
        let used = chosen(&scene.clone, &super::scene::stated(Some(&base))).await;
        assert!(missing(&used).contains(told), "{used:#?}");
        assert_eq!(used.missing.as_ref().unwrap().reason, Reason::BaselineCorrupt);
        assert!(used.asked.iter().all(|asked| asked.store != "branch"), "{used:#?}");
    }
}

/// A digest vouches for who wrote a record, and not for what.
#[test]
fn a_record_of_what_no_run_can_measure_is_corrupt() {
    fn trial() -> RecordTrial {
        RecordTrial {
            seed: 1,
            schedule_digest: Digest::of(b"schedule"),
            window_ns: 1_000_000_000,
            scheduled: 10,
            ok: 10,
            good: Some(9),
            headroom: Some(0.1),
            held: Some(true),
            metrics: BTreeMap::new(),
            ratios: BTreeMap::new(),
        }
    }
    fn rate(milli: u64) -> Rate {
        Rate::from_milli(milli).unwrap()
    }
    fn step(milli: u64, trials: Vec<RecordTrial>) -> RecordStep {
        RecordStep { load: Load::RateMilli(rate(milli)), trials }
    }
    fn searched(seed: u64, holds: u64, breaks: u64) -> SeedCapacity {
        SeedCapacity { seed, holds_at: rate(holds), breaks_at: rate(breaks) }
    }
    let whole = |record: &mut BaselineRecord| {
        record.steps = vec![step(1_000, vec![trial()]), step(2_000, vec![trial(), RecordTrial { seed: 2, ..trial() }])];
        record.capacities = vec![searched(1, 1_000, 1_100), searched(2, 1_000, 1_100)];
    };
    let read = |change: &dyn Fn(&mut BaselineRecord)| {
        let record = changed(&"a".repeat(40), |record| {
            whole(record);
            change(record);
        });
        BaselineRecord::parse(&serde_json::to_vec(&record).unwrap()).map(drop)
    };
    assert_eq!(read(&|_| {}), Ok(()));
    let with = |trial: RecordTrial| move |record: &mut BaselineRecord| record.steps[0].trials = vec![trial.clone()];
    let wrong: [&dyn Fn(&mut BaselineRecord); 11] = [
        &with(RecordTrial { ok: 11, ..trial() }),
        &with(RecordTrial { good: Some(u64::MAX), ..trial() }),
        &with(RecordTrial { window_ns: 1, ..trial() }),
        &with(RecordTrial { scheduled: u64::MAX, ..trial() }),
        &with(RecordTrial { headroom: Some(9.0), ..trial() }),
        &|record| record.steps[1].trials = vec![trial(), trial()],
        &|record| record.steps.reverse(),
        &|record| record.capacities[0] = searched(1, 1_100, 1_000),
        &|record| record.capacities[1].seed = 1,
        &|record| record.contract["name"] = "summaries".into(),
        &|record| record.contract = serde_json::json!({ "a": 1 }),
    ];
    for (index, wrong) in wrong.iter().enumerate() {
        let problem = read(wrong).expect_err(&index.to_string());
        assert!(problem.starts_with("cannot be of any run"), "{index}: {problem}");
    }
}

#[tokio::test]
async fn a_record_filed_under_another_commit_is_corrupt() {
    let scene = Scene::new("{ from: [branch] }");
    let main = scene.commits(2);
    let store = scene.clone_again("store", &[]);
    git(&store, &["switch", "--quiet", "--orphan", "goodput-baselines"]);
    let folder = store.join("records/chat").join(&main[0]);
    std::fs::create_dir_all(&folder).unwrap();
    let elsewhere = record(&main[1]);
    write_record(&folder.join(format!("{}.json", elsewhere.digest)), &elsewhere).unwrap();
    git(&store, &["add", "--all"]);
    git(&store, &["commit", "--quiet", "--message", "by hand"]);
    git(&store, &["push", "--quiet", "origin", "goodput-baselines"]);
    let used = chosen(&scene.clone, &of_pull_request(&main[0])).await;
    assert!(missing(&used).contains("filed under another"), "{used:#?}");
    assert_eq!(used.missing.unwrap().reason, Reason::BaselineCorrupt);
}

#[tokio::test]
async fn a_record_of_another_contract_is_not_taken() {
    let scene = Scene::new("{ from: [file] }");
    let other = changed(&scene.head(), |record| {
        record.name = "summaries".to_owned();
        record.contract["name"] = "summaries".into();
    });
    write_record(&scene.clone.join("gate/baseline.json"), &other).unwrap();
    let base = scene.commits(1)[0].clone();
    let used = chosen(&scene.clone, &super::scene::stated(Some(&base))).await;
    assert!(missing(&used).contains("`summaries`"), "{used:#?}");
    assert_eq!(used.missing.unwrap().reason, Reason::NoBaseline);
}

#[tokio::test]
async fn a_record_of_a_hundred_megabytes_is_refused_by_its_size() {
    let scene = Scene::new("{ from: [file] }");
    let file = std::fs::File::create(scene.clone.join("gate/baseline.json")).unwrap();
    file.set_len(100 << 20).unwrap();
    let base = scene.commits(1)[0].clone();
    let used = chosen(&scene.clone, &super::scene::stated(Some(&base))).await;
    assert!(missing(&used).contains("104857600 bytes"), "{used:#?}");
    assert_eq!(used.missing.unwrap().reason, Reason::BaselineCorrupt);
}
