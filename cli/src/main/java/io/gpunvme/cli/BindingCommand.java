package io.gpunvme.cli;

import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.nvme.pci.PciAddress;
import io.gpunvme.tools.machine.DriverBinding;
import io.gpunvme.tools.machine.DriverBinding.Plan;
import io.gpunvme.tools.machine.KernelWrite;
import io.gpunvme.tools.machine.Machine;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** A subcommand that hands an SSD from one driver to another. */
abstract class BindingCommand extends BaseCommand {
  @Parameters(
      index = "0",
      paramLabel = "DDDD:BB:DD.F",
      description = "The SSD's PCI address (gpunvme list shows it).")
  private String address = "";

  @Option(names = "--dry-run", description = "Only print the writes to the kernel's files.")
  private boolean dryRun;

  @Mixin private final MachineOption machine = new MachineOption();

  BindingCommand(OutputStreams streams) {
    super(streams);
  }

  /** The writes to make. */
  abstract Plan plan(DriverBinding binding, Machine machine, PciAddress address);

  /** Makes them. */
  abstract void carryOut(DriverBinding binding, Machine machine, Plan plan) throws IOException;

  /** The next step for an SSD that has a driver now; empty if there is none. */
  abstract String hint(PciAddress address, String driver);

  @Override
  final int run() throws IOException {
    PciAddress function = PciAddress.parse(address);
    DriverBinding binding = machine.binding();
    Machine picture = machine.read();
    Plan plan = plan(binding, picture, function);
    if (!dryRun) {
      Ending.leaves("gpunvme unbind " + function + " repairs any state");
      carryOut(binding, picture, plan);
    }
    String driver = binding.currentDriver(function);
    print(() -> printText(plan, function, driver), () -> object(plan, driver));
    return ExitCode.OK;
  }

  private void printText(Plan plan, PciAddress function, String driver) {
    if (dryRun) {
      plan.writes().forEach(out()::println);
    }
    String is = driver.isEmpty() ? "no driver" : "driver " + driver;
    if (plan.writes().isEmpty()) {
      out().println(function + " has " + is + ": nothing to do");
    } else if (!dryRun) {
      out().println(function + " has " + is + " now" + hint(function, driver));
    }
  }

  private Map<String, Object> object(Plan plan, String driver) {
    Map<String, Object> object = new LinkedHashMap<>();
    object.put("address", plan.function().address());
    object.put("driver_before", orNull(plan.function().driver()));
    object.put("driver", orNull(driver));
    object.put("dry_run", dryRun);
    object.put("writes", plan.writes().stream().map(KernelWrite::toString).toList());
    return object;
  }

  private static @Nullable String orNull(String text) {
    return text.isEmpty() ? null : text;
  }
}
