#!/usr/bin/env bash
# environment: any machine
# long
# The Python package: against a library that fails on demand, and against the real one.
set -u
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$root" || exit 1
. scripts/check.sh
. scripts/jdk.sh
export PYTHONDONTWRITEBYTECODE=1

new_enough() { # PYTHON
  "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

has() { # PYTHON MODULE...
  local python=$1 module
  shift
  for module in "$@"; do
    "$python" -c "import $module" >/dev/null 2>&1 || return 1
  done
}

# What scripts/test-python could not have: Debian's packages, where we may install; a machine without a network does without.
install_torch() {
  new_enough /usr/bin/python3 && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 0
  has /usr/bin/python3 numpy torch && return 0
  echo 'installing python3-numpy and python3-torch'
  DEBIAN_FRONTEND=noninteractive timeout 300 apt-get install -y -qq -o DPkg::Lock::Timeout=200 --no-install-recommends \
    python3-numpy python3-torch >"$tmp/apt.log" 2>&1 </dev/null || true
}

# find_python MODULE...: sets python to the first interpreter that has them. Where there is a GPU, the machine's own PyTorch
# knows it; elsewhere that of scripts/test-python comes first, because Debian's is old.
find_python() {
  local candidate candidates=("$root/build/python/bin/python" python3 /usr/bin/python3)
  [ ! -e /dev/nvidiactl ] || candidates=(python3 /usr/bin/python3 "$root/build/python/bin/python")
  for candidate in "${GPUNVME_PYTHON:-}" "${candidates[@]}"; do
    if [ -n "$candidate" ] && command -v "$candidate" >/dev/null && new_enough "$candidate" &&
      has "$candidate" "$@"; then
      python=$(command -v "$candidate")
      return 0
    fi
  done
  return 1
}

build_fake() {
  cc -std=c11 -Wall -Wextra -Werror -O1 -g -shared -fPIC -Icapi/include \
    python/tests/fake_gpunvme.c -o "$tmp/libgpunvme.so" -lpthread
}

if ! find_python sys; then
  echo 'SKIP python: no Python 3.11 or newer'
  exit 0
fi
find_python numpy torch || install_torch
find_python numpy torch transformers || find_python numpy torch || find_python torch || find_python numpy || find_python sys
"$python" --version
has "$python" torch && "$python" -c 'import torch; print("PyTorch", torch.__version__)'

if ! command -v cc >/dev/null; then
  echo 'SKIP python: no C compiler (cc) for the library'
  exit 0
fi
check python-fake-library-compiles build_fake
GPUNVME_LIBRARY=$tmp/libgpunvme.so "$python" python/tests/report.py python-fake || echo 'FAIL python-fake: no test ran'

if [ -f capi/target/libgpunvme.so ] && [ -d capi/target/app ]; then
  find_jdk && export GPUNVME_JAVA_HOME=$JDK_HOME
  # What a GPU does is done by the CPU where there is none.
  if [ ! -e /dev/nvidiactl ] && check python-kernels-stand-in scripts/cpu-cuda "$tmp/cuda"; then
    export GPUNVME_TEST_CPU_CUDA=$tmp/cuda/libcuda.so.1
  fi
  # Many tests start a process, and so Java, of their own: over before the optimising compiler pays.
  (unset GPUNVME_LIBRARY && GPUNVME_JAVA_OPTS=-XX:TieredStopAtLevel=1 "$python" python/tests/report.py python) || echo 'FAIL python: no test ran, or the process died'
  # In a process that has no virtual machine yet.
  (unset GPUNVME_LIBRARY && GPUNVME_JAVA_OPTS=-XX:TieredStopAtLevel=1 "$python" python/tests/report.py python-ray ray_test.py) || echo 'FAIL python-ray: no test ran, or the process died'
  if has "$python" torch; then
    check python-example-gnn env PYTHONPATH=python/src "$python" examples/python/gnn.py --device cpu \
      --features "$tmp/features.bin" --nodes 2000 --dim 64 --batch 32 --steps 15
    check python-example-embedding env PYTHONPATH=python/src "$python" examples/python/embedding.py --device cpu \
      --rows 200 --batch 256 --steps 40 --check
  fi
  if [ -n "${GPUNVME_TEST_CPU_CUDA:-}" ] && has "$python" torch; then
    GPUNVME_LIBCUDA=$GPUNVME_TEST_CPU_CUDA GPUNVME_TEST_ACCELERATOR=gpu "$python" python/tests/report.py python-kernels test_disk.py ||
      echo 'FAIL python-kernels: no test ran, or the process died'
  fi
  if [ -n "${GPUNVME_TEST_CPU_CUDA:-}" ]; then
    FAKE_CUDA_DEVICES=2 GPUNVME_LIBCUDA=$GPUNVME_TEST_CPU_CUDA GPUNVME_TEST_ACCELERATOR=gpu \
      "$python" python/tests/report.py python-gpus test_gpus.py || echo 'FAIL python-gpus: no test ran, or the process died'
  fi
  if [ -e /dev/nvidiactl ]; then
    for tests in gpu_test.py 'test_*.py'; do
      GPUNVME_TEST_ACCELERATOR=gpu "$python" python/tests/report.py python-gpu "$tests" ||
        echo "FAIL python-gpu: no test of $tests ran, or the process died"
    done
  else
    echo 'SKIP python-gpu: no NVIDIA driver (/dev/nvidiactl)'
  fi
else
  echo 'FAIL python: capi/target has no libgpunvme.so and app'
fi

if find_python mypy torch transformers; then
  # What it knows of other people's packages stays with them: to read PyTorch's takes half a minute.
  cache=$tmp/mypy
  [ ! -d build/python ] || cache=$root/build/python/mypy
  check python-types env -C python "$python" -m mypy --cache-dir "$cache"
else
  echo "SKIP python-types: no mypy with PyTorch and transformers; $(scripts/test-python --why mypy); $(scripts/test-python --why torch)"
fi
