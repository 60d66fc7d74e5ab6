#!/usr/bin/env bash
# GitHub's API for the tests, on the loopback interface: a server that keeps pull requests, comments and check runs behind Prism,
# which holds every request and every answer against GitHub's own description (tests/fixtures/github/openapi.json).
#
#   tests/real/github.sh up PORT     installs what is missing, starts the servers, waits until they answer, and prints URL=… (what
#                                    clients talk to), MODEL=… (where `/_world/` is, see github_server.py) and PID=…, one per
#                                    line; does nothing more when they run
#   tests/real/github.sh down PORT   stops the servers that `up PORT` started, and no others
#
# The packages are kept in GOODPUT_REAL_CACHE (default ~/.cache/goodput-real), 0.1 GB. Needs Linux, Python 3.11 or newer, and
# Node.js 18.20 or newer with npm.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program=github.sh kind=github signature=$here/github_server.py
. "$here/server.sh"
read_arguments "$@"

prism=@stoplight/prism-cli@5.16.0
model=$url

install() {
  environment=$cache/npm-$(printf %s "$prism" | sha256sum | cut -c1-12)
  [ -e "$environment/complete" ] && return
  command -v npm >/dev/null || cannot_install "needs Node.js with npm"
  echo "$program: installing into $environment" >&2
  rm -rf "$environment"
  mkdir -p "$environment"
  npm install --prefix "$environment" --ignore-scripts --no-save --no-audit --no-fund --loglevel error "$prism" >&2 ||
    cannot_install "cannot install $prism; npm says why above"
  touch "$environment/complete"
}

start() {
  launch /_world/violations "$python" "$here/github_server.py" "$port" "$here/../fixtures/github/openapi.json" \
    "$environment/node_modules/@stoplight/prism-cli/dist/index.js"
}

serve
