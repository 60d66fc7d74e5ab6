//! Commands to the runner of a workflow: lines of standard output or standard error that it acts upon.
//!
//! Everything in them is escaped as the runner's own library does it, for much of it comes from servers and models.

use std::io::{self, Write};

use crate::report::{Annotation, Level, plain};

/// The longest message that the runner shows, in characters, less what it may add.
const LONGEST_MESSAGE: usize = 4_000;

/// The longest title.
const LONGEST_TITLE: usize = 200;

/// Folds what is printed from here on under a title, up to [`end_group`].
///
/// # Errors
/// When it cannot be written.
pub fn group(out: &mut dyn Write, title: &str) -> io::Result<()> {
    writeln!(out, "::group::{}", data(&shortened(title, LONGEST_TITLE)))
}

/// Ends what [`group`] began.
///
/// # Errors
/// When it cannot be written.
pub fn end_group(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "::endgroup::")
}

/// One annotation, at a line of a file where it has one.
pub(super) fn annotate(out: &mut dyn Write, file: Option<&str>, annotation: &Annotation) -> io::Result<()> {
    let command = match annotation.level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Notice => "notice",
    };
    let mut properties = Vec::new();
    if let Some(file) = file {
        properties.push(format!("file={}", property(&plain(file))));
        properties.extend(annotation.line.map(|line| format!("line={line}")));
    }
    properties.push(format!("title={}", property(&shortened(&annotation.title, LONGEST_TITLE))));
    let message = data(&shortened(&annotation.message, LONGEST_MESSAGE));
    writeln!(out, "::{command} {}::{message}", properties.join(","))
}

/// Text in which nothing is hidden, of at most so many characters.
fn shortened(text: &str, most: usize) -> String {
    let mut visible = plain(text);
    if let Some((end, _)) = visible.char_indices().nth(most) {
        visible.truncate(end);
        visible.push('…');
    }
    visible
}

/// A command's message.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The value of a command's property.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(file: Option<&str>, title: &str, message: &str) -> String {
        let mut out = Vec::new();
        let (title, message) = (title.to_owned(), message.to_owned());
        annotate(&mut out, file, &Annotation { level: Level::Error, line: Some(3), title, message }).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// The escapes are those of the `escapeData` and `escapeProperty` of the actions' toolkit.
    #[test]
    fn a_command_is_one_line_whatever_is_in_it() {
        assert_eq!(
            printed(Some("a,b:c.yaml"), "FAIL: tiny", "50% of\r\n::set-output name=x::y"),
            "::error file=a%2Cb%3Ac.yaml,line=3,title=FAIL%3A tiny::50%25 of␍%0A| ::set-output name=x::y\n"
        );
        assert_eq!(
            printed(None, "%0A::stop-commands::x", "%0A"),
            "::error title=%250A%3A%3Astop-commands%3A%3Ax::%250A\n"
        );
        assert_eq!(printed(None, "t", "\u{1b}[31m \u{202e}"), "::error title=t::␛[31m \\u{202e}\n");
        let long = printed(None, &"t".repeat(1 << 20), &"m".repeat(1 << 20));
        assert!(long.len() < 4_400 && long.ends_with("…\n"), "{}", long.len());
    }

    #[test]
    fn a_group_has_a_title_of_one_line() {
        let mut out = Vec::new();
        group(&mut out, "a\n::error::b").unwrap();
        end_group(&mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "::group::a%0A| ::error::b\n::endgroup::\n");
    }
}
