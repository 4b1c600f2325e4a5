package io.gpunvme.storage.path.file;

import io.gpunvme.ffi.SysFiles;
import io.gpunvme.nvme.pci.HostPaths;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/** Reads what is mounted and what is swap. */
public final class MountScan {
  private static final int NUMBER = 2;
  private static final int TARGET = 4;
  private static final String DEV = "/dev/";

  private MountScan() {}

  /**
   * What this process sees mounted, and what the machine's first process does: in a container they
   * differ. From {@code /proc/PID/mountinfo}, or {@code /proc/mounts} without it.
   */
  public static List<MountPoint> mounts(HostPaths paths) {
    Set<MountPoint> all = new LinkedHashSet<>();
    for (String process : List.of("self", "1")) {
      for (String line : SysFiles.lines(paths.proc().resolve(process).resolve("mountinfo"))) {
        addInfo(line, all, paths);
      }
    }
    for (String line : SysFiles.lines(paths.proc().resolve("mounts"))) {
      String[] words = line.split(" ", -1);
      MountPoint mount =
          words.length < 3
              ? null
              : new MountPoint("", source(words[0], paths), unescape(words[1]), words[2]);
      if (mount != null && all.stream().noneMatch(m -> same(m, mount))) {
        all.add(mount);
      }
    }
    return List.copyOf(all);
  }

  /** What this process sees mounted, in the kernel's order. */
  public static List<MountPoint> own(HostPaths paths) {
    Set<MountPoint> all = new LinkedHashSet<>();
    for (String line : SysFiles.lines(paths.proc().resolve("self/mountinfo"))) {
      addInfo(line, all, paths);
    }
    return List.copyOf(all);
  }

  private static boolean same(MountPoint a, MountPoint b) {
    return a.source().equals(b.source()) && a.target().equals(b.target());
  }

  /** {@code 36 35 98:0 /root /target options [optional…] - type source options}. */
  private static void addInfo(String line, Set<MountPoint> all, HostPaths paths) {
    String[] words = line.split(" ", -1);
    int dash = List.of(words).indexOf("-");
    if (dash > TARGET && dash + 2 < words.length) {
      all.add(
          new MountPoint(
              words[NUMBER],
              source(words[dash + 2], paths),
              unescape(words[TARGET]),
              words[dash + 1]));
    }
  }

  /** Names of the block devices that are swap. */
  public static List<String> swaps(HostPaths paths) {
    List<String> names = new ArrayList<>();
    for (String line : SysFiles.lines(paths.proc().resolve("swaps"))) {
      String node = source(line.split("\\s", -1)[0], paths);
      if (node.startsWith(DEV)) {
        names.add(node.substring(DEV.length()));
      }
    }
    return names;
  }

  /** Names of the block devices of mounted btrfs file systems, of which mounts name only one. */
  public static List<String> btrfs(HostPaths paths) {
    return SysFiles.children(paths.sys().resolve("fs/btrfs")).stream()
        .flatMap(volume -> SysFiles.names(volume.resolve("devices")).stream())
        .toList();
  }

  /** A device node by the kernel's name: {@code /dev/mapper/…} is a link to it. */
  private static String source(String word, HostPaths paths) {
    String text = unescape(word);
    if (!text.startsWith(DEV)) {
      return text;
    }
    Path node = paths.dev().resolve(text.substring(DEV.length()));
    String name = SysFiles.linkName(node);
    return name.isEmpty() ? text : DEV + name;
  }

  /** Blanks and the like are written as three octal digits behind a backslash. */
  private static String unescape(String word) {
    return word.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\");
  }
}
