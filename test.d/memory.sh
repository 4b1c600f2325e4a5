#!/usr/bin/env bash
# environment: any machine
# More memory than there is: every way to ask for it ends with the typed error, and neither with the kernel's OOM killer nor with
# a stack trace. The programs see a machine with 4 GiB, of which 1 GiB is free: a /proc/meminfo of ours in a mount namespace.
set -u
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
gpunvme=$root/gpunvme
tmp=$(mktemp -d)
group=''
trap 'rm -rf "$tmp"; [ -z "$group" ] || rmdir "$group"' EXIT
cd "$root" || exit 1
. scripts/check.sh

printf '%s kB\n' 'MemTotal: 4194304' 'MemFree: 1048576' 'MemAvailable: 1048576' 'SwapTotal: 0' 'SwapFree: 0' >"$tmp/meminfo"

namespace=(unshare --user --map-root-user --mount)
[ "$(id -u)" != 0 ] || namespace=(unshare --mount)

small() { # COMMAND...: runs it on the small machine
  # shellcheck disable=SC2016 # the inner shell's
  timeout -k 5 60 "${namespace[@]}" bash -c 'mount --bind "$0" /proc/meminfo && exec "$@"' "$tmp/meminfo" "$@"
}

# refused CODE PATTERN ARGUMENT...: the command ends with that code and one line that matches
refused() {
  local code=0 expected=$1 pattern=$2
  shift 2
  small "$gpunvme" "$@" >"$tmp/out" 2>"$tmp/err" || code=$?
  echo "code $code, expected $expected:"
  cat "$tmp/err"
  [ $code = "$expected" ] && [ "$(wc -l <"$tmp/err")" = 1 ] && grep -q "$pattern" "$tmp/err" &&
    ! grep -Eq 'unexpected|Exception|Java' "$tmp/err"
}

# A tensor of 64 GiB in a sparse file: the length of the header, the header, nothing.
sparse_model() {
  local bytes=$((64 << 30)) header
  header='{"w":{"dtype":"U8","shape":['$bytes'],"data_offsets":[0,'$bytes']}}'
  while [ $((${#header} % 8)) != 0 ]; do header+=' '; done
  printf '%b%s' "\\x$(printf %02x ${#header})\\0\\0\\0\\0\\0\\0\\0" "$header" >"$1" && truncate -s $((8 + ${#header} + bytes)) "$1"
}

bench_makes_no_file() {
  mkdir "$tmp/bench"
  refused 1 'of host memory, of which' bench paths "$tmp/bench" --size 64GiB --accelerator cpu && [ -z "$(ls -A "$tmp/bench")" ]
}

# 256 MiB do not fit into the accelerator's memory at once: they go through a part of it.
demo_in_smaller_pieces() {
  sed -i 's/^MemAvailable.*/MemAvailable: 131072 kB/' "$tmp/meminfo"
  small "$gpunvme" demo --initiator cpu
}

c_says_memory() {
  cat >"$tmp/memory.c" <<'C'
#include <stdio.h>
#include "gpunvme.h"

/* Each is refused, and says so by code. */
#define REFUSED(call) \
  do { \
    int code = (call); \
    printf("%s: %d, %s\n", #call, code, gpunvme_last_error()); \
    if (code != GPUNVME_ERROR_MEMORY) return 1; \
  } while (0)

int main(int argc, char **argv) {
  gpunvme_storage *s;
  gpunvme_layer_loader *l;
  uint64_t a;
  if (argc != 2 || gpunvme_open(argv[1], "cpu", 0, &s) != GPUNVME_OK) return 2;
  REFUSED(gpunvme_allocate(s, 1ull << 45, &a));
  REFUSED(gpunvme_allocate(s, 2ull << 30, &a));
  REFUSED(gpunvme_memory_allocate("cpu", 1ull << 36, &a));
  REFUSED(gpunvme_layer_loader_init(s, 1ull << 32, 4, &l));
  if (gpunvme_allocate(s, 1 << 20, &a) != GPUNVME_OK) return 3;
  return gpunvme_close(s) != GPUNVME_OK;
}
C
  gcc -Wall -Werror -Icapi/include "$tmp/memory.c" -o "$tmp/memory" -Lcapi/target -lgpunvme "-Wl,-rpath,$root/capi/target" &&
    small "$tmp/memory" "$tmp/huge.safetensors"
}

python_raises_out_of_memory() {
  cat >"$tmp/memory.py" <<'PY'
import sys
import gpunvme


def refused(what, call):
    try:
        call()
    except gpunvme.OutOfMemoryError as e:
        print(what, "refused:", e)
    else:
        sys.exit(what + " was not refused")


with gpunvme.Storage(sys.argv[1], accelerator="cpu") as storage:
    refused("allocate", lambda: storage.allocate(1 << 45))
    refused("read_array", lambda: storage.read_array(0, 1 << 36))
    print(len(storage.allocate(1 << 20)))
PY
  GPUNVME_LIBRARY=$root/capi/target/libgpunvme.so PYTHONPATH=$root/python/src small python3 "$tmp/memory.py" "$tmp/huge.safetensors"
}

# ---- a real limit: a namespace that is written until no memory is left

make_group() { # prints why if it cannot
  local top=/sys/fs/cgroup limit=memory.max
  [ ! -d $top/memory ] || top=/sys/fs/cgroup/memory limit=memory.limit_in_bytes
  group=$top/gpunvme-memory-test.$$
  if ! mkdir "$group" 2>/dev/null; then
    group=''
    echo "no control group can be made here"
  elif ! echo $((1 << 30)) 2>/dev/null >"$group/$limit"; then
    echo "control groups do not limit memory here"
  elif [ -e "$group/memory.swap.max" ]; then
    echo 0 >"$group/memory.swap.max"
  fi
}

writes_until_full() {
  local code=0
  truncate -s 1000MiB "$tmp/zeros"
  # shellcheck disable=SC2016 # the inner shell's
  timeout -k 5 120 bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" \
    "$gpunvme" write sim:size=1000MiB,latency=0 --lba 0 --in "$tmp/zeros" --allow-write >"$tmp/out" 2>"$tmp/err" || code=$?
  echo "code $code:"
  cat "$tmp/out" "$tmp/err"
  [ $code = 1 ] && grep -qi 'capacity exceeded' "$tmp/err"
}

"$gpunvme" --version >"$tmp/version" 2>&1 # builds where there is nothing yet
if ! small true >"$tmp/log" 2>&1; then
  echo "SKIP memory: no mount namespace can be made here"
  exit 0
fi
check memory-sparse-model sparse_model "$tmp/huge.safetensors"
check memory-load refused 1 'are needed, and' load "$tmp/huge.safetensors"
check memory-demo refused 2 'memory and swap have' demo --device sim:media=ram "$tmp/huge.safetensors"
check memory-read refused 2 'memory and swap have' read sim:size=64GiB --lba 0 --bytes 64GiB --out /dev/null
check memory-write refused 2 'memory and swap have' write sim:size=64GiB --lba 0 --in "$tmp/huge.safetensors" --allow-write
check memory-serve refused 2 'memory and swap have' sim serve --socket "$tmp/socket" --namespace ram=64GiB
check memory-bench bench_makes_no_file
if [ ! -e capi/target/libgpunvme.so ] || [ ! -d capi/target/app ]; then
  echo 'FAIL memory-c: capi/target has no libgpunvme.so and app'
else
  check memory-c c_says_memory
  check memory-python python_raises_out_of_memory
fi
check memory-demo-in-smaller-pieces demo_in_smaller_pieces
make_group >"$tmp/why"
if [ -s "$tmp/why" ]; then
  echo "SKIP memory-full: $(cat "$tmp/why")"
else
  check memory-full writes_until_full
fi
