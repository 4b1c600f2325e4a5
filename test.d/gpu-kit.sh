#!/usr/bin/env bash
# environment: any machine
# The GPU kit: small enough to carry, and runs elsewhere with nothing but core utilities.
set -u
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

check() { # NAME COMMAND...: passes if the command does
  local name=$1
  shift
  if "$@" >"$tmp/check.log" 2>&1; then
    echo "PASS $name"
  else
    sed 's/^/  /' "$tmp/check.log" | tail -n 20
    echo "FAIL $name"
  fi
}

# kit ARGUMENT...: the copy's run, with the core utilities and no other program, no environment, and no GPU.
kit() {
  env -i "PATH=$tmp/bin" CUDA_VISIBLE_DEVICES= "$tmp/else where/run" "$@"
}

packs() {
  local tool
  "$root/scripts/gpu-kit" && cp -R "$root/build/gpu-kit" "$tmp/else where" && chmod -R a-w "$tmp/else where" || return 1
  mkdir "$tmp/bin"
  for tool in dirname mktemp readlink rm; do
    ln -s "$(command -v $tool)" "$tmp/bin/$tool"
  done
}

fits() {
  local bytes
  bytes=$(du -s --apparent-size --block-size=1 "$tmp/else where" | cut -f 1)
  echo "$bytes bytes"
  [ "$bytes" -le 60000000 ]
}

demo_arrives() {
  kit cli demo --size 16MiB --json >"$tmp/out" 2>"$tmp/err" || return 1
  cat "$tmp/out" "$tmp/err"
  [ ! -s "$tmp/err" ] && grep -q '"verified": true' "$tmp/out"
}

has_device_code() {
  kit java -p "$tmp/else where/app" --describe-module io.gpunvme.gpu >"$tmp/out" || return 1
  cat "$tmp/out"
  grep -q ' io\.gpunvme\.gpu\.include\.gpunvme$' "$tmp/out" && grep -q ' io\.gpunvme\.gpu\.ptx$' "$tmp/out"
}

has_bindings() {
  kit java -p "$tmp/else where/app" --describe-module io.gpunvme.capi >"$tmp/out" || return 1
  cat "$tmp/out"
  [ -f "$tmp/else where/capi/libgpunvme.so" ] && [ -x "$tmp/else where/capi/device_test" ]
}

# No test passes or fails without a GPU, and the last line says why.
tests_skip() {
  local code=0
  kit test >"$tmp/out" 2>&1 || code=$?
  cat "$tmp/out"
  [ $code = 0 ] && grep -q '^0 passed, 0 failed, [1-9][0-9]* skipped$' "$tmp/out" &&
    tail -n 1 "$tmp/out" | grep -q '^0 GPU tests ran: .'
}

no_such_test() {
  local code=0
  kit test 'NoSuch*' >"$tmp/out" 2>&1 || code=$?
  cat "$tmp/out"
  [ $code = 2 ]
}

check gpu-kit-packs packs
check gpu-kit-fits-60-mb fits
check gpu-kit-demo-arrives demo_arrives
check gpu-kit-has-device-code has_device_code
check gpu-kit-has-bindings has_bindings
check gpu-kit-tests-skip-without-a-gpu tests_skip
check gpu-kit-no-such-test no_such_test
