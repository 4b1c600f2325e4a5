# shellcheck shell=bash
# Sourced by the scripts of test.d that boot guests, in the repository root.

# need_guests: installs QEMU where we may, and fetches what is in the guests; says SKIP and ends the script if that cannot be.
need_guests() {
  local why
  [ "$(uname -m)" = x86_64 ] || skip "the guest needs the processor and the Java of x86_64, not $(uname -m)"
  command -v dpkg-deb >/dev/null || skip 'the kernel of the guest is a Debian package: no dpkg-deb'
  if ! command -v qemu-system-x86_64 >/dev/null; then
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
      skip 'qemu-system-x86_64 is not installed: sudo apt-get install qemu-system-x86'
    fi
    echo 'installing qemu-system-x86'
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq -o DPkg::Lock::Timeout=200 --no-install-recommends \
      qemu-system-x86; } >/dev/null 2>&1 </dev/null || skip 'qemu-system-x86 cannot be installed'
  fi
  why=$(scripts/guest --fetch 2>&1) || skip "the packages of the guest cannot be downloaded: $(tail -n 1 <<<"$why")"
}

skip() { # WHY
  echo "SKIP QEMU tests: $1"
  exit 0
}
