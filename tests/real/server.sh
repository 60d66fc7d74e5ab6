# What the scripts that start a real server share; sourced by them, and of no use alone.
#
# A script sets `program` (its name in messages), `kind` (what its files are named after), `signature` (text of the server's
# command line that no other program has) and, where it needs one, `bare` (a package to install without what it asks for). It
# defines `install` and `start`, and ends with `serve`. Everything is kept in GOODPUT_REAL_CACHE (default ~/.cache/goodput-real), so that only the first start
# is slow. Needs Linux, util-linux and Python 3.11 or newer, with venv.

# A script prints its own opening comment as help.
usage() {
  sed -n '2,/^set /s/^# \{0,1\}//p' "$0" >&2
  exit 2
}

fail() {
  echo "$program: $1" >&2
  exit 1
}

# What cannot be had on this machine has its own exit code: a test run goes on without that server, and says so.
cannot_install() {
  echo "$program: $1" >&2
  exit 75
}

# Reads `up PORT` or `down PORT`.
read_arguments() {
  [ $# -eq 2 ] || usage
  action=$1 port=$2
  [[ $port =~ ^[0-9]{1,5}$ ]] || usage
  python=${PYTHON:-python3}
  cache=${GOODPUT_REAL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/goodput-real}
  mkdir -p "$cache"
  cache=$(cd "$cache" && pwd)
  pid_file=$cache/$kind-$port.pid
  log=$cache/$kind-$port.log
  url=http://127.0.0.1:$port
}

# The process of the pid file, if it still is the server that was started: a number can have passed to a stranger.
running_pid() {
  local pid
  pid=$(cat "$pid_file" 2>/dev/null) || return 1
  tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -qF -- "$signature" || return 1
  echo "$pid"
}

# The folder's name carries the digest of what is installed, so that a change gets a new environment; the marker is written
# last, so that a broken installation is done again.
install_environment() {
  local requirements=$here/requirements-$kind.txt
  environment=$cache/venv-$({ cat "$requirements"; printf %s "${bare-}"; } | sha256sum | cut -c1-12)
  [ -e "$environment/complete" ] && return
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || cannot_install "needs Python 3.11 or newer; set PYTHON"
  echo "$program: installing into $environment" >&2
  rm -rf "$environment"
  "$python" -m venv "$environment" || cannot_install "cannot make a virtual environment; install Python's venv module"
  install_packages --requirement "$requirements" || cannot_install "cannot install what $requirements lists; pip says why above"
  [ -z "${bare-}" ] || install_packages --no-deps "$bare" || cannot_install "cannot install $bare; pip says why above"
  touch "$environment/complete"
}

install_packages() {
  "$environment/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: "$@" >&2
}

# The folder of an installed Python package, without importing it.
package_folder() {
  "$environment/bin/python" -c 'import importlib.util, sys; print(importlib.util.find_spec(sys.argv[1]).submodule_search_locations[0])' "$1"
}

# Waits until the page of that path is served by the process of that number.
wait_until_ready() {
  local pid=$1 page=$url$2
  for _ in $(seq 240); do
    if "$python" - "$page" 2>/dev/null <<'PYTHON'; then return; fi
import sys, urllib.request
urllib.request.build_opener(urllib.request.ProxyHandler({})).open(sys.argv[1], timeout=2).read()
PYTHON
    kill -0 "$pid" 2>/dev/null || { tail -n 15 "$log" >&2; fail "the server ended; its log is $log"; }
    sleep 0.25
  done
  stop
  fail "the server did not answer $page within a minute; its log is $log"
}

# Starts the command and waits until it serves the page: PATH COMMAND ARGUMENT…
launch() {
  local page=$1
  shift
  # A stranger on the port would answer in the server's place.
  if (: <>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then fail "port $port is in use by another program"; fi
  # Its own session: a signal to the test run's process group must not stop it, only `down` does.
  setsid "$@" >"$log" 2>&1 </dev/null 9>&- &
  echo $! >"$pid_file"
  wait_until_ready $! "$page"
}

stop() {
  local pid
  if pid=$(running_pid); then
    kill "$pid" 2>/dev/null || true
    for _ in $(seq 100); do
      running_pid >/dev/null || break
      sleep 0.1
    done
    if pid=$(running_pid); then kill -9 "$pid" 2>/dev/null || true; fi
  fi
  rm -f "$pid_file"
}

# Does the action that was asked for: `install` and `start` are the script's own, `model` is the name to ask for.
serve() {
  # One at a time of a kind: two first starts would install over each other.
  exec 9>"$cache/lock-$kind"
  flock 9
  case $action in
  up)
    install
    running_pid >/dev/null || start
    printf 'URL=%s\nMODEL=%s\nPID=%s\n' "$url" "$model" "$(running_pid)"
    ;;
  down) stop ;;
  *) usage ;;
  esac
}
