package io.gpunvme.tools.machine;

import io.gpunvme.ffi.SysFiles;
import io.gpunvme.nvme.pci.HostPaths;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Pattern;

/**
 * Which processes have device nodes of NVMe, VFIO or the kernel module open, from {@code
 * /proc/PID/fd}.
 */
final class OpenNodes {
  private static final Pattern PROCESS = Pattern.compile("\\d+");
  private static final Pattern NODE =
      Pattern.compile("/dev/(nvme\\d.*|ng\\d.*|vfio/.*|gpunvme/.*)");

  private OpenNodes() {}

  /**
   * By node, {@code process 812 (qemu)}, without this process. Root sees all processes, others
   * their own.
   */
  static Map<String, List<String>> read(HostPaths paths) {
    Map<String, List<String>> found = new TreeMap<>();
    String own = SysFiles.linkName(paths.proc().resolve("self"));
    for (Path process : SysFiles.children(paths.proc())) {
      String id = SysFiles.name(process);
      if (PROCESS.matcher(id).matches() && !id.equals(own)) {
        addAll(process, found);
      }
    }
    return found;
  }

  private static void addAll(Path process, Map<String, List<String>> found) {
    List<String> nodes = new ArrayList<>();
    for (Path descriptor : SysFiles.children(process.resolve("fd"))) {
      String target = target(descriptor);
      if (NODE.matcher(target).matches() && !nodes.contains(target)) {
        nodes.add(target);
      }
    }
    for (String node : nodes) {
      String name = SysFiles.text(process.resolve("comm"));
      found
          .computeIfAbsent(node, n -> new ArrayList<>())
          .add("process %s (%s)".formatted(SysFiles.name(process), name));
    }
  }

  private static String target(Path link) {
    try {
      return Files.readSymbolicLink(link).toString();
    } catch (IOException e) {
      return "";
    }
  }
}
