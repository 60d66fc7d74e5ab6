//! How the Action gets its program.

use std::fs;
use std::process::Command;

use super::scene::{Ended, Scene};

const LINUX: &str = "goodput-x86_64-unknown-linux-musl.tar.gz";

/// A machine on which every download comes from the file `release.tar.gz`, in which lies a program that leaves a file when it runs.
struct Release {
    scene: Scene,
    sum: String,
}

impl Release {
    fn new() -> Self {
        let scene = Scene::new();
        scene.program(
            "curl",
            "printf '%s\\n' \"$@\" >>asked\nwhile [ \"$1\" != --output ]; do shift; done\ncp release.tar.gz \"$2\"\n",
        );
        fs::create_dir(scene.path("packed")).unwrap();
        scene.program("goodput", "echo ran >>ran\necho goodput 0.1.0\n");
        fs::rename(scene.path("bin/goodput"), scene.path("packed/goodput")).unwrap();
        let (archive, folder) = (scene.path("release.tar.gz"), scene.path("packed"));
        assert!(Command::new("tar").args(["-czf", &archive, "-C", &folder, "goodput"]).status().unwrap().success());
        // The checksum that another tool calculates.
        let python = "import hashlib, sys; print(hashlib.sha256(open(sys.argv[1], 'rb').read()).hexdigest())";
        let output = Command::new("python3").args(["-c", python, &archive]).output().unwrap();
        let sum = String::from_utf8(output.stdout).unwrap().trim().to_owned();
        let release = Self { scene, sum };
        release.machine("Linux", "x86_64");
        release
    }

    fn machine(&self, system: &str, machine: &str) {
        self.scene.program("uname", &format!("case $1 in -s) echo {system} ;; -m) echo {machine} ;; esac\n"));
    }

    /// Lists programs: checksum, version, name.
    fn list(&self, entries: &[(&str, &str, &str)]) {
        let line = |(sum, version, name): &(&str, &str, &str)| {
            format!("{sum}  https://github.example/o/r/releases/download/v{version}/{name}\n")
        };
        let text: String = entries.iter().map(line).collect();
        fs::write(self.scene.path("action/scripts/action/checksums.txt"), format!("# a remark\n{text}")).unwrap();
    }

    fn install(&self, inputs: &[(&str, &str)]) -> Ended {
        self.scene.run("install.sh", inputs)
    }

    fn asked(&self) -> Vec<String> {
        let text = fs::read_to_string(self.scene.path("asked")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

#[track_caller]
fn assert_refused(release: &Release, inputs: &[(&str, &str)], code: i32, expected: &str) {
    let ended = release.install(inputs);
    assert_eq!(ended.code, Some(code), "{ended:?}");
    assert!(ended.stdout.contains(&format!("::error title=goodput::{expected}")), "{}", ended.stdout);
    let exit_code = code.to_string();
    assert_eq!((ended.output("verdict"), ended.output("exit-code")), (Some("ERROR"), Some(exit_code.as_str())));
    assert_eq!(ended.output("bin-path"), None);
    assert!(!release.scene.exists("ran"), "a program ran that must not");
}

#[test]
fn the_shipped_version_is_downloaded_and_checked() {
    let release = Release::new();
    release.list(&[(&release.sum, env!("CARGO_PKG_VERSION"), LINUX)]);
    let ended = release.install(&[]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let program = ended.output("bin-path").unwrap();
    assert!(program.starts_with(&release.scene.path("temp")) && release.scene.exists("ran"), "{program}");
    let asked = release.asked();
    for option in ["--proto", "=https", "--proto-redir", "--tlsv1.2", "--fail"] {
        assert!(asked.iter().any(|argument| argument == option), "{option} is missing in {asked:?}");
    }
    let url = format!("https://github.example/o/r/releases/download/v{}/{LINUX}", env!("CARGO_PKG_VERSION"));
    assert_eq!(asked.last(), Some(&url));
}

#[test]
fn what_is_not_what_was_released_is_never_run() {
    let release = Release::new();
    let version = env!("CARGO_PKG_VERSION");
    let other = "0".repeat(64);
    release.list(&[(&other, version, LINUX)]);
    let message =
        format!("is not what was released: its SHA-256 is {}, and {other} was expected. It was not run", release.sum);
    let url = format!("what came from https://github.example/o/r/releases/download/v{version}/{LINUX} {message}");
    assert_refused(&release, &[], 70, &url);
    let left = fs::read_dir(release.scene.path("temp")).unwrap().count();
    assert_eq!(left, 0, "what was downloaded stays on the machine");

    // The list itself is broken: nothing is asked for.
    let before = release.asked();
    for broken in [[(&release.sum[1..], version, LINUX)].as_slice(), &[(release.sum.as_str(), version, LINUX); 2]] {
        release.list(broken);
        let manifest = release.scene.path("action/scripts/action/checksums.txt");
        assert_refused(&release, &[], 70, &format!("{manifest} has "));
    }
    assert_eq!(release.asked(), before);
}

#[test]
fn a_download_that_fails_says_what_to_do() {
    let release = Release::new();
    release.list(&[(&release.sum, "1.2.3", LINUX)]);
    release.scene.program("curl", "exit 22\n");
    assert_refused(&release, &[("GOODPUT_INPUT_VERSION", "1.2.3")], 70, "cannot download https://github.example/o/r/");
    fs::remove_file(release.scene.path("bin/curl")).unwrap();
    assert_refused(&release, &[("GOODPUT_INPUT_VERSION", "v1.2.3")], 70, "curl is missing on this runner");
}

#[test]
fn another_version_is_taken_only_if_its_checksum_is_shipped() {
    let release = Release::new();
    release.list(&[
        (&release.sum, "1.2.3", LINUX),
        (&release.sum, "1.3.0", LINUX),
        (&release.sum, "1.4.0", "goodput-x.tar.gz"),
    ]);
    let expected = "the input `version` is `9.9.9`, of which this Action knows no checksum for Linux on x86_64; it knows: 1.2.3 1.3.0";
    assert_refused(&release, &[("GOODPUT_INPUT_VERSION", "9.9.9")], 2, expected);
    for wrong in ["latest", "1.2.3/../../x", "1.2"] {
        let expected = format!("the input `version` is `{wrong}`; write one such as `{}`", env!("CARGO_PKG_VERSION"));
        assert_refused(&release, &[("GOODPUT_INPUT_VERSION", wrong)], 2, &expected);
    }
    assert_refused(&release, &[("GOODPUT_INPUT_VERSION", "1.4.0")], 2, "the input `version` is `1.4.0`, of which");
    assert!(release.asked().is_empty());
    let ended = release.install(&[("GOODPUT_INPUT_VERSION", "1.3.0")]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(release.asked().last().unwrap().ends_with("/v1.3.0/goodput-x86_64-unknown-linux-musl.tar.gz"));
}

#[test]
fn each_machine_gets_its_own_program() {
    let rows = [
        ("Linux", "x86_64", "x86_64-unknown-linux-musl"),
        ("Linux", "aarch64", "aarch64-unknown-linux-musl"),
        ("Darwin", "arm64", "aarch64-apple-darwin"),
        ("Darwin", "x86_64", "x86_64-apple-darwin"),
    ];
    let release = Release::new();
    let names: Vec<String> = rows.iter().map(|(_, _, target)| format!("goodput-{target}.tar.gz")).collect();
    let entries: Vec<_> =
        names.iter().map(|name| (release.sum.as_str(), env!("CARGO_PKG_VERSION"), name.as_str())).collect();
    release.list(&entries);
    for ((system, machine, _), name) in rows.iter().zip(&names) {
        release.machine(system, machine);
        assert_eq!(release.install(&[]).code, Some(0));
        assert!(release.asked().last().unwrap().ends_with(name), "{system} {machine}: {:?}", release.asked().last());
    }
    fs::remove_file(release.scene.path("ran")).unwrap();
    release.machine("MINGW64_NT-10.0-26100", "x86_64");
    assert_refused(&release, &[], 70, "goodput runs on Linux and macOS, and this runner has Windows");
}

#[test]
fn source_without_a_release_is_built() {
    let release = Release::new();
    release.list(&[]);
    assert_refused(&release, &[], 70, "this is the Action's source, of which no release is listed for this machine");

    let cargo = "printf '%s\\n' \"$PWD\" \"$@\" >../built\nwhile [ \"$1\" != --target-dir ]; do shift; done\n\
                 mkdir -p \"$2/release\"\ncp ../packed/goodput \"$2/release/goodput\"\n";
    release.scene.program("cargo", cargo);
    for inputs in [[].as_slice(), &[("GOODPUT_INPUT_VERSION", "source")], &[("GOODPUT_INPUT_VERSION", "0.0.0")]] {
        let ended = release.install(inputs);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(ended.output("bin-path"), Some(release.scene.path("temp/goodput-target/release/goodput").as_str()));
        let built = fs::read_to_string(release.scene.path("built")).unwrap();
        let built: Vec<&str> = built.lines().collect();
        // In the source's own folder, and with the dependencies that were locked.
        assert_eq!(
            (built[0], &built[1..4]),
            (release.scene.path("action").as_str(), &["build", "--release", "--locked"][..])
        );
    }
    assert!(release.asked().is_empty());
    fs::remove_file(release.scene.path("ran")).unwrap();
    release.scene.program("cargo", "exit 101\n");
    assert_refused(&release, &[], 70, "goodput cannot be built from source: see cargo's message above");
}

#[test]
fn a_program_that_is_there_is_used_as_it_is() {
    let release = Release::new();
    release.list(&[(&release.sum, env!("CARGO_PKG_VERSION"), LINUX)]);
    for path in ["packed/goodput", &release.scene.path("packed/goodput")] {
        let ended = release.install(&[("GOODPUT_INPUT_BIN_PATH", path)]);
        assert_eq!(ended.output("bin-path"), Some(release.scene.path("packed/goodput").as_str()), "{ended:?}");
    }
    assert!(release.asked().is_empty());
    fs::remove_file(release.scene.path("ran")).unwrap();
    let absent = [("GOODPUT_INPUT_BIN_PATH", "packed")];
    assert_refused(&release, &absent, 2, "the input `bin-path` names no program that can be run: `packed`");
    let both = [("GOODPUT_INPUT_BIN_PATH", "packed/goodput"), ("GOODPUT_INPUT_VERSION", "1.2.3")];
    assert_refused(&release, &both, 2, "the inputs `bin-path` and `version` name two programs");
}
