# shellcheck shell=bash
# Sourced by ./test, in the repository root: which tests may be skipped here. The list is test.d/skips.

# machine_is CONDITION: whether a line of the list is about this machine; 2 if there is no such condition.
machine_is() {
  case $1 in
    any) ;;
    gpu) [ -e /dev/nvidiactl ] ;;
    no-gpu) [ ! -e /dev/nvidiactl ] ;;
    root) [ "$(id -u)" = 0 ] ;;
    # What reads physical addresses: CAP_SYS_ADMIN is bit 21.
    no-admin) ! (((0x$(sed -n 's/^CapEff:\s*//p' /proc/self/status) >> 21) & 1)) ;;
    no-huge-pages) [ "$(sed -n 's/^HugePages_Free: *//p' /proc/meminfo)" -lt 2 ] ;;
    no-io-uring) [ "$(cat /proc/sys/kernel/io_uring_disabled 2>/dev/null || echo 0)" != 0 ] ;;
    no-mount-namespaces) ! unshare --mount true 2>/dev/null && ! unshare --user --map-root-user --mount true 2>/dev/null ;;
    # As test.d/memory.sh looks for them.
    no-memory-groups) [ ! -w /sys/fs/cgroup/memory ] && ! grep -qsw memory /sys/fs/cgroup/cgroup.subtree_control || [ ! -w /sys/fs/cgroup ] ;;
    no-loop-devices) [ ! -w /dev/loop-control ] ;;
    no-shm) [ ! -w /dev/shm ] ;;
    # The disk of temporary files cannot be read past the page cache.
    no-disk) ! dd if="$(df --output=source "${TMPDIR:-/tmp}" | tail -n 1)" of=/dev/null bs=4096 count=1 iflag=direct 2>/dev/null ;;
    tmpfs) [ "$(df --output=fstype "${TMPDIR:-/tmp}" | tail -n 1)" = tmpfs ] ;;
    no-ext4-nor-xfs) ! df --output=fstype "${TMPDIR:-/tmp}" | tail -n 1 | grep -qxE 'ext[234]|xfs' ;;
    # Interrupts are ignored, as in a job in the background: bit 1.
    no-interrupts) (((0x$(sed -n 's/^SigIgn:\s*//p' "/proc/$$/status") >> 1) & 1)) ;;
    no-iommufd-headers) ! grep -qs VFIO_DEVICE_BIND_IOMMUFD /usr/include/linux/vfio.h ;;
    no-cuda-toolkit) [ ! -x /usr/local/cuda/bin/nvcc ] && ! command -v nvcc >/dev/null ;;
    other-cuda-toolkit) ! machine_is no-cuda-toolkit && ! same_nvcc ;;
    no-cupy) ! "${GPUNVME_PYTHON:-python3}" -c 'import cupy' 2>/dev/null ;;
    not-x86_64) [ "$(uname -m)" != x86_64 ] ;;
    *)
      echo "test.d/skips: there is no condition $1" >&2
      return 2
      ;;
  esac
}

# The compiler here is the one that made the committed PTX.
same_nvcc() {
  local here
  here=$(PATH=$PATH:/usr/local/cuda/bin nvcc --version | grep '^Cuda compilation tools') &&
    ! grep -L -F "// $here" gpu/src/main/resources/io/gpunvme/gpu/ptx/*.ptx | grep -q .
}

# judge LIST: of the caller's variables status and line. A skip that the list does not excuse on this machine says so, and
# fails where CI=true.
judge() {
  local condition pattern others=''
  [ "$status" = SKIP ] || return 0
  while read -r condition pattern; do
    [[ -n $condition && $condition != '#'* ]] || continue
    # shellcheck disable=SC2053 # a pattern
    [[ $line == $pattern ]] || continue
    ! machine_is "$condition" || return 0
    others+=" $condition"
  done <"$1"
  line+=" (unexpected skip: ${others:+$1 excuses it only where the machine is}${others:-not in $1})"
  [ "${CI:-}" != true ] || status=FAIL
}
