#!/usr/bin/env bash
# environment: kernel module
# build: none
# The kernel module's sources: built against Debian's kernels with every warning an error, and looked at by the kernel's own
# tools. scripts/guest loads it.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
. scripts/kernels.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# passes NAME COMMAND...: PASS if it ends with 0 and says nothing
passes() {
  local name=$1 said code=0
  shift
  said=$("$@" 2>&1) || code=$?
  if [ $code = 0 ] && [ -z "$said" ]; then
    echo "PASS $name"
  else
    head -n 40 <<<"$said" | sed 's/^/  /'
    echo "FAIL $name: exit code $code"
  fi
}

builds() { # SERIES MAKE ARGUMENT...
  local headers
  headers=$(kernel_headers "$1")
  shift
  kmod_build "$headers" "$tmp/build" W=1 KCFLAGS=-Werror "$@" >/dev/null && [ -e "$tmp/build/gpunvme.ko" ]
}

exporter_builds() { # SERIES
  exporter_build "$(kernel_headers "$1")" "$tmp/exporter" W=1 KCFLAGS=-Werror >/dev/null && [ -e "$tmp/exporter/bar_exporter.ko" ]
}

checks() { # the module's sources, as the kernel's maintainers check them; its tests are programs
  local folder=$PWD/kmod
  # One file serves several kernels here, and the header of the ABI is for programs, too. It leaves a file where it runs.
  (cd "$tmp" && find "$folder" -maxdepth 1 -name '*.[ch]' -print0 | sort -z | xargs -0 -n 1 perl "$kernels/tools/linux-source-6.1/scripts/checkpatch.pl" --no-tree \
    --strict --max-line-length=120 --quiet --ignore LINUX_VERSION_CODE,CONSTANT_COMPARISON,BIT_MACRO --file)
}

header() { # the header of the ABI by itself, for programs
  echo '#include "gpunvme_uapi.h"' | gcc -std=c11 -Wall -Wextra -Wpedantic -Werror -I kmod -fsyntax-only -x c - &&
    echo '#include "gpunvme_uapi.h"' | g++ -std=c++17 -Wall -Wextra -Werror -I kmod -fsyntax-only -x c++ -
}

programs() { # the tests of the module
  local file
  for file in kmod/test/*.c; do
    gcc -std=gnu17 -O2 -Wall -Wextra -Werror -I kmod -c "$file" -o "$tmp/test.o" || return 1
  done
}

dkms_builds() { # SERIES
  local version tools=$kernels/tools code=0
  version=$(kernel_version "$1")
  mkdir -p "$tmp"/dkms/{tree,installed/"$version"} "$tmp/dkms/source/gpunvme-0.1.0"
  cp kmod/* "$tmp/dkms/source/gpunvme-0.1.0/" 2>/dev/null
  PATH=$tools/sbin:$tools/bin:$PATH "$tools/usr/sbin/dkms" build -m gpunvme -v 0.1.0 -k "$version" --dkmstree "$tmp/dkms/tree" \
    --sourcetree "$tmp/dkms/source" --installtree "$tmp/dkms/installed" --kernelsourcedir "$(kernel_headers "$1")" \
    >"$tmp/dkms/log" 2>&1 || code=$?
  if [ $code != 0 ] || [ -z "$(find "$tmp/dkms/tree" -name 'gpunvme.ko*' -print -quit)" ]; then
    tail -n 20 "$tmp/dkms/log" "$tmp"/dkms/tree/gpunvme/0.1.0/build/make.log
    return 1
  fi
}

same_version() { # in the module and for dkms
  local version
  version=$(sed -n 's/^MODULE_VERSION("\(.*\)");$/\1/p' kmod/main.c)
  grep -qx "PACKAGE_VERSION=$version" kmod/dkms.conf || echo "dkms.conf does not say $version"
}

skip() { # WHY
  echo "SKIP kernel module: $1"
  exit 0
}

[ "$(uname -m)" = x86_64 ] || skip "the kernels are those of x86_64, not $(uname -m)"
for tool in gcc g++ make dpkg-deb; do
  command -v "$tool" >/dev/null || skip "no $tool"
done
passes 'version' same_version
passes 'ABI header for programs' header
passes 'its tests compile' programs
tools=true
why=$(fetch_kmod_tools 2>&1) || tools=false
for series in "${kernel_series[@]}"; do
  if ! because=$(fetch_kernel "$series" 2>&1); then
    echo "SKIP Linux $series: $(tail -n 1 <<<"$because")"
    continue
  fi
  passes "Linux $(kernel_version "$series"): builds without warnings" builds "$series"
  passes "Linux $series: the exporter of tests builds" exporter_builds "$series"
  if $tools; then
    passes "Linux $series: sparse" builds "$series" C=2 "CHECK=$kernels/tools/usr/bin/sparse" CF=-Wsparse-error
    passes "Linux $series: dkms builds it" dkms_builds "$series"
  else
    echo "SKIP Linux $series: sparse, dkms: $(tail -n 1 <<<"$why")"
  fi
done
if $tools && command -v perl >/dev/null; then
  passes 'checkpatch' checks
else
  echo "SKIP checkpatch: $(tail -n 1 <<<"${why:-no perl}")"
fi
