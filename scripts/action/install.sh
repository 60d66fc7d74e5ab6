#!/usr/bin/env bash
# Looks at the inputs, and gets the program: one that is there, else a released one whose checksum is shipped with this very
# Action, else what its own source builds. The output `bin-path` says where it is.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/action/common.sh
. "$here/common.sh"
action=$(cd "$here/../.." && pwd)

# A program that the workflow names, from the workspace.
use_given() {
  local path=$1
  case $path in
  /*) ;;
  *) path=$PWD/$path ;;
  esac
  if [ ! -f "$path" ] || [ ! -x "$path" ]; then
    fail 2 "the input \`bin-path\` names no program that can be run: \`${1:0:200}\`"
  fi
  bin=$path
}

# What the release calls this machine; empty for one that no release is built for.
read_target() {
  local system machine
  system=$(uname -s)
  machine=$(uname -m)
  case $system/$machine in
  Linux/x86_64 | Linux/amd64) target=x86_64-unknown-linux-musl ;;
  Linux/aarch64 | Linux/arm64) target=aarch64-unknown-linux-musl ;;
  Darwin/arm64) target=aarch64-apple-darwin ;;
  Darwin/x86_64) target=x86_64-apple-darwin ;;
  MINGW*/* | MSYS*/* | CYGWIN*/* | Windows*/*)
    fail 70 "goodput runs on Linux and macOS, and this runner has Windows ($system): name another in \`runs-on\`"
    ;;
  *) target= ;;
  esac
}

# The version that this Action is of.
shipped_version() {
  sed -n 's/^version = "\([^"]*\)"$/\1/p' "$action/Cargo.toml" | head -n 1
}

# Looks a version up in the checksums: lines of `SHA-256 URL`, whose URL ends in `/vVERSION/goodput-TARGET.tar.gz`.
read_entry() {
  local entry_sum entry_url rest
  sum='' url=''
  while read -r entry_sum entry_url rest; do
    if ! [[ "$entry_sum ${entry_url-}" =~ ^[0-9a-f]{64}\ https://[^[:space:]?#]+/v[^/]+/goodput-[a-z0-9_-]+\.tar\.gz$ ]]; then
      [ -z "$entry_sum" ] || fail 70 "$manifest has a line that is no entry: ${entry_sum:0:80}"
      continue
    fi
    [ "${entry_url-}" != "${entry_url%"/v$1/goodput-$target.tar.gz"}" ] || continue
    [ -z "$sum" ] || fail 70 "$manifest has two entries for $1 on $target"
    [ -z "$rest" ] || fail 70 "$manifest has an entry that is none, for $1 on $target"
    sum=$entry_sum url=$entry_url
  done < <(grep -v '^#' "$manifest" || true)
  [ -n "$sum" ] || return 1
  if ! [[ $sum =~ ^[0-9a-f]{64}$ && $url =~ ^https:// ]]; then
    fail 70 "$manifest has an entry that is none, for $1 on $target"
  fi
}

versions() {
  sed -n 's|^[0-9a-f]\{64\} .*/v\([^/]*\)/goodput-[^/]*$|\1|p' "$manifest" | sort -u | tr '\n' ' '
}

checksum() {
  if command -v sha256sum >/dev/null; then sha256sum <"$1"; else shasum -a 256 <"$1"; fi | cut -c1-64
}

# Downloads the program and checks it before anything of it is unpacked. There is no switch to leave that out.
download() {
  local folder archive found
  command -v curl >/dev/null || fail 70 "curl is missing on this runner: install it, or name a program in \`bin-path\`"
  folder=$(mktemp -d "${RUNNER_TEMP:-/tmp}/goodput.XXXXXX")
  archive=$folder/goodput.tar.gz
  echo "goodput: downloading $url"
  curl --proto =https --proto-redir =https --tlsv1.2 --fail --silent --show-error --location --retry 5 --retry-connrefused \
    --connect-timeout 20 --max-time 300 --max-filesize 104857600 --output "$archive" -- "$url" ||
    fail 70 "cannot download $url: see the reason above. Behind a proxy set HTTPS_PROXY; where nothing can be downloaded, name a program in \`bin-path\`"
  found=$(checksum "$archive")
  if [ "$found" != "$sum" ]; then
    rm -rf "$folder"
    fail 70 "what came from $url is not what was released: its SHA-256 is $found, and $sum was expected. It was not run"
  fi
  tar -xzf "$archive" -C "$folder" goodput || fail 70 "what came from $url cannot be unpacked"
  rm -f "$archive"
  bin=$folder/goodput
}

# Builds the program from the source that this Action is part of.
build() {
  local folder=${CARGO_TARGET_DIR:-${RUNNER_TEMP:-/tmp}/goodput-target}
  command -v cargo >/dev/null ||
    fail 70 "this is the Action's source, of which no release is listed for this machine, and building it needs cargo: install Rust in a step before, use the Action at a released version, or name a program in \`bin-path\`"
  echo "::group::goodput: building from source, as no release is listed for it"
  # In the source's folder, so that its toolchain file counts.
  (cd "$action" && cargo build --release --locked --target-dir "$folder") ||
    fail 70 "goodput cannot be built from source: see cargo's message above"
  echo "::endgroup::"
  bin=$folder/release/goodput
}

get() {
  local version=${GOODPUT_INPUT_VERSION-}
  version=${version#v}
  if [ -n "${GOODPUT_INPUT_BIN_PATH-}" ]; then
    [ -z "$version" ] || fail 2 "the inputs \`bin-path\` and \`version\` name two programs; write one of them"
    use_given "$GOODPUT_INPUT_BIN_PATH"
    return
  fi
  read_target
  case $version in
  source | 0.0.0) build ;;
  "")
    if read_entry "$(shipped_version)"; then download; else build; fi
    ;;
  *)
    [[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$ ]] ||
      fail 2 "the input \`version\` is \`${version:0:80}\`; write one such as \`$(shipped_version)\`, or \`source\`"
    read_entry "$version" ||
      fail 2 "the input \`version\` is \`$version\`, of which this Action knows no checksum for $(uname -s) on $(uname -m); it knows: $(versions)"
    download
    ;;
  esac
}

manifest=$here/checksums.txt
read_choices
get
"$bin" --version || fail 70 "the program $bin cannot be run on this machine"
output bin-path "$bin"
told=yes
