package io.gpunvme.gpu.device;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.bar.PeerBar;
import io.gpunvme.gpu.bar.StaticBarFunction;
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
import io.gpunvme.nvme.pci.vfiouser.VfioUserFunction;
import io.gpunvme.nvme.pci.vfiouser.VfioUserOptions;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;
import java.util.regex.Pattern;

/**
 * The table of transports: the name of each in an address, the form of what follows the colon, its
 * options, and how its function is opened. A new transport is a new row.
 */
public enum Transport {
  /** A controller inside this process. Its options are {@link SimConfig}'s. */
  SIM(
      "sim",
      "key=value,…",
      "an embedded NVMe controller (gpunvme help sim)",
      Place.NONE,
      List.of(),
      Transport::embedded),
  /** A PCI function bound to vfio-pci. */
  VFIO(
      "vfio",
      "DDDD:BB:DD.F",
      "an SSD that gpunvme bind gave to vfio-pci",
      Place.PCI,
      List.of("noiommu", "iommufd", Transport.GPU_BAR, Transport.NUMA),
      Transport::vfio),
  /**
   * A PCI function bound to the kernel module gpunvme. It maps no BARs, so no BAR of a GPU either.
   */
  KMOD(
      "kmod",
      "DDDD:BB:DD.F",
      "an SSD that gpunvme bind --kmod gave to the module",
      Place.PCI,
      List.of("noiommu", Transport.NUMA),
      Transport::kmod),
  /** A PCI function without a kernel driver, on physical addresses. */
  SYSFS(
      "sysfs",
      "DDDD:BB:DD.F",
      "an SSD without driver and IOMMU (docs/safety.md)",
      Place.PCI,
      List.of("unsafe", Transport.GPU_BAR, Transport.NUMA),
      Transport::sysfs),
  /** A PCI function that another process emulates. */
  VFIO_USER(
      "vfio-user",
      "SOCKET",
      "a controller of another process (docs/vfio-user.md)",
      Place.SOCKET,
      List.of("timeout", "messages"),
      Transport::vfioUser);

  /** Which one of its kind an address names. */
  private enum Place {
    NONE,
    PCI,
    SOCKET
  }

  /** The option that says where the memory of a GPU is found. */
  static final String GPU_BAR = "gpu-bar";

  /** The option that says on which NUMA node memory and threads are. */
  private static final String NUMA = "numa";

  private static final Pattern DURATION = Pattern.compile("(\\d{1,9})(ms|s)");

  private final String id;
  private final String form;
  private final String summary;
  private final Place place;

  @SuppressWarnings("ImmutableEnumChecker") // made by List.of
  private final List<String> options;

  @SuppressWarnings("ImmutableEnumChecker") // references to static methods
  private final Function<DeviceAddress, PciFunction> opener;

  Transport(
      String id,
      String form,
      String summary,
      Place place,
      List<String> options,
      Function<DeviceAddress, PciFunction> opener) {
    this.id = id;
    this.form = form;
    this.summary = summary;
    this.place = place;
    this.options = options;
    this.opener = opener;
  }

  static Optional<Transport> of(String id) {
    for (Transport transport : values()) {
      if (transport.id.equals(id)) {
        return Optional.of(transport);
      }
    }
    return Optional.empty();
  }

  /** The part of an address before the colon: {@code vfio}. */
  @Override
  public String toString() {
    return id;
  }

  /** The form of its addresses: {@code vfio:DDDD:BB:DD.F}. */
  public String form() {
    return id + ":" + form;
  }

  /** The devices that its addresses name, in one line. */
  public String summary() {
    return summary;
  }

  /** Takes the place from the front of what follows the colon, and checks it. */
  String takePlace(String address, List<String> parts) {
    return switch (place) {
      case NONE -> "";
      case PCI -> PciAddress.parse(parts.isEmpty() ? "" : parts.removeFirst()).toString();
      case SOCKET -> {
        String socket = parts.isEmpty() ? "" : parts.removeFirst();
        if (socket.isBlank()) {
          throw new InvalidRequestException(
              "'" + address + "' has no socket: " + id + ":/path/to/socket");
        }
        yield socket;
      }
    };
  }

  /** Opens the function that an address of this transport names. */
  PciFunction open(DeviceAddress address, String faults) {
    if (this == SIM) {
      return withFaults((SimulatedController) opener.apply(address), faults);
    }
    if (!faults.isBlank()) {
      throw new InvalidRequestException(
          address
              + " is not an embedded controller of this process; only embedded ones (sim:) can"
              + " have faults");
    }
    for (String key : address.options().keySet()) {
      if (!options.contains(key)) {
        throw new InvalidRequestException(
            "%s: devices have no option '%s'; they have %s"
                .formatted(id, key, options.isEmpty() ? "none" : String.join(", ", options)));
      }
    }
    String bar = address.option(GPU_BAR);
    if (bar == null) {
      return opener.apply(address);
    }
    // The GPU first: while it is not as it should be the controller is left alone.
    PeerBar peer = peer(bar);
    return CloseAll.orClose(() -> new StaticBarFunction(opener.apply(address), peer), peer::close);
  }

  private static PeerBar peer(String text) {
    int slash = text.indexOf('/');
    PciAddress gpu = PciAddress.parse(slash < 0 ? text : text.substring(0, slash));
    String index = slash < 0 ? "1" : text.substring(slash + 1);
    if (!index.matches("[0-5]")) {
      throw new InvalidRequestException(
          "%s=%s: after the slash goes the number of a BAR, 0 to 5".formatted(GPU_BAR, text));
    }
    return PeerBar.open(HostPaths.host(), gpu, Integer.parseInt(index));
  }

  private static PciFunction embedded(DeviceAddress address) {
    SimConfig config = SimConfig.parse(address.without(DeviceAddress.PINNED).optionText());
    if (config.workers() == 0) {
      throw new InvalidRequestException(
          "workers=0: the controller would have no thread; it is for programs that call poll()");
    }
    return SimulatedController.create(config);
  }

  private static PciFunction withFaults(SimulatedController function, String faults) {
    try {
      function.faults().add(faults);
      return function;
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, function::close);
      throw e;
    }
  }

  private static PciFunction vfio(DeviceAddress address) {
    VfioOptions options =
        VfioOptions.defaults().withNoIommu(address.flag("noiommu")).withNuma(numa(address));
    String iommufd = address.option("iommufd");
    return VfioFunction.open(
        PciAddress.parse(address.place()),
        iommufd == null ? options : options.withIommufd(VfioOptions.Iommufd.parse(iommufd)));
  }

  private static PciFunction kmod(DeviceAddress address) {
    return KmodFunction.open(
        PciAddress.parse(address.place()),
        KmodOptions.defaults().withNoIommu(address.flag("noiommu")).withNuma(numa(address)));
  }

  private static PciFunction sysfs(DeviceAddress address) {
    return SysfsFunction.open(
        PciAddress.parse(address.place()),
        new SysfsOptions(address.flag("unsafe"), numa(address), HostPaths.host()));
  }

  private static PciFunction vfioUser(DeviceAddress address) {
    VfioUserOptions options = VfioUserOptions.defaults().withMessages(address.flag("messages"));
    String timeout = address.option("timeout");
    return VfioUserFunction.open(
        Path.of(address.place()),
        timeout == null ? options : options.withTimeout(duration(timeout)));
  }

  private static NumaOption numa(DeviceAddress address) {
    String numa = address.option(NUMA);
    return numa == null ? NumaOption.AUTO : NumaOption.parse(numa);
  }

  private static Duration duration(String text) {
    var parsed = DURATION.matcher(text);
    if (!parsed.matches()) {
      throw new InvalidRequestException(
          "timeout=" + text + ": must be a whole number of ms or s, e.g. 500ms or 5s");
    }
    long number = Long.parseLong(parsed.group(1));
    return parsed.group(2).equals("s") ? Duration.ofSeconds(number) : Duration.ofMillis(number);
  }
}
