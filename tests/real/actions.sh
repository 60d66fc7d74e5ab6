#!/usr/bin/env bash
# The programs that check and run GitHub's workflows: actionlint, zizmor, shellcheck, check-jsonschema, action-validator, and act,
# which runs a workflow on this machine, without containers. There is no server: nothing runs after `up`.
#
#   tests/real/actions.sh up PORT     installs what is missing and prints URL=… (the folder with the programs), MODEL=… and
#                                     PID=…, one per line; the port is not used
#   tests/real/actions.sh down PORT   does nothing
#
# The packages are kept in GOODPUT_REAL_CACHE (default ~/.cache/goodput-real), 0.2 GB. Needs Linux, Python 3.11 or newer, with
# venv, and npm.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program=actions.sh kind=actions
. "$here/server.sh"
read_arguments "$@"

validator=(@action-validator/cli@0.6.0 @action-validator/core@0.6.0)

install_validator() {
  local folder=$environment/npm
  [ -e "$folder/complete" ] && return
  command -v npm >/dev/null || cannot_install "needs npm"
  mkdir -p "$folder"
  npm install --prefix "$folder" --no-save --ignore-scripts --no-audit --no-fund --silent "${validator[@]}" >&2 ||
    cannot_install "cannot install ${validator[*]}; npm says why above"
  ln -sf ../npm/node_modules/.bin/action-validator "$environment/bin/action-validator"
  touch "$folder/complete"
}

case $action in
up)
  exec 9>"$cache/lock-$kind"
  flock 9
  install_environment
  install_validator
  printf 'URL=%s\nMODEL=actions\nPID=\n' "$environment/bin"
  ;;
down) ;;
*) usage ;;
esac
