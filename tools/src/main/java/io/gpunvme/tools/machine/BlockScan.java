package io.gpunvme.tools.machine;

import io.gpunvme.ffi.SysFiles;
import io.gpunvme.nvme.pci.HostPaths;
import io.gpunvme.nvme.pci.PciAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Reads the disks below {@code /sys/block} and what is made of them. */
final class BlockScan {
  private static final int SECTOR = 512;

  /** {@code nvme0n1}, or {@code nvme0c1n1} for one of several paths to it. */
  private static final Pattern NAMESPACE =
      Pattern.compile("(?<subsystem>nvme\\d+)(c\\d+)?(?<namespace>n\\d+)");

  private static final String SIGNATURE = "E:ID_FS_TYPE=";

  private final Path udev;
  private final Map<String, MachineDisk> found = new TreeMap<>();

  private BlockScan(Path udev) {
    this.udev = udev;
  }

  /**
   * Disks, partitions, md and dm, by name.
   *
   * @param udev the folder of udev's database
   */
  static Map<String, MachineDisk> read(HostPaths paths, Path udev) {
    BlockScan scan = new BlockScan(udev);
    for (Path disk : SysFiles.children(paths.sys().resolve("block"))) {
      scan.add(disk, "");
      for (Path child : SysFiles.children(disk)) {
        if (Files.exists(child.resolve("partition"))) {
          scan.add(child, SysFiles.name(disk));
        }
      }
    }
    return scan.found;
  }

  private void add(Path folder, String disk) {
    String name = SysFiles.name(folder);
    String number = SysFiles.text(folder.resolve("dev"));
    found.put(
        name,
        new MachineDisk(
            name,
            number,
            SysFiles.number(folder.resolve("size"), 0) * SECTOR,
            disk,
            SysFiles.names(folder.resolve("holders")),
            kind(folder),
            signature(number)));
  }

  private static String kind(Path folder) {
    String level = SysFiles.text(folder.resolve("md/level"));
    if (!level.isEmpty()) {
      return level;
    }
    String mapped = SysFiles.text(folder.resolve("dm/name"));
    String uuid = SysFiles.text(folder.resolve("dm/uuid"));
    return uuid.startsWith("LVM-") ? "LVM " + mapped : mapped;
  }

  private String signature(String number) {
    return SysFiles.lines(udev.resolve("b" + number)).stream()
        .filter(line -> line.startsWith(SIGNATURE))
        .map(line -> line.substring(SIGNATURE.length()))
        .findFirst()
        .orElse("");
  }

  /** The names of the disks that an NVMe function shows up as; none without the NVMe driver. */
  static List<String> disks(HostPaths paths, PciAddress function) {
    List<String> names = new ArrayList<>();
    Path folder = paths.sys().resolve("bus/pci/devices").resolve(function.toString());
    for (Path controller : SysFiles.children(folder.resolve("nvme"))) {
      for (String child : SysFiles.names(controller)) {
        Matcher namespace = NAMESPACE.matcher(child);
        if (namespace.matches()) {
          names.add(namespace.group("subsystem") + namespace.group("namespace"));
        }
      }
    }
    return names.stream().distinct().sorted().toList();
  }
}
