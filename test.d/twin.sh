#!/usr/bin/env bash
# environment: any machine
# build: none
# The device library on the CPU: its queues and its page cache under stress from many threads, watched by sanitizers, and in
# numbers. TWIN_SEED repeats a run, TWIN_SECONDS makes it longer.
set -u
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export TSAN_OPTIONS=halt_on_error=1 UBSAN_OPTIONS=print_stacktrace=1

# build NAME SOURCE OPTION...: a stress as $tmp/NAME
build() {
  local name=$1 source=$2
  shift 2
  g++ -std=c++17 -g -pthread -Wall -Wextra -Werror -Wno-unknown-pragmas "$@" \
    -I "$root/gpu/src/main/cuda" -I "$root/gpu/src/test/twin" "$root/gpu/src/test/twin/$source.cpp" -o "$tmp/$name"
}

# sanitizer OPTIONS: whether a program built with it runs here
sanitizer() {
  echo 'int main() { return 0; }' >"$tmp/empty.cpp"
  g++ "$1" "$tmp/empty.cpp" -o "$tmp/empty" && "$tmp/empty"
} >"$tmp/sanitizer.log" 2>&1

# stress NAME ARGUMENT...: passes if the program of that name says that nothing was wrong
stress() {
  local name=$1 code=0
  shift
  timeout $((110 + ${TWIN_SECONDS:-10})) "$tmp/$name" "$@" ${TWIN_SEED:+"$TWIN_SEED"} >"$tmp/log" 2>&1 || code=$?
  if [ $code = 0 ]; then
    sed 's/^/  /' "$tmp/log"
    echo "PASS $name"
  else
    head -n 60 "$tmp/log" | sed 's/^/  /'
    echo "FAIL $name: exit code $code; the seed is in the first line"
  fi
}

# sanitized NAME SOURCE SECONDS OPTIONS
sanitized() {
  if ! sanitizer "$4"; then
    echo "SKIP $1: g++ has no $4 here"
  elif ! build "$1" "$2" -O1 -fno-sanitize-recover=undefined "$4" 2>"$tmp/build.log"; then
    sed 's/^/  /' "$tmp/build.log" | head -n 20
    echo "FAIL $1: does not compile"
  else
    stress "$1" seconds "${TWIN_SECONDS:-$3}"
  fi
}

# counted NAME SOURCE ARGUMENT...: as fast as it goes
counted() {
  local name=$1 source=$2
  shift 2
  if build "$name" "$source" -O2 2>"$tmp/build.log"; then
    stress "$name" "$@"
  else
    sed 's/^/  /' "$tmp/build.log" | head -n 20
    echo "FAIL $name: does not compile"
  fi
}

if ! command -v g++ >/dev/null; then
  for name in twin-threads twin-memory twin-ten-million twin-cache-threads twin-cache-memory twin-cache-ten-million; do
    echo "SKIP $name: no g++"
  done
  exit 0
fi
sanitized twin-threads stress 10 -fsanitize=thread
sanitized twin-memory stress 10 -fsanitize=address,undefined
counted twin-ten-million stress commands 10000000
sanitized twin-cache-threads cache_stress 8 -fsanitize=thread
sanitized twin-cache-memory cache_stress 8 -fsanitize=address,undefined
counted twin-cache-ten-million cache_stress accesses 10000000
