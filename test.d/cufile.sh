#!/usr/bin/env bash
# environment: any machine
# Our libcufile.so.0: its ABI against NVIDIA's header, what it exports, and what it does, watched by sanitizers.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
. scripts/check.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
sources=capi/src/main/cufile
tests=capi/src/test/cufile
flags=(-std=c17 -D_GNU_SOURCE -Wall -Wextra -Werror)

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
    grep -oE '\bcuFile[A-Z][A-Za-z0-9_]* *\(' "$1/cufile.h" | tr -d ' (' | sort -u >"$tmp/declared" && [ "$(wc -l <"$tmp/declared")" -ge 40 ] &&
    sed -n 's/^function \(cuFile.*\)/\1/p' "$tmp/ours" | sort -u >"$tmp/compared" && ! comm -23 "$tmp/declared" "$tmp/compared" | grep .
}

only_cufile_is_exported() {
  nm -D --defined-only capi/target/cufile/libcufile.so.0 | awk '$2 != "A" { print $3 }' | sort >"$tmp/exported"
  {
    sed -n 's/^[A-Za-z].*\b\(cuFile[A-Z][A-Za-z0-9_]*\)(.*/\1/p' $sources/cufile_abi.h
    printf '%s\n' cuFileDriverClose_v2 gpunvme_cufile_version
  } | sort -u >"$tmp/declared"
  diff "$tmp/declared" "$tmp/exported" && readelf -d capi/target/cufile/libcufile.so.0 | grep -F '[libcufile.so.0]' &&
    [ "$(readlink capi/target/cufile/libcufile.so)" = libcufile.so.0 ]
}

# each NAME COMMAND...: a program that prints a line for each of its tests
each() {
  local name=$1 code=0
  shift
  timeout -k 5 600 "$@" >"$tmp/log" 2>&1 || code=$?
  sed -e "/^\(PASS\|FAIL\|SKIP\) /s/ / $name-/" -e '/^\(PASS\|FAIL\|SKIP\) /y/_/-/' -e '/^\(PASS\|FAIL\|SKIP\) /!s/^/  /' "$tmp/log"
  [ $code = 0 ] || grep -q '^FAIL ' "$tmp/log" || echo "FAIL $name: ended with code $code, before its end"
}

# group NAME OPTION...: the groups of functions, with the sources compiled so
group() {
  local name=$1
  shift
  mkdir -p "$tmp/$name"
  if check "$name-compiles" scripts/capi cufile-test cufile_test "$tmp/$name/test" "$@"; then
    (cd "$tmp/$name" && each "$name" ./test "$tmp/$name")
  fi
}

# sanitized NAME OPTIONS
sanitized() {
  echo 'int main(void) { return 0; }' >"$tmp/empty.c"
  if ! { gcc "$2" "$tmp/empty.c" -o "$tmp/empty" && "$tmp/empty"; } >"$tmp/log" 2>&1; then
    echo "SKIP $1: gcc has no $2 here"
  else
    group "$1" -fno-sanitize-recover=undefined -DSETTLED_SECONDS=0 "$2"
  fi
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
check cufile-library-compiles scripts/capi build || exit 0
check cufile-only-cufile-is-exported only_cufile_is_exported
# The C library frees what thread-local variables of loaded libraries took, as the stand-in's kernels have them, where TSan does not see who waits.
echo 'race:_dl_deallocate_tls' >"$tmp/suppressions"
export TSAN_OPTIONS=halt_on_error=1:suppressions=$tmp/suppressions UBSAN_OPTIONS=print_stacktrace=1
unset GPUNVME_LIBCUDA GPUNVME_CUFILE_MAP
for name in $(compgen -v CUFILE_); do unset "$name"; done
group cufile-host
check cufile-stand-in scripts/cufile-suite stand-in "$tmp" && export GPUNVME_LIBCUDA=$tmp/libcuda.so.1
group cufile
sanitized cufile-memory -fsanitize=address,undefined
sanitized cufile-threads -fsanitize=thread

# ---- the benchmark's program

bench_program() {
  # shellcheck source=scripts/bindings.sh
  (. scripts/bindings.sh && compile_bindings "$tmp") && gcc -x c -D_GNU_SOURCE -o "$tmp/maps" - <<'C'
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int count, char **words) {
  if (count < 2 || mmap(0, 64 << 20, PROT_READ, MAP_SHARED | MAP_POPULATE, open(words[1], O_RDONLY), 0) == MAP_FAILED) {
    return 1;
  }
  puts("mapped");
  fflush(stdout);
  return pause();
}
C
}

# bench_says FILE CONTENT COMMAND: the last line of what the program answers
bench_says() {
  printf '%s\nend\n' "$3" | GPUNVME_CUFILE_MAP='' "$tmp/cufile-bench" capi/target/cufile/libcufile.so.0 "$1" "$2" host | tail -n 1
}

# What is called a cold read is one: nothing of the file may be in the page cache, which on tmpfs is all there is.
bench_tells_the_truth() {
  local said
  head -c 64M /dev/urandom >"$tmp/random" && { head -c 63M "$tmp/random" && head -c 1M /dev/zero; } >"$tmp/other" || return 1
  for asked in 'seq 2 1048576' 'rand 1 4096' 'batch 16 4096'; do
    said=$(bench_says "$tmp/random" "$tmp/random" "$asked") && echo "$asked: $said" && [[ $said =~ ^[0-9] ]] || return 1
  done
  said=$(bench_says "$tmp/random" "$tmp/other" 'seq 1 1048576')
  echo "$said"
  [[ $said == 'error wrong data'* ]] || return 1
  said=$(bench_says "$tmp/random" "$tmp/random" 'cold 1 1048576')
  echo "$said"
  if [ "$(stat -f -c %T "$tmp")" = tmpfs ]; then
    [[ $said == 'error the page cache keeps'* ]]
    return
  fi
  [[ $said =~ ^[0-9] ]] || return 1
  # What a program has mapped stays.
  "$tmp/maps" "$tmp/random" >"$tmp/mapped" &
  until grep -q mapped "$tmp/mapped"; do
    kill -0 $! || return 1
    sleep 0.05
  done
  said=$(bench_says "$tmp/random" "$tmp/random" 'cold 1 1048576')
  kill $!
  echo "$said"
  [[ $said == 'error the page cache keeps'* ]]
}

check cufile-bench-compiles bench_program && check cufile-bench-tells-the-truth bench_tells_the_truth

# ---- the library as it was built

# A folder with files, and an image of an SSD with other content under the same names.
files_of() { # FOLDER
  mkdir -p "$1"/{mapped,mapped-not,linked,image}/deep "$1"/{mapped,image}/more "$1"/{image2,empty} && ln -s linked "$1/link" || return 1
  head -c 5000 /dev/zero | tr '\0' x >"$1/plain"
  head -c 5000 /dev/zero | tr '\0' h | tee "$1"/{mapped,mapped-not,linked}/deep/file "$1/mapped/more/file" >/dev/null
  head -c 5000 /dev/zero | tr '\0' t | tee "$1"/image/{deep,more}/file >/dev/null
  head -c 5000 /dev/zero | tr '\0' m >"$1/image2/file"
  echo a >"$1/mapped/alone"
  echo 'gpunvme:sim:size=64MiB' >"$1/address"
  echo 'gpunvme:nonsense:' >"$1/nonsense"
  printf 'gpunvme:sim:size=64MiB\nand more\n' >"$1/lines"
  echo 'gpunvme: what a program said' >"$1/note"
  printf 'gpunvme:sim:\0size=64MiB' >"$1/zero"
  for image in image image2; do
    truncate -s 16M "$1/$image.ext4" && mkfs.ext4 -q -d "$1/$image" "$1/$image.ext4" || return 1
  done
}

PATH=$PATH:/sbin:/usr/sbin
unset GPUNVME_LIBCUDA
if ! ls capi/target/app/gpunvme-capi*.jar >/dev/null 2>&1; then
  echo "FAIL cufile-jars: none in capi/target/app; mvn package -pl capi -am builds them"
elif ! command -v mkfs.ext4 >/dev/null; then
  echo 'SKIP cufile-client: no mkfs.ext4'
elif check cufile-files files_of "$tmp/files" &&
  check cufile-client-compiles gcc "${flags[@]}" -I $sources -I capi/src/test/c $tests/client_test.c -ldl -o "$tmp/client"; then
  library=$PWD/capi/target/cufile/libcufile.so.0
  cd "$tmp/files/empty" || exit 1
  map=$tmp/files/mapped/=sim:file=$tmp/files/image.ext4,$tmp/files/mapped/more=sim:file=$tmp/files/image2.ext4
  map=$map,$tmp/files/link=sim:file=$tmp/files/image.ext4
  CUFILE_ENV_PATH_JSON=/nowhere.json GPUNVME_CUFILE_MAP=$map each cufile-client "$tmp/client" "$library" "$tmp/files"
  check cufile-leaves-no-files test -z "$(ls -A)"
fi
