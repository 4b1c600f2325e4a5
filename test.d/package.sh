#!/usr/bin/env bash
# environment: any machine
# The packages on a machine without Java: each is installed, used and removed, and nothing of it is left. The machine is this one
# with its Java and this tree hidden, and what changes thrown away at the end; or PACKAGE_ROOT, the root of another system
# (debootstrap --include=python3,python3-venv,gcc,libc6-dev,pkg-config), which stays as it was.
set -u
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$root" || exit 1

if [ "$(id -u)" != 0 ] || ! unshare --mount --pid --fork true 2>/dev/null; then
  echo 'SKIP package: only root has mount namespaces of the whole system'
  exit 0
fi
kinds=(tarball)
if command -v dpkg-deb >/dev/null; then
  kinds+=(deb)
else
  echo 'SKIP package-deb: no dpkg-deb on this machine'
fi
if python3 -c 'import tomllib' 2>/dev/null; then
  kinds+=(wheel)
else
  echo 'SKIP package-wheel: python3 is older than 3.11'
fi
if ! GPUNVME_PACKAGE_DIR=$tmp/packed GPUNVME_PACKAGE_LEVEL=1 scripts/package "${kinds[@]}" >"$tmp/log" 2>&1; then
  sed 's/^/  /' "$tmp/log" | tail -n 20
  echo 'FAIL package: could not be packed'
  exit 0
fi
echo 'PASS package-packs'
mkdir "$tmp/in"
mv "$tmp"/packed/gpunvme* "$tmp/in/"
cp capi/examples/read.c capi/src/main/cufile/cufile_abi.h "$tmp/in/"
cat gpu/src/main/cuda/gpunvme/*.cuh | wc -c >"$tmp/in/headers"
rm -r "$tmp/packed"

# What is tried there. It prints a line for each test.
cat >"$tmp/in/inside" <<'INSIDE'
set -u
cd /tmp/in
export HOME=/tmp/home PATH=/usr/bin:/bin:/usr/sbin:/sbin LC_ALL=C
unset JAVA_HOME GPUNVME_JAVA_HOME
mkdir $HOME

check() { # NAME COMMAND...: passes if the command does
  local name=$1 began=$SECONDS
  shift
  if "$@" >/tmp/check.log 2>&1; then
    echo "PASS $name"
  else
    sed 's/^/  /' /tmp/check.log | tail -n 20
    echo "FAIL $name"
  fi
  echo "TIME $name $((SECONDS - began)) 0"
}

# files: what was made, changed or removed here, less what package tools write for themselves, and caches of the system: the upper
# layer of the root, which others on the machine do not write to, and the places that outside has mounted. Folders that others
# have as well say nothing.
files() {
  {
    (
      cd /tmp/in/upper && find . \( -path ./tmp -o -path ./var/lib/dpkg -o -path ./var/log -o -path ./var/cache -o -path ./etc/ld.so.cache \) -prune -o -print |
        while IFS= read -r one; do
          [ ! -d "$one" ] || [ ! -d "/tmp/in/lower/$one" ] || continue
          printf '%s\n' "${one#.}"
        done
    )
    find /tmp /opt /root /usr/local -xdev \( -path /tmp/in -o -path /tmp/check.log \) -prune -o -print
  } | sort -T /tmp/in
}

unchanged() {
  files >/tmp/in/after
  diff /tmp/in/before /tmp/in/after
}

has_no_java() {
  ! command -v java && [ -z "$(ls /usr/lib/jvm 2>/dev/null)" ]
}

# With the prepared classes, which would be left out silently. What doctor says can be called is this one.
demo() { # COMMAND
  GPUNVME_JAVA_OPTS=-Xshare:on "$1" --version && "$1" demo --json && "$1" doctor | grep "^  $1 demo "
}

# has_headers FOLDER: whether it has all of the device library
has_headers() {
  [ "$(cd "$1/gpunvme" && cat ./*.cuh | wc -c)" = "$(cat /tmp/in/headers)" ]
}

program() { # what pkg-config needs to find the library, and the compiler to make programs find it
  gcc read.c -o /tmp/in/read $(pkg-config --cflags --libs gpunvme) "$@" && GPUNVME_JAVA_OPTS=-Xshare:on /tmp/in/read sim:size=1MiB 100 && rm /tmp/in/read
}

cat >opens.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include "cufile_abi.h"
#define FIND(library, name) ((__typeof__(&name))dlsym(library, #name))
const char *gpunvme_cufile_version(void);
// Prints which library a name gives, and reads from a file that is the address of an SSD.
int main(int count, char **words) {
  Dl_info info = {0};
  CUfileDescr_t what = {.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD, .handle.fd = open(words[count - 1], O_RDONLY)};
  CUfileHandle_t file;
  char bytes[1000];
  void *library = dlopen(words[1], RTLD_NOW);
  if (library == NULL || FIND(library, gpunvme_cufile_version) == NULL) {
    return 3;
  }
  return dladdr((void *)FIND(library, gpunvme_cufile_version), &info) == 0 || puts(info.dli_fname) < 0 ||
         FIND(library, cuFileHandleRegister)(&file, &what).err != CU_FILE_SUCCESS ||
         FIND(library, cuFileRead)(file, bytes, sizeof bytes, 5000, 0) != sizeof bytes;
}
C

# has_cufile COMMAND FOLDER: programs that the command starts find the library in the folder by both of its names, and it is one;
# others do not. It finds the C API
has_cufile() {
  local name found code=0
  gcc opens.c -o /tmp/in/opens && echo gpunvme:sim:size=1MiB >/tmp/in/address || return 1
  for name in libcufile.so.0 libcufile.so; do
    found=$("$1" cufile -- /tmp/in/opens $name /tmp/in/address) && [ "$found" = "$2/libcufile.so.0" ] || return 1
    ! /tmp/in/opens $name /tmp/in/address || return 1
  done
  rm /tmp/in/opens /tmp/in/address
  "$1" cufile -- sh -c 'exit 7' || code=$?
  [ $code = 7 ] && "$1" cufile --help | grep -q '^Usage: gpunvme cufile' && "$1" doctor | grep -F "gpunvme's own is $2/libcufile.so.0;" &&
    ! ldconfig -p | grep -F "$2"
}

tarball() {
  mkdir /opt/try && tar -C /opt/try -xf gpunvme-*.tar.gz && set -- /opt/try/gpunvme-* &&
    demo "$1/bin/gpunvme" && PKG_CONFIG_PATH=$1/lib/pkgconfig program "-Wl,-rpath,$1/lib" && gzip -t "$1/share/man/man1/gpunvme.1.gz" &&
    has_cufile "$1/bin/gpunvme" "$(readlink -f "$1/lib/gpunvme/cufile")" && bash -c ". $1/share/bash-completion/completions/gpunvme && complete -p gpunvme" && [ -f "$1"/src/gpunvme-*/dkms.conf ] || return 1
  # Of a set of links, no end is missing.
  [ -z "$(find -L "$1" -type l)" ] && [ -z "$(find "$1" -name 'libcufile*' ! -path '*/gpunvme/cufile/*')" ] && has_headers "$1/include" || return 1
  # One that is named is that one or none. This one has the modules, and the jars do not disturb it.
  GPUNVME_JAVA_HOME=$1/lib/gpunvme/runtime "$1/bin/gpunvme" --version || return 1
  ! GPUNVME_JAVA_HOME=/nowhere "$1/bin/gpunvme" --version 2>/tmp/in/err && grep -q 'GPUNVME_JAVA_HOME is /nowhere' /tmp/in/err || return 1
  rm -r /opt/try
}

deb() {
  dpkg -i gpunvme_*.deb && demo gpunvme && program && [ -f /usr/share/bash-completion/completions/gpunvme ] &&
    [ -f /usr/share/man/man1/gpunvme.1.gz ] && has_headers /usr/include &&
    has_cufile gpunvme /usr/lib/gpunvme/cufile && [ "$(dpkg -L gpunvme | grep -c '/libcufile\.so')" = 2 ] && dpkg -V gpunvme && dpkg --purge gpunvme
}

wheel() {
  local python=/usr/bin/python3
  $python -m venv /tmp/venv && /tmp/venv/bin/pip --disable-pip-version-check install -q --no-index gpunvme-*.whl &&
    demo /tmp/venv/bin/gpunvme && has_cufile /tmp/venv/bin/gpunvme "$(dirname /tmp/venv/lib/python3*/site-packages/gpunvme/app/cufile/start)" && /tmp/venv/bin/python -m gpunvme --version && GPUNVME_JAVA_OPTS=-Xshare:on /tmp/venv/bin/python - <<'PY' || return 1
import gpunvme
assert gpunvme.__file__.startswith("/tmp/venv/"), gpunvme.__file__
with gpunvme.Storage("sim:size=1MiB", "cpu", write=True) as storage:
    storage.write(5, b"hello")
    assert storage.read_array(5, 5).tobytes() == b"hello"
PY
  has_headers "$(/tmp/venv/bin/python -c 'import gpunvme; print(gpunvme.include_dir())')" || return 1
  /tmp/venv/bin/pip --disable-pip-version-check uninstall -q -y gpunvme && ! find /tmp/venv -name '*gpunvme*' | grep . && rm -r /tmp/venv
}

for tool in gcc pkg-config; do
  if ! command -v $tool >/dev/null; then
    echo "SKIP package-use: no $tool on this machine"
    exit 0
  fi
done
check package-root-has-no-java has_no_java
files >/tmp/in/before
check package-tarball tarball
check package-tarball-leaves-nothing unchanged
if ls gpunvme_*.deb >/dev/null 2>&1; then
  check package-deb deb
  check package-deb-leaves-nothing unchanged
fi
if ! ls gpunvme-*.whl >/dev/null 2>&1; then
  :
elif /usr/bin/python3 -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
  check package-wheel wheel
  check package-wheel-leaves-nothing unchanged
else
  echo 'SKIP package-wheel: /usr/bin/python3 is older than 3.11, or has no venv (Debian: python3-venv)'
fi
INSIDE

# Nothing of this outlives the namespace: neither mounts nor what is written.
cat >"$tmp/outside" <<'OUTSIDE'
set -eu
tmp=$1 root=$2 lower=$3
mkdir "$tmp/layer"
mount -t tmpfs tmpfs "$tmp/layer"
mkdir "$tmp/layer/upper" "$tmp/layer/work" "$tmp/layer/root"
mount -t overlay overlay -o "lowerdir=$lower,upperdir=$tmp/layer/upper,workdir=$tmp/layer/work" "$tmp/layer/root"
cd "$tmp/layer/root"
for hidden in tmp root opt usr/local usr/lib/jvm "$(dirname "${root#/}")"; do
  [ ! -d "$hidden" ] || mount -t tmpfs tmpfs "$hidden"
done
[ ! -e usr/bin/java ] || rm -f usr/bin/java
mkdir tmp/in "$tmp/in/upper" "$tmp/in/lower"
mount --bind "$tmp/in" tmp/in
mount --bind "$tmp/layer/upper" tmp/in/upper
mount --bind "$lower" tmp/in/lower
mount --bind /dev dev
mount -t proc proc proc
exec chroot . bash /tmp/in/inside
OUTSIDE
timeout --foreground -k 10 600 unshare --mount --pid --fork --kill-child bash "$tmp/outside" "$tmp" "$root" "${PACKAGE_ROOT:-/}" || echo "FAIL package: ended with $?"
