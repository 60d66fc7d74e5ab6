//! What is asked of a repository, through the program `git`: nothing here changes the working tree, the index or HEAD.

mod program;

use std::path::{Path, PathBuf};

use program::{Answer, Call};

/// Why git does not answer; the text is one line for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct GitFailure(pub(super) String);

/// The remote that a shallow clone is completed from, and that branches of baselines lie on.
pub(super) const REMOTE: &str = "origin";

/// A repository, asked from the folder of a contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    folder: PathBuf,
    root: PathBuf,
}

/// A file as a commit has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FileAt {
    /// The commit has no such file.
    Absent,
    /// It has something else in its place, or a larger one than was asked for: what is there.
    Unreadable(String),
    /// Its content.
    Content(Vec<u8>),
}

/// A file in the tree of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// From the repository's root.
    pub(super) path: String,
    /// Its object.
    pub(super) object: String,
    /// Its size in bytes; `None` for what is no file.
    pub(super) size: Option<u64>,
    /// Whether it is a symbolic link.
    is_link: bool,
}

/// A tip of a branch on a remote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Push<'a> {
    /// The commit to push.
    pub(super) commit: &'a str,
    /// The branch.
    pub(super) branch: &'a str,
    /// Where it must stand until then; `None` when it must not be there.
    pub(super) expected: Option<&'a str>,
}

impl Repository {
    /// The repository that a folder lies in; `None` outside of one.
    ///
    /// # Errors
    /// When git cannot be started, or refuses to look at it.
    pub async fn open(folder: &Path) -> Result<Option<Self>, GitFailure> {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let answer = program::call(folder, &Call::here(&["rev-parse", "--show-toplevel"])).await?;
        if answer.is_fine() {
            return Ok(Some(Self { folder: folder.to_owned(), root: PathBuf::from(answer.text()) }));
        }
        if answer.complaint.contains("not a git repository") {
            return Ok(None);
        }
        let next = match answer.complaint.contains("dubious ownership") {
            true => "; write `git config --global --add safe.directory '*'` as a step before the gate",
            false => "",
        };
        Err(GitFailure(format!("the repository of {} cannot be read: {}{next}", folder.display(), answer.told())))
    }

    /// The folder with the repository's files.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The commit that a revision names; `None` when the repository has none of that name.
    ///
    /// # Errors
    /// When git does not answer.
    pub async fn commit(&self, revision: &str) -> Result<Option<String>, GitFailure> {
        let wanted = format!("{revision}^{{commit}}");
        let answer = self.ask(&["rev-parse", "--verify", "--quiet", "--end-of-options", &wanted]).await?;
        Ok(Some(answer.text()).filter(|text| answer.is_fine() && is_commit(text)))
    }

    /// Where two lines of history parted; `None` when they never met, as far as the clone tells.
    pub(super) async fn merge_base(&self, one: &str, other: &str) -> Result<Option<String>, GitFailure> {
        let answer = self.ask(&["merge-base", one, other]).await?;
        Ok(Some(answer.text()).filter(|text| answer.is_fine() && is_commit(text)))
    }

    /// The commit's first-parent ancestors, the nearest first, without itself, at most `most`.
    pub(super) async fn ancestors(&self, commit: &str, most: u32) -> Result<Vec<String>, GitFailure> {
        let most = format!("--max-count={}", u64::from(most) + 1);
        let answer = self.must(&["rev-list", "--first-parent", &most, commit]).await?;
        Ok(answer.text().lines().skip(1).map(str::to_owned).collect())
    }

    /// Whether the clone holds a part of the history only.
    pub(super) async fn is_shallow(&self) -> Result<bool, GitFailure> {
        Ok(self.must(&["rev-parse", "--is-shallow-repository"]).await?.text() == "true")
    }

    /// Whether there is a remote `origin`.
    pub(super) async fn has_remote(&self) -> Result<bool, GitFailure> {
        Ok(self.ask(&["remote", "get-url", REMOTE]).await?.is_fine())
    }

    /// The branch that is checked out; `None` on a detached head.
    pub(super) async fn branch(&self) -> Result<Option<String>, GitFailure> {
        let answer = self.ask(&["symbolic-ref", "--quiet", "--short", "HEAD"]).await?;
        Ok(Some(answer.text()).filter(|text| answer.is_fine() && !text.is_empty()))
    }

    /// The remote's default branch, as far as the clone knows it.
    pub(super) async fn default_branch(&self) -> Result<Option<String>, GitFailure> {
        let answer = self.ask(&["symbolic-ref", "--quiet", "refs/remotes/origin/HEAD"]).await?;
        Ok(answer.text().strip_prefix("refs/remotes/origin/").map(str::to_owned))
    }

    /// Asks the remote for a commit, and where the clone is shallow for so many on the line that ends there.
    ///
    /// # Errors
    /// When the remote does not give it.
    pub(super) async fn fetch_commit(&self, commit: &str, depth: u32) -> Result<(), GitFailure> {
        let depth = format!("--depth={depth}");
        let mut arguments = vec!["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"];
        // In a complete clone a depth would cut off history that is there.
        if self.is_shallow().await? {
            arguments.push(&depth);
        }
        arguments.extend(["--end-of-options", REMOTE, commit]);
        self.far(&arguments).await.map(drop)
    }

    /// The tip of a branch on the remote; `None` when there is none.
    pub(super) async fn remote_tip(&self, branch: &str) -> Result<Option<String>, GitFailure> {
        let wanted = format!("refs/heads/{branch}");
        let answer = self.far(&["ls-remote", "--quiet", "--end-of-options", REMOTE, &wanted]).await?.text();
        let mut tips = answer.lines().filter_map(|line| line.split_once('\t'));
        Ok(tips.find(|(_, name)| *name == wanted).map(|(tip, _)| tip.to_owned()))
    }

    /// Brings a branch of the remote into a ref of its own. With `depth`, so many commits of it, whatever the ref was before;
    /// else all, and only when they follow what it was before.
    pub(super) async fn fetch_branch(&self, branch: &str, to: &str, depth: Option<u32>) -> Result<(), GitFailure> {
        let force = if depth.is_some() { "+" } else { "" };
        let refspec = format!("{force}refs/heads/{branch}:{to}");
        let depth = depth.map(|depth| format!("--depth={depth}"));
        // Not quiet: only the list of refs says that one was refused because its history was rewritten.
        let mut arguments = vec!["fetch", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"];
        arguments.extend(depth.as_deref());
        arguments.extend(["--end-of-options", REMOTE, &refspec]);
        self.far(&arguments).await.map(drop)
    }

    /// A file as a commit has it, its path from this repository's folder; nothing larger than `largest` is read.
    pub(super) async fn file_at(&self, commit: &str, path: &Path, largest: u64) -> Result<FileAt, GitFailure> {
        let Some(path) = path.to_str() else {
            return Err(GitFailure(format!("the path {} is no UTF-8; git cannot be asked for it", path.display())));
        };
        let answer = self.must(&["ls-tree", "-l", "-z", "--full-name", commit, "--", path]).await?;
        let Some(entry) = entries(&answer.output).into_iter().next() else { return Ok(FileAt::Absent) };
        match entry.size {
            None => Ok(FileAt::Unreadable("is no file there".to_owned())),
            Some(_) if entry.is_link => Ok(FileAt::Unreadable("is a symbolic link there; commit the file".to_owned())),
            Some(size) if size > largest => Ok(FileAt::Unreadable(too_large(size, largest))),
            Some(_) => self.content(&entry.object).await.map(FileAt::Content),
        }
    }

    /// The files under a folder of a commit, from the root.
    pub(super) async fn files_under(&self, commit: &str, folder: &str) -> Result<Vec<Entry>, GitFailure> {
        let answer = self.must(&["ls-tree", "-r", "-l", "-z", "--full-tree", commit, "--", folder]).await?;
        Ok(entries(&answer.output))
    }

    /// The content of an object. Its size was asked before.
    pub(super) async fn content(&self, object: &str) -> Result<Vec<u8>, GitFailure> {
        Ok(self.must(&["cat-file", "blob", object]).await?.output)
    }

    /// A commit with one more file than `parent`, with the plumbing alone.
    pub(super) async fn commit_file(
        &self,
        parent: Option<&str>,
        path: &str,
        content: &[u8],
        message: &str,
    ) -> Result<String, GitFailure> {
        let hash = Call { input: Some(content), ..Call::here(&["hash-object", "-w", "--no-filters", "--stdin"]) };
        let object = self.fine(&hash).await?.text();
        let index = Index::new(&self.must(&["rev-parse", "--absolute-git-dir"]).await?.text());
        let environment = [("GIT_INDEX_FILE", index.0.as_str())];
        if let Some(parent) = parent {
            self.fine(&Call { environment: &environment, ..Call::here(&["read-tree", parent]) }).await?;
        }
        let entry = format!("100644,{object},{path}");
        let add = ["update-index", "--add", "--cacheinfo", &entry];
        self.fine(&Call { environment: &environment, ..Call::here(&add) }).await?;
        let tree = self.fine(&Call { environment: &environment, ..Call::here(&["write-tree"]) }).await?.text();
        let mut arguments = vec!["commit-tree", "--no-gpg-sign"];
        arguments.extend(parent.iter().flat_map(|parent| ["-p", parent]));
        arguments.extend(["-m", message, &tree]);
        let identity = self.identity().await?;
        Ok(self.fine(&Call { environment: identity, ..Call::here(&arguments) }).await?.text())
    }

    /// Who a commit is by: whoever the machine is set up for, else this tool; git itself would refuse where nobody is.
    async fn identity(&self) -> Result<&'static [(&'static str, &'static str)], GitFailure> {
        const TOOL: &[(&str, &str)] = &[
            ("GIT_AUTHOR_NAME", "goodput"),
            ("GIT_AUTHOR_EMAIL", "goodput@goodput.invalid"),
            ("GIT_COMMITTER_NAME", "goodput"),
            ("GIT_COMMITTER_EMAIL", "goodput@goodput.invalid"),
        ];
        let mut is_known = true;
        for whose in ["GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"] {
            is_known &= self.ask(&["-c", "user.useConfigOnly=true", "var", whose]).await?.is_fine();
        }
        Ok(if is_known { &[] } else { TOOL })
    }

    /// Pushes a commit to a branch of the remote, if that still stands where it was seen.
    ///
    /// # Errors
    /// With what git answers when it does not.
    pub(super) async fn push(&self, push: &Push<'_>) -> Result<(), GitFailure> {
        let name = format!("refs/heads/{}", push.branch);
        let lease = format!("--force-with-lease={name}:{}", push.expected.unwrap_or_default());
        let refspec = format!("{}:{name}", push.commit);
        let arguments =
            ["push", "--quiet", "--no-verify", "--no-follow-tags", &lease, "--end-of-options", REMOTE, &refspec];
        self.far(&arguments).await.map(drop)
    }

    /// Moves a ref of this repository, if it still stands where it was seen.
    pub(super) async fn move_ref(&self, name: &str, commit: &str, expected: Option<&str>) -> Result<(), GitFailure> {
        // An empty old value says that the ref must not be there.
        self.must(&["update-ref", name, commit, expected.unwrap_or_default()]).await.map(drop)
    }

    async fn ask(&self, arguments: &[&str]) -> Result<Answer, GitFailure> {
        program::call(&self.folder, &Call::here(arguments)).await
    }

    async fn must(&self, arguments: &[&str]) -> Result<Answer, GitFailure> {
        self.fine(&Call::here(arguments)).await
    }

    async fn far(&self, arguments: &[&str]) -> Result<Answer, GitFailure> {
        self.fine(&Call::far(arguments)).await
    }

    async fn fine(&self, call: &Call<'_>) -> Result<Answer, GitFailure> {
        let answer = program::call(&self.folder, call).await?;
        if answer.is_fine() {
            return Ok(answer);
        }
        let name = call.arguments.first().unwrap_or(&"");
        Err(GitFailure(format!("`git {name}` in {} failed: {}", self.folder.display(), answer.told())))
    }
}

/// Whether a text is the whole name of a commit.
pub(super) fn is_commit(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The first ten digits of a commit, for people.
pub fn short(commit: &str) -> &str {
    commit.get(..10).unwrap_or(commit)
}

/// What is wrong with something that large, completing "the baseline …".
pub(super) fn too_large(size: u64, largest: u64) -> String {
    format!("is {size} bytes large; the largest that is read has {largest}")
}

/// The lines of `ls-tree -l -z`: mode, kind, object and size, a tabulator and the path.
fn entries(output: &[u8]) -> Vec<Entry> {
    let lines = output.split(|byte| *byte == 0).filter_map(|line| std::str::from_utf8(line).ok());
    lines
        .filter_map(|line| {
            let (facts, path) = line.split_once('\t')?;
            let mut facts = facts.split_whitespace();
            let (mode, _, object, size) = (facts.next()?, facts.next()?, facts.next()?, facts.next()?);
            let (path, object, size) = (path.to_owned(), object.to_owned(), size.parse().ok());
            Some(Entry { path, object, size, is_link: mode == "120000" })
        })
        .collect()
}

/// An index of its own, taken away again.
struct Index(String);

impl Index {
    fn new(git_folder: &str) -> Self {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(format!("{git_folder}/goodput-index-{}-{number}", std::process::id()))
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        // A commit that failed before its index was written leaves nothing to take away.
        drop(std::fs::remove_file(&self.0));
    }
}
