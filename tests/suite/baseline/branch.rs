//! The branch of records: it only grows, whoever pushes at the same time.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use goodput::baseline::{BranchStore, Repository, Store, StoreFailure};

use super::scene::{Scene, changed, git, record};

const BRANCH: &str = "goodput-baselines";

async fn store(clone: &Path) -> BranchStore {
    BranchStore::new(Repository::open(clone).await.unwrap().unwrap(), BRANCH.to_owned())
}

/// The files of the branch as the origin has them.
fn files(scene: &Scene) -> Vec<String> {
    let listed = git(&scene.folder.path().join("origin.git"), &["ls-tree", "-r", "--name-only", BRANCH]);
    listed.lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn a_record_is_filed_once_and_the_working_tree_is_left_alone() {
    let scene = Scene::new("{ from: [branch] }");
    let commit = scene.head();
    std::fs::write(scene.clone.join("untracked"), "u").unwrap();
    std::fs::write(scene.clone.join("gate/contract.yaml"), "changed").unwrap();
    std::fs::write(scene.clone.join("staged"), "s").unwrap();
    git(&scene.clone, &["add", "staged"]);
    let look = || (git(&scene.clone, &["status", "--porcelain", "--branch"]), scene.head());
    let before = look();

    let store = store(&scene.clone).await;
    let record = record(&commit);
    let place = store.put(&record).await.unwrap();
    let path = format!("records/chat/{commit}/{}.json", record.digest);
    assert!(place.contains(&path), "{place}");
    assert_eq!(store.put(&record).await.unwrap(), place);
    assert_eq!(files(&scene), [path]);
    assert_eq!(git(&scene.folder.path().join("origin.git"), &["rev-list", "--count", BRANCH]), "1");
    assert_eq!(look(), before);

    let found = store.find("chat", &[scene.head()]).await.unwrap();
    assert_eq!(found.iter().map(|found| &found.record).collect::<Vec<_>>(), [&record]);
    assert_eq!(store.find("other", &[scene.head()]).await.unwrap(), []);
}

#[tokio::test]
async fn the_newest_are_listed_first() {
    let scene = Scene::new("{ from: [branch] }");
    let store = store(&scene.clone).await;
    let at = |day: u8| changed(&scene.head(), |record| record.finished_at = format!("2026-11-{day:02}T00:00:00Z"));
    for day in [3, 9, 1, 5] {
        store.put(&at(day)).await.unwrap();
    }
    let listed: Vec<_> = store.list("chat", 3).await.unwrap().into_iter().map(|found| found.record).collect();
    assert_eq!(listed, [at(9), at(5), at(3)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whoever_saves_at_the_same_time_everything_lands() {
    let scene = Scene::new("{ from: [branch] }");
    let commit = scene.head();
    let mut saving = Vec::new();
    for number in 0..4 {
        let clone = scene.clone_again(&format!("clone-{number}"), if number % 2 == 0 { &[] } else { &["--depth=1"] });
        let record = changed(&commit, |record| record.tool_version = format!("0.1.{number}"));
        saving.push(tokio::spawn(async move { store(&clone).await.put(&record).await.map(|_| ()) }));
    }
    for saved in saving {
        saved.await.unwrap().unwrap();
    }
    assert_eq!(files(&scene).len(), 4);
    // One after the other: nothing was merged, nothing pushed over.
    let origin = scene.folder.path().join("origin.git");
    assert_eq!(git(&origin, &["rev-list", "--count", BRANCH]), "4");
    assert_eq!(git(&origin, &["rev-list", "--count", "--merges", BRANCH]), "0");
}

/// Somebody else's push lands between the look at the branch and the push: the hook makes it.
#[tokio::test]
async fn a_branch_that_moved_while_it_was_pushed_keeps_both() {
    let scene = Scene::new("{ from: [branch] }");
    let commit = scene.head();
    let first = store(&scene.clone).await;
    first.put(&record(&commit)).await.unwrap();
    let other = scene.clone_again("other", &[]);
    let theirs = changed(&commit, |record| record.tool_version = "0.1.7".to_owned());
    let origin = scene.folder.path().join("origin.git");
    // Their commit is made on the branch, and the branch is set back: the hook lets it appear once.
    store(&other).await.put(&theirs).await.unwrap();
    let moved = git(&origin, &["rev-parse", BRANCH]);
    git(&origin, &["update-ref", &format!("refs/heads/{BRANCH}"), &format!("{moved}~1")]);
    let hook = origin.join("hooks/update");
    std::fs::create_dir_all(origin.join("hooks")).unwrap();
    std::fs::write(
        &hook,
        format!("#!/bin/sh\nif mkdir moved 2>/dev/null; then git update-ref refs/heads/{BRANCH} {moved}; fi\n"),
    )
    .unwrap();
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();

    let ours = changed(&commit, |record| record.tool_version = "0.1.8".to_owned());
    first.put(&ours).await.unwrap();
    assert!(origin.join("moved").exists());
    assert_eq!(files(&scene).len(), 3);
    assert_eq!(first.find("chat", &[commit]).await.unwrap().len(), 3);
}

#[tokio::test]
async fn a_push_that_is_not_allowed_says_what_to_write() {
    let scene = Scene::new("{ from: [branch] }");
    let origin = scene.folder.path().join("origin.git");
    std::fs::create_dir_all(origin.join("hooks")).unwrap();
    let hook = origin.join("hooks/pre-receive");
    std::fs::write(&hook, "#!/bin/sh\necho protected >&2\nexit 1\n").unwrap();
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    let refused = store(&scene.clone).await.put(&record(&scene.head())).await.unwrap_err().to_string();
    assert!(refused.contains("contents: write"), "{refused}");
    assert!(refused.contains("pre-receive hook declined"), "{refused}");
    assert!(!refused.contains('\n'));
}

#[tokio::test]
async fn a_branch_that_was_rewritten_is_an_error_and_no_history() {
    let scene = Scene::new("{ from: [branch] }");
    let store = store(&scene.clone).await;
    store.put(&record(&scene.head())).await.unwrap();
    store.find("chat", &[scene.head()]).await.unwrap();
    let origin = scene.folder.path().join("origin.git");
    let tree = git(&origin, &["rev-parse", &format!("{BRANCH}^{{tree}}")]);
    let anew = git(&origin, &["commit-tree", "-m", "anew", &tree]);
    git(&origin, &["update-ref", &format!("refs/heads/{BRANCH}"), &anew]);
    let told = store.find("chat", &[scene.head()]).await.unwrap_err();
    assert!(matches!(&told, StoreFailure::Unavailable(text) if text.contains("was rewritten")), "{told}");
    git(&origin, &["update-ref", "-d", &format!("refs/heads/{BRANCH}")]);
    let told = store.find("chat", &[scene.head()]).await.unwrap_err().to_string();
    assert!(told.contains("is gone from origin"), "{told}");
}

#[tokio::test]
async fn without_a_remote_the_branch_is_one_of_the_repository() {
    let scene = Scene::new("{ from: [branch] }");
    git(&scene.clone, &["remote", "remove", "origin"]);
    let store = store(&scene.clone).await;
    let kept = [record(&scene.head()), changed(&scene.head(), |record| record.tool_version = "0.1.1".to_owned())];
    for record in &kept {
        store.put(record).await.unwrap();
    }
    assert_eq!(store.find("chat", &[scene.head()]).await.unwrap().len(), 2);
    assert_eq!(git(&scene.clone, &["rev-list", "--count", BRANCH]), "2");
}
