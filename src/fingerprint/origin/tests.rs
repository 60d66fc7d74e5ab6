use std::collections::BTreeMap;
use std::process::Command;

use super::*;

const MERGE: &str = "1111111111111111111111111111111111111111";
const HEAD: &str = "2222222222222222222222222222222222222222";

/// A real repository.
struct Checkout(tempfile::TempDir);

impl Checkout {
    fn new() -> Self {
        let clone = Self(tempfile::tempdir().expect("a folder"));
        clone.git(&["init", "--quiet", "--initial-branch=main"]);
        clone.write("serve.sh", "one");
        clone.git(&["add", "."]);
        clone.commit();
        clone
    }

    fn git(&self, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"])
            .args(arguments)
            .current_dir(self.0.path())
            .output()
            .expect("git runs");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn commit(&self) -> String {
        self.git(&["commit", "--quiet", "--allow-empty", "--message", "a change"]);
        self.git(&["rev-parse", "HEAD"])
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

async fn ask(folder: &Path, commit: Option<&str>, variables: &[(&str, &str)]) -> Result<Origin, OriginError> {
    let map: BTreeMap<String, String> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    origin(folder, commit, &|name| map.get(name).cloned()).await
}

async fn known(folder: &Path, variables: &[(&str, &str)]) -> Origin {
    ask(folder, None, variables).await.expect("an origin")
}

/// The variables of a workflow, with an event.
fn github<'a>(event: &'a str, path: &'a str, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut variables = vec![
        ("GITHUB_ACTIONS", "true"),
        ("GITHUB_EVENT_NAME", event),
        ("GITHUB_EVENT_PATH", path),
        ("GITHUB_SHA", MERGE),
        ("GITHUB_REPOSITORY", "octo-org/octo-repo"),
        ("GITHUB_RUN_ID", "1658821493"),
        ("GITHUB_RUN_ATTEMPT", "2"),
        ("GITHUB_SERVER_URL", "https://github.com"),
    ];
    variables.extend(more);
    variables
}

#[tokio::test]
async fn a_clone_tells_its_commit_branch_and_changes() {
    let clone = Checkout::new();
    let head = clone.git(&["rev-parse", "HEAD"]);
    let found = known(clone.path(), &[]).await;
    let expected = Origin {
        commit: Some(head.clone()),
        changed_files: Some(false),
        branch: Some("main".to_owned()),
        ..Origin::default()
    };
    assert_eq!(found, expected);
    // New files and our own runs are no change of what is served.
    clone.write("note.txt", "new");
    clone.write(".goodput/runs/a/result.json", "{}");
    assert_eq!(known(clone.path(), &[]).await, expected);
    clone.git(&["add", "--force", ".goodput"]);
    let with_runs = clone.commit();
    clone.write(".goodput/runs/a/result.json", "{ }");
    let found = known(clone.path(), &[]).await;
    assert_eq!((found.commit, found.changed_files), (Some(with_runs), Some(false)));
    clone.write("serve.sh", "two");
    clone.git(&["checkout", "--quiet", "--detach"]);
    let found = known(clone.path(), &[]).await;
    assert_eq!((found.branch, found.changed_files), (None, Some(true)));
}

#[tokio::test]
async fn a_shallow_clone_knows_the_default_branch_of_its_origin() {
    let clone = Checkout::new();
    let target = tempfile::tempdir().expect("a folder");
    let source = format!("file://{}", clone.path().display());
    let place = target.path().join("c");
    clone.git(&["clone", "--quiet", "--depth=1", &source, &place.display().to_string()]);
    let found = known(&place, &[]).await;
    assert_eq!((found.branch.as_deref(), found.is_default_branch), (Some("main"), Some(true)));
    let branch = Checkout(target);
    branch.git(&["-C", "c", "checkout", "--quiet", "-b", "feature"]);
    assert_eq!(known(&place, &[]).await.is_default_branch, Some(false));
}

#[tokio::test]
async fn outside_a_repository_and_in_an_empty_one_nothing_is_known() {
    let folder = tempfile::tempdir().expect("a folder");
    assert_eq!(known(folder.path(), &[]).await, Origin::default());
    let empty = Checkout(folder);
    empty.git(&["init", "--quiet"]);
    assert_eq!(known(empty.path(), &[]).await, Origin::default());
}

#[tokio::test]
async fn of_a_pull_request_the_head_of_the_change_counts_and_the_merge_is_the_workflows() {
    let folder = tempfile::tempdir().expect("a folder");
    let event = folder.path().join("event.json");
    // The parts of GitHub's `pull_request` event that matter.
    let text = format!(
        r#"{{"action":"synchronize","pull_request":{{"head":{{"ref":"main","sha":"{HEAD}"}}}},"repository":{{"default_branch":"main"}}}}"#
    );
    std::fs::write(&event, text).expect("an event");
    let path = event.display().to_string();
    let names = [("GITHUB_HEAD_REF", "main"), ("GITHUB_REF_NAME", "7/merge"), ("GITHUB_REF_TYPE", "branch")];
    let found = known(folder.path(), &github("pull_request", &path, &names)).await;
    let expected = Origin {
        commit: Some(HEAD.to_owned()),
        changed_files: None,
        workflow_commit: Some(MERGE.to_owned()),
        branch: Some("main".to_owned()),
        // A fork's branch may be called like the default one.
        is_default_branch: Some(false),
        event: Some("pull_request".to_owned()),
        repository: Some("octo-org/octo-repo".to_owned()),
        run_id: Some("1658821493".to_owned()),
        run_attempt: Some("2".to_owned()),
        run_url: Some("https://github.com/octo-org/octo-repo/actions/runs/1658821493".to_owned()),
    };
    assert_eq!(found, expected);
    // What an untrusted event cannot do: serve another commit than the base by its mere number.
    let target = known(folder.path(), &github("pull_request_target", &path, &names)).await;
    assert_eq!((target.commit.as_deref(), target.is_default_branch), (Some(MERGE), Some(false)));
}

#[tokio::test]
async fn a_push_to_the_default_branch_is_told_from_tags_and_from_other_work_trees() {
    let clone = Checkout::new();
    let head = clone.git(&["rev-parse", "HEAD"]);
    clone.write("event.json", r#"{"repository":{"default_branch":"main"}}"#);
    let path = clone.path().join("event.json").display().to_string();
    for (name, kind, sha, expected) in [
        ("main", "branch", head.as_str(), Some(true)),
        ("feature", "branch", &head, Some(false)),
        ("main", "tag", &head, Some(false)),
        ("main", "branch", MERGE, None),
    ] {
        let more = [("GITHUB_REF_NAME", name), ("GITHUB_REF_TYPE", kind), ("GITHUB_SHA", sha)];
        let found = known(clone.path(), &github("push", &path, &more)).await;
        assert_eq!(found.is_default_branch, expected, "{name} {kind} {sha}");
        assert_eq!(found.commit.as_ref(), Some(&head), "{name} {kind} {sha}");
        assert_eq!(found.workflow_commit.as_deref(), (sha == MERGE).then_some(MERGE), "{name} {kind} {sha}");
    }
}

#[tokio::test]
async fn gitlab_tells_the_same_by_other_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let push = [
        ("GITLAB_CI", "true"),
        ("CI_COMMIT_SHA", MERGE),
        ("CI_COMMIT_REF_NAME", "main"),
        ("CI_DEFAULT_BRANCH", "main"),
        ("CI_PIPELINE_SOURCE", "schedule"),
        ("CI_PROJECT_PATH", "group/sub/project"),
        ("CI_PIPELINE_ID", "77"),
        ("CI_PIPELINE_URL", "https://gitlab.example/group/sub/project/-/pipelines/77"),
    ];
    let found = known(folder.path(), &push).await;
    let expected = Origin {
        commit: Some(MERGE.to_owned()),
        branch: Some("main".to_owned()),
        is_default_branch: Some(true),
        event: Some("schedule".to_owned()),
        repository: Some("group/sub/project".to_owned()),
        run_id: Some("77".to_owned()),
        run_url: Some("https://gitlab.example/group/sub/project/-/pipelines/77".to_owned()),
        ..Origin::default()
    };
    assert_eq!(found, expected);
    let mut merge = push.to_vec();
    merge.extend([
        ("CI_PIPELINE_SOURCE", "merge_request_event"),
        ("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA", HEAD),
        ("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME", "main"),
    ]);
    let found = known(folder.path(), &merge).await;
    assert_eq!((found.commit.as_deref(), found.workflow_commit.as_deref()), (Some(HEAD), Some(MERGE)));
    assert_eq!(found.is_default_branch, Some(false));
}

#[tokio::test]
async fn a_named_commit_wins_and_must_be_one() {
    let clone = Checkout::new();
    let variable = [("GOODPUT_COMMIT", HEAD)];
    assert_eq!(known(clone.path(), &variable).await.commit.as_deref(), Some(HEAD));
    let named = ask(clone.path(), Some(MERGE), &variable).await.expect("an origin");
    assert_eq!(named.commit.as_deref(), Some(MERGE));
    assert_eq!(known(clone.path(), &[("GOODPUT_COMMIT", " ")]).await.branch.as_deref(), Some("main"));
    let refusal = ask(clone.path(), Some("v1.2\u{1b}[2J"), &[]).await.expect_err("no commit").to_string();
    assert!(refusal.starts_with("`v1.2 [2J` is not a commit"), "{refusal}");
}

#[tokio::test]
async fn values_that_are_not_what_they_should_be_are_left_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let hostile = [
        ("GITHUB_ACTIONS", "true"),
        ("GITHUB_EVENT_PATH", "/nowhere/event.json"),
        ("GITHUB_SHA", "$(reboot)"),
        ("GITHUB_REPOSITORY", "a/../b](javascript:x)"),
        ("GITHUB_RUN_ID", "1\n2"),
        ("GITHUB_SERVER_URL", "javascript:alert(1)"),
        ("GITHUB_REF_NAME", "a\nb"),
    ];
    let expected = Origin { branch: Some("a b".to_owned()), ..Origin::default() };
    assert_eq!(known(folder.path(), &hostile).await, expected);
}
