#!/usr/bin/env bash
# environment: any machine
# The GPU kit: small enough to carry, and runs elsewhere with nothing but core utilities.
set -u
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/scripts/check.sh"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

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
  [ "$bytes" -le 64000000 ]
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

# In a folder whose name has no space, which LD_PRELOAD cannot have.
has_cufile() {
  env -i "PATH=$tmp/bin" "$root/build/gpu-kit/run" cufile --print >"$tmp/out" 2>&1 || return 1
  cat "$tmp/out"
  grep -qx "LD_PRELOAD=$root/build/gpu-kit/capi/cufile/libcufile.so.0" "$tmp/out" && grep -qx "GPUNVME_HOME=$root/build/gpu-kit/app" "$tmp/out" &&
    [ -f "$tmp/else where/capi/cufile/libcufile.so" ]
}

# What needs a GPU to run: sources, headers where the library finds them, and binaries where there is a compiler.
has_kernels() {
  local file files=(capi/include/gpunvme/gpunvme.cuh capi/kernels_test examples/kernel_read_cupy.py examples/kernel_read_numba.py)
  ! command -v nvcc >/dev/null || files+=(capi/kernels.ptx examples/kernel_read examples/device_functions.ptx)
  for file in "${files[@]}"; do
    [ -s "$tmp/else where/$file" ] || { echo "no $file" && return 1; }
  done
}

# Without Python and without a GPU: each is skipped or fails, and says which it is.
examples_say_what_they_did() {
  local code=0
  kit examples nothing >"$tmp/out" 2>&1 || code=$?
  [ $code = 2 ] || return 1
  kit examples cupy >"$tmp/out" 2>&1 || return 1
  cat "$tmp/out"
  grep -qx 'SKIP examples cupy: python3 has no cupy' "$tmp/out"
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

# Where there is no Python; the benchmark itself runs in test.d/python-bench.sh.
has_checkpoints() {
  local code=0
  kit bench-checkpoint --size 1GiB >"$tmp/out" 2>&1 || code=$?
  cat "$tmp/out"
  [ $code = 2 ] && grep -q 'the number of ranks' "$tmp/out" && [ -f "$tmp/else where/bench/checkpoint.py" ] && [ -f "$tmp/else where/bench/machine.py" ] &&
    [ -f "$tmp/else where/bench/shards.py" ]
}

check gpu-kit-packs packs
check gpu-kit-fits-64-mb fits
check gpu-kit-demo-arrives demo_arrives
check gpu-kit-has-device-code has_device_code
check gpu-kit-has-bindings has_bindings
check gpu-kit-has-kernels has_kernels
check gpu-kit-has-cufile has_cufile
check gpu-kit-has-checkpoints has_checkpoints
check gpu-kit-examples-say-what-they-did examples_say_what_they_did
check gpu-kit-tests-skip-without-a-gpu tests_skip
check gpu-kit-no-such-test no_such_test
