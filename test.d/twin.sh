#!/usr/bin/env bash
# environment: any machine
# build: none
# The device library on the CPU: its queues under stress from many threads, watched by sanitizers, and in numbers.
# TWIN_SEED repeats a run, TWIN_SECONDS makes it longer.
set -u
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
seconds=${TWIN_SECONDS:-10}
export TSAN_OPTIONS=halt_on_error=1 UBSAN_OPTIONS=print_stacktrace=1

# build NAME OPTION...: the stress as $tmp/NAME
build() {
  local name=$1
  shift
  g++ -std=c++17 -g -pthread -Wall -Wextra -Werror -Wno-unknown-pragmas "$@" \
    -I "$root/gpu/src/main/cuda" -I "$root/gpu/src/test/twin" "$root/gpu/src/test/twin/stress.cpp" -o "$tmp/$name"
}

# sanitizer OPTIONS: whether a program built with it runs here
sanitizer() {
  echo 'int main() { return 0; }' >"$tmp/empty.cpp"
  g++ "$1" "$tmp/empty.cpp" -o "$tmp/empty" && "$tmp/empty"
} >"$tmp/sanitizer.log" 2>&1

# stress NAME PROGRAM ARGUMENT...: passes if the program says that nothing was wrong
stress() {
  local name=$1 program=$2 code=0
  shift 2
  timeout 120 "$tmp/$program" "$@" ${TWIN_SEED:+"$TWIN_SEED"} >"$tmp/log" 2>&1 || code=$?
  if [ $code = 0 ]; then
    sed 's/^/  /' "$tmp/log"
    echo "PASS $name"
  else
    head -n 60 "$tmp/log" | sed 's/^/  /'
    echo "FAIL $name: exit code $code; the seed is in the first line"
  fi
}

# sanitized NAME OPTIONS
sanitized() {
  if ! sanitizer "$2"; then
    echo "SKIP $1: g++ has no $2 here"
  elif ! build "$1" -O1 -fno-sanitize-recover=undefined "$2" 2>"$tmp/build.log"; then
    sed 's/^/  /' "$tmp/build.log" | head -n 20
    echo "FAIL $1: does not compile"
  else
    stress "$1" "$1" seconds "$seconds"
  fi
}

if ! command -v g++ >/dev/null; then
  for name in twin-threads twin-memory twin-ten-million; do
    echo "SKIP $name: no g++"
  done
  exit 0
fi
sanitized twin-threads -fsanitize=thread
sanitized twin-memory -fsanitize=address,undefined
if build count -O2 2>"$tmp/build.log"; then
  stress twin-ten-million count commands 10000000
else
  sed 's/^/  /' "$tmp/build.log" | head -n 20
  echo 'FAIL twin-ten-million: does not compile'
fi
