#!/usr/bin/env bash
# environment: any machine
# What our libcufile.so.0 does, beside what is documented: the suite that runs against any library of that name
# (scripts/cufile-suite), with memory of the host and with the stand-in for CUDA's driver; a client in Python; and a program that
# was linked with NVIDIA's library.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
. scripts/check.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
ours=$PWD/capi/target/cufile
export TMPDIR=$tmp
unset GPUNVME_LIBCUDA GPUNVME_CUFILE_MAP LD_LIBRARY_PATH LD_PRELOAD
for name in $(compgen -v CUFILE_); do unset "$name"; done

# suite NAME OPTION...: the checks, of which those that fail are told, and what was skipped
suite() {
  local name=$1
  shift
  check "$name" timeout -k 5 300 "$tmp/suite" --jobs 4 "$@" "$ours/libcufile.so.0" && sed 's/^/  /' "$tmp/check.log"
}

python() { # NAME: the client's lines
  local code=0
  timeout -k 5 100 python3 capi/src/test/cufile/client.py "$ours/libcufile.so.0" "$tmp" >"$tmp/log" 2>&1 || code=$?
  sed -e '/^\(PASS\|FAIL\|SKIP\) /!s/^/  /' "$tmp/log"
  [ $code = 0 ] || echo "FAIL cufile-python: ended with code $code, before its end"
}

# A program of others: NVIDIA's header, linked with NVIDIA's library, started with ours in its place.
linked() { # FOLDER of NVIDIA's include and lib
  gcc -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -isystem "$1/include" capi/src/test/cufile/linked.c -L "$1/lib" -l:libcufile.so.0 \
    -Wl,--allow-shlib-undefined -ldl -o "$tmp/linked" && LD_LIBRARY_PATH=$ours timeout 60 "$tmp/linked" "$ours" "$tmp"
}

for tool in gcc g++ python3; do
  if ! command -v $tool >/dev/null; then
    echo "SKIP cufile-suite: no $tool"
    exit 0
  fi
done
if [ ! -e "$ours/libcufile.so.0" ]; then
  echo "FAIL cufile-suite: no $ours/libcufile.so.0; scripts/capi build makes it"
  exit 0
fi
check cufile-suite-compiles scripts/cufile-suite build "$tmp/suite" || exit 0
suite cufile-suite-host --memory host
theirs=$(find build/python/lib/python3*/site-packages/nvidia -path '*/include/cufile.h' -print -quit 2>/dev/null)
if [ -z "$theirs" ]; then
  echo "SKIP cufile-linked: no header of NVIDIA's; $(scripts/test-python --why nvidia-cufile)"
else
  check cufile-suite-compiles-with-nvidias-header scripts/cufile-suite build "$tmp/theirs" "$(dirname "$theirs")" &&
    check cufile-suite-names "$tmp/theirs" --only names --only sizes "$ours/libcufile.so.0"
  check cufile-linked linked "$(dirname "$(dirname "$theirs")")"
fi
mkdir "$tmp/cuda"
if check cufile-suite-stand-in scripts/cufile-suite stand-in "$tmp/cuda"; then
  export GPUNVME_LIBCUDA=$tmp/cuda/libcuda.so.1
  suite cufile-suite-device --memory device
fi
python
