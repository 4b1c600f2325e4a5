#!/usr/bin/env bash
# environment: any machine
# What ./test says of a skipped test, for given lines; and that every line of the list is one.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
. scripts/check.sh
. scripts/skips.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

cat >"$tmp/list" <<'EOF2'
# a comment

no-such-device  one.sh test: no device (/dev/none)
this-machine    one.sh *: no [abc]
this-machine    io.Some*Test.*: no @(one|two)
other-machine   two.sh *
another-machine two.sh test: both
EOF2

# judged STATUS LINE CI: what is counted, on a machine of which only one condition is true
judged() {
  local status=$1 line=$2 CI=$3
  machine_is() { [ "$1" = this-machine ]; }
  judge "$tmp/list"
  printf '%s %s' "$status" "$line"
}

# counts WANTED STATUS LINE [CI]
counts() {
  local said
  said=$(judged "$2" "$3" "${4:-}")
  echo "$said"
  [ "$said" = "$1" ]
}

excused() {
  local line
  for line in 'one.sh test: no a' 'one.sh other test: no c' 'io.SomeOtherTest.method(String)[1]: no two'; do
    counts "SKIP $line" SKIP "$line" true || return 1
  done
}

not_excused() {
  local line
  for line in 'one.sh test: no d' 'one.sh test: no a, no b' 'io.SomeTest.method: no three' 'three.sh test: no a' ''; do
    counts "FAIL $line (unexpected skip: not in $tmp/list)" SKIP "$line" true || return 1
  done
}

on_another_machine() {
  counts "FAIL two.sh test: both (unexpected skip: $tmp/list excuses it only where the machine is other-machine another-machine)" \
    SKIP 'two.sh test: both' true &&
    counts "FAIL one.sh test: no device (/dev/none) (unexpected skip: $tmp/list excuses it only where the machine is no-such-device)" \
      SKIP 'one.sh test: no device (/dev/none)' true
}

only_said() {
  local ci
  for ci in '' false; do
    counts "SKIP three.sh test (unexpected skip: not in $tmp/list)" SKIP 'three.sh test' "$ci" || return 1
  done
}

others_stay() {
  counts 'PASS two.sh test' PASS 'two.sh test' true && counts 'FAIL three.sh test: no' FAIL 'three.sh test: no' true
}

# Conditions that exist, and each line once.
the_list_is_right() {
  local condition pattern code lines=0
  while read -r condition pattern; do
    [[ -n $condition && $condition != '#'* ]] || continue
    lines=$((lines + 1)) code=0
    machine_is "$condition" || code=$?
    if [ $code -gt 1 ] || [ -z "$pattern" ]; then
      echo "$condition $pattern"
      return 1
    fi
  done <test.d/skips
  [ $lines -gt 20 ] && [ -z "$(grep -v -e '^#' -e '^$' test.d/skips | sort | uniq -d)" ]
}

check skips-that-are-listed-for-this-machine excused
check skips-that-are-not-listed not_excused
check skips-that-are-listed-for-another-machine on_another_machine
check skips-without-ci-are-only-said only_said
check skips-only-are-judged others_stay
check skips-list the_list_is_right
