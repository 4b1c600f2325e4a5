#!/usr/bin/env bash
# environment: QEMU
# The embedded controller as a PCI device of a virtual machine, over vfio-user: QEMU is the client, and the guest's own
# kernel drives it like any SSD. QEMU has had such a client since 10.1; where the machine's is older, one of a newer
# Debian is downloaded once, unpacked in ~/.cache/gpunvme/qemu and never installed. Kernel and busybox are scripts/guest's.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
cache=${XDG_CACHE_HOME:-$HOME/.cache}/gpunvme
tmp=$(mktemp -d)
server=''
cleanup() {
  [ -z "$server" ] || kill "$server" 2>/dev/null
  rm -rf "$tmp"
}
trap cleanup EXIT

skip() { # WHY
  echo "SKIP vfio-user guest: $1"
  exit 0
}

result() { # NAME COMMAND...
  local name=$1
  shift
  if "$@"; then echo "PASS vfio-user guest: $name"; else echo "FAIL vfio-user guest: $name"; fi
}

# release_index: where this machine has Debian's packages from.
release_index() {
  cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | grep -v '^ *#' | grep -oE 'https?://[^ ]+/debian/?( |$)' | head -n 1
}

fetch_qemu() {
  local folder=$cache/qemu index options
  [ ! -e "$folder/complete" ] || return 0
  command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || return 1
  index=$(release_index)
  [ -n "$index" ] || return 1
  rm -rf "$folder"
  mkdir -p "$folder"/{lists,cache/archives}/partial "$folder/root"
  printf "deb ${index% } %s main\n" trixie trixie-backports >"$folder/sources.list"
  touch "$folder/status"
  options=(-qq -o "Dir::Etc::sourcelist=$folder/sources.list" -o Dir::Etc::sourceparts=/dev/null -o "Dir::State::Lists=$folder/lists"
    -o "Dir::Cache=$folder/cache" -o "Dir::State::status=$folder/status" -o APT::Sandbox::User=root)
  apt-get "${options[@]}" update >&2 || return 1
  apt-get "${options[@]}" -y --no-install-recommends --download-only -t trixie-backports install qemu-system-x86 >&2 </dev/null || return 1
  for deb in "$folder"/cache/archives/*.deb; do
    dpkg-deb --extract "$deb" "$folder/root" || return 1
  done
  rm -rf "$folder/cache" "$folder/lists"
  touch "$folder/complete"
}

# With the libraries that it was made for.
downloaded_qemu() {
  local root=$cache/qemu/root libraries=$cache/qemu/root/usr/lib/x86_64-linux-gnu
  "$libraries/ld-linux-x86-64.so.2" --library-path "$libraries:$root/lib/x86_64-linux-gnu" "$root/usr/bin/qemu-system-x86_64" \
    -L "$root/usr/share/qemu" -L "$root/usr/share/seabios" "$@"
}

has_client() { # QEMU COMMAND...
  "$@" -machine q35 -device vfio-user-pci,help </dev/null 2>/dev/null | grep -q 'socket='
}

# The guest: reads and writes through Linux's block layer and says what it saw.
pack_guest() {
  local root=$cache/guest/root guest=$tmp/guest version file
  version=$(ls "$root/lib/modules") || return 1
  mkdir -p "$guest"/{bin,dev,proc,sys,tmp} "$guest/lib/modules/$version"
  cp "$root/bin/busybox" "$guest/bin/" || return 1
  for file in $("$guest/bin/busybox" --list); do
    [ "$file" = busybox ] || ln -s busybox "$guest/bin/$file"
  done
  [ -e "$root/lib/modules/$version/modules.dep" ] || "$guest/bin/busybox" depmod -b "$root" "$version"
  cp "$root/lib/modules/$version"/modules.{dep,builtin} "$guest/lib/modules/$version/"
  for file in $(sed -n 's|^\([^:]*/nvme\.ko\):|\1|p' "$root/lib/modules/$version/modules.dep"); do
    file=${file#/lib/modules/"$version"/}
    install -D -m 644 "$root/lib/modules/$version/$file" "$guest/lib/modules/$version/$file" || return 1
  done
  cat >"$guest/init" <<'INIT'
#!/bin/sh
export PATH=/bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
modprobe nvme
i=0
while [ ! -b /dev/nvme0n1 ] && [ $i -lt 60 ]; do sleep 1; i=$((i + 1)); done
echo "MODEL $(cat /sys/class/nvme/nvme0/model)"
echo "SECTORS $(cat /sys/block/nvme0n1/size)"
echo "READ $(dd if=/dev/nvme0n1 bs=1M count=16 iflag=direct 2>/dev/null | sha256sum)"
dd if=/dev/urandom of=/tmp/sent bs=1M count=8 2>/dev/null
dd if=/tmp/sent of=/dev/nvme0n1 bs=64k seek=256 oflag=direct 2>/dev/null && sync
echo "WROTE $(sha256sum </tmp/sent)"
echo "INTERRUPTS $(sed -n 's/^ *[0-9]*: *\([0-9]*\) .*MSI.*nvme0q1$/\1/p' /proc/interrupts)"
echo "LOG $(dmesg | grep -ciE 'nvme.*(timeout|error|abort|reset)|I/O error')"
echo END
poweroff -f
INIT
  chmod +x "$guest/init"
  (cd "$guest" && find . | sed 's|^\./||' | bin/busybox cpio -o -H newc 2>/dev/null) >"$tmp/initrd"
}

said() { # KEY: what the guest said
  tr -d '\r' <"$tmp/console" | sed -n "s/^$1 //p" | head -n 1
}

sha() { # FIRST-MIB MIB: of the image
  dd if="$tmp/image" bs=1M skip="$1" count="$2" 2>/dev/null | sha256sum
}

[ "$(uname -m)" = x86_64 ] || skip "the guest needs the processor of x86_64, not $(uname -m)"
command -v qemu-system-x86_64 >/dev/null && has_client qemu-system-x86_64 && qemu=qemu-system-x86_64
if [ -z "${qemu:-}" ]; then
  fetch_qemu >"$tmp/fetch.log" 2>&1 || skip "no QEMU 10.1 or newer: $(tail -n 1 "$tmp/fetch.log")"
  qemu=downloaded_qemu
  has_client "$qemu" || skip 'QEMU has no client of vfio-user'
fi
scripts/guest --fetch >"$tmp/fetch.log" 2>&1 || skip "no kernel for the guest: $(tail -n 1 "$tmp/fetch.log")"
pack_guest || skip 'no initial file system for the guest'

head -c 64M /dev/urandom >"$tmp/image"
before=$(sha 0 16)
./gpunvme sim serve --socket "$tmp/ssd" --namespace "file=$tmp/image" --allow-write --set latency=0 >"$tmp/serve.log" 2>&1 &
server=$!
for _ in $(seq 600); do
  [ ! -S "$tmp/ssd" ] || break
  sleep 0.1
done
timeout -k 5 300 bash -c "$(declare -f downloaded_qemu); cache='$cache'; "'"$@"' qemu "$qemu" -accel tcg,thread=single \
  -machine q35,memory-backend=m,kernel-irqchip=off -object memory-backend-memfd,id=m,size=512M,share=on -cpu max -m 512M \
  -nodefaults -display none -no-reboot -serial "file:$tmp/console" -kernel "$(echo "$cache"/guest/root/boot/vmlinuz-*)" -initrd "$tmp/initrd" \
  -append 'console=ttyS0 quiet panic=-1 no_timer_check mitigations=off' \
  -device '{"driver":"vfio-user-pci","socket":{"type":"unix","path":"'"$tmp/ssd"'"}}' </dev/null >"$tmp/qemu.log" 2>&1
code=$?
kill "$server"
wait "$server" 2>/dev/null
server=''
if [ $code != 0 ] || ! grep -q '^END' "$tmp/console"; then
  tail -n 20 "$tmp/qemu.log" "$tmp/serve.log" "$tmp/console"
fi
result "the guest came to its end with $qemu" grep -q '^END' "$tmp/console"
result 'its kernel found the controller' [ "$(said MODEL | sed 's/ *$//')" = 'gpunvme embedded controller' ]
result 'it found all blocks' [ "$(said SECTORS)" = 131072 ]
result 'it read what is in the image' [ "$(said READ)" = "$before" ]
result 'what it wrote is in the image' [ "$(said WROTE)" = "$(sha 16 8)" ]
result 'it was told by interrupts' [ "$(said INTERRUPTS)" -gt 0 ]
result 'its kernel had nothing to complain about' [ "$(said LOG)" = 0 ]
result 'the server removed its socket' [ ! -e "$tmp/ssd" ]
