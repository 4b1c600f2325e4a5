package io.gpunvme.tools.machine;

import io.gpunvme.ffi.SysFiles;
import io.gpunvme.nvme.pci.HostPaths;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;

/** The device nodes of functions that vfio-pci, or this project's kernel module, has. */
final class DriverNodes {
  private static final String DEV = "/dev/";
  private static final String CONTAINER = "vfio/vfio";

  private DriverNodes() {}

  /** All: of its group, of its group in no-IOMMU mode, and for iommufd. */
  static List<String> all(HostPaths paths, MachineFunction function) {
    List<String> nodes = new ArrayList<>();
    IommuGroup group = function.group();
    if (function.vfio() && group != null) {
      nodes.add(DEV + "vfio/" + group.name());
      nodes.add(DEV + "vfio/noiommu-" + group.name());
    }
    for (String name : ownNodes(paths, function)) {
      nodes.add(DEV + "vfio/devices/" + name);
    }
    if (function.kmod()) {
      nodes.add(DEV + moduleNode(function));
    }
    return nodes;
  }

  private static String moduleNode(MachineFunction function) {
    return MachineFunction.KMOD + "/" + function.address();
  }

  private static List<String> ownNodes(HostPaths paths, MachineFunction function) {
    Path folder = paths.sys().resolve("bus/pci/devices").resolve(function.address().toString());
    return SysFiles.names(folder.resolve("vfio-dev"));
  }

  /**
   * Those that {@code vfio:} opens: the container and the group, or where there is no container
   * iommufd's and the function's own; none if the function has no group. The one that {@code kmod:}
   * opens.
   *
   * @param mayOpen whether this process may open a node for reading and writing
   */
  static List<DeviceNode> opened(
      HostPaths paths, MachineFunction function, Predicate<Path> mayOpen) {
    if (function.kmod()) {
      String name = moduleNode(function);
      return List.of(node(name, paths.dev().resolve(name), mayOpen));
    }
    IommuGroup group = function.group();
    if (!function.vfio() || group == null) {
      return List.of();
    }
    List<String> own = ownNodes(paths, function);
    List<String> names;
    if (!own.isEmpty() && !Files.exists(paths.dev().resolve(CONTAINER))) {
      names = List.of("iommu", "vfio/devices/" + own.getFirst());
    } else {
      String unprotected = "vfio/noiommu-" + group.name();
      boolean noIommu = Files.exists(paths.dev().resolve(unprotected));
      names = List.of(CONTAINER, noIommu ? unprotected : "vfio/" + group.name());
    }
    return names.stream().map(name -> node(name, paths.dev().resolve(name), mayOpen)).toList();
  }

  private static DeviceNode node(String name, Path path, Predicate<Path> mayOpen) {
    boolean there = Files.exists(path);
    return new DeviceNode(DEV + name, there, there && mayOpen.test(path));
  }
}
