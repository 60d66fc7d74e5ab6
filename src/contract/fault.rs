//! Faults of a contract: where, what is wrong, and what to do next.

use std::fmt::Write as _;

use super::secrets;

/// How many faults are written out; what is beyond is only counted.
const SHOWN: usize = 100;
/// How much of a long source line is shown, in characters.
const WIDTH: usize = 120;

/// One mistake in a contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The line, from 1; 0 when the contract was not read from text.
    pub line: usize,
    /// The column in characters, from 1; 0 when the contract was not read from text.
    pub column: usize,
    /// JSON pointer to the value, or to where the key should not be; empty for the whole contract.
    pub pointer: String,
    /// What is wrong and what to do, as a lower-case fragment.
    pub message: String,
}

/// Writes faults the way a compiler does: `file:line:column: /pointer: message`, the source line and a caret, in the order
/// of the text, and the count at the end. Lines that may hold a secret are not shown.
pub fn render_faults(faults: &[Fault], file: &str, text: &str) -> String {
    let file = printable(file);
    let lines: Vec<&str> = text.lines().collect();
    let mut sorted: Vec<&Fault> = faults.iter().collect();
    sorted.sort_by(|a, b| (a.line, a.column, &a.pointer).cmp(&(b.line, b.column, &b.pointer)));
    let mut out = String::new();
    for fault in sorted.iter().take(SHOWN) {
        render_fault(&mut out, fault, &file, &lines);
    }
    if sorted.len() > SHOWN {
        let _ = writeln!(out, "{} more are not shown", sorted.len() - SHOWN);
    }
    let noun = if faults.len() == 1 { "fault" } else { "faults" };
    let _ = writeln!(out, "{} {noun} in {file}", faults.len());
    out
}

fn render_fault(out: &mut String, fault: &Fault, file: &str, lines: &[&str]) {
    let _ = write!(out, "{file}");
    if fault.line > 0 {
        let _ = write!(out, ":{}:{}", fault.line, fault.column);
    }
    if !fault.pointer.is_empty() {
        let _ = write!(out, ": {}", printable(&fault.pointer));
    }
    let _ = writeln!(out, ": {}", printable(&fault.message));
    let Some(line) = fault.line.checked_sub(1).and_then(|index| lines.get(index)) else { return };
    let number = fault.line.to_string();
    let blank = " ".repeat(number.len());
    if secrets::pointer_may_hold(&fault.pointer) || secrets::line_may_hold(line) {
        let _ = writeln!(out, " {number} | (not shown: the line may hold a secret)");
        return;
    }
    let (source, caret) = excerpt(line, fault.column);
    let _ = writeln!(out, " {number} | {source}\n {blank} | {}^", " ".repeat(caret));
}

/// The part of a line around a column, printable, and how many characters stand before the caret.
fn excerpt(line: &str, column: usize) -> (String, usize) {
    let at = column.saturating_sub(1);
    let start = if at < WIDTH - 20 { 0 } else { at - WIDTH / 2 };
    let before: String = line.chars().skip(start).take(at - start).collect();
    let after: String = line.chars().skip(at).take(WIDTH - (at - start)).collect();
    let before = format!("{}{}", if start > 0 { "…" } else { "" }, printable(&before));
    let cut = line.chars().nth(start + WIDTH).is_some();
    let caret = before.chars().count();
    (format!("{before}{}{}", printable(&after), if cut { "…" } else { "" }), caret)
}

/// The text with everything escaped that a terminal could act on or that is invisible.
pub(super) fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            ' '..='~' => out.push(c),
            _ => out.extend(c.escape_debug()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(line: usize, column: usize, pointer: &str) -> Fault {
        Fault { line, column, pointer: pointer.to_owned(), message: "wrong".to_owned() }
    }

    #[test]
    fn faults_are_sorted_shown_with_their_line_and_counted() {
        let faults = [fault(2, 4, "/b"), fault(1, 1, "")];
        let text = "a: 1\nb: \u{1b}[31mred\n";
        let expected = "\
c.yaml:1:1: wrong
 1 | a: 1
   | ^
c.yaml:2:4: /b: wrong
 2 | b: \\u{1b}[31mred
   |    ^
2 faults in c.yaml
";
        assert_eq!(render_faults(&faults, "c.yaml", text), expected);
    }

    #[test]
    fn long_lines_are_cut_around_the_caret() {
        let text = format!("{}X{}", "a".repeat(500), "b".repeat(500));
        let rendered = render_faults(&[fault(1, 501, "")], "c", &text);
        let mut lines = rendered.lines().skip(1);
        let (source, caret) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
        let at = caret.chars().position(|c| c == '^');
        assert_eq!(at, source.chars().position(|c| c == 'X'));
        assert!(source.chars().count() < 140, "{source}");
    }

    #[test]
    fn faults_without_a_place_and_beyond_the_text_have_no_source_line() {
        assert_eq!(
            render_faults(&[fault(0, 0, "/a")], "result.json", ""),
            "result.json: /a: wrong\n1 fault in result.json\n"
        );
        assert_eq!(render_faults(&[fault(9, 1, "")], "c", "a"), "c:9:1: wrong\n1 fault in c\n");
    }

    #[test]
    fn a_flood_of_faults_is_counted() {
        let faults: Vec<Fault> = (1..=150).map(|line| fault(line, 1, "")).collect();
        let rendered = render_faults(&faults, "c", "");
        assert!(rendered.ends_with("50 more are not shown\n150 faults in c\n"), "{rendered}");
    }
}
