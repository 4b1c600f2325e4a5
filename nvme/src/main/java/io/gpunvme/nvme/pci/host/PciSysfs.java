package io.gpunvme.nvme.pci.host;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.pci.HostPaths;
import io.gpunvme.nvme.pci.PciAddress;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;

/**
 * What the kernel says about one PCI function, as far as opening it needs that. Everything is read
 * when asked for; nothing is changed. Immutable.
 */
public final class PciSysfs {
  /** Mass storage controller, non-volatile memory (PCI Code and ID Assignment 1.11, 1.2). */
  private static final String NON_VOLATILE_MEMORY = "0x0108";

  private final HostPaths paths;
  private final PciAddress address;
  private final Path folder;

  private PciSysfs(HostPaths paths, PciAddress address, Path folder) {
    this.paths = paths;
    this.address = address;
    this.folder = folder;
  }

  /**
   * Looks a function up.
   *
   * @throws InvalidRequestException if there is none at the address
   */
  public static PciSysfs of(HostPaths paths, PciAddress address) {
    Path devices = paths.sys().resolve("bus/pci/devices");
    Path folder = devices.resolve(address.toString());
    if (!Files.isDirectory(folder)) {
      throw new InvalidRequestException(
          "there is no PCI function " + address + " in " + devices + "; `gpunvme list` shows them");
    }
    return new PciSysfs(paths, address, folder);
  }

  /**
   * Looks an SSD up.
   *
   * @throws InvalidRequestException if there is none at the address, but nothing or another device
   */
  public static PciSysfs ofSsd(HostPaths paths, PciAddress address) {
    PciSysfs found = of(paths, address);
    String kind = found.attribute("class");
    if (!kind.isEmpty() && !kind.startsWith(NON_VOLATILE_MEMORY)) {
      throw new InvalidRequestException(
          "%s is no NVMe controller but another device, of PCI class %s; `gpunvme list` shows SSDs"
              .formatted(address, kind));
    }
    return found;
  }

  /** Where it is. */
  public PciAddress address() {
    return address;
  }

  /** Its folder in sysfs. */
  public Path folder() {
    return folder;
  }

  /** The kernel driver that has it; empty for none. */
  public String driver() {
    return linkName(folder.resolve("driver"));
  }

  /** The number of its IOMMU group; empty where it is in none. */
  public String group() {
    return linkName(folder.resolve("iommu_group"));
  }

  /** What the group is called: {@code vfio-noiommu} for a group without an IOMMU, mostly empty. */
  public String groupName() {
    return text(folder.resolve("iommu_group/name"));
  }

  /**
   * How the IOMMU translates for the group: {@code DMA}, {@code identity}, …; empty unless known.
   */
  public String groupType() {
    return text(folder.resolve("iommu_group/type"));
  }

  /** The other functions of its group. */
  public List<PciSysfs> groupNeighbours() {
    List<PciSysfs> found = new ArrayList<>();
    for (String name : children(folder.resolve("iommu_group/devices"))) {
      if (!name.equals(address.toString())) {
        found.add(new PciSysfs(paths, PciAddress.parse(name), folder.resolveSibling(name)));
      }
    }
    return found;
  }

  /** The name of its node below {@code /dev/vfio/devices}, where the kernel makes such nodes. */
  public Optional<String> vfioDevice() {
    return children(folder.resolve("vfio-dev")).stream().findFirst();
  }

  /** First line of one of its attributes; empty if it has no such. */
  public String attribute(String name) {
    return text(folder.resolve(name));
  }

  private static List<String> children(Path folder) {
    List<String> names = new ArrayList<>();
    try (DirectoryStream<Path> children = Files.newDirectoryStream(folder)) {
      for (Path child : children) {
        names.add(child.getFileName().toString());
      }
    } catch (IOException e) {
      return List.of();
    }
    Collections.sort(names);
    return names;
  }

  private static String text(Path file) {
    try {
      return Files.readString(file).strip();
    } catch (IOException e) {
      return "";
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
