#!/usr/bin/env bash
# environment: QEMU
# build: none
# slots: own
# The kernel module's own tests, in guests without Java: they run beside the build.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
. scripts/qemu.sh
need_guests
echo 'not run here: scripts/guest kmod_c_kasan kmod_c_kasan_direct kmod_c_kasan_unsafe (their kernel is built first, and slow)'
mapfile -t configs < <(scripts/guest --list | grep '^kmod_c')
scripts/guest "${configs[@]}"
