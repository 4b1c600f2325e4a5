package io.gpunvme.core.device;

import io.gpunvme.core.bar.PeerBar;
import io.gpunvme.core.bar.StaticBarFunction;
import io.gpunvme.nvme.InvalidRequestException;
import io.gpunvme.nvme.pci.HostPaths;
import io.gpunvme.nvme.pci.PciAddress;
import io.gpunvme.nvme.pci.PciFunction;
import io.gpunvme.nvme.pci.kmod.KmodFunction;
import io.gpunvme.nvme.pci.sysfs.SysfsFunction;
import io.gpunvme.nvme.pci.sysfs.SysfsOptions;
import io.gpunvme.nvme.pci.vfio.VfioFunction;
import io.gpunvme.nvme.pci.vfio.VfioOptions;
import io.gpunvme.nvme.pci.vfiouser.VfioUserFunction;
import io.gpunvme.nvme.pci.vfiouser.VfioUserOptions;
import io.gpunvme.nvme.sim.SimConfig;
import io.gpunvme.nvme.sim.SimulatedController;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.regex.Pattern;

/** Opens the PCI function that an address names. */
final class Functions {
  private static final String NO_IOMMU = "noiommu";
  private static final String IOMMUFD = "iommufd";
  private static final String UNSAFE = "unsafe";
  private static final String TIMEOUT = "timeout";
  private static final String MESSAGES = "messages";
  private static final Pattern DURATION = Pattern.compile("(\\d{1,9})(ms|s)");

  private Functions() {}

  static PciFunction open(DeviceAddress address, String faults) {
    if (address.isEmbedded()) {
      return embedded(address, faults);
    }
    if (!faults.isBlank()) {
      throw new InvalidRequestException(
          address
              + " is not this process's own controller; only embedded ones (sim:) have faults at"
              + " will");
    }
    if (address.kind().equals(DeviceAddress.VFIO_USER)) {
      return vfioUser(address);
    }
    PciAddress function = PciAddress.parse(address.place());
    // The module imports dma-bufs and maps no BARs: there the option is an unknown one.
    boolean maps = !address.kind().equals(DeviceAddress.KMOD);
    String bar = maps ? address.option(DeviceAddress.GPU_BAR) : null;
    if (bar == null) {
      return real(address, function);
    }
    // The GPU first: while it is not as it should be the controller is left alone.
    PeerBar peer = peer(bar);
    try {
      return new StaticBarFunction(real(address, function), peer);
    } catch (RuntimeException e) {
      peer.close();
      throw e;
    }
  }

  private static PciFunction real(DeviceAddress address, PciAddress function) {
    return switch (address.kind()) {
      case DeviceAddress.VFIO -> vfio(address, function);
      case DeviceAddress.KMOD -> kmod(address, function);
      default -> sysfs(address, function);
    };
  }

  private static PeerBar peer(String text) {
    int slash = text.indexOf('/');
    PciAddress gpu = PciAddress.parse(slash < 0 ? text : text.substring(0, slash));
    String index = slash < 0 ? "1" : text.substring(slash + 1);
    if (!index.matches("[0-5]")) {
      throw new InvalidRequestException(
          "%s=%s: behind the slash is the number of a BAR, 0 to 5"
              .formatted(DeviceAddress.GPU_BAR, text));
    }
    return PeerBar.open(HostPaths.host(), gpu, Integer.parseInt(index));
  }

  private static PciFunction embedded(DeviceAddress address, String faults) {
    SimConfig config = SimConfig.parse(address.without(DeviceAddress.PINNED).optionText());
    if (config.workers() == 0) {
      throw new InvalidRequestException(
          "workers=0: nobody would do this controller's work; it is for programs that call poll()");
    }
    SimulatedController function = SimulatedController.create(config);
    try {
      function.faults().add(faults);
    } catch (RuntimeException e) {
      function.close();
      throw e;
    }
    return function;
  }

  private static PciFunction vfio(DeviceAddress address, PciAddress function) {
    requireKnown(address, List.of(NO_IOMMU, IOMMUFD, DeviceAddress.GPU_BAR));
    String iommufd = address.option(IOMMUFD);
    VfioOptions options = VfioOptions.defaults().withNoIommu(address.flag(NO_IOMMU));
    return VfioFunction.open(
        function,
        iommufd == null ? options : options.withIommufd(VfioOptions.Iommufd.parse(iommufd)));
  }

  private static PciFunction kmod(DeviceAddress address, PciAddress function) {
    requireKnown(address, List.of());
    return KmodFunction.open(function, HostPaths.host());
  }

  private static PciFunction vfioUser(DeviceAddress address) {
    requireKnown(address, List.of(TIMEOUT, MESSAGES));
    VfioUserOptions options = VfioUserOptions.defaults().withMessages(address.flag(MESSAGES));
    String timeout = address.option(TIMEOUT);
    return VfioUserFunction.open(
        Path.of(address.place()),
        timeout == null ? options : options.withTimeout(duration(timeout)));
  }

  private static Duration duration(String text) {
    var parsed = DURATION.matcher(text);
    if (!parsed.matches()) {
      throw new InvalidRequestException(
          TIMEOUT + "=" + text + ": a whole number of ms or s, e.g. 500ms or 5s");
    }
    long number = Long.parseLong(parsed.group(1));
    return parsed.group(2).equals("s") ? Duration.ofSeconds(number) : Duration.ofMillis(number);
  }

  private static PciFunction sysfs(DeviceAddress address, PciAddress function) {
    requireKnown(address, List.of(UNSAFE, DeviceAddress.GPU_BAR));
    boolean unsafe = address.flag(UNSAFE);
    return SysfsFunction.open(function, new SysfsOptions(unsafe, HostPaths.host()));
  }

  private static void requireKnown(DeviceAddress address, List<String> known) {
    for (String key : address.options().keySet()) {
      if (!known.contains(key)) {
        throw new InvalidRequestException(
            "%s: devices have no option '%s'; there is %s"
                .formatted(
                    address.kind(), key, known.isEmpty() ? "none" : String.join(", ", known)));
      }
    }
  }
}
