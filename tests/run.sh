#!/usr/bin/env bash
# Checks everything: format, lints (the fuzz targets' too), schemas, documentation examples, the quick start, and all tests,
# those against real servers (text, speech, transcription, turns) included. Installs what they need into a cache folder
# outside the repository (tests/real/server.sh).
#
#   tests/run.sh                  everything
#   tests/run.sh --without-real   leaves out the real servers, which need Linux on x86-64 and Python 3.11
#
# Needs the Rust toolchain that rust-toolchain.toml names, python3 and curl. `cargo nextest` is used where it is installed,
# else `cargo test`. The last line is always `N passed, N failed`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

real=yes
case ${1-} in
"") ;;
--without-real) real=no ;;
*)
  sed -n '2,10s/^# \{0,1\}//p' "$0" >&2
  exit 2
  ;;
esac

say() { printf '\n== %s\n' "$1"; }

need() {
  command -v "$1" >/dev/null && return
  echo "tests/run.sh: $1 is missing; $2" >&2
  exit 1
}

scratch=$(mktemp -d)
real_servers=() # of every server that was asked for: the prefix of its variables, its script, its model, its port
stop_real_servers() {
  local server prefix script model port
  for server in ${real_servers[@]+"${real_servers[@]}"}; do
    read -r prefix script model port <<<"$server"
    bash "tests/real/$script" down "$port" || true
  done
}
finish() {
  stop_real_servers
  rm -rf "$scratch"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

need cargo "install Rust from its home page; the toolchain of rust-toolchain.toml then comes by itself"
need python3 "install Python"
need curl "install curl"

say "format"
cargo fmt --check
cargo fmt --manifest-path tests/fuzz/Cargo.toml --check

say "lints"
cargo clippy --locked --all-targets -- --deny warnings
# In the same folder, so that the dependencies are taken as they lie there; without the engine, which is C++.
cargo clippy --locked --manifest-path tests/fuzz/Cargo.toml --no-default-features --target-dir "${CARGO_TARGET_DIR:-target}" -- --deny warnings

say "build"
cargo build --locked
goodput=${CARGO_TARGET_DIR:-target}/debug/goodput

say "schemas are those of the code"
for file in schemas/*.schema.json; do
  "$goodput" schema "$(basename "$file" .schema.json)" | diff --unified "$file" - || {
    echo "tests/run.sh: $file is stale; write the output of \`goodput schema\` into it" >&2
    exit 1
  }
done

say "examples in the documentation"
cargo test --locked --doc --quiet

say "quick start"
# A machine that is busy otherwise may leave it UNKNOWN (3), which the table then explains.
"$goodput" gate --runs "$scratch/runs" examples/quickstart/contract.yaml || [ $? -eq 3 ]

# Starts all real servers at once and exports where each is and what its model is called. A server that cannot be installed
# here (75) leaves its variables unset, and the tests that need it say that they were skipped.
start_real_servers() {
  local prefix script model port server status starting=()
  while read -r prefix script model port; do
    real_servers+=("$prefix $script $model $port")
    MODEL=$model bash "tests/real/$script" up "$port" >"$scratch/$prefix" </dev/null &
    starting+=($!)
  done
  for server in "${real_servers[@]}"; do
    read -r prefix script model port <<<"$server"
    status=0
    wait "${starting[0]}" || status=$?
    starting=("${starting[@]:1}")
    case $status in
    0)
      echo "$script: $(tr '\n' ' ' <"$scratch/$prefix")"
      export "${prefix}_URL=$(sed -n 's/^URL=//p' "$scratch/$prefix")" "${prefix}_MODEL=$(sed -n 's/^MODEL=//p' "$scratch/$prefix")"
      ;;
    75) echo "tests/run.sh: going on without tests/real/$script; the tests that need it are skipped" >&2 ;;
    *) exit 1 ;;
    esac
  done
}

if [ "$real" = yes ]; then
  say "real servers"
  # The ports are free when they are chosen, and different because all are held until the last is.
  start_real_servers < <(
    python3 - <<'PYTHON'
import socket

servers = [
    "GOODPUT_REAL llama.sh words",
    "GOODPUT_REAL_RAW llama.sh raw",
    "GOODPUT_REAL_PIPER piper.sh -",
    "GOODPUT_REAL_WHISPER whisper.sh -",
    "GOODPUT_REAL_REALTIME realtime.sh -",
    "GOODPUT_REAL_S3 s3.sh -",
    "GOODPUT_REAL_GITHUB github.sh -",
    "GOODPUT_REAL_ACTIONS actions.sh -",
]
held = [socket.create_server(("127.0.0.1", 0)) for _ in servers]
for server, listener in zip(servers, held):
    print(server, listener.getsockname()[1])
PYTHON
  )
fi

say "tests"
status=0
if cargo nextest --version >/dev/null 2>&1; then
  cargo nextest run --locked --no-fail-fast 2>&1 | tee "$scratch/tests" || status=$?
else
  # Without nextest's groups, the tests that carry load run alone, after the others.
  cargo test --locked --no-fail-fast --tests -- --skip real:: 2>&1 | tee "$scratch/tests" || status=$?
  cargo test --locked --test suite -- --test-threads 1 real:: 2>&1 | tee -a "$scratch/tests" || status=$?
fi

# One request or answer that breaks GitHub's description fails the run, whoever made it.
if [ -n "${GOODPUT_REAL_GITHUB_MODEL-}" ]; then
  violations=$(curl --silent --show-error --fail --noproxy '*' "$GOODPUT_REAL_GITHUB_MODEL/_world/violations") || violations=unknown
  [ "$violations" = "[]" ] || { echo "tests/run.sh: GitHub's description was broken: $violations" >&2; status=1; }
fi

# Adds up what the runner said: one `Summary` line of nextest, or one `test result` line of each test binary.
python3 - "$scratch/tests" <<'PYTHON'
import re
import sys

text = re.sub(r"\x1b\[[0-9;]*m", "", open(sys.argv[1], encoding="utf-8", errors="replace").read())
lines = [line for line in text.splitlines() if re.match(r"\s*Summary \[|test result:", line)]
passed, failed = (sum(int(n) for line in lines for n in re.findall(rf"(\d+) (?:{word})", line)) for word in ("passed", "failed|timed out"))
print(f"{passed} passed, {failed} failed")
PYTHON
exit "$status"
