//! Where baselines are kept, and the files that a comparison reads besides.

use std::path::PathBuf;

use url::Url;

use super::Meaning;
use crate::contract::baseline::StoreSpec;
use crate::contract::document::join;
use crate::contract::raw;

/// Names that are taken where the contract names none.
pub(super) const DEFAULT_FILE: &str = "baseline.json";
const DEFAULT_BRANCH: &str = "goodput-baselines";
const DEFAULT_ARTIFACT: &str = "goodput-baseline";
const DEFAULT_PREFIX: &str = "goodput";
const DEFAULT_REGION: &str = "us-east-1";
/// What GitHub refuses in the name of an artifact.
const NOT_IN_ARTIFACTS: [char; 9] = ['"', ':', '<', '>', '|', '*', '?', '\\', '/'];

impl Meaning<'_> {
    /// A file in the repository: its path relative to the contract's folder, joined to it. It may lie above that folder; whether it
    /// lies in the repository is asked of git.
    fn file(&mut self, written: String, pointer: &str) -> Option<PathBuf> {
        let written = self.plain_text(Some(written), pointer)?;
        if written.starts_with(['/', '~']) {
            let message = "a file in the repository is named from the contract's folder on, as in `baseline.json` or \
                `../perf/baseline.json`";
            self.fault(pointer, message);
            return None;
        }
        if written.ends_with('/')
            || [".", ".."].iter().any(|end| written == *end || written.ends_with(&format!("/{end}")))
        {
            self.fault(pointer, "names a folder; write the file too, as in `baseline.json`");
            return None;
        }
        Some(self.folder.join(written))
    }

    /// The same where nothing need be written; `None` only when it is wrong.
    pub(super) fn optional_file(&mut self, written: Option<String>, pointer: &str) -> Option<Option<PathBuf>> {
        match written {
            Some(written) => self.file(written, pointer).map(Some),
            None => (!self.refused.contains(pointer)).then_some(None),
        }
    }

    /// One place where baselines are kept.
    pub(super) fn store(&mut self, written: raw::Store, pointer: &str) -> Option<StoreSpec> {
        match written.name {
            Some(raw::StoreName::File) => return Some(StoreSpec::File(self.folder.join(DEFAULT_FILE))),
            Some(raw::StoreName::Branch) => return Some(StoreSpec::Branch(DEFAULT_BRANCH.to_owned())),
            Some(raw::StoreName::Artifact) => {
                return Some(StoreSpec::Artifact { name: DEFAULT_ARTIFACT.to_owned(), workflow: None });
            }
            None => {}
        }
        let raw::StoreDetails { file, branch, artifact, s3 } = written.details;
        let [file_at, branch_at, artifact_at, s3_at] =
            ["file", "branch", "artifact", "s3"].map(|name| join(pointer, name));
        let is_written = [
            self.is_written(file.as_ref(), &file_at),
            self.is_written(branch.as_ref(), &branch_at),
            self.is_written(artifact.as_ref(), &artifact_at),
            self.is_written(s3.as_ref(), &s3_at),
        ];
        if is_written.iter().filter(|written| **written).count() != 1 {
            self.fault(
                pointer,
                "write exactly one of `file`, `branch`, `artifact` and `s3`; list several places one by one",
            );
            return None;
        }
        if let Some(file) = file {
            return self.file(file, &file_at).map(StoreSpec::File);
        }
        if let Some(branch) = branch {
            return self.branch(branch, &branch_at).map(StoreSpec::Branch);
        }
        if let Some(artifact) = artifact {
            return self.artifact(artifact, &artifact_at);
        }
        self.bucket(s3?, &s3_at)
    }

    /// A branch's name, by the rules that matter to a command line and to git.
    fn branch(&mut self, name: String, pointer: &str) -> Option<String> {
        let is_part = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
        let is_fine = !name.starts_with('-')
            && !name.ends_with('.')
            && !name.contains("..")
            && name.split('/').all(is_part)
            && !name.starts_with("refs/")
            && name != "HEAD"
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
        if is_fine {
            return Some(name);
        }
        self.fault(
            pointer,
            "not a branch's name; write letters, digits, `-`, `_`, `.` and `/`, as in `goodput-baselines`",
        );
        None
    }

    fn artifact(&mut self, written: raw::Artifact, pointer: &str) -> Option<StoreSpec> {
        let (name_at, workflow_at) = (join(pointer, "name"), join(pointer, "workflow"));
        let name = match written.name {
            None if self.refused.contains(&name_at) => None,
            None => Some(DEFAULT_ARTIFACT.to_owned()),
            Some(name) => self.plain_text(Some(name), &name_at),
        };
        let name = name.filter(|name| {
            let is_fine = !name.contains(NOT_IN_ARTIFACTS);
            if !is_fine {
                self.fault(
                    &name_at,
                    "GitHub refuses `\" : < > | * ? \\ /` in an artifact's name; write it without them",
                );
            }
            is_fine
        });
        let workflow = match written.workflow {
            None if self.refused.contains(&workflow_at) => return None,
            None => None,
            Some(workflow) => Some(self.workflow(workflow, &workflow_at)?),
        };
        Some(StoreSpec::Artifact { name: name?, workflow })
    }

    /// A workflow's file name, by which GitHub finds it.
    fn workflow(&mut self, written: String, pointer: &str) -> Option<String> {
        let is_file = written.ends_with(".yml") || written.ends_with(".yaml");
        if is_file && written.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) {
            return Some(written);
        }
        self.fault(pointer, "not the file name of a workflow; write it without its folder, as in `nightly.yml`");
        None
    }

    fn bucket(&mut self, written: raw::Bucket, pointer: &str) -> Option<StoreSpec> {
        let endpoint_at = join(pointer, "endpoint");
        let endpoint = match written.endpoint {
            Some(endpoint) => self.storage(&endpoint, &endpoint_at).map(Some),
            None => (!self.refused.contains(&endpoint_at)).then_some(None),
        };
        let bucket = self.bucket_name(written.bucket, &join(pointer, "bucket"));
        let prefix = written.prefix.unwrap_or_else(|| DEFAULT_PREFIX.to_owned());
        let prefix = self.prefix(&prefix, &join(pointer, "prefix"));
        let region = written.region.unwrap_or_else(|| DEFAULT_REGION.to_owned());
        let region = self.plain_text(Some(region), &join(pointer, "region"));
        Some(StoreSpec::S3 { bucket: bucket?, prefix: prefix?, region: region?, endpoint: endpoint? })
    }

    /// A bucket's name. Amazon's own are stricter; others' stores allow more.
    fn bucket_name(&mut self, written: Option<String>, pointer: &str) -> Option<String> {
        let name = written?;
        let is_fine = name.len() >= 3
            && name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && !name.contains("..")
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        if is_fine {
            return Some(name);
        }
        let message = "not a bucket's name; write the name alone, as in `perf-baselines`, and what stands before the keys as `prefix`";
        self.fault(pointer, message);
        None
    }

    /// What every key begins with, without slashes at its ends; empty for none.
    fn prefix(&mut self, written: &str, pointer: &str) -> Option<String> {
        let prefix = written.trim_matches('/');
        let is_part = |part: &str| {
            ![".", "..", ""].contains(&part) && part.chars().all(|c| c.is_ascii_alphanumeric() || "-_.=+@".contains(c))
        };
        if prefix.is_empty() || prefix.split('/').all(is_part) {
            return Some(prefix.to_owned());
        }
        self.fault(
            pointer,
            "not the beginning of a key; write letters, digits, `-`, `_`, `.` and `/`, as in `team/goodput`",
        );
        None
    }

    /// The address of a storage, which is a host and a port. What was written is not repeated: it may hold credentials.
    fn storage(&mut self, written: &str, pointer: &str) -> Option<Url> {
        let has_credentials =
            Url::parse(written).is_ok_and(|url| !url.username().is_empty() || url.password().is_some());
        if has_credentials {
            let message = "the URL holds credentials; remove them and set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment";
            self.fault(pointer, message);
            return None;
        }
        let url = self.http_url(written, pointer, &["http", "https"])?;
        if url.path() != "/" || url.query().is_some() || url.fragment().is_some() || url.port() == Some(0) {
            let message = "a storage is a host and a port; write it as in `https://storage.example:9000`, and the rest as `bucket` and `prefix`";
            self.fault(pointer, message);
            return None;
        }
        Some(url)
    }
}
