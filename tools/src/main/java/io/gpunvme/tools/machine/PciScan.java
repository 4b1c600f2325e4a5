package io.gpunvme.tools.machine;

import io.gpunvme.ffi.SysFiles;
import io.gpunvme.nvme.pci.HostPaths;
import io.gpunvme.nvme.pci.PciAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** Reads the functions below {@code /sys/bus/pci/devices}. */
final class PciScan {
  private static final String GPU_MODEL = "Model:";
  private static final String GPU_UUID = "GPU UUID:";
  private static final int BARS = 6;
  private static final int HEX = 16;
  private static final long MEMORY = 0x200;
  private static final long PREFETCH = 0x2000;
  private static final int MOST_NODES = 1 << 16;

  /** {@code pci0000:00}, a host bridge's folder. */
  private static final Pattern HOST_BRIDGE =
      Pattern.compile("pci(?<bus>\\p{XDigit}{4,8}:\\p{XDigit}{2})");

  private PciScan() {}

  /** By address. */
  static Map<PciAddress, MachineFunction> read(HostPaths paths) {
    Map<PciAddress, MachineFunction> found = new TreeMap<>();
    for (Path folder : SysFiles.children(paths.sys().resolve("bus/pci/devices"))) {
      Optional<PciAddress> address = PciAddress.find(SysFiles.name(folder));
      if (address.isPresent() && Files.isReadable(folder.resolve("class"))) {
        found.put(address.get(), function(address.get(), folder, paths));
      }
    }
    return found;
  }

  private static MachineFunction function(PciAddress address, Path folder, HostPaths paths) {
    String override = SysFiles.text(folder.resolve("driver_override"));
    return new MachineFunction(
        address,
        (int) SysFiles.number(folder.resolve("class"), 0),
        (int) SysFiles.number(folder.resolve("vendor"), 0),
        (int) SysFiles.number(folder.resolve("device"), 0),
        SysFiles.linkName(folder.resolve("driver")),
        override.equals("(null)") ? "" : override,
        model(address, folder, paths),
        ofDriver(address, paths, GPU_UUID),
        group(folder.resolve("iommu_group")),
        link(folder),
        node(SysFiles.number(folder.resolve("numa_node"), -1)),
        bars(folder),
        hostBridge(folder),
        parents(address, folder),
        AccessControl.of(SysFiles.bytes(folder.resolve("config"))));
  }

  /** As the driver that has it says; the kernel itself knows numbers only. */
  private static String model(PciAddress address, Path folder, HostPaths paths) {
    return SysFiles.children(folder.resolve("nvme")).stream()
        .map(controller -> SysFiles.text(controller.resolve("model")))
        .filter(model -> !model.isEmpty())
        .findFirst()
        .orElseGet(() -> ofDriver(address, paths, GPU_MODEL));
  }

  /** What NVIDIA's driver says about a GPU under a name; empty without it. */
  private static String ofDriver(PciAddress address, HostPaths paths, String name) {
    Path gpu = paths.proc().resolve("driver/nvidia/gpus").resolve(address.toString());
    return SysFiles.lines(gpu.resolve("information")).stream()
        .filter(line -> line.startsWith(name))
        .map(line -> line.substring(name.length()).strip())
        .findFirst()
        .orElse("");
  }

  private static int node(long number) {
    return number < 0 || number >= MOST_NODES ? -1 : (int) number;
  }

  private static @Nullable IommuGroup group(Path link) {
    String name = SysFiles.linkName(link);
    if (name.isEmpty()) {
      return null;
    }
    List<PciAddress> members =
        SysFiles.names(link.resolve("devices")).stream()
            .map(PciAddress::find)
            .flatMap(Optional::stream)
            .sorted()
            .toList();
    return new IommuGroup(name, SysFiles.text(link.resolve("type")), members);
  }

  private static PciLink link(Path folder) {
    return new PciLink(
        speed(folder.resolve("current_link_speed")),
        width(folder.resolve("current_link_width")),
        speed(folder.resolve("max_link_speed")),
        width(folder.resolve("max_link_width")));
  }

  /** {@code 16.0 GT/s PCIe}; {@code Unknown}. */
  private static double speed(Path file) {
    String first = SysFiles.text(file).split(" ", -1)[0];
    try {
      return Math.max(0, Double.parseDouble(first));
    } catch (NumberFormatException e) {
      return 0;
    }
  }

  /** The kernel says 255 where it does not know. */
  private static int width(Path file) {
    long width = SysFiles.number(file, 0);
    return width < 0 || width > 32 ? 0 : (int) width;
  }

  /** Lines of {@code start end flags}, the BARs first. */
  private static List<PciBar> bars(Path folder) {
    List<PciBar> bars = new ArrayList<>();
    List<String> lines = SysFiles.lines(folder.resolve("resource"));
    for (int i = 0; i < Math.min(BARS, lines.size()); i++) {
      String[] words = lines.get(i).replace("0x", "").split(" +", -1);
      try {
        long start = Long.parseUnsignedLong(words[0], HEX);
        long end = Long.parseUnsignedLong(words[1], HEX);
        long flags = Long.parseUnsignedLong(words[2], HEX);
        if (end != 0) {
          bars.add(new PciBar(i, end - start + 1, (flags & MEMORY) != 0, (flags & PREFETCH) != 0));
        }
      } catch (NumberFormatException | ArrayIndexOutOfBoundsException e) {
        return bars;
      }
    }
    return bars;
  }

  /** The real path goes through every port: {@code …/pci0000:00/0000:00:01.0/0000:01:00.0}. */
  private static List<PciAddress> parents(PciAddress own, Path folder) {
    List<PciAddress> parents = new ArrayList<>();
    for (Path name : SysFiles.real(folder)) {
      PciAddress.find(name.toString())
          .filter(a -> !a.equals(own) && !parents.contains(a))
          .ifPresent(parents::add);
    }
    return parents;
  }

  /** The first on the real path: a second one is made up by a function below it. */
  private static String hostBridge(Path folder) {
    for (Path name : SysFiles.real(folder)) {
      Matcher bridge = HOST_BRIDGE.matcher(name.toString());
      if (bridge.matches()) {
        return bridge.group("bus");
      }
    }
    return "";
  }
}
