#!/usr/bin/env bash
# A real S3-compatible object storage for the tests: Moto's server, on the loopback interface. It calculates every request's
# signature with Amazon's own code and refuses one that is wrong, and knows what each user may do.
#
#   tests/real/s3.sh up PORT     installs what is missing, starts the server on 127.0.0.1:PORT, waits until it answers, and
#                                prints URL=…, MODEL=… (the name of a bucket) and PID=…, one per line; does nothing more when
#                                it runs
#   tests/real/s3.sh down PORT   stops the server that `up PORT` started, and no other
#
# The users are in s3_server.py. Objects are kept in memory, up to `down`. The packages are kept in GOODPUT_REAL_CACHE (default
# ~/.cache/goodput-real), 0.2 GB. Needs Linux and Python 3.11 or newer, with venv.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program=s3.sh kind=s3 signature=$here/s3_server.py
. "$here/server.sh"
read_arguments "$@"

model=baselines

install() {
  install_environment
}

start() {
  launch /moto-api/ "$environment/bin/python" "$here/s3_server.py" "$port" "$model"
}

serve
