//! The end of a launched endpoint's log.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// How much of the log's end is looked at, in bytes.
const TAIL_BYTES: u64 = 64 * 1024;

/// The last `lines` lines within the last 64 KiB of a file; bytes that are no UTF-8 become replacement characters.
pub(super) fn tail(path: &Path, lines: usize) -> io::Result<Vec<String>> {
    let mut file = File::open(path)?;
    let start = file.metadata()?.len().saturating_sub(TAIL_BYTES);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    // The endpoint may go on writing: what comes after this look is not waited for.
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let mut all: Vec<&str> = text.lines().collect();
    if start > 0 && all.len() > 1 {
        // Its beginning was cut off.
        all.remove(0);
    }
    let first = all.len().saturating_sub(lines);
    Ok(all.iter().skip(first).map(|line| (*line).to_owned()).collect())
}

/// Rewrites a file so that no secret stays in it: every line, cut at 64 KiB, goes through `mask`. A file without any is
/// left as it is.
///
/// # Errors
/// When the file cannot be read, or the new one not be written.
pub fn mask_log(path: &Path, mask: impl Fn(&str) -> String) -> io::Result<()> {
    let mut reader = BufReader::new(File::open(path)?);
    let draft = path.with_extension("draft");
    let mut writer = BufWriter::new(File::create(&draft)?);
    let (mut line, mut changed) = (Vec::new(), false);
    let mut rewrite = || -> io::Result<()> {
        while (&mut reader).take(TAIL_BYTES).read_until(b'\n', &mut line)? > 0 {
            let text = String::from_utf8_lossy(&line);
            let masked = mask(&text);
            if masked == text {
                writer.write_all(&line)?;
            } else {
                changed = true;
                writer.write_all(masked.as_bytes())?;
            }
            line.clear();
        }
        writer.flush()
    };
    let rewritten = rewrite();
    if rewritten.is_ok() && changed {
        std::fs::rename(&draft, path)
    } else {
        rewritten.and(std::fs::remove_file(&draft))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_masked_in_place() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("endpoint.log");
        std::fs::write(&path, b"token abc\nother\xff\nabc").expect("the log is written");
        mask_log(&path, |line| line.replace("abc", "***")).expect("the log is masked");
        assert_eq!(std::fs::read(&path).expect("the log is read"), b"token ***\nother\xff\n***");
        assert_eq!(std::fs::read_dir(folder.path()).expect("the folder").count(), 1);
    }

    fn tail_of(content: &[u8], lines: usize) -> Vec<String> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("endpoint.log");
        std::fs::write(&path, content).expect("the log is written");
        tail(&path, lines).expect("the log is read")
    }

    #[test]
    fn the_last_lines_are_kept_in_order() {
        assert_eq!(tail_of(b"one\ntwo\nthree\n", 2), ["two", "three"]);
        assert_eq!(tail_of(b"one\ntwo", 9), ["one", "two"]);
        assert!(tail_of(b"", 9).is_empty());
    }

    #[test]
    fn a_line_that_is_not_text_is_shown_all_the_same() {
        assert_eq!(tail_of(b"load\xff\n", 1), ["load\u{fffd}"]);
    }

    #[test]
    fn a_huge_log_costs_a_bounded_read_and_no_half_line() {
        let mut content = vec![b'x'; 3 * TAIL_BYTES as usize];
        content.extend_from_slice(b"\nlast words\n");
        assert_eq!(tail_of(&content, 5), ["last words"]);
        let one_line = vec![b'x'; 2 * TAIL_BYTES as usize];
        assert_eq!(tail_of(&one_line, 5).iter().map(String::len).collect::<Vec<_>>(), [TAIL_BYTES as usize]);
    }
}
