# shellcheck shell=bash
# Sourced by what runs or packs the benchmarks of the bindings, in the repository root.

# compile_bindings FOLDER: the programs of bench/src/main/c, for the folder that has libgpunvme.so
compile_bindings() {
  local name
  for name in bindings small; do
    "${CC:-gcc}" -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -I capi/include "bench/src/main/c/$name.c" \
      -L capi/target -Wl,-rpath,"\$ORIGIN" -lgpunvme -o "$1/$name" || return 1
  done
  # Linked with no library: it loads the one that it is told.
  "${CC:-gcc}" -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -I capi/src/main/cufile bench/src/main/c/cufile.c \
    -ldl -pthread -o "$1/cufile-bench" || return 1
}

# Sets python to the first interpreter that has PyTorch; without one to python3, which will say what it lacks.
find_torch() {
  for python in "${GPUNVME_PYTHON:-}" python3 "$PWD/build/python/bin/python" /usr/bin/python3; do
    if [ -n "$python" ] && "$python" -c 'import torch' >/dev/null 2>&1; then
      return 0
    fi
  done
  python=${GPUNVME_PYTHON:-python3}
}
