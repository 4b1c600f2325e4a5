package io.gpunvme.cli;

import io.gpunvme.cli.output.Fields;
import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.cli.output.Table;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.spec.AdminOpcode;
import io.gpunvme.nvme.spec.CommandsEffectsLog;
import io.gpunvme.nvme.spec.ErrorLogEntry;
import io.gpunvme.nvme.spec.IdentifyController;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.LogId;
import io.gpunvme.nvme.spec.Status;
import io.gpunvme.nvme.spec.Structure;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.IntFunction;
import java.util.function.IntUnaryOperator;
import picocli.CommandLine.Command;
import picocli.CommandLine.Parameters;

/** {@code gpunvme log DEVICE PAGE}. */
@Command(
    name = "log",
    description = "Print a log page, decoded.",
    footer = {"", "Examples:", "  gpunvme log sim: smart", "  gpunvme log sim: effects --json"})
final class LogCommand extends DeviceCommand {
  private static final int INDENT = 2;
  private static final int OPCODES = 256;

  /** The log pages, by the names that users type. */
  enum Page {
    SMART(LogId.SMART),
    ERROR(LogId.ERROR),
    FIRMWARE(LogId.FIRMWARE_SLOT),
    EFFECTS(LogId.COMMANDS_EFFECTS),
    CHANGED(LogId.CHANGED_NAMESPACES);

    private final int id;

    Page(int id) {
      this.id = id;
    }

    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  @Parameters(index = "1", paramLabel = "PAGE", description = "${COMPLETION-CANDIDATES}")
  private Page page = Page.SMART;

  LogCommand(OutputStreams streams) {
    super(streams);
  }

  @Override
  int run() throws IOException {
    try (Device device = open()) {
      NvmeController controller = device.controller();
      switch (page) {
        case SMART -> structure(controller.logs().smart());
        case FIRMWARE -> structure(controller.logs().firmwareSlots());
        case ERROR ->
            errors(
                controller
                    .logs()
                    .errors(controller.identify().getInt(IdentifyController.ELPE) + 1));
        case EFFECTS -> effects(controller.logs().commandsEffects());
        case CHANGED -> changed(controller.logs().changedNamespaces().stream().boxed().toList());
      }
    }
    return ExitCode.OK;
  }

  private Map<String, Object> object(String key, Object value) {
    Map<String, Object> object = new LinkedHashMap<>();
    object.put("device", device());
    object.put("page", page.toString());
    object.put(key, value);
    return object;
  }

  private void structure(Structure log) {
    print(
        () -> Fields.print(out(), LogId.name(page.id), log),
        () -> object("fields", Fields.json(log)));
  }

  private void errors(List<ErrorLogEntry> entries) {
    print(
        () -> {
          if (entries.isEmpty()) {
            out().println(LogId.name(page.id) + ": no entries");
          }
          for (ErrorLogEntry entry : entries) {
            String heading = LogId.name(page.id) + ": " + Status.describe(entry.status());
            Fields.print(out(), heading, entry);
          }
        },
        () -> object("entries", entries.stream().map(LogCommand::error).toList()));
  }

  private static Map<String, Object> error(ErrorLogEntry entry) {
    Map<String, Object> one = new LinkedHashMap<>();
    one.put("status", Status.describe(entry.status()));
    one.put("fields", Fields.json(entry));
    return one;
  }

  // ---- commands and their effects

  /** A supported command. */
  private record Effect(String set, int opcode, String name, int flags) {
    String text() {
      List<String> words = new ArrayList<>();
      word(words, CommandsEffectsLog.LBCC, "changes blocks");
      word(words, CommandsEffectsLog.NCC, "changes namespace capabilities");
      word(words, CommandsEffectsLog.NIC, "changes the namespaces");
      word(words, CommandsEffectsLog.CCC, "changes controller capabilities");
      switch (flags >>> CommandsEffectsLog.CSE_SHIFT & 7) {
        case 1 -> words.add("alone on its namespace");
        case 2 -> words.add("alone on the controller");
        default -> {}
      }
      return String.join(", ", words);
    }

    private void word(List<String> words, int bit, String text) {
      if ((flags & bit) != 0) {
        words.add(text);
      }
    }

    Map<String, Object> json() {
      Map<String, Object> one = new LinkedHashMap<>();
      one.put("set", set);
      one.put("opcode", opcode);
      one.put("name", name);
      one.put("flags", Register.hex(flags, Integer.BYTES));
      one.put("effects", text());
      return one;
    }
  }

  private void effects(CommandsEffectsLog log) {
    List<Effect> all = new ArrayList<>();
    collect(all, "admin", log::admin, AdminOpcode::name);
    collect(all, "io", log::io, IoOpcode::name);
    print(
        () -> {
          out().println(LogId.name(page.id));
          Table table = new Table(INDENT);
          for (Effect e : all) {
            table.row(e.set(), "%02Xh".formatted(e.opcode()), e.name(), e.text());
          }
          table.print(out());
        },
        () -> object("commands", all.stream().map(Effect::json).toList()));
  }

  private static void collect(
      List<Effect> all, String set, IntUnaryOperator flags, IntFunction<String> name) {
    for (int opcode = 0; opcode < OPCODES; opcode++) {
      int word = flags.applyAsInt(opcode);
      if ((word & CommandsEffectsLog.CSUPP) != 0) {
        all.add(new Effect(set, opcode, name.apply(opcode), word));
      }
    }
  }

  private void changed(List<Integer> nsids) {
    print(
        () -> {
          String heading = LogId.name(page.id) + ": ";
          if (nsids.isEmpty()) {
            out().println(heading + "none changed");
          } else if (nsids.getFirst() == -1) {
            out().println(heading + "more than fit in the list");
          } else {
            out().println(heading + nsids);
          }
        },
        () -> object("namespaces", nsids.stream().map(Integer::toUnsignedLong).toList()));
  }
}
