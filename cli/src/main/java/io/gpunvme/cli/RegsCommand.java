package io.gpunvme.cli;

import io.gpunvme.cli.output.Fields;
import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.nvme.driver.BringUpStep;
import io.gpunvme.nvme.spec.FieldValue;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import picocli.CommandLine.Command;

/** {@code gpunvme regs DEVICE}. */
@Command(
    name = "regs",
    description = "Print the controller's registers, decoded, and how it was brought up.",
    footer = {"", "Examples:", "  gpunvme regs sim:", "  gpunvme regs sim:cmb=1MiB,dstrd=2 --json"})
final class RegsCommand extends DeviceCommand {
  RegsCommand(OutputStreams streams) {
    super(streams);
  }

  @Override
  int run() throws IOException {
    try (Device device = open()) {
      List<Register> registers = Register.readAll(device.controller().function().bar(0));
      List<BringUpStep> steps = device.controller().bringUpSteps();
      print(() -> printText(registers, steps), () -> object(registers, steps));
    }
    return ExitCode.OK;
  }

  private void printText(List<Register> registers, List<BringUpStep> steps) {
    for (Register r : registers) {
      Fields.print(
          out(),
          "%04Xh %-7s %s  %s".formatted(r.offset(), r.name(), r.hex(), r.meaning()),
          r.fields());
    }
    out().println();
    out().println("Bring-up");
    steps.forEach(step -> out().println("  " + step));
  }

  private Map<String, Object> object(List<Register> registers, List<BringUpStep> steps) {
    Map<String, Object> all = new LinkedHashMap<>();
    for (Register r : registers) {
      List<FieldValue> fields = r.fields();
      Map<String, Object> one = new LinkedHashMap<>();
      one.put("offset", r.offset());
      one.put("bytes", r.bytes());
      one.put("value", r.hex());
      one.put("meaning", r.meaning());
      one.put("fields", Fields.json(fields));
      all.put(r.name(), one);
    }
    List<Object> bringUp = new ArrayList<>();
    for (BringUpStep step : steps) {
      Map<String, Object> one = new LinkedHashMap<>();
      one.put("state", step.state());
      one.put("us", step.nanos() / 1000);
      one.put("cc", Register.hex(step.cc(), Integer.BYTES));
      one.put("csts", Register.hex(step.csts(), Integer.BYTES));
      one.put("note", step.note());
      bringUp.add(one);
    }
    Map<String, Object> object = new LinkedHashMap<>();
    object.put("device", device());
    object.put("registers", all);
    object.put("bring_up", bringUp);
    return object;
  }
}
