//! The log as a command prints it, whole each time: what is new is found by where the last output goes on.

use std::hash::{DefaultHasher, Hash, Hasher};

/// What was printed so far.
#[derive(Debug, Default)]
pub(super) struct Printed {
    /// The lines of the last output; `None` before the first.
    last: Option<Vec<u64>>,
    /// Lines that held the text, in all outputs, each once.
    matching: u64,
}

impl Printed {
    /// Counts the lines that hold `contains`, with those of earlier outputs.
    ///
    /// # Errors
    /// When the output does not go on from the one before: the lines between them may have held the text.
    pub(super) fn count(&mut self, output: &str, contains: &str) -> Result<u64, String> {
        let lines: Vec<u64> = output.lines().map(digest).collect();
        if lines.is_empty() && self.last.is_none() {
            return Err("printed nothing, and a kernel's log is never empty; may it read the log?".to_owned());
        }
        let known = self.last.as_ref().map_or(0, |last| overlap(last, &lines));
        self.matching += output.lines().skip(known).filter(|line| line.contains(contains)).count() as u64;
        let has_lost = known == 0 && self.last.as_ref().is_some_and(|last| !last.is_empty());
        self.last = Some(lines);
        if has_lost {
            return Err("lines were lost: of what was printed last time nothing is left; the log was cleared, its buffer is too \
                        small, or the same line is printed in another form each time"
                .to_owned());
        }
        Ok(self.matching)
    }
}

/// Enough of a line to know it again; whole outputs would take much memory.
fn digest(line: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    line.hash(&mut hasher);
    hasher.finish()
}

/// How many lines at the end of `earlier` are the first ones of `later`, the most that can be: by Knuth, Morris and Pratt, in
/// time that does not depend on how often lines repeat.
fn overlap(earlier: &[u64], later: &[u64]) -> usize {
    let mut borders = vec![0; later.len()];
    let mut length = 0;
    for at in 1..later.len() {
        length = extend(&borders, later, length, later[at]);
        borders[at] = length;
    }
    earlier.iter().fold(0, |length, line| extend(&borders, later, length, *line))
}

/// The longest beginning of `pattern` that ends in `line`, when what came before ended in the first `length` of it.
fn extend(borders: &[usize], pattern: &[u64], mut length: usize, line: u64) -> usize {
    while length > 0 && pattern.get(length) != Some(&line) {
        length = borders[length - 1];
    }
    length + usize::from(pattern.get(length) == Some(&line))
}

#[cfg(test)]
mod tests {
    use super::*;

    const XID: &str = "NVRM: Xid";

    fn lost(answer: &Result<u64, String>) -> bool {
        answer.as_ref().is_err_and(|failure| failure.starts_with("lines were lost"))
    }

    #[test]
    fn what_is_new_is_counted_once() {
        let first = "[    0.0] Linux version 6.8\n[   10.0] NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\n";
        let mut printed = Printed::default();
        assert_eq!(printed.count(first, XID), Ok(1));
        assert_eq!(printed.count(first, XID), Ok(1));
        let grown = format!("{first}[   20.0] eth0: link up\n[   30.0] NVRM: Xid (PCI:0000:3b:00): 79, pid=1\n");
        assert_eq!(printed.count(&grown, XID), Ok(2));
        // The buffer is a ring: the oldest lines give way.
        let rolled: String = grown.lines().skip(2).map(|line| format!("{line}\n")).collect();
        assert_eq!(printed.count(&format!("{rolled}[   40.0] NVRM: Xid (PCI:0000:af:00): 31\n"), XID), Ok(3));
    }

    #[test]
    fn a_log_that_does_not_go_on_is_no_answer() {
        let mut printed = Printed::default();
        assert_eq!(printed.count("[1] a\n[2] b\n", XID), Ok(0));
        assert!(lost(&printed.count("", XID)), "cleared");
        assert_eq!(
            printed.count("[3] NVRM: Xid (PCI:0000:3b:00): 31\n", XID),
            Ok(1),
            "after nothing everything is new"
        );
        assert!(lost(&printed.count("[90] NVRM: Xid (PCI:0000:3b:00): 31\n[91] c\n", XID)), "rolled over");
        assert_eq!(printed.count("[91] c\n[92] d\n", XID), Ok(2), "what came with the loss is counted");
    }

    #[test]
    fn an_empty_log_is_one_that_could_not_be_read() {
        let mut printed = Printed::default();
        assert!(printed.count("", XID).is_err_and(|failure| failure.starts_with("printed nothing")));
        assert_eq!(printed.count("NVRM: Xid 1\n", XID), Ok(1));
    }

    #[test]
    fn the_overlap_is_the_longest() {
        let of = |earlier: &str, later: &str| {
            let lines = |text: &str| text.bytes().map(u64::from).collect::<Vec<_>>();
            overlap(&lines(earlier), &lines(later))
        };
        // By hand: the longest ending of the first that begins the second.
        for (earlier, later, expected) in [
            ("abc", "abcd", 3),
            ("abc", "bcd", 2),
            ("abc", "xyz", 0),
            ("", "abc", 0),
            ("abc", "", 0),
            ("aaa", "aaaa", 3),
            ("abab", "ababab", 4),
            ("xabab", "abac", 2),
            ("abcab", "abcab", 5),
            ("aabaaab", "aabaaac", 3),
            ("abcabc", "abc", 3),
        ] {
            assert_eq!(of(earlier, later), expected, "{earlier} {later}");
        }
    }
}
