package io.gpunvme.core.device;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * An NVMe function on the PCI bus of this machine, as the kernel lists it. Only looked at, never
 * touched.
 *
 * @param address domain, bus, device and function, {@code 0000:01:00.0}
 * @param vendor PCI vendor identifier
 * @param device PCI device identifier
 * @param driver the kernel driver that has it, empty for none
 * @param model what the kernel's NVMe driver says it is, empty when another driver has it
 * @param blockDevices the block devices it shows up as, {@code nvme0n1}
 */
public record PciNvme(
    String address,
    int vendor,
    int device,
    String driver,
    String model,
    List<String> blockDevices) {
  /** Where Linux lists PCI functions. */
  public static final Path SYSFS = Path.of("/sys/bus/pci/devices");

  /** Class code of non-volatile memory controllers: base class 01h, sub-class 08h. */
  private static final String CLASS_PREFIX = "0x0108";

  /** {@code nvme0n1}, or {@code nvme0c1n1} for a path to it. */
  private static final Pattern NAMESPACE =
      Pattern.compile("(?<subsystem>nvme\\d+)(c\\d+)?(?<namespace>n\\d+)");

  /** Copies the list. */
  public PciNvme {
    blockDevices = List.copyOf(blockDevices);
  }

  /**
   * All NVMe functions below a folder laid out like {@link #SYSFS}, by address; empty without it.
   */
  public static List<PciNvme> list(Path folder) {
    List<PciNvme> found = new ArrayList<>();
    for (Path function : children(folder)) {
      if (text(function.resolve("class")).toLowerCase(Locale.ROOT).startsWith(CLASS_PREFIX)) {
        found.add(read(function));
      }
    }
    return found;
  }

  private static PciNvme read(Path function) {
    String model = "";
    List<String> blockDevices = new ArrayList<>();
    for (Path controller : children(function.resolve("nvme"))) {
      model = text(controller.resolve("model"));
      for (Path child : children(controller)) {
        Matcher namespace = NAMESPACE.matcher(child.getFileName().toString());
        if (namespace.matches()) {
          blockDevices.add(namespace.group("subsystem") + namespace.group("namespace"));
        }
      }
    }
    return new PciNvme(
        function.getFileName().toString(),
        number(function.resolve("vendor")),
        number(function.resolve("device")),
        linkName(function.resolve("driver")),
        model,
        blockDevices);
  }

  private static List<Path> children(Path folder) {
    List<Path> found = new ArrayList<>();
    if (!Files.isDirectory(folder)) {
      return found;
    }
    try (DirectoryStream<Path> children = Files.newDirectoryStream(folder)) {
      children.forEach(found::add);
    } catch (IOException e) {
      return List.of();
    }
    found.sort(Comparator.naturalOrder());
    return found;
  }

  private static String text(Path file) {
    try {
      return Files.readString(file).strip();
    } catch (IOException e) {
      return "";
    }
  }

  private static int number(Path file) {
    try {
      return Integer.decode(text(file));
    } catch (NumberFormatException e) {
      return 0;
    }
  }

  private static String linkName(Path link) {
    try {
      Path target = Files.readSymbolicLink(link).getFileName();
      return target == null ? "" : target.toString();
    } catch (IOException e) {
      return "";
    }
  }
}
