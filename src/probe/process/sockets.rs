//! Which processes listen on a TCP port of this machine.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::Path;

/// The most that is read of a list of sockets, in bytes: half a million of them.
const LIMIT: u64 = 80 * 1024 * 1024;

/// The state of a listening socket in `/proc/net/tcp`.
const LISTEN: &str = "0A";

/// That of a connection which is asked for; older kernels list it with the socket that it is asked of.
const ASKED_FOR: &str = "03";

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

/// All sockets that listen come first, and connections, of which there may be many, after them (proc_net_tcp.rst).
fn collect(list: impl Read, port: u16, sockets: &mut Sockets) -> io::Result<()> {
    for line in BufReader::new(list.take(LIMIT)).lines().skip(1) {
        let line = line?;
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        match fields.get(3) {
            Some(&LISTEN) => sockets.extend(listener(&fields, port)),
            Some(&ASKED_FOR) => {}
            _ => break,
        }
    }
    Ok(())
}

/// Inode and user of a socket that listens, when it does so on the port.
fn listener(fields: &[&str], port: u16) -> Option<(u64, u32)> {
    let local = u16::from_str_radix(fields.get(1)?.rsplit_once(':')?.1, 16).ok()?;
    let (user, inode) = (fields.get(7)?.parse().ok()?, fields.get(9)?.parse().ok()?);
    (local == port).then_some((inode, user))
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
        // The form of proc_net_tcp.rst: 0x1F40 is 8000; 0A listens, 03 is asked for, 01 is a connection.
        let four = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             0: 0100007F:1F41 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 562 1 0000 100 0 0 10 0\n\
             1: 0100007F:1F40 0100007F:C271 03 00000000:00000000 01:00000063 00000000  1000        0 0 1 0000\n\
             2: 00000000:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 561 1 0000 100 0 0 10 0\n\
             3: 0100007F:1F40 0100007F:C272 01 00000000:00000000 00:00000000 00000000     0        0 563 1 0000 20 4 30 10 -1\n";
        let six = "  sl  local_address                         remote_address                        st …\n\
             0: 00000000000000000000000001000000:1F40 00000000000000000000000000000000:0000 0A 00000000:00000000 \
             00:00000000 00000000     0        0 564 1 0000 100 0 0 10 0\n\
             garbage\n";
        let mut sockets = Sockets::new();
        for list in [four, six, "", "sl\n\n"] {
            collect(list.as_bytes(), 8000, &mut sockets).expect("a text");
        }
        assert_eq!(sockets, Sockets::from([(561, 1000), (564, 0)]));
    }
}
