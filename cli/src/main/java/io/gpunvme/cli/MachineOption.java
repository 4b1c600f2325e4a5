package io.gpunvme.cli;

import io.gpunvme.nvme.pci.HostPaths;
import io.gpunvme.tools.machine.DriverBinding;
import io.gpunvme.tools.machine.Machine;
import java.nio.file.Path;
import picocli.CommandLine.Option;

/** The machine that a command looks at: this one, unless a test gives another tree. */
final class MachineOption {
  @Option(
      names = "--root",
      hidden = true,
      description = "The folder of /sys, /proc, /dev and /run.")
  private Path root = Path.of("/");

  Machine read() {
    return Machine.read(paths(), root);
  }

  DriverBinding binding() {
    return new DriverBinding(paths(), root);
  }

  private HostPaths paths() {
    return new HostPaths(root.resolve("sys"), root.resolve("dev"), root.resolve("proc"));
  }
}
