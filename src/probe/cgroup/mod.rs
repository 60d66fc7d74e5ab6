//! The `cgroup` probe: memory of a control group, version 1 or 2 (Documentation/admin-guide of the kernel:
//! cgroup-v1/memory.rst and cgroup-v2.rst).

mod memory;
mod mounts;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use memory::{is_root, value};

use super::process::Finder;
use super::{Answer, Context};
use crate::contract::{CgroupField, CgroupOf, CgroupSource};
use crate::record::Series;

/// A control group of this machine.
#[derive(Debug)]
pub(super) struct Cgroup {
    field: CgroupField,
    of: Of,
}

#[derive(Debug)]
enum Of {
    Folder(PathBuf),
    Processes {
        finder: Finder,
        /// The folders that they were in so far. A process that was killed for want of memory is gone when its group is asked
        /// how many were.
        known: BTreeSet<PathBuf>,
    },
}

impl Cgroup {
    pub(super) fn new(source: &CgroupSource, context: &Context) -> Self {
        let of = match &source.of {
            CgroupOf::Path(folder) => Of::Folder(folder.clone()),
            CgroupOf::Process(of) => Of::Processes { finder: Finder::new(of, context), known: BTreeSet::new() },
        };
        Self { field: source.field, of }
    }

    pub(super) async fn read(&mut self) -> Answer {
        let field = self.field;
        match &mut self.of {
            Of::Folder(folder) if field == CgroupField::OomKill && is_root(folder) => Err(format!(
                "`{}` is the root of the control groups, which counts the kills of its own processes alone; name the server's group",
                folder.display()
            )),
            Of::Folder(folder) => Ok(vec![series(folder, field)?]),
            Of::Processes { finder, known } => {
                let found = folders(finder).map(|folders| known.extend(folders));
                let present: Vec<&PathBuf> = known.iter().filter(|folder| folder.exists()).collect();
                if present.is_empty() {
                    found?;
                }
                let counted = present.iter().filter(|folder| !is_counted_above(folder, &present, field));
                counted.map(|folder| series(folder, field)).collect()
            }
        }
    }
}

/// The folders of the groups that processes are in.
fn folders(finder: &mut Finder) -> Result<BTreeSet<PathBuf>, String> {
    let table = finder.table()?;
    let family = finder.family(&table)?;
    let mounts = mounts::Mounts::read(finder.proc())?;
    let mut folders = BTreeSet::new();
    for pid in family {
        let path = finder.proc().join(pid.to_string()).join("cgroup");
        match std::fs::read_to_string(&path) {
            Ok(groups) if groups.is_empty() => {}
            Ok(groups) => drop(folders.insert(mounts.memory_folder(&groups)?)),
            // It has just ended.
            Err(error) if ended(&error) => {}
            Err(error) => return Err(format!("cannot read `{}`: {error}", path.display())),
        }
    }
    if folders.is_empty() { Err("the process ended while it was asked".to_owned()) } else { Ok(folders) }
}

fn ended(error: &std::io::Error) -> bool {
    const NO_SUCH_PROCESS: i32 = nix::libc::ESRCH;
    error.kind() == std::io::ErrorKind::NotFound || error.raw_os_error() == Some(NO_SUCH_PROCESS)
}

/// Whether another one of the groups counts what this one does: all do for those below, but for the kills in version 1 the
/// root.
fn is_counted_above(folder: &Path, all: &[&PathBuf], field: CgroupField) -> bool {
    let counts = |other: &Path| field != CgroupField::OomKill || !is_root(other);
    all.iter().any(|other| folder != other.as_path() && folder.starts_with(other) && counts(other))
}

fn series(folder: &Path, field: CgroupField) -> Result<Series, String> {
    let value = value(folder, field)?;
    // Each group that is made has a number of its own; the times of the folder are those of its first look-up.
    let inode = std::fs::metadata(folder).map(|metadata| metadata.ino());
    let inode = inode.map_err(|error| format!("cannot look at the control group `{}`: {error}", folder.display()))?;
    Ok(Series { of: folder.display().to_string(), since: Some(format!("inode {inode}")), value })
}
