//! The log as the kernel hands it out by `/dev/kmsg` (Documentation/ABI/testing/dev-kmsg): each read gives one record,
//! `priority,sequence number,microseconds,flags[,…];text`, with control characters in the text as `\x0a`. Lines of key and
//! value may follow; each begins with a blank and none is part of the text.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::super::excerpt::quote;

/// Longer than any record; a read into less is refused.
const RECORD_LIMIT: usize = 64 * 1024;

/// After so many records others may run, and the prober may give up.
const AT_ONCE: u32 = 256;

/// The device, open from the first reading to the last.
#[derive(Debug)]
pub(super) struct Device {
    path: PathBuf,
    file: Option<File>,
    tally: Tally,
}

/// What was read so far.
#[derive(Debug, Default)]
struct Tally {
    /// The sequence number that the next record is to have.
    next: Option<u64>,
    /// Records that hold the text.
    matching: u64,
    /// Records were overwritten before they were read, since that was last told.
    has_lost: bool,
}

impl Device {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, file: None, tally: Tally::default() }
    }

    /// Reads what is there and counts the records whose text holds `contains`, with those of earlier readings.
    ///
    /// # Errors
    /// When the log cannot be read, or records were lost: they may have held the text.
    pub(super) async fn count(&mut self, contains: &str) -> Result<u64, String> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(open(&self.path)?),
        };
        self.tally.catch_up(file, contains).await
    }
}

fn open(path: &Path) -> Result<File, String> {
    let opened = OpenOptions::new().read(true).custom_flags(nix::libc::O_NONBLOCK).open(path);
    opened.map_err(|error| {
        let next = match error.kind() {
            ErrorKind::PermissionDenied => "; run as root, or name a command that may: `command: [sudo, dmesg]`",
            ErrorKind::NotFound => {
                "; a container sees it when it is started with `--device /dev/kmsg`, and Linux alone has it"
            }
            _ => "; name a command that prints the log: `command: [dmesg]`",
        };
        format!("cannot read the kernel's log `{}`: {error}{next}", path.display())
    })
}

impl Tally {
    async fn catch_up(&mut self, log: &mut impl Read, contains: &str) -> Result<u64, String> {
        let mut record = vec![0; RECORD_LIMIT];
        let mut reads: u32 = 0;
        loop {
            reads = reads.wrapping_add(1);
            if reads.is_multiple_of(AT_ONCE) {
                tokio::task::yield_now().await;
            }
            match log.read(&mut record) {
                Ok(0) => break,
                Ok(length) => self.add(&String::from_utf8_lossy(&record[..length]), contains)?,
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => break,
                    ErrorKind::Interrupted => {}
                    // The oldest record that is left is read next. What was lost before the first one is no news.
                    ErrorKind::BrokenPipe => self.has_lost |= self.next.is_some(),
                    _ => return Err(refused(&error)),
                },
            }
        }
        if std::mem::take(&mut self.has_lost) {
            return Err("lines were lost: the kernel's log grew faster than it was read; enlarge it by `log_buf_len`"
                .to_owned());
        }
        Ok(self.matching)
    }

    fn add(&mut self, record: &str, contains: &str) -> Result<(), String> {
        let (number, text) = parse(record)
            .ok_or_else(|| format!("gave {} where a record of the kernel's log was expected", quote(record)))?;
        self.has_lost |= self.next.is_some_and(|next| number > next);
        self.next = Some(number.saturating_add(1));
        self.matching += u64::from(text.contains(contains));
        Ok(())
    }
}

fn refused(error: &io::Error) -> String {
    format!("cannot read on in the kernel's log: {error}; name a command that prints it: `command: [dmesg]`")
}

/// Sequence number and text of a record.
fn parse(record: &str) -> Option<(u64, &str)> {
    let (prefix, rest) = record.split_once(';')?;
    let number = prefix.split(',').nth(1)?.parse().ok()?;
    Some((number, rest.split('\n').next().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    const XID: &str = "NVRM: Xid";

    /// Gives one record or error per read, as the device does, and then that there is no more.
    #[derive(Default)]
    struct Script(VecDeque<io::Result<String>>);

    impl Script {
        fn add(&mut self, record: &str) {
            self.0.push_back(Ok(record.to_owned()));
        }

        fn overrun(&mut self) {
            self.0.push_back(Err(io::Error::from_raw_os_error(nix::libc::EPIPE)));
        }
    }

    impl Read for Script {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let record = self.0.pop_front().unwrap_or_else(|| Err(io::Error::from_raw_os_error(nix::libc::EAGAIN)))?;
            buffer[..record.len()].copy_from_slice(record.as_bytes());
            Ok(record.len())
        }
    }

    #[tokio::test]
    async fn records_of_the_documented_form_are_counted_by_their_text() {
        let (mut log, mut tally) = (Script::default(), Tally::default());
        // The two examples of the kernel's documentation, and the driver's line in NVIDIA's.
        log.add("7,160,424069,-;pci_root PNP0A03:00: host bridge window [io  0x0000-0x0cf7] (ignored)\n SUBSYSTEM=acpi\n DEVICE=+acpi:PNP0A03:00\n");
        log.add("6,339,5140900,-;NET: Registered protocol family 10\n");
        assert!(tally.catch_up(&mut log, XID).await.is_err_and(|failure| failure.starts_with("lines were lost")));
        log.add("3,340,5150000,-,caller=T1;NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.\n");
        log.add("6,341,5150001,-;a key that holds it is no text\n KEY=NVRM: Xid\n");
        assert_eq!(tally.catch_up(&mut log, XID).await, Ok(1));
        assert_eq!(tally.catch_up(&mut log, XID).await, Ok(1));
        // A repeat of the same fault is another line.
        log.add("3,342,6150000,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.\n");
        assert_eq!(tally.catch_up(&mut log, XID).await, Ok(2));
    }

    #[tokio::test]
    async fn an_overrun_is_told_once_and_what_comes_after_it_counts() {
        let (mut log, mut tally) = (Script::default(), Tally::default());
        // Nothing is known of what the buffer no longer held at first.
        log.overrun();
        log.add("6,10,1,-;first\n");
        assert_eq!(tally.catch_up(&mut log, XID).await, Ok(0));
        log.overrun();
        log.add("3,90,2,-;NVRM: Xid (PCI:0000:3b:00): 48, pid=1, DBE (double bit error)\n");
        assert!(tally.catch_up(&mut log, XID).await.is_err_and(|failure| failure.starts_with("lines were lost")));
        assert_eq!(tally.catch_up(&mut log, XID).await, Ok(1));
    }

    #[tokio::test]
    async fn garbage_is_no_record_and_a_flood_leaves_room_to_give_up() {
        let mut tally = Tally::default();
        let mut log = Script::default();
        log.add("\u{1b}[31mno record");
        let failure = tally.catch_up(&mut log, XID).await.expect_err("garbage");
        assert_eq!(failure, "gave `\\u{1b}[31mno record` where a record of the kernel's log was expected");

        struct Flood(u64);
        impl Read for Flood {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                self.0 += 1;
                let record = format!("6,{},1,-;again\n", self.0);
                buffer[..record.len()].copy_from_slice(record.as_bytes());
                Ok(record.len())
            }
        }
        let (mut flood, mut tally) = (Flood(0), Tally::default());
        let limit = std::time::Duration::from_millis(50);
        assert!(tokio::time::timeout(limit, tally.catch_up(&mut flood, XID)).await.is_err());
        assert!(!tally.has_lost && tally.next == Some(flood.0 + 1), "nothing is forgotten by giving up");
    }

    #[tokio::test]
    async fn a_device_that_is_not_there_says_what_to_do() {
        let failure = Device::new(PathBuf::from("/no/such/kmsg")).count(XID).await.expect_err("no device");
        assert!(failure.starts_with("cannot read the kernel's log `/no/such/kmsg`"), "{failure}");
        assert!(failure.contains("--device /dev/kmsg"), "{failure}");
    }
}
