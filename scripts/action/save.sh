#!/usr/bin/env bash
# Keeps the result of a passed run where the contract has its baselines.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/action/common.sh
. "$here/common.sh"

enter_working_directory
arguments=(baseline save)
[ -z "${GOODPUT_INPUT_CONTRACT-}" ] || arguments+=("--contract=$GOODPUT_INPUT_CONTRACT")
[ -n "${GOODPUT_RESULT-}" ] || fail 70 "the run named no result to keep"
status=0
"${GOODPUT_BIN:?}" "${arguments[@]}" -- "$GOODPUT_RESULT" </dev/null || status=$?
[ "$status" -eq 0 ] || error "the run passed, and its result was not kept as a baseline: see the reason above"
case $GOODPUT_RESULT in
*/result.json | result.json) record=$(dirname "$GOODPUT_RESULT")/baseline.json ;;
*) record=$GOODPUT_RESULT/baseline.json ;;
esac
[ "$status" -ne 0 ] || [ ! -f "$record" ] || output baseline-record "$(cd "$(dirname "$record")" && pwd)/baseline.json"
finish "$status"
