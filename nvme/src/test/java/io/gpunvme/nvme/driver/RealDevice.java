package io.gpunvme.nvme.driver;

import io.gpunvme.nvme.pci.HostPaths;
import io.gpunvme.nvme.pci.NumaOption;
import io.gpunvme.nvme.pci.PciAddress;
import io.gpunvme.nvme.pci.PciFunction;
import io.gpunvme.nvme.pci.kmod.KmodFunction;
import io.gpunvme.nvme.pci.kmod.KmodOptions;
import io.gpunvme.nvme.pci.sysfs.SysfsFunction;
import io.gpunvme.nvme.pci.sysfs.SysfsOptions;
import io.gpunvme.nvme.pci.vfio.VfioFunction;
import io.gpunvme.nvme.pci.vfio.VfioOptions;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Assumptions;

/**
 * The controller that the tests with the tag {@code qemu} may destroy the contents of, by system
 * properties:
 *
 * <ul>
 *   <li>{@code gpunvme.device}: {@code vfio:0000:00:04.0}, {@code kmod:0000:00:04.0} or {@code
 *       sysfs:0000:00:04.0,unsafe=true};
 *   <li>{@code gpunvme.namespaces}: all of its namespaces, {@code nsid:blocksize:blocks}, with
 *       commas between them.
 * </ul>
 */
final class RealDevice {
  private static final String DEVICE = System.getProperty("gpunvme.device", "");
  private static final String NAMESPACES = System.getProperty("gpunvme.namespaces", "");

  private RealDevice() {}

  /** Skips the test where no device is named. */
  static void require() {
    Assumptions.assumeTrue(
        !DEVICE.isEmpty(), "no real controller: none is named by -Dgpunvme.device=vfio:ADDRESS");
  }

  static PciFunction open() {
    require();
    PciAddress address = PciAddress.parse(DEVICE.replaceFirst("^[^:]*:", "").split(",")[0]);
    return new CalmBeforeReset(
        switch (DEVICE.substring(0, DEVICE.indexOf(':'))) {
          case "sysfs" ->
              SysfsFunction.open(
                  address, new SysfsOptions(true, NumaOption.AUTO, HostPaths.host()));
          case "kmod" ->
              KmodFunction.open(
                  address, KmodOptions.defaults().withNoIommu(DEVICE.endsWith(",noiommu=true")));
          default -> VfioFunction.open(address, VfioOptions.defaults());
        });
  }

  /** What the driver may use of it. */
  static ControllerOptions.Builder limit(ControllerOptions.Builder options) {
    Long longest = Long.getLong("gpunvme.maxTransfer");
    return longest == null ? options : options.maxTransferBytes(longest);
  }

  static List<ContractRig.Expected> namespaces() {
    return Arrays.stream(NAMESPACES.split(","))
        .map(text -> text.split(":"))
        .map(
            n ->
                new ContractRig.Expected(
                    Integer.parseInt(n[0]), Integer.parseInt(n[1]), Long.parseLong(n[2])))
        .toList();
  }
}
