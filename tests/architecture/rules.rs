//! Which module may import which, and what a pure module may not touch.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{Reference, Token, references, tokens, without_tests};

/// One node of the module graph.
///
/// A node is a top-level module, with two kinds of exception, written `parent::child`: the shell half of a half-pure
/// module (`record::store`) or its pure half (`simulate::profile` and its like), and `judge::verdict`. The last one
/// holds the published types of a verdict and nothing else. A result carries its verdict and a verdict is computed from a
/// result, so `judge` and `record` would import each other; the types alone stand below both, and `record` may name them
/// but not `judge`.
pub(crate) struct Node {
    pub(crate) name: &'static str,
    pub(crate) pure: bool,
    pub(crate) may_import: &'static [&'static str],
}

const fn pure(name: &'static str, may_import: &'static [&'static str]) -> Node {
    Node { name, pure: true, may_import }
}

const fn shell(name: &'static str, may_import: &'static [&'static str]) -> Node {
    Node { name, pure: false, may_import }
}

/// The graph, in the order the data flows. An import that is not listed is a fault.
pub(crate) const NODES: &[Node] = &[
    pure("units", &[]),
    pure("stats", &["units"]),
    pure("schedule", &["units"]),
    pure("audio", &["units"]),
    pure("workload", &["units", "audio", "schedule"]),
    pure("observe", &["units", "audio"]),
    pure("judge::verdict", &["units"]),
    pure("contract", &["units", "audio", "schedule", "workload", "observe", "judge::verdict"]),
    pure("record", &["units", "audio", "stats", "schedule", "observe", "contract", "judge::verdict"]),
    // What the trials at one load decide together is asked by the search, and by whoever compares with an old capacity.
    pure("search::hold", &["units", "stats", "contract", "record", "judge::verdict"]),
    pure("compare", &["units", "stats", "schedule", "contract", "record", "search::hold", "judge::verdict"]),
    pure("search", &["units", "stats", "schedule", "contract", "record", "search::hold", "compare", "judge::verdict"]),
    pure(
        "judge",
        &[
            "units",
            "stats",
            "schedule",
            "observe",
            "contract",
            "record",
            "search",
            "search::hold",
            "compare",
            "judge::verdict",
        ],
    ),
    pure(
        "report",
        &[
            "units",
            "stats",
            "schedule",
            "workload",
            "observe",
            "contract",
            "record",
            "search",
            "search::hold",
            "compare",
            "judge",
            "judge::verdict",
        ],
    ),
    pure("simulate::profile", &["units"]),
    pure("simulate::engine", &["units", "stats", "schedule", "simulate::profile"]),
    pure("simulate::faults", &["schedule", "simulate::profile"]),
    // A run in virtual time: the real schedule, records, summary, plan and judge around the model of an endpoint.
    pure(
        "simulate::rehearsal",
        &[
            "units",
            "schedule",
            "observe",
            "contract",
            "record",
            "search",
            "judge",
            "simulate::profile",
            "simulate::engine",
            "simulate::faults",
        ],
    ),
    shell("record::store", &["units", "schedule", "observe", "contract", "judge::verdict", "record"]),
    shell("endpoint", &["units", "observe", "contract", "record"]),
    // A page of numbers is asked for with the same client, headers and masks as the endpoint's own pages.
    shell("probe", &["units", "contract", "record", "endpoint"]),
    // The client of GitHub's API, and the event that started a workflow.
    shell("github", &[]),
    // Under which circumstances a run was made: asked of the machine, the endpoint and the repository.
    shell("fingerprint", &["units", "observe", "contract", "record", "endpoint", "probe", "github"]),
    // Where records are kept, and which one fits.
    shell("baseline", &["units", "contract", "record", "record::store", "judge::verdict", "github"]),
    // A result on the surfaces of GitHub. The texts are the reports'; nothing is decided or computed here.
    shell("publish", &["units", "judge::verdict", "record", "report", "github"]),
    shell(
        "simulate",
        &[
            "units",
            "stats",
            "schedule",
            "simulate::profile",
            "simulate::engine",
            "simulate::faults",
            "simulate::rehearsal",
        ],
    ),
    // Records are appended as requests finish, so the driver is handed the open end of `requests.jsonl`. It trusts the same
    // certificates as the question whether the endpoint is ready.
    shell(
        "drive",
        &["units", "audio", "schedule", "workload", "observe", "contract", "record", "record::store", "endpoint"],
    ),
    shell(
        "app",
        &[
            "units",
            "audio",
            "stats",
            "schedule",
            "workload",
            "observe",
            "contract",
            "judge::verdict",
            "record",
            "search",
            "judge",
            "report",
            "record::store",
            "compare",
            "search::hold",
            "probe",
            "fingerprint",
            "baseline",
            "publish",
            "endpoint",
            "simulate",
            "simulate::profile",
            "drive",
        ],
    ),
    shell("main", &["app"]),
];

/// Paths that a pure module may not name, each with what it would read or do.
const IMPURE_PATHS: &[(&str, &str)] = &[
    ("std::fs", "reads or writes files"),
    ("std::net", "opens sockets"),
    ("std::env", "reads the environment"),
    ("std::process", "starts or ends processes"),
    ("std::thread", "starts threads or sleeps"),
    ("std::io", "reads or writes"),
    ("std::os", "reaches into the system"),
    ("std::time::Instant", "reads a clock"),
    ("std::time::SystemTime", "reads a clock"),
    ("std::time::UNIX_EPOCH", "is of use with a clock only"),
    ("std::hash::RandomState", "is random"),
    ("std::collections::HashMap", "has a random order; take a BTreeMap"),
    ("std::collections::HashSet", "has a random order; take a BTreeSet"),
    ("anstream", "writes to the terminal"),
    ("clap", "reads the command line"),
    ("getrandom", "is random"),
    ("hyper", "opens sockets"),
    ("hyper_util", "opens sockets"),
    ("jiff", "reads a clock and the time zone"),
    ("nix", "reaches into the system"),
    ("object_store", "opens sockets"),
    ("octocrab", "opens sockets"),
    ("rand", "is random; take a seed and `schedule::Words`"),
    ("reqwest", "opens sockets"),
    ("rustls", "belongs to sockets"),
    ("rustls_native_certs", "reads files"),
    ("tempfile", "writes files"),
    ("tokio", "is a runtime with a clock and sockets"),
    ("tokio_rustls", "opens sockets"),
    ("tokio_util", "belongs to a runtime"),
    ("zip", "is for what comes from elsewhere"),
];

/// Exceptions to them: the calendar is arithmetic, and only `now` reads the clock (see [`CLOCK_FUNCTION`]).
const PURE_PATHS: &[&str] = &["jiff::Timestamp", "jiff::civil", "jiff::fmt"];

/// The associated function that reads a clock in every crate that has one.
const CLOCK_FUNCTION: &str = "now";

/// Modules that a pure module imports from by name: the whole would let the paths above in unseen.
const NAME_THE_ITEMS: &[&str] =
    &["std", "std::*", "std::time", "std::time::*", "std::collections", "std::collections::*"];

const IMPURE_MACROS: &[&str] = &["print", "println", "eprint", "eprintln", "dbg"];

/// Methods of `Path` that ask the file system.
const IMPURE_METHODS: &[&str] = &[
    "canonicalize",
    "exists",
    "is_dir",
    "is_file",
    "is_symlink",
    "read_dir",
    "read_link",
    "symlink_metadata",
    "try_exists",
];

/// A file of the crate: its path from the repository's root and its text.
pub(crate) struct SourceFile {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// One parsed file.
struct Module<'a> {
    path: &'a str,
    /// Segments from the crate's root: `["judge", "verdict"]`.
    segments: Vec<String>,
    tokens: Vec<Token>,
}

/// Everything in the files that breaks a rule, as `file:line: rule`.
pub(crate) fn violations(files: &[SourceFile]) -> Vec<String> {
    let modules = parse(files);
    let exposed = exposed_names(&modules);
    let mut found = Vec::new();
    for module in &modules {
        let Some(node) = node_of(&module.segments) else {
            found.push(format!(
                "{}:1: the module `{}` is not in the table of tests/architecture/rules.rs; give it its place",
                module.path,
                module.segments.join("::")
            ));
            continue;
        };
        found.extend(import_violations(module, node, &exposed));
        if node.pure {
            found.extend(purity_violations(module));
        }
    }
    found
}

fn parse(files: &[SourceFile]) -> Vec<Module<'_>> {
    let mut modules = Vec::new();
    let mut test_only = BTreeSet::new();
    for file in files.iter().filter(|file| file.path != "src/lib.rs") {
        let segments = segments_of(&file.path);
        let (tokens, test_modules) = without_tests(&tokens(&file.text));
        test_only.extend(test_modules.into_iter().map(|name| [segments.as_slice(), &[name]].concat()));
        modules.push(Module { path: &file.path, segments, tokens });
    }
    modules.retain(|module| !test_only.iter().any(|test: &Vec<String>| module.segments.starts_with(test)));
    modules
}

fn segments_of(path: &str) -> Vec<String> {
    let path = path.trim_start_matches("src/").trim_end_matches(".rs");
    path.split('/').filter(|segment| *segment != "mod").map(str::to_owned).collect()
}

fn node(name: &str) -> Option<&'static Node> {
    NODES.iter().find(|node| node.name == name)
}

/// The node that a module or an item belongs to: the longest one that its path begins with.
fn node_of(segments: &[String]) -> Option<&'static Node> {
    let child = segments.get(..2).and_then(|two| node(&two.join("::")));
    child.or_else(|| segments.first().and_then(|top| node(top)))
}

/// Names that a module takes out of a child node by `pub use`, by the module's name: whoever names them there imports the
/// child, not the parent.
fn exposed_names(modules: &[Module<'_>]) -> BTreeMap<(String, String), &'static Node> {
    let mut names = BTreeMap::new();
    for child in NODES {
        let Some((parent, child_name)) = child.name.split_once("::") else { continue };
        let file_of = |name: &str| modules.iter().find(|module| module.segments.join("::") == name);
        let Some(parent_file) = file_of(parent) else { continue };
        for reference in references(&parent_file.tokens, |word| word == child_name).iter().filter(|r| r.exposed) {
            let last = reference.segments.last().map_or("", String::as_str);
            if last == "*" {
                let items = file_of(child.name).map(public_items).unwrap_or_default();
                names.extend(items.into_iter().map(|item| ((parent.to_owned(), item), child)));
            } else {
                let name = reference.alias.as_deref().unwrap_or(last);
                names.insert((parent.to_owned(), name.to_owned()), child);
            }
        }
    }
    names
}

fn public_items(module: &Module<'_>) -> Vec<String> {
    const KINDS: [&str; 7] = ["struct", "enum", "fn", "const", "trait", "type", "static"];
    let is_item = |three: &&[Token]| three[0].text == "pub" && KINDS.contains(&three[1].text.as_str());
    module.tokens.windows(3).filter(is_item).map(|three| three[2].text.clone()).collect()
}

fn import_violations(
    module: &Module<'_>,
    from: &Node,
    exposed: &BTreeMap<(String, String), &'static Node>,
) -> Vec<String> {
    let children: Vec<&str> =
        NODES.iter().filter_map(|child| child.name.strip_prefix(&format!("{}::", from.name))).collect();
    let is_root_file = module.segments.len() == 1;
    let is_child = |word: &str| is_root_file && children.contains(&word);
    let is_own_crate = |word: &str| word == "goodput" && from.name == "main";
    let is_root = |word: &str| ["crate", "super", "self"].contains(&word) || is_child(word) || is_own_crate(word);
    let mut found = Vec::new();
    for reference in references(&module.tokens, is_root) {
        let place = format!("{}:{}", module.path, reference.line);
        let path = absolute(&reference, module);
        let written = reference.segments.join("::");
        let glob = path.last().is_some_and(|last| last == "*");
        let mut targets = Vec::new();
        match path.get(1).and_then(|name| exposed.get(&(path[0].clone(), name.clone()))) {
            Some(child) => targets.push(*child),
            None => match node_of(&path) {
                Some(target) => targets.push(target),
                None => found
                    .push(format!("{place}: `{written}` names no module of the table; import from the module itself")),
            },
        }
        if glob && path.len() == 2 {
            // A glob also takes what the parent exposes of its children.
            targets.extend(exposed.iter().filter(|((parent, _), _)| *parent == path[0]).map(|(_, child)| *child));
            targets.dedup_by_key(|target| target.name);
        }
        for target in targets {
            let exposes_child =
                reference.exposed && is_root_file && target.name.starts_with(&format!("{}::", from.name));
            if target.name != from.name && !exposes_child && !from.may_import.contains(&target.name) {
                found.push(format!(
                    "{place}: `{}` must not import `{}` (`{written}`); it may import: {}",
                    from.name,
                    target.name,
                    if from.may_import.is_empty() { "nothing".to_owned() } else { from.may_import.join(", ") },
                ));
            }
        }
    }
    found
}

/// A reference's path from the crate's root.
fn absolute(reference: &Reference, module: &Module<'_>) -> Vec<String> {
    let mut base = [module.segments.as_slice(), &reference.inside].concat();
    let mut rest = reference.segments.as_slice();
    match rest.first().map(String::as_str) {
        Some("crate" | "goodput") => {
            base.clear();
            rest = &rest[1..];
        }
        Some("self") => rest = &rest[1..],
        _ => {}
    }
    while rest.first().is_some_and(|segment| segment == "super") {
        base.pop();
        rest = &rest[1..];
    }
    base.extend_from_slice(rest);
    base
}

fn purity_violations(module: &Module<'_>) -> Vec<String> {
    let is_root = |word: &str| {
        let crate_of = |path: &&str| path.split("::").next().is_some_and(|name| name == word);
        IMPURE_PATHS.iter().map(|(path, _)| path).any(crate_of) || ["core", "alloc"].contains(&word)
    };
    let mut found = Vec::new();
    for reference in references(&module.tokens, is_root) {
        let mut path = reference.segments.clone();
        if ["core", "alloc"].contains(&path[0].as_str()) {
            path[0] = "std".to_owned();
        }
        let path = path.join("::");
        let is_under = |parent: &str| path == parent || path.starts_with(&format!("{parent}::"));
        if PURE_PATHS.iter().any(|pure| is_under(pure)) {
            continue;
        }
        if let Some((impure, why)) = IMPURE_PATHS.iter().find(|(impure, _)| is_under(impure)) {
            found.push(format!("{}:{}: a pure module must not use `{impure}`: it {why}", module.path, reference.line));
        } else if NAME_THE_ITEMS.contains(&path.as_str()) {
            found.push(format!(
                "{}:{}: a pure module imports items of `{}` by name, so that clocks and randomness are seen",
                module.path,
                reference.line,
                path.trim_end_matches("::*")
            ));
        }
    }
    for three in module.tokens.windows(3) {
        let [first, second, third] = [0, 1, 2].map(|index| three[index].text.as_str());
        if second == "!" && IMPURE_MACROS.contains(&first) && ["(", "[", "{"].contains(&third) {
            found.push(format!("{}:{}: a pure module must not use `{first}!`: it prints", module.path, three[0].line));
        }
        if first == "::" && second == CLOCK_FUNCTION && third == "(" {
            found.push(format!(
                "{}:{}: a pure module must not use `now()`: it reads a clock",
                module.path, three[1].line
            ));
        }
        if first == "." && third == "(" && IMPURE_METHODS.contains(&second) {
            found.push(format!(
                "{}:{}: a pure module must not use `.{second}()`: it asks the file system",
                module.path, three[1].line
            ));
        }
    }
    found
}
