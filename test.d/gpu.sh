#!/usr/bin/env bash
# environment: NVIDIA GPU
# The tests that need a GPU, run as they are elsewhere: from the GPU kit.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

if [ ! -e /dev/nvidiactl ]; then
  echo 'SKIP GPU tests: no NVIDIA driver (/dev/nvidiactl)'
  exit 0
fi
scripts/gpu-kit || exit 1
code=0
build/gpu-kit/run test || code=$?
build/gpu-kit/run cufile-tests
[ $code -le 1 ] # a failed test has its line already
