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

# Registers that spill are stores and loads in every round, and each fence empties the L1 cache.
spills() {
  local sizes
  sizes=$(scripts/ptx --sizes sm_90) || return
  awk 'NR > 1 && $4 != 0 { print; spilled = 1 } END { exit spilled }' <<<"$sizes"
}

result ptx-is-what-the-kernels-compile-to scripts/ptx --check
for arch in sm_75 sm_90 sm_100 sm_120; do
  result "ptx-assembles-for-$arch" scripts/ptx --sizes $arch
done
result ptx-spills-no-register spills
