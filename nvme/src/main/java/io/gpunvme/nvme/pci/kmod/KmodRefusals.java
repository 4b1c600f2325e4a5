package io.gpunvme.nvme.pci.kmod;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.nvme.pci.HostPaths;
import io.gpunvme.nvme.pci.PciAddress;
import io.gpunvme.nvme.pci.host.LockedMemoryLimit;
import io.gpunvme.nvme.pci.host.PciSysfs;
import java.nio.file.Files;
import java.nio.file.Path;

/** Why the module does not do something, and what to do about it. */
final class KmodRefusals {
  private static final String NOT_ISOLATED =
      "no IOMMU isolates it (none translates, its group has other functions, or interrupts are not"
          + " remapped)";

  private KmodRefusals() {}

  /** The function is not the module's. */
  static InvalidRequestException wrongDriver(PciSysfs function, HostPaths paths) {
    PciAddress address = function.address();
    String bind = "`gpunvme bind " + address + " --kmod` as root";
    if (!Files.isDirectory(paths.sys().resolve("module").resolve(KmodFunction.DRIVER))) {
      return new InvalidRequestException(
          address
              + ": the kernel module gpunvme is not loaded; `modprobe gpunvme`, or"
              + " scripts/kmod-build and scripts/kmod-load (docs/kernel-module.md), then "
              + bind);
    }
    String driver = function.driver();
    return new InvalidRequestException(
        address
            + " is bound to "
            + (driver.isEmpty() ? "no driver" : "the driver " + driver)
            + ", and kmod: needs gpunvme: "
            + bind);
  }

  /** Its file could not be opened. */
  static InvalidRequestException node(PciAddress address, Path node, PosixException e) {
    String why =
        switch (e.errno()) {
          case Errno.ENOENT, Errno.ENOTDIR ->
              "it does not exist although the module has the function: udev makes it (`udevadm"
                  + " trigger`), and a container has to be given it (--mount"
                  + " type=bind,source=/dev/gpunvme,target=/dev/gpunvme --device-cgroup-rule 'c"
                  + " 10:* rw'; docker's --device takes no name with colons)";
          case Errno.ENODEV, Errno.ENXIO ->
              "the device is gone; `gpunvme list` shows what is there";
          case Errno.EACCES ->
              "this user may not: with its udev rule it is the group's, so as root `usermod -a -G"
                  + " gpunvme $USER` (and log in again), or run as root";
          case Errno.EPERM ->
              NOT_ISOLATED
                  + ": then only root may (CAP_SYS_RAWIO), on a kernel that is not locked down";
          case Errno.EOPNOTSUPP ->
              NOT_ISOLATED
                  + ", and the module is not told to accept that. Switch it on (VT-d or AMD-Vi with"
                  + " interrupt remapping, a slot with a group of its own), or, where all memory of"
                  + " the machine may be at risk, `echo Y >"
                  + " /sys/module/gpunvme/parameters/enable_unsafe_noiommu_mode` as root, and"
                  + " noiommu=true in the address";
          case Errno.ETIMEDOUT ->
              "the controller does not stop, and may still use the addresses of its last owner; try"
                  + " again, then reset it (`echo 1 > /sys/bus/pci/devices/"
                  + address
                  + "/reset` as root)";
          case Errno.EBUSY ->
              "another process has it open, and one can at a time (`fuser " + node + "` names it)";
          default -> e.getMessage();
        };
    return caused(address + ": opening " + node + " failed (" + e.errnoName() + "): " + why, e);
  }

  /** The file behind the name is another function's. */
  static InvalidRequestException stale(Path node, PciAddress owner) {
    return new InvalidRequestException(
        node
            + " is the file of "
            + owner
            + ": it is a copy from before the functions were bound again, as in a container that"
            + " was given files and not their folder; give it /dev/gpunvme");
  }

  /** Consent is missing, or not needed. */
  static InvalidRequestException consent(PciAddress address, KmodInfo info) {
    return new InvalidRequestException(
        info.isolated()
            ? address
                + " is isolated by an IOMMU; noiommu=true is for where none does: leave it out"
            : address
                + ": "
                + NOT_ISOLATED
                + ": the device can reach all memory of this machine, and a mistake of this program"
                + " corrupts it. If that is accepted, say kmod:"
                + address
                + ",noiommu=true");
  }

  /** A request that was refused while the function was opened. */
  static InvalidRequestException request(PciAddress address, PosixException e) {
    String why =
        e.errno() == Errno.ENOTTY
            ? "it does not answer as the module gpunvme does: " + e.getMessage()
            : e.getMessage();
    return caused(address + ": setting up by the module gpunvme failed: " + why, e);
  }

  /**
   * Why memory was not pinned or imported.
   *
   * @param what the memory, for the message
   * @param usage what the file has pinned of what it may, in words
   */
  static String memory(String what, PosixException e, HostPaths paths, String usage) {
    String why =
        switch (e.errno()) {
          case Errno.ENOMEM -> LockedMemoryLimit.advice(paths);
          case Errno.EDQUOT ->
              "the module allows no more, "
                  + usage
                  + "; use less at a time, or load it with higher most_bytes and most_ranges"
                  + " (`modprobe gpunvme most_bytes=… most_ranges=…`)";
          case Errno.EPERM ->
              "the file was opened by another process: a forked child cannot use it, open it again";
          case Errno.EOPNOTSUPP ->
              "the controller cannot reach where it lies (it would have to be copied); with an"
                  + " IOMMU it could: switch that on";
          case Errno.EREMOTEIO ->
              "whoever shares it gave addresses that the IOMMU does not know, and that are no"
                  + " device's";
          case Errno.EFAULT -> "it is not memory of this process that can be pinned";
          default -> e.getMessage();
        };
    return "%s: not reachable for the controller (%s): %s".formatted(what, e.errnoName(), why);
  }

  static InvalidRequestException caused(String message, Throwable cause) {
    InvalidRequestException e = new InvalidRequestException(message);
    e.initCause(cause);
    return e;
  }
}
