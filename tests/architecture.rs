//! Holds the direction of the modules and the purity of the pure ones, by reading the source.
//!
//! The table is in `architecture/rules.rs`. The checker reads names, not types: a trait object or a function pointer that
//! is handed in is no import, and that is how a pure module gets what only the shell can do.

#[path = "architecture/rules.rs"]
mod rules;
#[path = "architecture/source.rs"]
mod source;

use std::fs;
use std::path::Path;

use rules::{NODES, SourceFile, violations};

#[test]
fn the_source_keeps_the_rules() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    read_folder(root, &root.join("src"), &mut files);
    assert!(files.len() > 20, "only {} files found under src; the checker looks in the wrong place", files.len());
    let found = violations(&files);
    assert!(found.is_empty(), "{} rules of the architecture are broken:\n{}", found.len(), found.join("\n"));
}

fn read_folder(root: &Path, folder: &Path, files: &mut Vec<SourceFile>) {
    let mut entries: Vec<_> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            read_folder(root, &path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("UTF-8 source");
            let path = path.strip_prefix(root).expect("a path under the root").display().to_string();
            files.push(SourceFile { path, text });
        }
    }
}

/// Imports go to nodes that stand earlier, so there is no cycle. `judge::verdict` standing before `record` is what makes
/// that possible.
#[test]
fn the_table_has_no_cycle_and_pure_nodes_import_pure_ones() {
    for (index, node) in NODES.iter().enumerate() {
        for import in node.may_import {
            let earlier = NODES[..index].iter().find(|earlier| earlier.name == *import);
            let target = earlier.unwrap_or_else(|| panic!("`{}` imports `{import}`, which is not earlier", node.name));
            assert!(target.pure || !node.pure, "`{}` is pure and imports `{import}`", node.name);
        }
    }
}

/// What the checker says about a few files.
fn check(files: &[(&str, &str)]) -> Vec<String> {
    let file = |(path, text): &(&str, &str)| SourceFile { path: (*path).to_owned(), text: (*text).to_owned() };
    violations(&files.iter().map(file).collect::<Vec<_>>())
}

#[track_caller]
fn refused(files: &[(&str, &str)], expected: &[&str]) {
    let found = check(files);
    let starts: Vec<&str> = found.iter().map(|v| v.split(['(', ';']).next().unwrap_or_default().trim_end()).collect();
    assert_eq!(starts, expected, "\n{}", found.join("\n"));
}

#[track_caller]
fn accepted(files: &[(&str, &str)]) {
    refused(files, &[]);
}

#[test]
fn an_import_against_the_flow_is_refused() {
    let against = "src/units/rate.rs:2: `units` must not import `schedule`";
    refused(&[("src/units/rate.rs", "\nuse crate::schedule::Words;")], &[against]);
    refused(&[("src/units/rate.rs", "\nfn f() -> u64 { crate::schedule::words() }")], &[against]);
    refused(&[("src/units/rate.rs", "\nuse super::super::schedule::Words;")], &[against]);
    refused(&[("src/units/rate.rs", "\nuse super::super::{schedule};")], &[against]);
    refused(&[("src/units/rate.rs", "\nmod inner { use super::super::super::schedule::Words; }")], &[against]);
    refused(&[("src/units/rate.rs", "\npub use crate::schedule as plan;")], &[against]);
    refused(&[("src/units/rate.rs", "\nmacro_rules! m { () => { $crate::schedule::f() } }")], &[against]);
    refused(
        &[(
            "src/workload/mod.rs",
            "use crate::{\n  units::{self, Rate},\n  app::{run, exit::Code},\n  schedule::*,\n};",
        )],
        &[
            "src/workload/mod.rs:3: `workload` must not import `app`",
            "src/workload/mod.rs:3: `workload` must not import `app`",
        ],
    );
    refused(
        &[("src/judge/mod.rs", "use crate::drive::Driver;")],
        &["src/judge/mod.rs:1: `judge` must not import `drive`"],
    );
    refused(&[("src/probe/mod.rs", "use crate::app::run;")], &["src/probe/mod.rs:1: `probe` must not import `app`"]);
    refused(&[("src/main.rs", "use goodput::drive::Driver;")], &["src/main.rs:1: `main` must not import `drive`"]);
}

#[test]
fn imports_with_the_flow_are_accepted() {
    accepted(&[("src/schedule/mod.rs", "use std::fmt;\nmod words;\nuse crate::units::Rate;\nuse self::words::Words;")]);
    accepted(&[("src/schedule/words.rs", "use super::Words; pub(crate) fn f(x: &super::Words) {}")]);
    accepted(&[(
        "src/drive/pace.rs",
        "use std::time::Instant; use tokio::net::TcpStream; use crate::schedule::Arrival;",
    )]);
    accepted(&[("src/app/mod.rs", "use crate::{drive::Driver, judge::judge, report};")]);
    accepted(&[("src/main.rs", "fn main() -> std::process::ExitCode { goodput::app::main() }")]);
}

#[test]
fn a_module_outside_the_table_is_refused() {
    let found = check(&[("src/utils/mod.rs", ""), ("src/units/mod.rs", "use crate::VERSION; use crate::*;")]);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[0].starts_with("src/utils/mod.rs:1: the module `utils` is not in the table"));
    assert!(found[1].starts_with("src/units/mod.rs:1: `crate::VERSION` names no module"));
    assert!(found[2].starts_with("src/units/mod.rs:1: `crate::*` names no module"));
}

#[test]
fn types_of_a_verdict_stand_below_records_and_the_judge_above() {
    let judge = ("src/judge/mod.rs", "mod verdict;\nmod decide;\npub use verdict::{Status, Verdict as Answer};");
    let refuse = "src/record/model.rs:1: `record` must not import `judge`";
    accepted(&[judge, ("src/record/model.rs", "use crate::judge::Answer; use crate::judge::{Status};")]);
    refused(&[judge, ("src/record/model.rs", "use crate::judge::decide;")], &[refuse]);
    refused(&[judge, ("src/record/model.rs", "use crate::judge::Verdict;")], &[refuse]);
    refused(&[judge, ("src/record/model.rs", "use crate::judge::*;")], &[refuse]);
    refused(
        &[judge, ("src/judge/verdict.rs", "use super::decide;")],
        &["src/judge/verdict.rs:1: `judge::verdict` must not import `judge`"],
    );
    accepted(&[("src/judge/mod.rs", "use crate::record::RunResult; use verdict::Verdict;")]);
}

#[test]
fn the_shell_half_of_a_module_is_a_node_of_its_own() {
    let refuse = |file: &str| format!("{file}:1: `record` must not import `record::store`");
    let summary = "src/record/summary.rs";
    accepted(&[
        ("src/record/mod.rs", "pub mod store; pub use store::Writer;"),
        ("src/record/store.rs", "use std::fs;"),
    ]);
    refused(&[(summary, "use super::store::Writer;")], &[&refuse(summary)]);
    refused(&[("src/record/mod.rs", "use store::Writer;")], &[&refuse("src/record/mod.rs")]);
    let files = [("src/record/mod.rs", "pub use store::*;"), ("src/record/store.rs", "pub struct Writer;")];
    refused(&[files[0], files[1], (summary, "use super::Writer;")], &[&refuse(summary)]);
    refused(
        &[files[0], files[1], ("src/judge/mod.rs", "use crate::record::Writer;")],
        &["src/judge/mod.rs:1: `judge` must not import `record::store`"],
    );
    refused(
        &[files[0], files[1], ("src/judge/mod.rs", "use crate::record::*;")],
        &["src/judge/mod.rs:1: `judge` must not import `record::store`"],
    );
    accepted(&[("src/simulate/mod.rs", "mod engine; use engine::Engine; use std::net::TcpListener;")]);
    refused(
        &[("src/simulate/engine.rs", "use super::server::Server;")],
        &["src/simulate/engine.rs:1: `simulate::engine` must not import `simulate`"],
    );
}

#[test]
fn a_pure_module_that_is_not_pure_is_refused() {
    let says = |text: &str| {
        let found = check(&[("src/stats/mod.rs", text)]);
        found.iter().map(|v| v.trim_start_matches("src/stats/mod.rs:").to_owned()).collect::<Vec<_>>().join(" | ")
    };
    for (text, expected) in [
        ("use std::fs;", "1: a pure module must not use `std::fs`: it reads or writes files"),
        ("use std::{fmt, net::TcpStream};", "1: a pure module must not use `std::net`: it opens sockets"),
        ("\nlet x = std::env::var(\"A\");", "2: a pure module must not use `std::env`: it reads the environment"),
        (
            "use std::time::{Duration,\n Instant};",
            "2: a pure module must not use `std::time::Instant`: it reads a clock",
        ),
        (
            "use std::time::SystemTime as Wall;",
            "1: a pure module must not use `std::time::SystemTime`: it reads a clock",
        ),
        (
            "use core::{time, fmt};",
            "1: a pure module imports items of `std::time` by name, so that clocks and randomness are seen",
        ),
        (
            "async fn f() { tokio::task::yield_now().await }",
            "1: a pure module must not use `tokio`: it is a runtime with a clock and sockets",
        ),
        ("fn f() { Timestamp::now() }", "1: a pure module must not use `now()`: it reads a clock"),
        ("use jiff::{Timestamp, tz};", "1: a pure module must not use `jiff`: it reads a clock and the time zone"),
        ("use jiff;", "1: a pure module must not use `jiff`: it reads a clock and the time zone"),
        ("fn f() { println!(\"x\") }", "1: a pure module must not use `println!`: it prints"),
        ("fn f(p: &Path) -> bool { p.exists() }", "1: a pure module must not use `.exists()`: it asks the file system"),
    ] {
        assert_eq!(says(text), expected, "{text}");
    }
    let impure =
        "use std::thread; use rand::random; use nix::unistd; use reqwest::Client; use hyper::body; use std::process;";
    assert_eq!(says(impure).matches("must not use").count(), 6, "{}", says(impure));
    let engine = check(&[("src/simulate/engine.rs", "use std::thread::sleep;")]);
    assert_eq!(engine.len(), 1, "{engine:?}");
}

#[test]
fn what_only_looks_impure_is_accepted() {
    accepted(&[("src/stats/mod.rs", "use jiff::{Timestamp, fmt::rfc2822}; fn f(now: u8) -> u8 { g(now) }")]);
    accepted(&[(
        "src/stats/mod.rs",
        "use std::time::Duration; use std::collections::{BTreeMap, VecDeque}; fn f(rand: u8, exists: bool) {}",
    )]);
    accepted(&[(
        "src/stats/mod.rs",
        "//! use std::fs;\n/* std::env /* nested */ tokio::x */ /// crate::app::run\nfn f() {}",
    )]);
    accepted(&[(
        "src/stats/mod.rs",
        r####"const A: &str = "use std::fs; \" println!()"; const B: &str = r#"crate::app" std::net"#;"####,
    )]);
    accepted(&[(
        "src/stats/mod.rs",
        r#"fn f<'a>(c: &'a u8) -> bool { *c == b'"' || 'x' == '\'' || '"' == '"' } // std::fs"#,
    )]);
    accepted(&[("src/stats/mod.rs", "fn f(t: &T) -> u8 { t.std::<u8>() + own::tokio::x() }")]);
}

#[test]
fn code_for_tests_is_free_and_the_code_after_it_is_not() {
    let tests = "#[cfg(test)]\nmod tests { use std::fs; fn f() { println!(\"{}\", 1) } }";
    accepted(&[("src/stats/mod.rs", tests)]);
    accepted(&[(
        "src/stats/mod.rs",
        "#[cfg(test)] use std::{fs, env}; #[cfg(all(test, unix))] #[allow(x)] fn f<A, B>(a: [u8; 2]) { std::fs::x() }",
    )]);
    let parent = ("src/stats/mod.rs", "#[cfg(test)]\nmod tests;");
    let child = ("src/stats/tests.rs", "use std::fs;");
    let refuse = "a pure module must not use `std::fs`: it reads or writes files";
    accepted(&[parent, child]);
    refused(&[("src/stats/mod.rs", "mod tests;"), child], &[&format!("src/stats/tests.rs:1: {refuse}")]);
    for before in [
        tests,
        "#[cfg(test)] use std::{env};",
        "#[cfg(test)] const X: A = A { a: 1 };",
        "struct S { #[cfg(test)] a: u8, b: u8 }",
    ] {
        let line = before.lines().count() + 1;
        let after = format!("{before}\nuse std::fs;");
        refused(&[("src/stats/mod.rs", &after)], &[&format!("src/stats/mod.rs:{line}: {refuse}")]);
    }
    refused(&[("src/stats/mod.rs", "#[cfg(not(test))] use std::fs;")], &[&format!("src/stats/mod.rs:1: {refuse}")]);
}
