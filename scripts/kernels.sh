# shellcheck shell=bash
# shellcheck disable=SC2034 # kernel_series is for test.d/kmod.sh
# Sourced by scripts/guest, scripts/kmod-build and test.d/kmod.sh, in the repository root: Debian's kernels with their headers, to build the
# kernel module against and to boot it on. They are downloaded once, unpacked in ~/.cache/gpunvme/kernels and never
# installed.

kernels=${XDG_CACHE_HOME:-$HOME/.cache}/gpunvme/kernels
kernel_series=(6.1 6.12)
# With what they need: disks, drivers for functions, an exporter of dma-bufs, and file systems that programs serve.
kernel_modules=(virtio_pci virtio_blk vfio_iommu_type1 vfio-pci nvme vgem fuse)
# What building a kernel needs besides a compiler, perl, make and xz.
kernel_builders=(bison flex m4 bc openssl libelf1 libelf-dev libssl3 libssl-dev)

# newest_kernel SERIES: the version of the newest kernel that the package lists have, such as 6.1.0-56-amd64.
newest_kernel() {
  apt-cache depends linux-image-amd64 "linux-image-$1-amd64" 2>/dev/null |
    sed -n "s/^ *Depends: linux-image-\(${1//./\\.}\.[^-].*-amd64\)$/\1/p" | sort -V | tail -n 1
}

# download PACKAGE... : into the current folder.
download() {
  apt-get -o APT::Sandbox::User=root download -qq "$@" >&2
}

# fetch_kernel KERNEL: $kernels/KERNEL/root has boot/, lib/modules/ (those above) and usr/src/ afterwards. KERNEL is a series, or
# SERIES-kasan: that is built here, which takes minutes.
fetch_kernel() {
  local folder=$kernels/$1 version=''
  if is_fetched "$1"; then return 0; fi
  command -v apt-get >/dev/null || {
    echo "no apt-get: Linux $1 is a Debian package" >&2
    return 1
  }
  version=$(newest_kernel "${1%-kasan}")
  if [ -z "$version" ]; then
    apt-get update -qq >&2 || true
    version=$(newest_kernel "${1%-kasan}")
  fi
  if [ -z "$version" ]; then
    echo "no Linux ${1%-kasan} in the package lists" >&2
    return 1
  fi
  mkdir -p "$kernels"
  (
    flock 8
    if is_fetched "$1"; then exit 0; fi
    case $1 in
      *-kasan) build_kernel "$folder" "${1%-kasan}" ;;
      *) unpack_kernel "$folder" "$version" ;;
    esac
  ) 8>"$kernels/lock"
}

is_fetched() { # KERNEL
  [ "$(cat "$kernels/$1/complete" 2>/dev/null)" = "$(recipe "$1")" ]
}

# What a kernel was made of: it is made anew when that changes.
recipe() { # KERNEL
  case $1 in
    *-kasan) sha256sum <scripts/kasan.config ;;
    *) echo "${kernel_modules[*]}" ;;
  esac
}

# Callers ask whether it worked, so that the shell does not stop at what fails.
unpack_kernel() { # FOLDER VERSION
  local root=$1/root version=$2 headers deb
  rm -rf "$1"
  mkdir -p "$1/debs"
  headers=linux-headers-$version
  # shellcheck disable=SC2046 # a list of packages
  (cd "$1/debs" && download busybox-static "linux-image-$version" "$headers" \
    $(apt-cache depends "$headers" | sed -n 's/^ *Depends: \(linux-headers-.*-common\|linux-kbuild-.*\)$/\1/p')) || return 1
  for deb in "$1"/debs/*.deb; do
    dpkg-deb --extract "$deb" "$root" || return 1
  done
  # Where they are, and not where they would be installed.
  sed -i "s|^include /usr/src/|include $root/usr/src/|" "$root/usr/src/$headers/Makefile" || return 1
  find "$root/lib/modules" -name '*.ko.xz' -print0 | xargs -0 -r -n 64 -P "$(nproc)" xz --decompress || return 1
  keep_modules "$root" "$version" || return 1
  rm -r "$1/debs"
  recipe "${1##*/}" >"$1/complete"
}

# A kernel that looks for faults, of Debian's source and the options of scripts/kasan.config; Debian has none. What the build says
# is in FOLDER/log.
build_kernel() { # FOLDER SERIES
  local deb
  rm -rf "$1"
  mkdir -p "$1"/{debs,root/boot}
  (cd "$1/debs" && download "linux-source-$2" "${kernel_builders[@]}") || return 1
  for deb in "$1"/debs/*.deb; do
    dpkg-deb --extract "$deb" "$1/tools" || return 1
  done
  rm -r "$1/debs"
  mkdir "$1/source"
  tar xJf "$1/tools/usr/src/linux-source-$2.tar.xz" -C "$1/source" --strip-components=1 || return 1
  cp scripts/kasan.config "$1/source/kernel/configs/"
  if ! make_kernel "$1" >"$1/log" 2>&1; then
    grep -E 'error:|Error [0-9]|is not there' "$1/log" | tail -n 5 >&2
    echo "it could not be built ($1/log)" >&2
    return 1
  fi
  rm -r "$1/tools" "$1/source"
  recipe "${1##*/}" >"$1/complete"
}

make_kernel() { # FOLDER
  local tools=$1/tools/usr root=$1/root version
  (
    cd "$1/source" || exit 1
    export PATH=$tools/bin:$PATH M4=$tools/bin/m4 BISON_PKGDATADIR=$tools/share/bison
    make=(make LOCALVERSION=-kasan "HOSTCFLAGS=-I$tools/include -I$tools/include/x86_64-linux-gnu"
      "HOSTLDFLAGS=-L$tools/lib/x86_64-linux-gnu")
    "${make[@]}" tinyconfig kasan.config && has_options &&
      nice -n 10 "${make[@]}" -j "$(nproc)" bzImage modules &&
      "${make[@]}" "INSTALL_MOD_PATH=$root" INSTALL_MOD_STRIP=1 modules_install &&
      version=$(make -s LOCALVERSION=-kasan kernelrelease) && cp arch/x86/boot/bzImage "$root/boot/vmlinuz-$version" &&
      rm -f "$root/lib/modules/$version"/{build,source} && keep_headers "$root/usr/src/linux-headers-$version"
  )
}

# In the kernel's source: an option that depends on something else which is not there is left out silently.
has_options() {
  local option code=0
  while read -r option; do
    grep -qxF "$option" .config || { echo "$option is not there" && code=1; }
  done < <(grep '^CONFIG' kernel/configs/kasan.config)
  return $code
}

# In the kernel's source: what the build of a module needs.
keep_headers() { # FOLDER
  mkdir -p "$1/arch" "$1/tools/objtool"
  cp -r .config Makefile Module.symvers include scripts "$1/"
  cp -r arch/x86 "$1/arch/"
  cp tools/objtool/objtool "$1/tools/objtool/"
  find "$1/arch" "$1/scripts" \( -name '*.[oac]' -o -name '*.cmd' -o -path '*/boot/*' \) -type f ! -name module-common.c -delete
}

# Four thousand modules are of no use here.
keep_modules() { # ROOT VERSION
  local modules=$1/lib/modules/$2 file
  "$1/bin/busybox" depmod -b "$1" "$2"
  mv "$modules" "$modules.all"
  mkdir -p "$modules"
  cp "$modules.all"/modules.{dep,builtin,order} "$modules/"
  for file in $(module_files "$modules/modules.dep" "${kernel_modules[@]}"); do
    file=${file#/lib/modules/"$2"/}
    install -D -m 644 "$modules.all/$file" "$modules/$file" || return 1
  done
  rm -r "$modules.all"
}

# module_files MODULES.DEP MODULE...: the files of the modules and of what they need.
module_files() {
  local list=$1 name
  shift
  for name in "$@"; do
    sed -n "s|^\([^:]*/${name//[-_]/[-_]}\.ko\):|\1|p" "$list" | tr ' ' '\n'
  done | sort -u
}

kernel_version() { # SERIES
  ls "$kernels/$1/root/lib/modules"
}

kernel_headers() { # SERIES
  echo "$kernels/$1/root/usr/src/linux-headers-$(kernel_version "$1")"
}

# kmod_build HEADERS FOLDER [MAKE ARGUMENT...]: builds the module in a folder, and prints where it is. What the compilers say
# goes to standard error.
kmod_build() {
  local headers=$1 folder=$2
  shift 2
  rm -rf "$folder"
  mkdir -p "$folder"
  cp kmod/Kbuild kmod/*.[ch] "$folder/"
  build_in "$headers" "$folder" "$@" || return 1
  echo "$folder/gpunvme.ko"
}

# The same for the module of tests that gives a BAR away as a dma-buf.
exporter_build() { # HEADERS FOLDER [MAKE ARGUMENT...]
  local headers=$1 folder=$2
  shift 2
  rm -rf "$folder"
  mkdir -p "$folder"
  cp kmod/compat.h kmod/test/bar_exporter/* "$folder/"
  build_in "$headers" "$folder" "$@" || return 1
  echo "$folder/bar_exporter.ko"
}

build_in() { # HEADERS FOLDER [MAKE ARGUMENT...]
  # Types for debuggers need a program (pahole) that a build needs for nothing else.
  make -s -C "$1" "M=$2" CONFIG_DEBUG_INFO_BTF_MODULES= "${@:3}" modules >&2
}

# kmod_module SERIES: the module for a kernel that was fetched, built if sources are newer.
kmod_module() {
  local folder=$PWD/build/kmod/$1
  if [ -e "$folder/gpunvme.ko" ] && [ -z "$(find kmod -newer "$folder/gpunvme.ko" -print -quit)" ]; then
    echo "$folder/gpunvme.ko"
  else
    kmod_build "$(kernel_headers "$1")" "$folder"
  fi
}

# fetch_kmod_tools: what looks at the module's sources, in $kernels/tools: sparse, dkms with what it needs, and
# checkpatch.pl.
fetch_kmod_tools() {
  local tools=$kernels/tools
  [ ! -e "$tools/complete" ] || return 0
  command -v apt-get >/dev/null || return 1
  [ -n "$(apt-cache madison sparse 2>/dev/null)" ] || apt-get update -qq >&2 || true
  mkdir -p "$kernels"
  (
    flock 8
    if [ -e "$tools/complete" ]; then exit 0; fi
    unpack_tools "$tools"
  ) 8>"$kernels/lock"
}

unpack_tools() { # FOLDER
  local deb scripts=linux-source-6.1/scripts
  rm -rf "$1"
  mkdir -p "$1/debs"
  (cd "$1/debs" && download sparse dkms kmod linux-source-6.1) || return 1
  for deb in "$1"/debs/*.deb; do
    dpkg-deb --extract "$deb" "$1" || return 1
  done
  tar xJf "$1/usr/src/linux-source-6.1.tar.xz" -C "$1" --occurrence=1 \
    "$scripts/checkpatch.pl" "$scripts/spelling.txt" "$scripts/const_structs.checkpatch" || return 1
  rm -r "$1/debs" "$1/usr/src"
  touch "$1/complete"
}
