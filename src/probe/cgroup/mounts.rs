//! Where the control group of a process is in the file system: cgroups(7) and proc_pid_mountinfo(5).

use std::path::{Path, PathBuf};

/// The mounted hierarchies of control groups.
#[derive(Debug)]
pub(super) struct Mounts(Vec<Mount>);

#[derive(Debug)]
struct Mount {
    /// Of version 1, with the memory controller; else of version 2.
    is_version_one: bool,
    /// The group that is mounted.
    root: PathBuf,
    /// Where it is mounted.
    point: PathBuf,
}

impl Mounts {
    /// Reads what this process sees mounted.
    ///
    /// # Errors
    /// When the system does not tell.
    pub(super) fn read(proc: &Path) -> Result<Self, String> {
        let path = proc.join("self/mountinfo");
        let list = std::fs::read(&path).map_err(|error| format!("cannot read `{}`: {error}", path.display()))?;
        Ok(Self(String::from_utf8_lossy(&list).lines().filter_map(mount).collect()))
    }

    /// The folder of the memory controller, from a process's `/proc/PID/cgroup`. Where both versions are in use, a controller
    /// is in one of them, and version 1 lists its own.
    ///
    /// # Errors
    /// When that group is not mounted here, or lies outside of this process's namespace.
    pub(super) fn memory_folder(&self, groups: &str) -> Result<PathBuf, String> {
        let lines = groups.lines().filter_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            Some((parts.next()?, parts.next()?))
        });
        let has_memory = |controllers: &str| controllers.split(',').any(|name| name == "memory");
        let (mut one, mut two) = (None, None);
        for (controllers, path) in lines {
            if has_memory(controllers) {
                one = Some(path);
            } else if controllers.is_empty() {
                two = Some(path);
            }
        }
        match (one, two) {
            (Some(path), _) => self.folder(path, true),
            (None, Some(path)) => self.folder(path, false),
            (None, None) => Err("the process is in no control group of the memory controller".to_owned()),
        }
    }

    fn folder(&self, path: &str, is_version_one: bool) -> Result<PathBuf, String> {
        // A group that was removed while a process was still in it.
        let path = path.strip_suffix(" (deleted)").unwrap_or(path);
        if path.starts_with("/..") {
            return Err(format!(
                "the process's control group `{path}` is outside of this container; run on the host, or name the group by `path`"
            ));
        }
        let mounts = self.0.iter().filter(|mount| mount.is_version_one == is_version_one);
        let below = |mount: &Mount| {
            let rest = Path::new(path).strip_prefix(&mount.root).ok()?;
            // Without a part to add, `join` would add a slash.
            Some(if rest.as_os_str().is_empty() { mount.point.clone() } else { mount.point.join(rest) })
        };
        mounts.filter_map(below).next().ok_or_else(|| {
            let controller = if is_version_one { "of the memory controller " } else { "" };
            format!(
                "the process's control group `{path}` {controller}is not mounted here; run on the host, or mount it"
            )
        })
    }
}

/// One line of `mountinfo`, when it is of control groups that can count memory.
fn mount(line: &str) -> Option<Mount> {
    let (mount, system) = line.split_once(" - ")?;
    let mut mount = mount.split(' ').skip(3);
    let (root, point) = (mount.next()?, mount.next()?);
    let mut system = system.split(' ');
    let is_version_one = match system.next()? {
        "cgroup2" => false,
        "cgroup" if system.nth(1)?.split(',').any(|option| option == "memory") => true,
        _ => return None,
    };
    Some(Mount { is_version_one, root: unescape(root), point: unescape(point) })
}

/// Blanks and the like are written as a backslash and three octal digits.
fn unescape(text: &str) -> PathBuf {
    let mut parts = text.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let escaped = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match escaped {
            Some(byte) => plain.extend([char::from(byte)].into_iter().chain(part.chars().skip(3))),
            None => plain.extend(['\\'].into_iter().chain(part.chars())),
        }
    }
    PathBuf::from(plain)
}
