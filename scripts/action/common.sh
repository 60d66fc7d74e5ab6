# What the scripts of the Action share; sourced by them, and of no use alone. Written for bash 3.2, which macOS has.
unset CDPATH

# Set once the step has told how it ended.
told=

# Writes an output of the step; a value has one line.
output() {
  local value=${2//$'\n'/ }
  # What cannot be told changes no exit code.
  { printf '%s=%s\n' "$1" "$value" >>"${GITHUB_OUTPUT:-/dev/null}"; } 2>/dev/null ||
    printf '::warning title=goodput::the output %s cannot be written to GITHUB_OUTPUT\n' "$1"
}

# Makes a text the message of a workflow command: none of it can end the command and begin another.
escaped() {
  local text=${1:0:2000}
  text=${text//'%'/%25}
  text=${text//$'\r'/%0D}
  text=${text//$'\n'/%0A}
  printf %s "$text"
}

error() {
  printf '::error title=goodput::%s\n' "$(escaped "$1")"
}

# Ends the step without a verdict: EXIT_CODE MESSAGE
fail() {
  told=yes
  error "$2"
  output verdict ERROR
  output exit-code "$1"
  exit "$1"
}

# Ends the step as the program did: EXIT_CODE
finish() {
  told=yes
  output exit-code "$1"
  exit "$1"
}

# What ends a script unforeseen is a failure of the tool (70), and never mistaken for a verdict.
ended() {
  [ -z "$told" ] || return 0
  fail 70 "the Action itself failed; the reason stands above"
}
trap ended EXIT

# Ends the step unless a value is one that the input allows: INPUT VALUE ALLOWED…
one_of() {
  local input=$1 value=$2 allowed
  shift 2
  for allowed; do
    [ "$value" != "$allowed" ] || return 0
  done
  fail 2 "the input \`$input\` is \`${value:0:80}\`; write one of: $*"
}

# Reads the inputs that have a choice, and ends the step where they make no sense. One that is empty counts as left out.
read_choices() {
  command=${GOODPUT_INPUT_COMMAND:-gate}
  plan=${GOODPUT_INPUT_PLAN:-check}
  unknown=${GOODPUT_INPUT_UNKNOWN:-contract}
  comment=${GOODPUT_INPUT_COMMENT:-always}
  check=${GOODPUT_INPUT_CHECK:-false}
  save_baseline=${GOODPUT_INPUT_SAVE_BASELINE:-false}
  one_of command "$command" gate smoke validate publish
  one_of plan "$plan" check baseline release
  one_of unknown "$unknown" contract block warn
  one_of comment "$comment" always not-pass never
  one_of check "$check" true false
  one_of save-baseline "$save_baseline" true false
  if [ "$command" = publish ] && [ -z "${GOODPUT_INPUT_RESULT-}" ]; then
    fail 2 "the command \`publish\` tells a stored result; name it in the input \`result\`"
  fi
  if [ "$command" != publish ] && [ -n "${GOODPUT_INPUT_RESULT-}" ]; then
    fail 2 "the input \`result\` is for the command \`publish\`, and the command is \`$command\`"
  fi
  if [ "$save_baseline" = true ] && [ "$command/$plan" != gate/baseline ]; then
    fail 2 "\`save-baseline: true\` keeps what the command \`gate\` measured with \`plan: baseline\`; this is \`$command\` with \`plan: $plan\`"
  fi
}

# Goes to the folder in which everything happens.
enter_working_directory() {
  local folder=${GOODPUT_INPUT_WORKING_DIRECTORY:-.}
  # To cd alone, `-` is another folder.
  [ "$folder" != - ] || folder=./-
  cd -- "$folder" || fail 2 "the input \`working-directory\` names no folder: \`${folder:0:200}\`"
}
