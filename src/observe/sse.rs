//! Event streams, by the rules of the WHATWG HTML standard, section "Server-sent events".
//!
//! Fed with any cut of the bytes, it yields the same events. Two things go beyond the standard, which would drop what was
//! sent: an event that no blank line ended is still read where its boundary is certain, and an `error:` line or a bare JSON
//! error between events is passed on as an `error` event.

use memchr::{memchr, memchr2};

use super::limits;
use super::stream::{Event, Stamp, TooLong};

/// An event under construction, or the one last yielded.
#[derive(Debug, Default)]
struct Block {
    name: Vec<u8>,
    /// Every data line followed by LF.
    data: Vec<u8>,
    /// The write that completed its last data line.
    stamp: Stamp,
    implicit: bool,
}

impl Block {
    fn clear(&mut self) {
        self.name.clear();
        self.data.clear();
        self.implicit = false;
    }

    fn set(&mut self, name: &[u8], data: &[u8], stamp: Stamp) {
        self.clear();
        self.name.extend_from_slice(name);
        self.data.extend_from_slice(data);
        self.stamp = stamp;
    }

    fn event(&self) -> Event<'_> {
        let data = self.data.strip_suffix(b"\n").unwrap_or(&self.data);
        Event { name: &self.name, data, stamp: self.stamp, implicit: self.implicit }
    }
}

/// Cuts bytes into events.
#[derive(Debug, Default)]
pub(super) struct EventStream {
    /// The line that has begun and not ended.
    line: Vec<u8>,
    /// The line that has begun is the first, where a byte order mark is skipped.
    past_first_line: bool,
    /// The last line ended in CR: an LF that follows belongs to it.
    after_cr: bool,
    pending: Block,
    ready: Block,
    last: Stamp,
    too_long: Option<TooLong>,
    /// A comment or a field of the standard was seen.
    recognised: bool,
    /// The first line that was neither, cut short.
    stray: Vec<u8>,
}

impl EventStream {
    /// Takes bytes from the front of `bytes` until an event is complete, and yields it; `None` when all are taken.
    pub(super) fn next(&mut self, bytes: &mut &[u8], stamp: Stamp) -> Option<Event<'_>> {
        while !bytes.is_empty() && self.too_long.is_none() {
            self.last = stamp;
            if std::mem::take(&mut self.after_cr) && bytes[0] == b'\n' {
                *bytes = &bytes[1..];
                continue;
            }
            let Some(end) = memchr2(b'\n', b'\r', bytes) else {
                self.begin_line(bytes);
                *bytes = &[];
                break;
            };
            let (head, tail) = bytes.split_at(end);
            self.after_cr = tail[0] == b'\r';
            *bytes = &tail[1..];
            if self.take_line(head, stamp) {
                return Some(self.ready.event());
            }
        }
        None
    }

    /// After a complete body: what the end itself completes. To be called until it yields nothing. A line without an end
    /// counts as one, and an event without a blank line is read if its data is whole; a piece of an event is dropped.
    pub(super) fn end(&mut self) -> Option<Event<'_>> {
        let stamp = self.last;
        if !self.line.is_empty() && self.too_long.is_none() && self.take_line(&[], stamp) {
            return Some(self.ready.event());
        }
        if !is_whole(self.pending.event().data) {
            return None;
        }
        self.pending.implicit = true;
        self.make_ready();
        Some(self.ready.event())
    }

    /// Which limit the stream went over; nothing is read after that.
    pub(super) fn too_long(&self) -> Option<TooLong> {
        self.too_long
    }

    /// Whether an event has begun and not ended.
    pub(super) fn is_open(&self) -> bool {
        !self.pending.data.is_empty() || self.line.starts_with(b"data:")
    }

    /// The first line of a body in which nothing was an event stream.
    pub(super) fn foreign_text(&self) -> Option<&[u8]> {
        (!self.recognised && !self.stray.is_empty()).then_some(&self.stray[..])
    }

    /// Keeps the beginning of a line; only new bytes are ever searched for its end.
    fn begin_line(&mut self, bytes: &[u8]) {
        if self.line.len() + bytes.len() > limits::LINE {
            self.give_up(TooLong::Line);
        } else {
            self.line.extend_from_slice(bytes);
        }
    }

    fn give_up(&mut self, limit: TooLong) {
        self.too_long = Some(limit);
        self.line = Vec::new();
        self.pending = Block::default();
    }

    /// Reads the line that ends with `rest`; true when an event became ready.
    fn take_line(&mut self, rest: &[u8], stamp: Stamp) -> bool {
        if self.line.is_empty() {
            return self.read_line(rest, stamp);
        }
        self.begin_line(rest);
        let mut line = std::mem::take(&mut self.line);
        let ready = self.read_line(&line, stamp);
        line.clear();
        self.line = line;
        ready
    }

    fn read_line(&mut self, line: &[u8], stamp: Stamp) -> bool {
        if line.len() > limits::LINE {
            self.give_up(TooLong::Line);
        }
        if self.too_long.is_some() {
            return false;
        }
        let first = !std::mem::replace(&mut self.past_first_line, true);
        let line = if first { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line) } else { line };
        if line.is_empty() {
            return self.blank_line(stamp);
        }
        let (field, value) = match memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &line[line.len()..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => return self.data_line(value, stamp),
            b"event" => {
                self.pending.name.clear();
                self.pending.name.extend_from_slice(value);
            }
            b"" | b"id" | b"retry" => {}
            _ => return self.stray_line(line, field, value, stamp),
        }
        self.recognised = true;
        false
    }

    /// Ends the pending event. One without data, or whose data is blank, is none.
    fn blank_line(&mut self, stamp: Stamp) -> bool {
        if self.pending.data.trim_ascii().is_empty() {
            self.pending.clear();
            return false;
        }
        self.pending.stamp = stamp;
        self.make_ready();
        true
    }

    fn make_ready(&mut self) {
        std::mem::swap(&mut self.pending, &mut self.ready);
        self.pending.clear();
    }

    fn data_line(&mut self, value: &[u8], stamp: Stamp) -> bool {
        self.recognised = true;
        if self.pending.data.len() + value.len() + 1 > limits::EVENT {
            self.give_up(TooLong::Event);
            return false;
        }
        let boundary = starts_another(self.pending.event().data, value);
        if boundary {
            self.pending.implicit = true;
            self.make_ready();
        }
        self.pending.data.extend_from_slice(value);
        self.pending.data.push(b'\n');
        self.pending.stamp = stamp;
        boundary
    }

    /// A line of no known field: ignored by the standard, but some servers report their failure so.
    fn stray_line(&mut self, line: &[u8], field: &[u8], value: &[u8], stamp: Stamp) -> bool {
        if self.stray.is_empty() {
            self.stray.extend_from_slice(&line[..line.len().min(4 * limits::ERROR_TEXT)]);
        }
        let report = match field {
            b"error" if value.trim_ascii_start().starts_with(b"{") => value,
            b"{\"error\"" => line,
            _ => return false,
        };
        self.ready.set(b"error", report, stamp);
        true
    }
}

/// Whether `value` begins another event although no blank line ended the one before. After a line that ends in `}`, JSON
/// goes on with neither `{` nor `[`, and no string holds a line end: the boundary is certain, without parsing.
fn starts_another(pending: &[u8], value: &[u8]) -> bool {
    let value = value.trim_ascii();
    // The new line is looked at first: then the blanks at the end of `pending` are gone through once and not per line.
    if !value.starts_with(b"{") && value != b"[DONE]" {
        return false;
    }
    let pending = pending.trim_ascii_end();
    pending.ends_with(b"}") || pending == b"[DONE]"
}

/// Whether the data at the end of a stream is a whole message and no piece of one.
fn is_whole(data: &[u8]) -> bool {
    let data = data.trim_ascii();
    data == b"[DONE]" || (data.ends_with(b"}") && serde_json::from_slice::<serde::de::IgnoredAny>(data).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Name, data and `implicit` of every event in `body`, fed in pieces of `piece` bytes.
    fn events(body: &[u8], piece: usize) -> Vec<(String, String, bool)> {
        let mut stream = EventStream::default();
        let mut found = Vec::new();
        let mut keep = |event: Event<'_>| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            found.push((text(event.name), text(event.data), event.implicit));
        };
        for (write, bytes) in body.chunks(piece).enumerate() {
            let stamp = Stamp { write: write as u32, at_ns: write as u64 };
            let mut rest = bytes;
            while let Some(event) = stream.next(&mut rest, stamp) {
                keep(event);
            }
        }
        while let Some(event) = stream.end() {
            keep(event);
        }
        found
    }

    #[track_caller]
    fn check(body: &[u8], expected: &[(&str, &str, bool)]) {
        let expected: Vec<_> = expected.iter().map(|(n, d, i)| ((*n).to_owned(), (*d).to_owned(), *i)).collect();
        for piece in 1..=body.len() {
            assert_eq!(events(body, piece), expected, "in pieces of {piece}: {:?}", String::from_utf8_lossy(body));
        }
    }

    #[test]
    fn lines_end_in_lf_cr_or_both_and_in_nothing_else() {
        check(
            b"data: a\n\ndata: b\r\n\r\ndata: c\r\rdata: d\r\n\n",
            &[("", "a", false), ("", "b", false), ("", "c", false), ("", "d", false)],
        );
        check(b"data: a\r\ndata: b\r\n\r\ndata: c\rdata: d\r\r", &[("", "a\nb", false), ("", "c\nd", false)]);
        check("data: a\u{2028}b\u{85}c\x0bd\n\n".as_bytes(), &[("", "a\u{2028}b\u{85}c\x0bd", false)]);
    }

    #[test]
    fn fields_are_read_as_the_standard_says() {
        // The examples of the standard's section on interpreting an event stream.
        check(b"data: YHOO\ndata: +2\ndata: 10\n\n", &[("", "YHOO\n+2\n10", false)]);
        check(
            b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
            &[("", "first event", false), ("", "second event", false), ("", " third event", false)],
        );
        check(
            b"event: add\ndata: 7\n\ndata: 8\nevent: remove\n\nevent: none\n\ndata: 9\n\n",
            &[("add", "7", false), ("remove", "8", false), ("", "9", false)],
        );
        check(b"data\n\ndata:\ndata: \n\nretry: 5\n\nfoo: x\n Data: y\n\n", &[]);
        check(b"\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n", &[("", "a", false)]);
    }

    #[test]
    fn an_event_that_no_blank_line_ended_is_read_where_its_boundary_is_certain() {
        check(
            b"data: {\"a\":1}\ndata: {\"a\":2}\ndata: [DONE]\n",
            &[("", "{\"a\":1}", true), ("", "{\"a\":2}", true), ("", "[DONE]", true)],
        );
        check(b"data: {\"a\":[{\ndata: },\ndata: {\ndata: }]}\n\n", &[("", "{\"a\":[{\n},\n{\n}]}", false)]);
        check(b"data: {\"a\":1}\n\ndata: {\"a\":{}", &[("", "{\"a\":1}", false)]);
        check(b"data: [DONE]", &[("", "[DONE]", true)]);
        check(b"data: word", &[]);
    }

    #[test]
    fn an_event_is_stamped_with_the_write_that_completed_it() {
        let mut stream = EventStream::default();
        let mut stamps = Vec::new();
        for (write, mut bytes) in
            [&b"data: {}\n"[..], b"\ndata: {}\n", b"data: {", b"}\r", b"\r", b"\n"].into_iter().enumerate()
        {
            let stamp = Stamp { write: write as u32, at_ns: 10 * write as u64 };
            while let Some(event) = stream.next(&mut bytes, stamp) {
                stamps.push((event.stamp.write, event.stamp.at_ns));
            }
        }
        assert_eq!(stamps, [(1, 10), (1, 10), (4, 40)]);
    }

    #[test]
    fn failures_outside_of_events_are_passed_on() {
        check(b"error: {\"code\":500}\n\n", &[("error", "{\"code\":500}", false)]);
        check(b"data: {}\n\n{\"error\":\"gone\"}\n\n", &[("", "{}", false), ("error", "{\"error\":\"gone\"}", false)]);
    }

    #[test]
    fn a_line_or_event_beyond_its_limit_ends_the_reading_and_frees_the_memory() {
        let mut stream = EventStream::default();
        let block = vec![b'x'; 1 << 20];
        for _ in 0..9 {
            assert!(stream.next(&mut &block[..], Stamp::default()).is_none());
        }
        assert_eq!((stream.too_long(), stream.line.capacity()), (Some(TooLong::Line), 0));
        let mut stream = EventStream::default();
        let line = [b"data: ", &block[..], b"\n"].concat();
        for _ in 0..17 {
            assert!(stream.next(&mut &line[..], Stamp::default()).is_none());
        }
        assert_eq!((stream.too_long(), stream.pending.data.capacity()), (Some(TooLong::Event), 0));
    }
}
