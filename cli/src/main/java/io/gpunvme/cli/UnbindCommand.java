package io.gpunvme.cli;

import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.nvme.pci.PciAddress;
import io.gpunvme.tools.machine.DriverBinding;
import io.gpunvme.tools.machine.DriverBinding.Plan;
import io.gpunvme.tools.machine.Machine;
import java.io.IOException;
import picocli.CommandLine.Command;

/** {@code gpunvme unbind DDDD:BB:DD.F}. */
@Command(
    name = "unbind",
    description = {
      "Give an SSD back to the kernel's driver, after bind or an interrupted bind.",
      "Refused while a process drives it. Needs root."
    },
    footer = {
      "",
      "Examples:",
      "  gpunvme unbind 0000:01:00.0 --dry-run",
      "  sudo gpunvme unbind 0000:01:00.0"
    })
final class UnbindCommand extends BindingCommand {
  UnbindCommand(OutputStreams streams) {
    super(streams);
  }

  @Override
  Plan plan(DriverBinding binding, Machine machine, PciAddress address) {
    return binding.unbind(machine, address);
  }

  @Override
  void carryOut(DriverBinding binding, Machine machine, Plan plan) throws IOException {
    binding.unbind(machine, plan);
  }

  @Override
  String hint(PciAddress address, String driver) {
    return "";
  }
}
