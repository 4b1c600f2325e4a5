#!/usr/bin/env bash
# environment: any machine
# The C library: its header, what it exports, its shim under sanitizers, what it does with the virtual machine, and its
# examples, as built and as installed. CAPI_SEED repeats a run, CAPI_SECONDS makes it longer.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
. scripts/check.sh
. scripts/jdk.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
target=$PWD/capi/target
seconds=${CAPI_SECONDS:-10}
strict=(-Wall -Wextra -Werror -pedantic)
export TSAN_OPTIONS=halt_on_error=1 UBSAN_OPTIONS=print_stacktrace=1 TMPDIR=$tmp
unset GPUNVME_HOME GPUNVME_JAVA_OPTS

# each NAME COMMAND...: a program that prints a line for each of its tests
each() {
  local name=$1 code=0
  shift
  timeout -k 5 300 "$@" >"$tmp/log" 2>&1 || code=$?
  sed -e '/^\(PASS\|FAIL\|SKIP\) /y/_/-/' -e '/^\(PASS\|FAIL\|SKIP\) /!s/^/  /' "$tmp/log"
  [ $code = 0 ] || grep -q '^FAIL ' "$tmp/log" || echo "FAIL $name: ended with code $code, before its end"
}

header() { # COMPILER LANGUAGE STANDARD
  echo '#include "gpunvme.h"' | "$1" -x "$2" -std="$3" "${strict[@]}" -I capi/include -fsyntax-only -
}

only_the_header_is_exported() {
  nm -D --defined-only "$target/libgpunvme.so" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort >"$tmp/exported"
  sed -n '/^GPUNVME_API/s/(.*//p' capi/include/gpunvme.h | sed 's/.*[ *]//' | sort >"$tmp/declared"
  [ "$(wc -l <"$tmp/declared")" -gt 40 ] && diff "$tmp/declared" "$tmp/exported"
}

# sanitized NAME TEST OPTIONS [ARGUMENT]: a test of the shim without a virtual machine
sanitized() {
  local name=$1 test=$2 options=$3
  shift 3
  echo 'int main(void) { return 0; }' >"$tmp/empty.c"
  mkdir -p "$tmp/$name"
  if ! { gcc "$options" "$tmp/empty.c" -o "$tmp/empty" && "$tmp/empty"; } >"$tmp/log" 2>&1; then
    echo "SKIP $name: gcc has no $options here"
  elif check "$name-compiles" scripts/capi test "$test" "$tmp/$name/test" -fno-sanitize-recover=undefined "$options"; then
    check "$name" timeout 120 "$tmp/$name/test" "$@"
  fi
}

# program SOURCE OPTION...: compiles a test against the library as it was built
program() {
  local source=$1
  shift
  scripts/capi program "$source" "$tmp/$source" "-Wl,-rpath,$target" "$@"
}

stress() {
  timeout 300 "$tmp/stress" "$seconds" 24 ${CAPI_SEED:+"$CAPI_SEED"}
}

# A library in the place of libcuda.so.1 that runs the kernels of kernels_test on the CPU.
stand_in() {
  scripts/cpu-cuda "$tmp/cuda" capi/src/test/cuda/kernels.cu read_blocks read_bytes read_found
}

# kernels COMMAND...: kernels_test on this library
kernels() {
  GPUNVME_LIBCUDA=$tmp/cuda/libcuda.so.1 GPUNVME_TEST_ACCELERATOR=gpu GPUNVME_TEST_PTX=capi/src/test/cuda/kernels.cu "$@"
}

headers_are_installed() {
  diff -r gpu/src/main/cuda/gpunvme "$prefix/include/gpunvme" &&
    echo '#include <gpunvme.h>
#include <stdio.h>
int main(void) { char text[4096]; return gpunvme_include_dir(text, sizeof text, 0) < 0 || puts(text) < 0; }' |
    gcc -x c - -I "$prefix/include" -L "$prefix/lib" -lgpunvme "-Wl,-rpath,$prefix/lib" -o "$tmp/include_dir" &&
    [ "$("$tmp/include_dir")" = "$prefix/include" ]
}

# ---- installed

prefix=$tmp/prefix

with_pkg_config() { # SOURCE COMPILER STANDARD
  local flags
  flags=$(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --cflags --libs gpunvme) || return 1
  # shellcheck disable=SC2086 # several options
  "$2" -std="$3" "${strict[@]}" "capi/examples/$1" -o "$tmp/example-${1%.*}" $flags -Wl,-rpath,"$prefix/lib"
}

# example NAME TEXT ARGUMENT...: what it prints has the text in it
example() {
  local name=$1 text=$2
  shift 2
  timeout 60 "$tmp/example-$name" "$@" >"$tmp/out" || return 1
  cat "$tmp/out"
  grep -q "$text" "$tmp/out"
}

example_says_why() {
  local code=0
  "$tmp/example-read" /nowhere/model.bin >"$tmp/out" 2>"$tmp/err" || code=$?
  cat "$tmp/err"
  [ $code = 1 ] && [ ! -s "$tmp/out" ] && grep -q /nowhere/model.bin "$tmp/err" && [ "$(wc -l <"$tmp/err")" = 1 ]
}

with_cmake() {
  mkdir -p "$tmp/cmake"
  cat >"$tmp/cmake/CMakeLists.txt" <<TEXT
cmake_minimum_required(VERSION 3.16)
project(example C CXX)
find_package(gpunvme 0.1 REQUIRED)
add_executable(read $PWD/capi/examples/read.c)
target_link_libraries(read gpunvme::gpunvme)
add_executable(async $PWD/capi/examples/async.cpp)
target_compile_features(async PRIVATE cxx_std_17)
target_link_libraries(async gpunvme::gpunvme)
TEXT
  cmake -S "$tmp/cmake" -B "$tmp/cmake/build" -DCMAKE_PREFIX_PATH="$prefix" && cmake --build "$tmp/cmake/build" &&
    "$tmp/cmake/build/read" sim:size=16MiB 1000 && "$tmp/cmake/build/async" sim:size=16MiB
}

another_version_is_refused() {
  sed -i 's/gpunvme 0.1/gpunvme 1.0/' "$tmp/cmake/CMakeLists.txt"
  ! cmake -S "$tmp/cmake" -B "$tmp/cmake/other" -DCMAKE_PREFIX_PATH="$prefix"
}

moved_as_a_whole() {
  mv "$prefix" "$tmp/moved" && GPUNVME_ARCHIVE=off LD_LIBRARY_PATH=$tmp/moved/lib "$tmp/example-read" sim:size=1MiB 100
}

# prepared FOLDER: whether a program takes its classes from the archive beside the library there
prepared() {
  LD_LIBRARY_PATH=$1 GPUNVME_JAVA_HOME=$JDK_HOME GPUNVME_JAVA_OPTS=-Xlog:class+load "$tmp/example-read" sim:size=1MiB 100 >"$tmp/classes" 2>&1 &&
    grep 'io.gpunvme.capi.Calls source: shared objects file' "$tmp/classes"
}

# An archive does not fit where it was not made: the first program there has another one made.
moved_is_prepared_again() {
  local jars=$tmp/moved/lib/gpunvme n before
  before=$(echo "$jars"/gpunvme-*.jsa)
  GPUNVME_ARCHIVE=off prepared "$tmp/moved/lib" && return 1
  [ "$before" = "$(echo "$jars"/gpunvme-*.jsa)" ] || return 1
  prepared "$tmp/moved/lib" && return 1
  for ((n = 0; n < 600; n++)); do
    [ ! -e "$before" ] && ls "$jars"/gpunvme-*.jsa && prepared "$tmp/moved/lib" && return 0
    sleep 0.1
  done
  return 1
}

for tool in gcc g++; do
  if ! command -v $tool >/dev/null; then
    echo "SKIP capi: no $tool"
    exit 0
  fi
done
if ! find_jdk; then
  echo 'SKIP capi: no JDK 25 or newer'
  exit 0
fi

check capi-header-as-c99 header gcc c c99
check capi-header-as-c11 header gcc c c11
check capi-header-as-c++17 header g++ c++ c++17
check capi-library-compiles scripts/capi build || exit 0
check capi-only-the-header-is-exported only_the_header_is_exported
sanitized capi-shim-memory shim_test -fsanitize=address,undefined
sanitized capi-shim-threads shim_test -fsanitize=thread
sanitized capi-places-memory places_test -fsanitize=address,undefined "$(mkdir "$tmp/places" && echo "$tmp/places")"

if ! ls "$target"/app/gpunvme-capi*.jar >/dev/null 2>&1; then
  echo "FAIL capi-jars: none in capi/target/app; mvn package -pl capi -am builds them"
  exit 0
fi
mkdir "$tmp/scratch"
if check capi-tests-compile program jvm_test -I "$JDK_HOME/include" -I "$JDK_HOME/include/linux"; then
  each capi-jvm "$tmp/jvm_test" "$JDK_HOME" "$tmp/scratch"
fi
for test in device_test models_test kernels_test; do
  check "capi-${test%_test}-compiles" program "$test" && each "capi-${test%_test}" "$tmp/$test"
done
if [ -x "$tmp/kernels_test" ] && check capi-kernels-stand-in stand_in; then
  kernels each capi-kernels-run "$tmp/kernels_test"
fi
if [ ! -e /usr/local/cuda/include/cuda_runtime_api.h ]; then
  echo 'SKIP capi-cuda: no CUDA toolkit in /usr/local/cuda'
elif check capi-cuda-compiles program cuda_test; then
  if [ -e /dev/nvidiactl ]; then
    each capi-cuda "$tmp/cuda_test"
  else
    echo 'SKIP capi-cuda: no NVIDIA driver (/dev/nvidiactl)'
  fi
fi
if check capi-stress-compiles program stress; then
  check capi-24-threads stress && sed 's/^/  /' "$tmp/check.log"
fi
check capi-call-cost-compiles program call_cost -O2 && check capi-call-cost "$tmp/call_cost" && sed 's/^/  /' "$tmp/check.log"

check capi-installs scripts/capi install "$prefix" || exit 0
check capi-headers-are-installed headers_are_installed
if ! command -v pkg-config >/dev/null; then
  echo 'SKIP capi-examples: no pkg-config'
else
  for source in 'read.c gcc c99' 'layers.c gcc c99' 'blocks.c gcc c99' 'async.cpp g++ c++17'; do
    # shellcheck disable=SC2086 # three words
    check "capi-example-${source%%.*}-compiles" with_pkg_config $source
  done
  check capi-example-read example read '1000 of 16777216 bytes' sim:size=16MiB 1000
  check capi-example-layers example layers 'layer 7: 1000000 bytes' sim:size=16MiB 1000000 8
  check capi-example-blocks example blocks '1024 blocks and 10 elements' sim:size=16MiB
  head -c 5000001 /dev/zero | tr '\0' '\2' >"$tmp/twos"
  check capi-example-async example async '5000001 bytes, whose sum is 10000002' "$tmp/twos"
  check capi-example-says-why example_says_why
  check capi-installed-is-prepared prepared "$prefix/lib"
fi
if ! command -v cmake >/dev/null; then
  echo 'SKIP capi-cmake: no cmake'
else
  check capi-cmake with_cmake && check capi-cmake-refuses-another-version another_version_is_refused
fi
check capi-moved-as-a-whole moved_as_a_whole
[ ! -e "$tmp/example-read" ] || check capi-moved-is-prepared-again moved_is_prepared_again
