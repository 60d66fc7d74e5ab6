//! Whole outputs of every renderer.
use super::samples;

#[test]
fn show() {
    use std::io::Write as _;
    let mut out = std::fs::File::create("/tmp/report-show.txt").unwrap();
    for (name, result) in samples::all() {
        for width in [80, 100, 140] {
            writeln!(out, "=== {name} {width}\n{}", super::terminal(&result, width, false)).unwrap();
        }
        writeln!(out, "=== {name} md\n{}", super::markdown(&result)).unwrap();
    }
}
