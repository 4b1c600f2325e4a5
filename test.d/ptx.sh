#!/usr/bin/env bash
# The committed PTX is what the kernels compile to, and assembles for cards old and new.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# result NAME COMMAND...: scripts/ptx ends with 3 where it cannot tell.
result() {
  local name=$1 code=0
  shift
  "$@" >"$tmp/log" 2>&1 || code=$?
  case $code in
    0) echo "PASS $name" ;;
    3) echo "SKIP $name: $(head -n 1 "$tmp/log")" ;;
    *)
      sed 's/^/  /' "$tmp/log" | tail -n 20
      echo "FAIL $name"
      ;;
  esac
}

# Registers that spill are stores and loads in every round, and each fence empties the L1 cache. Five kernels are kept at few registers
# on purpose, for hits in a cache: what spills there is what misses need.
spills() {
  local sizes
  sizes=$(scripts/ptx --sizes sm_90) || return
  awk 'NR > 1 && $4 != 0 && $2 !~ /^gpunvme_(bench_array_(pages|in_order|anywhere)|(gather|update)_rows)$/ { print; spilled = 1 } END { exit spilled }' <<<"$sizes"
}

# What a kernel's author has to reckon with (docs/device-library.md). Limits: registers, and bytes of machine code; 0: none.
limits='served_read_one 48 20011
served_read 72 41258
served_read_set 76 45500
served_read_set_one 52 22300
served_read_file 96 51400
served_read_warp 64 0
served_read_warp_set 64 0
served_read_file_warp 108 0
find_file 32 2400
served_submit 48 0
served_wait 32 0
server 78 0
helping_read_one 104 0
helping_read 128 0
helping_wait 96 0
array_hit 40 0
served_array_get 90 0
served_array_store 90 0
served_array_pin 94 0
helping_array_get 144 0'
small() {
  local sizes
  sizes=$(scripts/ptx --sizes sm_90 gpu/src/test/cuda/read_paths.cu) || return
  echo "$sizes"
  awk 'NR == FNR { registers[$1] = $2; bytes[$1] = $3; next }
    FNR > 1 {
      if (!($2 in registers)) { print $2 " has no limit"; bad = 1 }
      if ($3 > registers[$2] || $4 != 0 || (bytes[$2] != 0 && $5 > bytes[$2])) { print $2 " is too large"; bad = 1 }
      seen++
    }
    END { exit bad || seen != length(registers) }' <(echo "$limits") <(echo "$sizes")
}

result ptx-is-what-the-kernels-compile-to scripts/ptx --check
for arch in sm_75 sm_90 sm_100 sm_120; do
  result "ptx-assembles-for-$arch" scripts/ptx --assemble $arch
done
result ptx-spills-no-register spills
result ptx-read-paths-are-small small
