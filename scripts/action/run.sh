#!/usr/bin/env bash
# Runs the program: inputs become arguments one by one, and its exit code is the step's. Comment, summary and outputs are the
# program's work.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/action/common.sh
. "$here/common.sh"

# Adds an option and its value, where there is one.
option() {
  [ -z "$2" ] || arguments+=("$1=$2")
}

publishing_options() {
  arguments+=("--comment=$comment")
  option --comment-key "${GOODPUT_INPUT_COMMENT_KEY-}"
  [ "$check" = false ] || arguments+=(--check)
}

# The program's arguments. What could begin with a dash stands behind `--` or `=`.
read_arguments() {
  arguments=("$command")
  local contract=${GOODPUT_INPUT_CONTRACT-}
  case $command in
  gate)
    arguments+=("--plan=$plan" "--unknown=$unknown")
    option --base "${GOODPUT_INPUT_BASE-}"
    option --baseline "${GOODPUT_INPUT_BASELINE-}"
    option --pair "${GOODPUT_INPUT_PAIR-}"
    option --audit "${GOODPUT_INPUT_AUDIT-}"
    option --calibration "${GOODPUT_INPUT_CALIBRATION-}"
    option --runs "${GOODPUT_INPUT_RUNS-}"
    arguments+=(--publish)
    publishing_options
    ;;
  validate) arguments+=("--plan=$plan") ;;
  publish)
    option --contract "$contract"
    publishing_options
    arguments+=(-- "${GOODPUT_INPUT_RESULT:?}")
    return
    ;;
  esac
  [ -z "$contract" ] || arguments+=(-- "$contract")
}

# Passes a signal on. The runner tells only this process that a job was cancelled, and the program then still writes what it
# measured.
# shellcheck disable=SC2329 # the traps of `run` call it
pass_on() {
  signalled=yes
  if [ -n "$child" ]; then kill -s "$1" "$child" 2>/dev/null || true; fi
}

run() {
  local program=${GOODPUT_BIN:?}
  child='' signalled=''
  trap 'pass_on INT' INT
  trap 'pass_on TERM' TERM
  # With job control, for without it a program in the background would begin with SIGINT ignored, and so would its servers.
  set -m
  "$program" "${arguments[@]}" </dev/null &
  child=$!
  set +m
  while :; do
    signalled='' status=0
    wait "$child" || status=$?
    [ -n "$signalled" ] || break
  done
  trap - INT TERM
}

# The verdict of the commands that write none.
tell_verdict() {
  case $command/$status in
  smoke/0) output verdict PASS ;;
  smoke/1) output verdict FAIL ;;
  smoke/3) output verdict UNKNOWN ;;
  validate/0) output verdict "" ;;
  esac
}

read_choices
enter_working_directory
read_arguments
# First, so that they stand when the program is killed; of an output that is written twice the last counts.
output verdict ERROR
output exit-code 70
printf '::debug::goodput %s\n' "$(escaped "${arguments[*]}")"
run
tell_verdict
case $status in
0 | 1 | 2 | 3 | 70 | 130 | 143) ;;
*) error "goodput ended with the exit code $status, which it never chooses: it was killed (out of memory?) or crashed" ;;
esac
if [ "$save_baseline" = true ] && [ "$status" -ne 0 ]; then
  echo "::notice title=goodput::the baseline is not kept: only a run that passed becomes one"
fi
finish "$status"
