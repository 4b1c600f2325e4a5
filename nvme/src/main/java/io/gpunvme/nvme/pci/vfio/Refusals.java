package io.gpunvme.nvme.pci.vfio;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.nvme.pci.PciAddress;
import io.gpunvme.nvme.pci.host.PciSysfs;
import java.nio.file.Path;
import java.util.List;

/** Why a function cannot be opened, and what to do about it. */
final class Refusals {
  private Refusals() {}

  static InvalidRequestException wrongDriver(PciSysfs function) {
    PciAddress address = function.address();
    String driver = function.driver();
    return new InvalidRequestException(
        address
            + " is bound to "
            + (driver.isEmpty() ? "no driver" : "the driver " + driver)
            + ", VFIO needs vfio-pci: `gpunvme bind "
            + address
            + "` (as root; modprobe vfio-pci first if the module is not loaded)");
  }

  static InvalidRequestException noGroup(PciAddress address) {
    return new InvalidRequestException(
        address
            + " is in no IOMMU group: this machine has no IOMMU, or it is off. Switch on VT-d or"
            + " AMD-Vi in the firmware, boot with intel_iommu=on where that is needed, and bind the"
            + " function to vfio-pci again; vfio:…,noiommu=true or sysfs:…,unsafe=true do without"
            + " (unsafe)");
  }

  static InvalidRequestException noIommuNeedsConsent(PciAddress address) {
    return new InvalidRequestException(
        address
            + " is bound to vfio-pci without an IOMMU: the device can reach all memory of this"
            + " machine, and a mistake of this program corrupts it. If that is accepted, say"
            + " vfio:"
            + address
            + ",noiommu=true");
  }

  static InvalidRequestException noIommuUnneeded(PciAddress address, String group) {
    return new InvalidRequestException(
        address
            + " is behind an IOMMU (group "
            + group
            + "); noiommu=true is for machines without one: leave it out");
  }

  static InvalidRequestException noIommuOff(PciAddress address, Path parameter) {
    return new InvalidRequestException(
        address
            + " is in no IOMMU group, and VFIO without an IOMMU is switched off: `echo Y > "
            + parameter
            + "` as root, then bind the function to vfio-pci again");
  }

  static InvalidRequestException notViable(
      PciAddress address, String group, List<PciSysfs> neighbours) {
    StringBuilder others = new StringBuilder();
    StringBuilder bind = new StringBuilder();
    for (PciSysfs f : neighbours) {
      String driver = f.driver();
      others
          .append(others.isEmpty() ? "" : ", ")
          .append(f.address())
          .append(driver.isEmpty() ? " (no driver)" : " (" + driver + ")");
      if (!driver.isEmpty() && !driver.startsWith("vfio") && !driver.equals("pcieport")) {
        bind.append(bind.isEmpty() ? "" : ", ")
            .append("`gpunvme bind ")
            .append(f.address())
            .append('`');
      }
    }
    return new InvalidRequestException(
        "IOMMU group "
            + group
            + " of "
            + address
            + " is not viable: other functions of it are used by kernel drivers. The group's other"
            + " functions: "
            + (others.isEmpty() ? "none is shown" : others)
            + ". Bind them to vfio-pci too"
            + (bind.isEmpty() ? "" : " (" + bind + ")")
            + " or put the device into a slot whose port isolates it (ACS)");
  }

  static InvalidRequestException noInterruptRemapping(PciAddress address, PosixException e) {
    return caused(
        address
            + ": the kernel does not give the IOMMU away (EPERM), as it does where interrupts are"
            + " not remapped (`dmesg` says so). Switch interrupt remapping on in the firmware"
            + " (x2APIC, VT-d or AMD-Vi), or accept that the device can forge interrupts: `echo Y >"
            + " /sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts` as root",
        e);
  }

  /** A node below {@code /dev} that could not be opened. */
  static InvalidRequestException node(PciAddress address, Path node, PosixException e) {
    String why =
        switch (e.errno()) {
          case Errno.ENOENT, Errno.ENODEV, Errno.ENOTDIR ->
              "it does not exist; `modprobe vfio-pci`, and `gpunvme bind " + address + "`";
          case Errno.EACCES, Errno.EPERM ->
              "this user may not; as root `chown $USER " + node + "`, a udev rule, or run as root";
          case Errno.EBUSY ->
              "somebody has it open (`fuser "
                  + node
                  + "` names the process); of one group, one device can be used at a time";
          default -> e.getMessage();
        };
    return caused(address + ": opening " + node + " failed (" + e.errnoName() + "): " + why, e);
  }

  /** A request that the kernel refused. */
  static InvalidRequestException request(PciAddress address, String what, PosixException e) {
    return caused(address + ": " + what + " failed: " + e.getMessage(), e);
  }

  static InvalidRequestException caused(String message, Throwable cause) {
    InvalidRequestException e = new InvalidRequestException(message);
    e.initCause(cause);
    return e;
  }
}
