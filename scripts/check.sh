# shellcheck shell=bash
# shellcheck disable=SC2154 # tmp is its user's
# Sourced by scripts in test.d/ that have a folder tmp.

check() { # NAME COMMAND...: passes if the command does
  local name=$1
  shift
  if "$@" >"$tmp/check.log" 2>&1; then
    echo "PASS $name"
  else
    sed 's/^/  /' "$tmp/check.log" | tail -n 40
    echo "FAIL $name"
    return 1
  fi
}
