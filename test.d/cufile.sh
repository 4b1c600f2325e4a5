#!/usr/bin/env bash
# environment: any machine
# Our libcufile.so.0: its ABI against NVIDIA's header.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
sources=capi/src/main/cufile
tests=capi/src/test/cufile
flags=(-std=c17 -D_GNU_SOURCE -Wall -Wextra -Werror)

check() { # NAME COMMAND...: passes if the command does
  local name=$1
  shift
  if "$@" >"$tmp/log" 2>&1; then
    echo "PASS $name"
  else
    sed 's/^/  /' "$tmp/log" | tail -n 40
    echo "FAIL $name"
    return 1
  fi
}

header() { # COMPILER LANGUAGE STANDARD
  echo '#include "cufile_abi.h"' | "$1" -x "$2" -std="$3" -Wall -Wextra -Werror -pedantic -D_GNU_SOURCE -I $sources -fsyntax-only -
}

# abi_of HEADER OPTION...: what a program sees that is compiled with it
abi_of() {
  local header=$1
  shift
  gcc "${flags[@]}" -DHEADER="$header" "$@" $tests/abi_test.c -o "$tmp/abi" && "$tmp/abi"
}

# The types, values and functions are those of NVIDIA's header, and none of its functions is left out.
same_abi() { # FOLDER of NVIDIA's header
  abi_of '"cufile_abi.h"' -I $sources >"$tmp/ours" && abi_of '<cufile.h>' -isystem "$1" >"$tmp/theirs" && diff "$tmp/ours" "$tmp/theirs" &&
    grep -oE '\bcuFile[A-Z][A-Za-z0-9_]* *\(' "$1/cufile.h" | tr -d ' (' | sort -u >"$tmp/declared" && [ "$(wc -l <"$tmp/declared")" -ge 45 ] &&
    sed -n 's/^function \(cuFile.*\)/\1/p' "$tmp/ours" | sort -u >"$tmp/compared" && ! comm -23 "$tmp/declared" "$tmp/compared" | grep .
}

for tool in gcc g++; do
  if ! command -v $tool >/dev/null; then
    echo "SKIP cufile: no $tool"
    exit 0
  fi
done
check cufile-header-as-c11 header gcc c c11
check cufile-header-as-c++17 header g++ c++ c++17
theirs=$(find build/python/lib/python3*/site-packages/nvidia -path '*/include/cufile.h' -print -quit 2>/dev/null)
if [ -z "$theirs" ]; then
  echo "SKIP cufile-abi: no header of NVIDIA's; $(scripts/test-python --why nvidia-cufile)"
else
  check cufile-abi same_abi "$(dirname "$theirs")"
fi
