package io.gpunvme.nvme.pci.host;

import io.gpunvme.nvme.pci.HostPaths;
import io.gpunvme.nvme.pci.PciAddress;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * A tree like /sys, /dev and /proc with one NVMe function in it. Files take the place of devices:
 * they can be read, written and mapped, and answer every ioctl with ENOTTY.
 */
public final class FakeFunctionTree {
  public static final PciAddress ADDRESS = new PciAddress(0, 1, 0, 0);

  private static final int BAR_BYTES = 0x4000;
  private static final int CONFIG_BYTES = 4096;

  private final Path root;

  /** A function without driver and IOMMU group, and root as its user. */
  public FakeFunctionTree(Path root) throws IOException {
    this.root = root;
    Files.createDirectories(function());
    Files.createDirectories(root.resolve("dev/vfio"));
    Files.createDirectories(root.resolve("run/lock"));
    Files.createDirectories(root.resolve("proc/self"));
    user(0);
    write(
        root.resolve("proc/self/limits"),
        "Max locked memory         8388608     8388608    bytes\n");
    Files.createSymbolicLink(root.resolve("proc/self/pagemap"), Path.of("/proc/self/pagemap"));
  }

  public HostPaths paths() {
    return new HostPaths(root.resolve("sys"), root.resolve("dev"), root.resolve("proc"));
  }

  public Path function() {
    return folder(ADDRESS);
  }

  public Path folder(PciAddress address) {
    return root.resolve("sys/bus/pci/devices").resolve(address.toString());
  }

  public Path root() {
    return root;
  }

  public void user(int id) throws IOException {
    write(
        root.resolve("proc/self/status"),
        "Name:\tjava\nUid:\t1000\t%d\t%d\t%d\nGid:\t0\t0\t0\t0\n".formatted(id, id, id));
  }

  public void driver(String name) throws IOException {
    driver(ADDRESS, name);
  }

  public void driver(PciAddress address, String name) throws IOException {
    Path driver = Files.createDirectories(root.resolve("sys/bus/pci/drivers").resolve(name));
    Files.createDirectories(folder(address));
    Files.createSymbolicLink(folder(address).resolve("driver"), driver);
  }

  /** Puts functions into a group. */
  public void group(int number, String type, PciAddress... members) throws IOException {
    Path group = root.resolve("sys/kernel/iommu_groups/" + number);
    Files.createDirectories(group.resolve("devices"));
    write(group.resolve("type"), type + "\n");
    for (PciAddress member : members) {
      Files.createDirectories(folder(member));
      Files.createSymbolicLink(group.resolve("devices/" + member), folder(member));
      Files.createSymbolicLink(folder(member).resolve("iommu_group"), group);
    }
  }

  public void groupName(int number, String name) throws IOException {
    write(root.resolve("sys/kernel/iommu_groups/" + number + "/name"), name + "\n");
  }

  public void node(String path) throws IOException {
    Path node = root.resolve("dev").resolve(path);
    Files.createDirectories(node.getParent());
    Files.createFile(node);
  }

  /** The files by which sysfs gives a function away: configuration space, BAR 0, enable, reset. */
  public void resources() throws IOException {
    sized("config", CONFIG_BYTES);
    sized("resource0", BAR_BYTES);
    write(
        function().resolve("resource"),
        """
        0x00000000fe000000 0x00000000fe003fff 0x0000000000140204
        0x0000000000000000 0x0000000000000000 0x0000000000000000
        0x000000000000e000 0x000000000000e01f 0x0000000000040101
        """);
    write(function().resolve("enable"), "0\n");
    write(function().resolve("reset"), " \n");
  }

  /** Two NUMA nodes, 0 and 1, without processors; the function is on the second. */
  public void numaNodes() throws IOException {
    for (int node = 0; node < 2; node++) {
      Path folder = root.resolve("sys/devices/system/node/node" + node);
      write(Files.createDirectories(folder).resolve("cpulist"), "\n");
    }
    write(function().resolve("numa_node"), "1\n");
  }

  private void sized(String name, int bytes) throws IOException {
    try (RandomAccessFile file = new RandomAccessFile(function().resolve(name).toFile(), "rw")) {
      file.setLength(bytes);
    }
  }

  private static void write(Path file, String text) throws IOException {
    Files.writeString(file, text);
  }
}
