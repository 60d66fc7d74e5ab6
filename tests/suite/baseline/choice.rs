//! The choice by commit, in clones as people and CI make them.

use std::path::Path;

use goodput::baseline::{BranchStore, Repository, Stated, Store, contract_at_base, write_record};
use goodput::contract::Plan;
use goodput::record::{BaselineRecord, Fingerprint, RecordStep, Why};
use goodput::units::Load;

use super::scene::{CONTRACT, Scene, changed, chosen, chosen_for, git, missing, of_pull_request, record, stated};

/// Keeps records on the branch of the origin.
pub(super) async fn keep(clone: &Path, records: &[BaselineRecord]) {
    let repository = Repository::open(clone).await.unwrap().unwrap();
    let store = BranchStore::new(repository, "goodput-baselines".to_owned());
    for record in records {
        store.put(record).await.unwrap();
    }
}

#[tokio::test]
async fn the_base_itself_comes_first_and_the_newest_record_never() {
    let scene = Scene::new("{ from: [branch] }");
    let main = scene.commits(3);
    let newest = changed(&main[2], |record| record.finished_at = "2026-11-30T11:59:00Z".to_owned());
    keep(&scene.clone, &[newest, record(&main[0]), record(&main[1])]).await;
    git(&scene.clone, &["switch", "--quiet", "--create", "topic", &main[1]]);
    scene.commit("code", "changed");

    let used = chosen(&scene.clone, &of_pull_request(&main[1])).await;
    assert_eq!(used.record, Some(record(&main[1])), "{used:#?}");
    assert_eq!(used.base_commit.as_ref(), Some(&main[1]));
    let taken = used.chosen.unwrap();
    assert_eq!((taken.store.as_str(), taken.why, taken.age_s), ("branch", Why::ExactBase, 24 * 60 * 60));
}

#[tokio::test]
async fn where_the_change_left_its_base_comes_before_what_lies_behind() {
    let scene = Scene::new("{ from: [branch] }");
    let main = scene.commits(4);
    git(&scene.clone, &["switch", "--quiet", "--create", "topic", &main[2]]);
    scene.commit("code", "changed");
    // Nothing at the base, main[3].
    keep(&scene.clone, &[record(&main[0]), record(&main[2])]).await;
    let used = chosen(&scene.clone, &of_pull_request(&main[3])).await;
    assert_eq!(used.chosen.unwrap().why, Why::MergeBase);
    assert_eq!(used.record.unwrap().origin.commit.as_ref(), Some(&main[2]));
}

#[tokio::test]
async fn else_the_nearest_first_parent_within_the_depth() {
    let scene = Scene::new("{ from: [branch], within: { commits: 2 } }");
    let main = scene.commits(5);
    // A commit of a branch that was merged lies on no first-parent line.
    git(&scene.clone, &["switch", "--quiet", "--create", "side"]);
    let side = scene.commit("side", "side");
    git(&scene.clone, &["switch", "--quiet", "main"]);
    let before = scene.commit("code", "before the merge");
    git(&scene.clone, &["merge", "--quiet", "--no-ff", "--message", "merge", "side"]);
    let merge = scene.head();
    scene.commit("code", "the change");

    keep(&scene.clone, &[record(&side), record(&main[2])]).await;
    let used = chosen(&scene.clone, &stated(None)).await;
    assert_eq!(used.base_commit.as_ref(), Some(&main[4]), "where the remote's branch stands: {:?}", used.asked);
    assert_eq!(used.chosen.unwrap().why, Why::Ancestor { distance: 2 });

    let used = chosen(&scene.clone, &stated(Some(&merge))).await;
    assert!(missing(&used).contains("no record of the base"), "{used:#?}");
    assert!(missing(&used).contains("2 commits behind it"), "{used:#?}");

    keep(&scene.clone, &[record(&before)]).await;
    let used = chosen(&scene.clone, &stated(Some(&merge))).await;
    assert_eq!(used.chosen.unwrap().why, Why::Ancestor { distance: 1 });
}

/// A run on the default branch is never compared with the record of its own commit.
#[tokio::test]
async fn a_run_of_the_default_branch_is_compared_with_what_was_there_before() {
    let scene = Scene::new("{ from: [branch] }");
    let main = scene.commits(3);
    keep(&scene.clone, &[record(&main[2]), record(&main[0])]).await;
    for stated in [stated(None), of_pull_request(&main[2])] {
        let used = chosen(&scene.clone, &stated).await;
        assert_eq!(used.base_commit.as_ref(), Some(&main[1]));
        assert_eq!(used.chosen.unwrap().why, Why::Ancestor { distance: 1 });
    }
    // A person who names the very commit means it.
    let used = chosen(&scene.clone, &stated(Some("HEAD"))).await;
    assert_eq!(used.chosen.unwrap().why, Why::ExactBase);
}

#[tokio::test]
async fn a_shallow_clone_with_a_detached_head_is_completed() {
    let scene = Scene::new("{ from: [branch] }");
    let main = scene.commits(6);
    keep(&scene.clone, &[record(&main[2])]).await;
    git(&scene.clone, &["switch", "--quiet", "--create", "topic"]);
    scene.commits(2);

    // As the checkout step makes it: one commit, no branch.
    let pull = scene.clone_again("pull", &["--depth=1", "--branch=topic"]);
    git(&pull, &["checkout", "--quiet", "--detach"]);
    let used = chosen(&pull, &of_pull_request(&main[5])).await;
    assert_eq!(used.record, Some(record(&main[2])), "{used:#?}");
    assert_eq!(used.chosen.unwrap().why, Why::Ancestor { distance: 3 });
    assert!(used.base_contract.is_some());

    let nightly = scene.clone_again("nightly", &["--depth=1", "--branch=main"]);
    git(&nightly, &["checkout", "--quiet", "--detach"]);
    let used = chosen(&nightly, &stated(None)).await;
    assert_eq!(used.base_commit.as_ref(), Some(&main[4]), "{used:#?}");
    assert_eq!(used.chosen.unwrap().why, Why::Ancestor { distance: 2 });
    // From there a record can be kept too.
    keep(&nightly, &[record(&main[5])]).await;
    assert_eq!(chosen(&pull, &of_pull_request(&main[5])).await.chosen.unwrap().why, Why::ExactBase);
}

#[tokio::test]
async fn a_shallow_clone_that_cannot_be_completed_says_what_to_write() {
    let scene = Scene::new("{ from: [branch] }");
    let main = scene.commits(3);
    let pull = scene.clone_again("pull", &["--depth=1"]);
    git(&pull, &["remote", "set-url", "origin", "file:///nowhere/at.git"]);
    let used = chosen(&pull, &of_pull_request(&main[1])).await;
    assert!(missing(&used).contains("fetch-depth: 0"), "{used:#?}");
    let used = chosen(&pull, &stated(None)).await;
    assert!(missing(&used).contains("fetch-depth: 0"), "{used:#?}");
}

#[tokio::test]
async fn a_change_does_not_move_its_own_bar() {
    let scene = Scene::new("{ from: [file], release: release.json, accepted: accepted.yaml }");
    let measured = scene.head();
    let file = scene.clone.join("gate/baseline.json");
    write_record(&file, &record(&measured)).unwrap();
    let release = changed(&measured, |record| record.release = Some("1.0".to_owned()));
    write_record(&scene.clone.join("gate/release.json"), &release).unwrap();
    let base = scene.commits(1)[0].clone();

    git(&scene.clone, &["switch", "--quiet", "--create", "topic"]);
    let lowered = changed(&measured, |record| record.workload_digest = record.plan_digest.clone());
    write_record(&file, &lowered).unwrap();
    write_record(&scene.clone.join("gate/release.json"), &lowered).unwrap();
    std::fs::write(
        scene.clone.join("gate/contract.yaml"),
        CONTRACT.replace("at_load: 10/s", "at_load: 5/s").replace("loads: [10/s]", "loads: [5/s]")
            + "baseline: { from: [file], release: release.json, accepted: accepted.yaml }\n",
    )
    .unwrap();
    scene.commit("gate/accepted.yaml", "- { row: capacity_change, reason: mine, expires: 2027-01-01 }\n");

    let used = chosen(&scene.clone, &of_pull_request(&base)).await;
    assert_eq!(used.record, Some(record(&measured)), "{used:#?}");
    assert_eq!(used.chosen.as_ref().unwrap().why, Why::Ancestor { distance: 1 });
    assert_eq!(used.release, Some(release.clone()));
    assert_eq!(used.base_contract.as_ref().unwrap()["slo"]["at_load"], "10/s");
    assert_eq!(used.accepted, []);

    let used = chosen_for(&scene.clone, &of_pull_request(&base), Plan::Release, None).await;
    assert_eq!((used.record, used.chosen.unwrap().why), (Some(release), Why::Release));
}

/// Without a base that is known, a change is not compared with its own work.
#[tokio::test]
async fn a_branch_of_its_own_is_no_base_of_itself() {
    let scene = Scene::new("{ from: [branch] }");
    let main = scene.commits(1);
    git(&scene.clone, &["switch", "--quiet", "--create", "topic"]);
    let planted = scene.commits(2);
    keep(&scene.clone, &[record(&main[0]), record(&planted[0])]).await;
    // As CI makes it for a push to a branch: that branch alone, which its upstream is.
    let push = scene.clone_again("push", &["--single-branch", "--branch=topic"]);
    let used = chosen(&push, &stated(None)).await;
    assert!(missing(&used).contains("`--base`"), "{used:#?}");
    // Where the default branch is known, it is that one.
    let used = chosen(&scene.clone, &stated(None)).await;
    assert_eq!(used.record, Some(record(&main[0])), "{used:#?}");
}

/// What a branch or an event is called does not make it the default branch, on which everything was reviewed.
#[tokio::test]
async fn exceptions_of_a_change_are_not_read_whatever_its_branch_is_called() {
    const OWN: &str =
        "version: 1\naccepted:\n  - { row: capacity_change, reason: mine, expires: 2027-01-01, at_most: 50% }\n";
    let scene = Scene::new("{ from: [branch], accepted: accepted.yaml }");
    let main = scene.commits(1);
    scene.commit("gate/accepted.yaml", OWN);
    let comment = Stated { on_default_branch: Some(true), ..of_pull_request(&main[0]) };
    for stated in [stated(None), comment, stated(Some(&main[0]))] {
        let used = chosen(&scene.clone, &stated).await;
        assert_eq!(
            (used.base_commit.as_ref(), used.accepted.as_slice()),
            (Some(&main[0]), &[][..]),
            "{:?}",
            used.asked
        );
    }
    git(&scene.clone, &["push", "--quiet", "origin", "main"]);
    let used = chosen(&scene.clone, &stated(None)).await;
    assert_eq!(used.accepted.len(), 1, "{:?}", used.asked);
}

#[tokio::test]
async fn a_contract_that_dropped_its_baseline_is_held_against_the_one_at_the_base() {
    let scene = Scene::new("{ from: [branch] }");
    let main = scene.commits(1);
    git(&scene.clone, &["switch", "--quiet", "--create", "topic"]);
    scene.commit("gate/contract.yaml", CONTRACT);
    let folder = scene.clone.join("gate");
    let (commit, contract) =
        contract_at_base(&folder.join("contract.yaml"), &folder, &stated(None)).await.expect("the base has one");
    assert_eq!((commit.as_str(), &contract["baseline"]["from"]), (main[0].as_str(), &serde_json::json!(["branch"])));
}

#[tokio::test]
async fn of_several_records_the_one_with_a_curve_is_taken() {
    let scene = Scene::new("{ from: [branch] }");
    let main = scene.commits(2);
    let step = RecordStep { load: Load::Clients(1), trials: Vec::new() };
    let full = changed(&main[0], |record| record.curve = vec![step]);
    let short = changed(&main[0], |record| record.finished_at = "2026-11-30T11:00:00Z".to_owned());
    keep(&scene.clone, &[full.clone(), short]).await;
    assert_eq!(chosen(&scene.clone, &of_pull_request(&main[0])).await.record, Some(full));
}

#[tokio::test]
async fn of_several_records_the_one_of_this_machine_is_taken() {
    let scene = Scene::new("{ from: [branch] }");
    let main = scene.commits(2);
    let on = |gpu: &str, hour: u8| {
        changed(&main[0], |record| {
            record.fingerprint.must_match.insert("gpu".to_owned(), gpu.to_owned());
            record.finished_at = format!("2026-11-29T{hour:02}:00:00Z");
        })
    };
    keep(&scene.clone, &[on("H100", 1), on("H100", 2), on("L4", 3)]).await;
    let of = |gpu: &str| Fingerprint {
        must_match: [("gpu".to_owned(), gpu.to_owned()), ("driver".to_owned(), "580".to_owned())].into(),
        ..Fingerprint::default()
    };
    let stated = of_pull_request(&main[0]);
    let wanted = of("H100");
    for (fingerprint, taken) in [(Some(&wanted), on("H100", 2)), (None, on("L4", 3))] {
        // The head is one commit ahead of that base.
        let used = chosen_for(&scene.clone, &stated, Plan::Check, fingerprint).await;
        assert_eq!(used.record, Some(taken));
    }
}

#[tokio::test]
async fn without_git_the_file_is_read_as_it_lies_and_that_is_said() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("gate")).unwrap();
    let contract = super::scene::contract("{ from: [branch, file] }");
    std::fs::write(folder.path().join("gate/contract.yaml"), contract).unwrap();
    let unplaced = changed("", |record| record.origin.commit = None);
    write_record(&folder.path().join("gate/baseline.json"), &unplaced).unwrap();
    let used = chosen(folder.path(), &stated(None)).await;
    assert_eq!(used.record, Some(unplaced), "{used:#?}");
    let taken = used.chosen.unwrap();
    assert_eq!((taken.store.as_str(), taken.why), ("file", Why::Named));
    assert!(taken.place.contains("as it lies there"), "{}", taken.place);
    assert!(used.asked.iter().any(|asked| asked.store == "git" && asked.answer.contains("no repository")));
}
