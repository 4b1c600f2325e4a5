package io.gpunvme.cli;

import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.nvme.pci.PciAddress;
import io.gpunvme.tools.machine.DriverBinding;
import io.gpunvme.tools.machine.DriverBinding.Plan;
import io.gpunvme.tools.machine.Machine;
import java.io.IOException;
import picocli.CommandLine.ArgGroup;
import picocli.CommandLine.Command;

/** {@code gpunvme bind DDDD:BB:DD.F}. */
@Command(
    name = "bind",
    description = {
      "Take an SSD from the kernel and give it to vfio-pci, or to the kernel module gpunvme.",
      "Its disks disappear until unbind.",
      "Refused while anything uses it: a mounted file system, swap, md, LVM, a process. Needs root."
    },
    footer = {
      "",
      "Examples:",
      "  gpunvme bind 0000:01:00.0 --dry-run",
      "  sudo gpunvme bind 0000:01:00.0              then gpunvme identify vfio:0000:01:00.0",
      "  sudo gpunvme bind 0000:01:00.0 --kmod       then gpunvme identify kmod:0000:01:00.0",
      "  sudo gpunvme bind 0000:01:00.0 --no-driver  then sysfs:0000:01:00.0,unsafe=true"
    })
final class BindCommand extends BindingCommand {
  @ArgGroup private final BindTarget target = new BindTarget();

  BindCommand(OutputStreams streams) {
    super(streams);
  }

  @Override
  Plan plan(DriverBinding binding, Machine machine, PciAddress address) {
    return target.plan(binding, machine, address);
  }

  @Override
  void carryOut(DriverBinding binding, Machine machine, Plan plan) throws IOException {
    binding.bind(machine, plan);
  }

  @Override
  String hint(PciAddress address, String driver) {
    return "; gpunvme unbind " + address + " gives it back";
  }
}
