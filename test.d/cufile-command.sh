#!/usr/bin/env bash
# environment: any machine
# gpunvme cufile: programs find gpunvme's libcufile.so.0 however they look for NVIDIA's, and are what they are without it.
set -u
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/scripts/check.sh"
gpunvme=$root/gpunvme
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
unset LD_PRELOAD LD_LIBRARY_PATH GPUNVME_HOME

if ! command -v gcc >/dev/null; then
  echo 'SKIP cufile-command: no gcc on this machine'
  exit 0
fi
"$gpunvme" --version >"$tmp/version" # builds where there is nothing yet
if ! (cd "$root" && scripts/capi build) >"$tmp/log" 2>&1; then
  sed 's/^/  /' "$tmp/log" | tail -n 20
  echo 'FAIL cufile-command: the library could not be built'
  exit 0
fi
own=$root/capi/target/cufile/libcufile.so.0

# A library in the place of NVIDIA's, and programs that say whose functions they have.
make_programs() {
  mkdir "$tmp/nvidia" && cd "$tmp" || return 1
  cat >nvidia.c <<'C'
int cuFileUseCount(void) { return 0; }
int cuFileDriverOpen(void) { return 0; }
int cuFileHandleRegister(void) { return 0; }
int cuFileHandleDeregister(void) { return 0; }
int cuFileRead(void) { return 0; }
C
  cat >reads.c <<'C'
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cufile_abi.h"
// Prints so many bytes of a file from an offset on.
int main(int count, char **words) {
  const size_t bytes = (size_t)atoi(words[count - 1]);
  const int fd = open(words[1], O_RDONLY);
  char *memory = malloc(bytes);
  CUfileHandle_t file;
  CUfileDescr_t what;
  memset(&what, 0, sizeof what);
  what.handle.fd = fd;
  what.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD;
  if (fd < 0 || cuFileDriverOpen().err != CU_FILE_SUCCESS || cuFileHandleRegister(&file, &what).err != CU_FILE_SUCCESS) {
    return 3;
  }
  ssize_t read = cuFileRead(file, memory, bytes, atoi(words[2]), 0);
  cuFileHandleDeregister(file);
  return read != (ssize_t)bytes || write(1, memory, bytes) != (ssize_t)bytes;
}
C
  cat >linked.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
int cuFileUseCount(void);
int main(void) {
  Dl_info info;
  return dladdr((void *)cuFileUseCount, &info) == 0 || puts(info.dli_fname) < 0;
}
C
  cat >opens.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char **words) {
  Dl_info info;
  void *library = count < 2 ? NULL : dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  return dladdr(dlsym(library, "cuFileUseCount"), &info) == 0 || puts(info.dli_fname) < 0;
}
C
  gcc -shared -fPIC -Wl,-soname,libcufile.so.0 nvidia.c -o nvidia/libcufile.so.0 && ln -s libcufile.so.0 nvidia/libcufile.so &&
    gcc linked.c -o linked_rpath -L nvidia -lcufile "-Wl,--disable-new-dtags,-rpath,$tmp/nvidia" &&
    gcc -I "$root/capi/src/main/cufile" reads.c -o reads -L nvidia -lcufile "-Wl,--disable-new-dtags,-rpath,$tmp/nvidia" &&
    gcc linked.c -o linked_runpath -L nvidia -lcufile "-Wl,--enable-new-dtags,-rpath,$tmp/nvidia" &&
    gcc opens.c -o opens_rpath "-Wl,--disable-new-dtags,-rpath,$tmp/nvidia" &&
    gcc opens.c -o opens_runpath "-Wl,--enable-new-dtags,-rpath,$tmp/nvidia"
}

# finds FILE PROGRAM [ARGUMENT]: its functions are those of FILE, and of the stand-in for NVIDIA's without gpunvme cufile
finds() {
  local file=$1 found
  shift
  [ "$(readlink -f "$("$tmp/$1" "${@:2}")")" = "$tmp/nvidia/libcufile.so.0" ] || return 1
  found=$(cd / && "$gpunvme" cufile -- "$tmp/$1" "${@:2}") || return 1
  echo "$found"
  [ "$(readlink -f "$found")" = "$(readlink -f "$file")" ]
}

# shellcheck disable=SC2016 # the other shell's variables
is_the_program() {
  local code=0 said
  "$gpunvme" cufile -- sh -c 'exit 7' || code=$?
  [ $code = 7 ] || return 1
  said=$(printf 'some text' | "$gpunvme" cufile -- sh -c 'cat; echo "$@"' '' 'two words' --help '*')
  [ "$said" = 'some texttwo words --help *' ] || return 1
  # The same process, so that signals and the terminal are its own.
  "$gpunvme" cufile -- sh -c 'echo $$; kill -TERM $$' >"$tmp/pid" &
  code=0
  wait $! || code=$?
  [ $code = 143 ] && [ "$(cat "$tmp/pid")" = $! ]
}

# Where no Java can be had.
# shellcheck disable=SC2016 # the other shell's variable
needs_no_java() {
  GPUNVME_JAVA_HOME=/nowhere JAVA_HOME='' PATH=/usr/bin:/bin "$gpunvme" cufile -- sh -c 'test -n "$LD_PRELOAD"'
}

sets_what_it_is_told() {
  local said
  said=$(cd "$tmp" && LD_PRELOAD='' LD_LIBRARY_PATH=/before "$gpunvme" cufile --map /mnt/a=vfio:0000:01:00.0#1 --map=/mnt/b=sim: --log my.log \
    --log-level=Debug -- env | grep -E '^(LD_|CUFILE_|GPUNVME_CUFILE)' | sort)
  diff - <(echo "$said") <<TEXT
CUFILE_LOGFILE_PATH=$tmp/my.log
CUFILE_LOGGING_LEVEL=DEBUG
GPUNVME_CUFILE_MAP=/mnt/a=vfio:0000:01:00.0#1,/mnt/b=sim:
LD_LIBRARY_PATH=${own%/*}:/before
LD_PRELOAD=$own
TEXT
}

prints_it_for_others() {
  local lines
  mapfile -t lines < <(env -u GPUNVME_JAVA_HOME LD_LIBRARY_PATH=/before "$gpunvme" cufile --print --map '/mnt/a b=vfio:0000:01:00.0#1')
  [ "${#lines[@]}" = 3 ] && [ "${lines[0]}" = "LD_PRELOAD=$own" ] && [ "${lines[1]}" = "LD_LIBRARY_PATH=${own%/*}" ] &&
    [ "${lines[2]}" = 'GPUNVME_CUFILE_MAP=/mnt/a b=vfio:0000:01:00.0#1' ] &&
    [ "$(env "${lines[@]}" "$tmp/linked_rpath")" = "$own" ] || return 1
  "$gpunvme" cufile --json --map '/mnt/"a\b"=sim:' >"$tmp/out" || return 1
  cat "$tmp/out"
  grep -qF '"GPUNVME_CUFILE_MAP": "/mnt/\"a\\b\"=sim:"' "$tmp/out" && grep -qF "\"LD_PRELOAD\": \"$own\"" "$tmp/out" &&
    { ! command -v python3 >/dev/null || python3 -m json.tool "$tmp/out"; }
}

# A file, one that is the address of an SSD, and one that the map has: on the SSD there are other bytes than in the file.
reads_files() {
  head -c 100000 /dev/urandom >"$tmp/file"
  "$gpunvme" cufile -- "$tmp/reads" "$tmp/file" 4097 70001 >"$tmp/out" && cmp "$tmp/out" <(tail -c +4098 "$tmp/file" | head -c 70001) || return 1
  head -c 1048576 /dev/urandom >"$tmp/disk"
  echo "gpunvme:sim:file=$tmp/disk,size=1MiB,readonly=true" >"$tmp/address"
  "$gpunvme" cufile --log "$tmp/log" --log-level info -- "$tmp/reads" "$tmp/address" 500001 300000 >"$tmp/out" || { cat "$tmp/log" && return 1; }
  cat "$tmp/log"
  cmp "$tmp/out" <(tail -c +500002 "$tmp/disk" | head -c 300000) && grep -q "sim:file=$tmp/disk,size=1MiB,readonly=true is open" "$tmp/log"
}

reads_what_the_map_has() {
  mkdir -p "$tmp/content/models" "$tmp/mount/models"
  head -c 200000 /dev/urandom >"$tmp/content/models/a.bin"
  head -c 200000 /dev/zero >"$tmp/mount/models/a.bin"
  mke2fs -q -t ext4 -d "$tmp/content" "$tmp/image" 16M && cd "$tmp/mount/models" || return 1
  "$gpunvme" cufile --map "$tmp/mount=sim:file=$tmp/image,readonly=true" -- "$tmp/reads" a.bin 1000 150000 >"$tmp/out" &&
    cmp "$tmp/out" <(tail -c +1001 "$tmp/content/models/a.bin" | head -c 150000) || return 1
  GPUNVME_CUFILE_MAP=$tmp/mount=sim:file=$tmp/image,readonly=true "$gpunvme" explain a.bin --accelerator cpu >"$tmp/out"
  cat "$tmp/out"
  grep -q "^under gpunvme cufile: mapped to sim:file=$tmp/image,readonly=true:/models/a.bin by GPUNVME_CUFILE_MAP, for reading" "$tmp/out"
}

# refuses CODE TEXT WORD...: one line that has TEXT
refuses() {
  local code=0 wanted=$1 text=$2
  shift 2
  "$gpunvme" cufile "$@" >"$tmp/out" 2>"$tmp/err" || code=$?
  cat "$tmp/out" "$tmp/err"
  [ $code = "$wanted" ] && [ ! -s "$tmp/out" ] && [ "$(wc -l <"$tmp/err")" = 1 ] && grep -qF -- "gpunvme cufile: " "$tmp/err" &&
    grep -qF -- "$text" "$tmp/err"
}

refuses_what_is_wrong() {
  echo 'no program' >"$tmp/text"
  refuses 2 "'ls' stands before '--'" ls -l && refuses 2 'no PROGRAM to start' && refuses 2 'no PROGRAM to start' -- &&
    refuses 2 "no program 'no-such-program' in PATH" -- no-such-program && refuses 2 '/no/such: no such file' -- /no/such &&
    refuses 2 "$tmp/text is not executable" -- "$tmp/text" && refuses 2 "Unknown option: '--speed'" --speed -- ls &&
    refuses 2 "--log-level 'loud' is not" --log-level loud -- ls &&
    refuses 2 "--map '/mnt' is not MOUNT=ADDRESS" --map /mnt -- ls && refuses 2 '--map wants a value' --map -- ls &&
    refuses 2 'control character' --log $'a\nb' -- ls && refuses 2 "$tmp is a folder" -- "$tmp" &&
    refuses 2 "--log '/no/such.log' cannot be written" --log /no/such.log -- ls && refuses 2 "--log '$tmp' cannot" --log "$tmp" -- ls &&
    refuses 2 "--map '/a=b,/c' is not" --map /a=b,/c -- ls && refuses 2 "--map '/a,/b=c' is not" --map /a,/b=c -- ls || return 1
  "$gpunvme" cufile --map /a,a=b,c=d,/e=f:rw --log "$tmp/text" -- ls / || return 1
  ! "$gpunvme" cufile --map 'a"b' --json >"$tmp/out" 2>"$tmp/err" || return 1
  cat "$tmp/out"
  grep -qF -- '"error": "--map '"'a\\\"b' is not" "$tmp/out" && grep -q '"exit_code": 2$' "$tmp/out"
}

# A tree in which nothing has been built, and a package that has lost it.
says_that_the_library_is_missing() {
  local code=0
  mkdir -p "$tmp/tree/scripts" "$tmp/tree/capi/src" "$tmp/package"
  cp "$gpunvme" "$tmp/tree/" && cp "$root"/scripts/{cufile,build.sh,jdk.sh} "$tmp/tree/scripts/" && cp "$root/scripts/cufile" "$tmp/package/start"
  "$tmp/tree/gpunvme" cufile -- ls 2>"$tmp/err" || code=$?
  cat "$tmp/err"
  [ $code = 1 ] && grep -q "no libcufile.so.0 in $tmp/tree/capi/target/cufile: build it with $tmp/tree/scripts/capi build" "$tmp/err" || return 1
  code=0
  "$tmp/package/start" -- ls 2>"$tmp/err" || code=$?
  cat "$tmp/err"
  [ $code = 1 ] && grep -q "no libcufile.so.0 in $tmp/package: this package" "$tmp/err"
}

refuses_a_folder_that_cannot_be_named() {
  local code=0
  mkdir "$tmp/two words" && cp "$root/scripts/cufile" "$tmp/two words/start" && cp "$own" "$tmp/two words/" || return 1
  "$tmp/two words/start" -- ls 2>"$tmp/err" || code=$?
  cat "$tmp/err"
  [ $code = 1 ] && grep -q 'two words has a space' "$tmp/err"
}

explains_itself() {
  "$gpunvme" cufile --map /a=b --help >"$tmp/out" && grep -q '^Usage: gpunvme cufile' "$tmp/out" && "$gpunvme" help cufile | cmp - "$tmp/out" &&
    "$gpunvme" cufile -h --json | grep -q '"topic": "cufile"'
}

# gpunvme's own path cufile must not take it for NVIDIA's.
is_known_to_gpunvme() {
  "$gpunvme" doctor --json >"$tmp/out" || return 1
  grep -F "\"cause\": \"gpunvme's own is $own;" "$tmp/out" && grep 'programs find ' "$tmp/out" | grep -v "find $own" || return 1
  "$gpunvme" cufile -- "$gpunvme" doctor --json >"$tmp/out" || return 1
  grep -F "programs find $own, which is gpunvme's" "$tmp/out"
}

check cufile-command-programs-compile make_programs
check cufile-command-found-by-rpath finds "$own" linked_rpath
check cufile-command-found-by-runpath finds "$own" linked_runpath
check cufile-command-found-by-name finds "$own" opens_rpath libcufile.so.0
check cufile-command-found-by-name-with-runpath finds "$own" opens_runpath libcufile.so.0
check cufile-command-found-by-name-without-version finds "$own" opens_runpath libcufile.so
# By its path a program gets what it names.
check cufile-command-not-found-by-path finds "$tmp/nvidia/libcufile.so.0" opens_runpath "$tmp/nvidia/libcufile.so.0"
check cufile-command-is-the-program is_the_program
check cufile-command-needs-no-java needs_no_java
check cufile-command-sets-what-it-is-told sets_what_it_is_told
check cufile-command-prints-it-for-others prints_it_for_others
check cufile-command-refuses-what-is-wrong refuses_what_is_wrong
check cufile-command-says-that-the-library-is-missing says_that_the_library_is_missing
check cufile-command-refuses-a-folder-that-cannot-be-named refuses_a_folder_that_cannot_be_named
if ls "$root"/capi/target/app/gpunvme-capi*.jar >/dev/null 2>&1; then
  check cufile-command-reads-files reads_files
  if command -v mke2fs >/dev/null; then
    check cufile-command-reads-what-the-map-has reads_what_the_map_has
  else
    echo 'SKIP cufile-command-reads-what-the-map-has: no mke2fs (Debian: e2fsprogs)'
  fi
else
  echo 'FAIL cufile-command-reads-files: no jars in capi/target/app; mvn package -pl capi -am builds them'
fi
check cufile-command-explains-itself explains_itself
check cufile-command-is-known-to-gpunvme is_known_to_gpunvme
