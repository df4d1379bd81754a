# Sourced by the tests of packages.
# shellcheck shell=sh

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# quietly COMMAND...: the end of its output is printed only if it fails.
quietly() {
  checked_log=$(mktemp)
  "$@" >"$checked_log" 2>&1 || {
    tail -n 30 "$checked_log" >&2
    fail "$*"
  }
  rm -f "$checked_log"
}

# expect TEXT COMMAND...: it succeeds, and TEXT is in its output.
expect() {
  wanted=$1
  shift
  output=$("$@" 2>&1) || fail "$* ended with status $?: $output"
  case $output in *"$wanted"*) ;; *) fail "$* does not say '$wanted': $(printf '%s' "$output" | tail -n 5)" ;; esac
}
