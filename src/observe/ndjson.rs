//! Newline-delimited JSON: one message a line.
//!
//! A line counts when its LF arrives. Blanks around it, a CR before the LF among them, are no part of it, and a blank line
//! is none. The last line needs no LF where the body is complete, as long as it is a whole message.

use memchr::memchr;

use super::limits;
use super::stream::{Event, Stamp, TooLong};

/// Cuts bytes into lines.
#[derive(Debug, Default)]
pub(super) struct LineStream {
    /// The line that has begun and not ended, or the one last yielded.
    line: Vec<u8>,
    /// The line was yielded, and goes with the next bytes.
    yielded: bool,
    /// A byte order mark is skipped only in front of the first line.
    past_first_line: bool,
    /// The write that brought the line's last bytes.
    stamp: Stamp,
    too_long: bool,
}

impl LineStream {
    /// Takes bytes from the front of `bytes` until a line is complete, and yields it; `None` when all are taken.
    pub(super) fn next(&mut self, bytes: &mut &[u8], stamp: Stamp) -> Option<Event<'_>> {
        self.forget_yielded();
        loop {
            if bytes.is_empty() || self.too_long {
                return None;
            }
            let end = memchr(b'\n', bytes);
            let (piece, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            *bytes = if end.is_some() { &rest[1..] } else { rest };
            self.add(piece, stamp);
            if end.is_none() || self.too_long {
                continue;
            }
            if !self.is_blank() {
                break;
            }
            self.past_first_line = true;
            self.line.clear();
        }
        self.yielded = true;
        Some(self.event())
    }

    /// After a complete body: the last line, if it is a whole message and no piece of one.
    pub(super) fn end(&mut self) -> Option<Event<'_>> {
        self.forget_yielded();
        if self.is_blank() || serde_json::from_slice::<serde::de::IgnoredAny>(self.content()).is_err() {
            return None;
        }
        self.yielded = true;
        Some(self.event())
    }

    /// Which limit the stream went over; nothing is read after that.
    pub(super) fn too_long(&self) -> Option<TooLong> {
        self.too_long.then_some(TooLong::Line)
    }

    /// Whether a line has begun and not ended.
    pub(super) fn is_open(&self) -> bool {
        !self.yielded && !self.is_blank()
    }

    fn event(&self) -> Event<'_> {
        Event { name: b"", data: self.content(), stamp: self.stamp, implicit: false }
    }

    /// The line without the blanks around it, and without a byte order mark where one may stand.
    fn content(&self) -> &[u8] {
        let line = if self.past_first_line { None } else { self.line.strip_prefix(b"\xef\xbb\xbf") };
        line.unwrap_or(&self.line).trim_ascii()
    }

    fn is_blank(&self) -> bool {
        self.content().is_empty()
    }

    fn forget_yielded(&mut self) {
        if std::mem::take(&mut self.yielded) {
            self.past_first_line = true;
            self.line.clear();
        }
    }

    fn add(&mut self, piece: &[u8], stamp: Stamp) {
        if self.line.len() + piece.len() > limits::LINE {
            self.too_long = true;
            self.line = Vec::new();
            return;
        }
        self.line.extend_from_slice(piece);
        self.stamp = stamp;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The lines of `writes` with the index of the write that completed each, and whether one is open at the end.
    fn lines(writes: &[&[u8]], complete: bool) -> (Vec<(String, u32)>, bool) {
        let mut stream = LineStream::default();
        let mut found = Vec::new();
        let mut keep = |event: Event<'_>| {
            found.push((String::from_utf8_lossy(event.data).into_owned(), event.stamp.write));
        };
        for (mut rest, write) in writes.iter().copied().zip(0u32..) {
            while let Some(event) = stream.next(&mut rest, Stamp { write, at_ns: u64::from(write) }) {
                keep(event);
            }
        }
        while complete && let Some(event) = stream.end() {
            keep(event);
        }
        (found, stream.is_open())
    }

    #[track_caller]
    fn check(writes: &[&[u8]], expected: &[(&str, u32)], open: bool) {
        let expected: Vec<_> = expected.iter().map(|(line, write)| ((*line).to_owned(), *write)).collect();
        assert_eq!(lines(writes, true), (expected, open));
    }

    #[test]
    fn a_line_counts_when_its_line_end_arrives() {
        check(
            &[b"{\"a\":1}\n{\"b\"", b":2}\r", b"\n\n  \r\n{}\n{\"c\":3}"],
            &[("{\"a\":1}", 0), ("{\"b\":2}", 2), ("{}", 2), ("{\"c\":3}", 2)],
            false,
        );
        check(&[b"\xef", b"\xbb\xbf{}\n\xef\xbb\xbf{}\n"], &[("{}", 1), ("\u{feff}{}", 1)], false);
        check(&[b"a\rb\xe2\x80\xa8c\n"], &[("a\rb\u{2028}c", 0)], false);
    }

    #[test]
    fn a_piece_at_the_end_is_no_message() {
        check(&[b"{}\n{\"a\":"], &[("{}", 0)], true);
        check(&[b"{}\n \n"], &[("{}", 0)], false);
        assert_eq!(lines(&[b"{}"], false), (vec![], true));
        assert_eq!(lines(&[b"{}\n"], false), (vec![("{}".to_owned(), 0)], false));
    }

    #[test]
    fn a_line_beyond_its_limit_ends_the_reading_and_frees_the_memory() {
        let mut stream = LineStream::default();
        let block = vec![b'x'; 1 << 20];
        for _ in 0..9 {
            assert!(stream.next(&mut &block[..], Stamp::default()).is_none());
        }
        assert_eq!((stream.too_long(), stream.line.capacity()), (Some(TooLong::Line), 0));
        assert!(stream.next(&mut &b"{}\n"[..], Stamp::default()).is_none());
        assert!(stream.end().is_none());
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_lines_of_the_whole(
            objects in prop::collection::vec("\\{(\"[a-zé☃ ]{0,6}\":[0-9])?\\}", 0..8),
            ends in prop::collection::vec(prop::sample::select(vec!["\n", "\r\n", "\n\n", " \n"]), 8),
            tail in prop::sample::select(vec!["", "{", "{}", "{\"a\":1}", "\r", "\u{feff}"]),
            lengths in prop::collection::vec(1usize..9, 1..6),
        ) {
            let body: String = objects.iter().zip(&ends).flat_map(|(object, end)| [object.as_str(), end]).collect();
            let body = body + tail;
            let mut rest = body.as_bytes();
            let mut writes = Vec::new();
            for length in lengths.iter().cycle() {
                let (piece, left) = rest.split_at((*length).min(rest.len()));
                writes.push(piece);
                rest = left;
                if rest.is_empty() {
                    break;
                }
            }
            let texts = |found: Vec<(String, u32)>| found.into_iter().map(|(text, _)| text).collect::<Vec<_>>();
            let (cut, open) = lines(&writes, true);
            // What the standard library's own reader of lines finds, blank ones left out.
            let mut expected: Vec<&str> = body.split('\n').map(str::trim_ascii).filter(|line| !line.is_empty()).collect();
            let whole_tail = tail.starts_with("{") && tail.ends_with('}');
            if !tail.trim_ascii().is_empty() && !whole_tail {
                expected.pop();
            }
            if objects.is_empty() && tail == "\u{feff}" {
                prop_assert!(!open);
            } else {
                prop_assert_eq!(open, !tail.trim_ascii().is_empty() && !whole_tail);
            }
            prop_assert_eq!(texts(cut), expected);
        }
    }
}
