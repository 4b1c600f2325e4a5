package io.gpunvme.nvme.pci.sysfs;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.pci.HostPaths;
import io.gpunvme.nvme.pci.PciAddress;
import io.gpunvme.nvme.pci.host.PciSysfs;
import java.io.IOException;
import java.nio.file.Files;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** What must be true before a function is touched through sysfs. */
final class SysfsChecks {
  private static final Pattern EFFECTIVE_USER = Pattern.compile("(?m)^Uid:\\s+\\d+\\s+(\\d+)");

  private SysfsChecks() {}

  static void require(PciSysfs function, SysfsOptions options) {
    PciAddress address = function.address();
    requireConsent(address, options);
    requireNoDriver(function);
    requireNoTranslation(function);
    requireRoot(address, options.paths());
  }

  private static void requireConsent(PciAddress address, SysfsOptions options) {
    if (!options.unsafe()) {
      throw new InvalidRequestException(
          "sysfs:"
              + address
              + " gives the device physical addresses with nothing to check them: a mistake, or"
              + " killing this program, corrupts the machine's memory. With an IOMMU use vfio:"
              + address
              + "; if the risk is accepted, say sysfs:"
              + address
              + ",unsafe=true");
    }
  }

  private static void requireNoDriver(PciSysfs function) {
    String driver = function.driver();
    PciAddress address = function.address();
    if (driver.contains("vfio")) {
      throw new InvalidRequestException(
          address + " is bound to " + driver + ": use vfio:" + address);
    }
    if (!driver.isEmpty()) {
      throw new InvalidRequestException(
          "%s is bound to the driver %s, which uses it; if nothing on it is in use, `gpunvme bind %s --no-driver` as root takes it away"
              .formatted(address, driver, address));
    }
  }

  private static void requireNoTranslation(PciSysfs function) {
    String group = function.group();
    if (group.isEmpty() || function.groupType().equals("identity")) {
      return;
    }
    throw new InvalidRequestException(
        "an IOMMU translates for "
            + function.address()
            + " (group "
            + group
            + (function.groupType().isEmpty() ? "" : ", type " + function.groupType())
            + "): physical addresses mean nothing to it. Use vfio: `gpunvme bind "
            + function.address()
            + "`, then vfio:"
            + function.address());
  }

  private static void requireRoot(PciAddress address, HostPaths paths) {
    String user = effectiveUser(paths);
    if (!user.equals("0")) {
      throw new InvalidRequestException(
          "sysfs:"
              + address
              + " needs root: it maps registers and reads physical addresses, and this process"
              + " runs as user "
              + (user.isEmpty() ? "unknown" : user));
    }
  }

  private static String effectiveUser(HostPaths paths) {
    try {
      Matcher m = EFFECTIVE_USER.matcher(Files.readString(paths.proc().resolve("self/status")));
      return m.find() ? m.group(1) : "";
    } catch (IOException e) {
      return "";
    }
  }
}
