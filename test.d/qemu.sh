#!/usr/bin/env bash
# environment: QEMU
# slots: own
# long
# The tests that need a controller that we did not write, on QEMU's: one boot for each configuration.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
. scripts/qemu.sh
need_guests
mapfile -t configs < <(scripts/guest --list | grep -v '^kmod_c')
scripts/guest "${configs[@]}"
