//! Which processes listen on a TCP port of this machine.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::Path;

/// The most that is read of a list of sockets, in bytes: half a million of them.
const LIMIT: u64 = 80 * 1024 * 1024;

/// The state of a listening socket in `/proc/net/tcp`.
const LISTEN: &str = "0A";

/// Sockets that listen on a port: their inodes, with the number of the user that made each.
pub(super) type Sockets = BTreeMap<u64, u32>;

/// The processes that hold sockets.
#[derive(Debug, Default)]
pub(super) struct Holders {
    pub(super) processes: BTreeSet<u32>,
    /// The sockets that they hold.
    pub(super) held: BTreeSet<u64>,
    /// Processes whose files this one may not list.
    pub(super) refused: bool,
}

/// The sockets that listen on a port, in this process's network namespace, by IPv4 or IPv6.
///
/// # Errors
/// When the system does not list them.
pub(super) fn listening(proc: &Path, port: u16) -> Result<Sockets, String> {
    let mut sockets = Sockets::new();
    for name in ["net/tcp", "net/tcp6"] {
        let path = proc.join(name);
        match File::open(&path).and_then(|file| collect(file, port, &mut sockets)) {
            Ok(()) => {}
            // A kernel may be without IPv6.
            Err(error) if error.kind() == ErrorKind::NotFound && name == "net/tcp6" => {}
            Err(error) => return Err(format!("cannot read the list of sockets `{}`: {error}", path.display())),
        }
    }
    Ok(sockets)
}

fn collect(list: impl Read, port: u16, sockets: &mut Sockets) -> io::Result<()> {
    for line in BufReader::new(list.take(LIMIT)).lines().skip(1) {
        sockets.extend(listener(&line?, port));
    }
    Ok(())
}

/// Inode and user of one line, when it is of a socket that listens on the port.
fn listener(line: &str, port: u16) -> Option<(u64, u32)> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let local = u16::from_str_radix(fields.get(1)?.rsplit_once(':')?.1, 16).ok()?;
    let is_asked = local == port && *fields.get(3)? == LISTEN;
    let (user, inode) = (fields.get(7)?.parse().ok()?, fields.get(9)?.parse().ok()?);
    is_asked.then_some((inode, user))
}

/// Who of some processes holds which of the sockets.
pub(super) fn holders(proc: &Path, sockets: &Sockets, among: impl IntoIterator<Item = u32>) -> Holders {
    let mut holders = Holders::default();
    for pid in among {
        let files = match std::fs::read_dir(proc.join(pid.to_string()).join("fd")) {
            Ok(files) => files,
            Err(error) => {
                // Otherwise the process has just ended.
                holders.refused |= error.kind() == ErrorKind::PermissionDenied;
                continue;
            }
        };
        for file in files.flatten() {
            let target = std::fs::read_link(file.path()).unwrap_or_default();
            let inode =
                target.to_str().and_then(|target| target.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok());
            if let Some(inode) = inode.filter(|inode| sockets.contains_key(inode)) {
                holders.processes.insert(pid);
                holders.held.insert(inode);
            }
        }
    }
    holders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sockets_that_listen_on_the_port_count() {
        // The form of proc(5), `/proc/net/tcp`: 0x1F40 is 8000; 0A listens, 01 is a connection, 06 waits for its end.
        let list = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             0: 00000000:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 561 1 0000 100 0 0 10 0\n\
             1: 0100007F:1F41 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 562 1 0000 100 0 0 10 0\n\
             2: 0100007F:1F40 0100007F:C272 01 00000000:00000000 00:00000000 00000000     0        0 563 1 0000 20 4 30 10 -1\n\
             3: 0100007F:C272 0100007F:1F40 06 00000000:00000000 03:0000144D 00000000     0        0 0 3 0000\n\
             4: 00000000000000000000000001000000:1F40 00000000000000000000000000000000:0000 0A 00000000:00000000 \
             00:00000000 00000000     0        0 564 1 0000 100 0 0 10 0\n\
             garbage\n";
        let mut sockets = Sockets::new();
        collect(list.as_bytes(), 8000, &mut sockets).expect("a text");
        assert_eq!(sockets, Sockets::from([(561, 1000), (564, 0)]));
    }
}
