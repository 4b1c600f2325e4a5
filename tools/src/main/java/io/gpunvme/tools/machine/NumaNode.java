package io.gpunvme.tools.machine;

import io.gpunvme.ffi.SysFiles;
import io.gpunvme.nvme.pci.HostPaths;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Processors with the memory that is near them.
 *
 * @param number as the kernel counts
 * @param cpus its logical processors as the kernel lists them, {@code 0-15,32-47}; may be empty
 * @param socket the package of its first processor; -1 if the kernel does not say
 * @param memoryBytes 0 if the kernel does not say
 * @param distances to each node, itself included, by the firmware's measure (10: itself); may be
 *     empty
 */
public record NumaNode(
    int number, String cpus, int socket, long memoryBytes, List<Integer> distances) {
  private static final Pattern NAME = Pattern.compile("node(?<number>\\d{1,5})");
  private static final Pattern TOTAL = Pattern.compile("MemTotal:\\s+(?<kib>\\d{1,15}) kB");
  private static final Pattern FIRST = Pattern.compile("^(?<cpu>\\d{1,6})");
  private static final Pattern DISTANCES = Pattern.compile("\\d{1,9}( +\\d{1,9})*");
  private static final int KIB = 1024;

  /** Copies the list. */
  public NumaNode {
    distances = List.copyOf(distances);
  }

  /** By number; none if the kernel knows nothing of nodes. */
  static List<NumaNode> read(HostPaths paths) {
    Path system = paths.sys().resolve("devices/system");
    List<NumaNode> nodes = new ArrayList<>();
    for (Path folder : SysFiles.children(system.resolve("node"))) {
      Matcher name = NAME.matcher(SysFiles.name(folder));
      if (name.matches()) {
        nodes.add(node(Integer.parseInt(name.group("number")), folder, system.resolve("cpu")));
      }
    }
    nodes.sort((a, b) -> Integer.compare(a.number, b.number));
    return List.copyOf(nodes);
  }

  private static NumaNode node(int number, Path folder, Path cpus) {
    String list = SysFiles.text(folder.resolve("cpulist"));
    Matcher first = FIRST.matcher(list);
    Matcher total = TOTAL.matcher(SysFiles.text(folder.resolve("meminfo")));
    String distances = SysFiles.text(folder.resolve("distance"));
    return new NumaNode(
        number,
        list,
        first.find()
            ? (int)
                SysFiles.number(
                    cpus.resolve("cpu" + first.group("cpu"))
                        .resolve("topology/physical_package_id"),
                    -1)
            : -1,
        total.find() ? Long.parseLong(total.group("kib")) * KIB : 0,
        DISTANCES.matcher(distances).matches()
            ? Arrays.stream(distances.split(" +", -1)).map(Integer::valueOf).toList()
            : List.of());
  }
}
