package io.gpunvme.nvme.pci;

import java.nio.file.Path;

/**
 * The places where the kernel shows this machine. Tests use a tree of their own instead.
 *
 * @param sys sysfs, {@code /sys}
 * @param dev device nodes, {@code /dev}
 * @param proc procfs, {@code /proc}
 */
public record HostPaths(Path sys, Path dev, Path proc) {
  /** The machine this process runs on. */
  public static HostPaths host() {
    return new HostPaths(Path.of("/sys"), Path.of("/dev"), Path.of("/proc"));
  }
}
