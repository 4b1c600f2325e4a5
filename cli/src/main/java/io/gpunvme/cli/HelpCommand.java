package io.gpunvme.cli;

import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.cli.output.Table;
import io.gpunvme.sim.SimConfigParser;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code gpunvme help [TOPIC]}. */
@Command(
    name = "help",
    description = "Explain a command, device addresses (sim), or fault rules (faults).",
    footer = {
      "",
      "Examples:",
      "  gpunvme help read",
      "  gpunvme help sim",
      "  gpunvme help faults"
    })
final class HelpCommand extends BaseCommand {
  private static final int INDENT = 2;

  private static final String[] FAULTS = {
    "Fault rules make an embedded device misbehave: --faults 'RULE; RULE', --faults @file with one",
    "rule a line, or faults=… in the address. # starts a comment. docs/faults.md describes all of"
        + " it.",
    "",
    "  ACTION[=VALUE] [dnr] [more] [skip|execute] [on WHAT[|WHAT…]] [KEY=VALUE …]",
    "",
    "ACTION   status=NAME drop delay=TIME late=TIME early=TIME duplicate wrong-cid wrong-phase"
        + " torn",
    "         reorder corrupt stall cfs gone ready-stuck lost-interrupt sqhd-bad",
    "WHAT     read write flush … identify get-log-page … io admin enable disable shutdown register",
    "KEY      lba=A..B nsid=N qid=N nth=N after=N every=N count=N p=0.01 dw0=VALUE/MASK … dw15",
    "",
    "Examples:",
    "  status=media/unrecovered-read-error dnr on read lba=100..200",
    "  status=generic/namespace-not-ready on read p=0.01     one read in a hundred, retried",
    "  drop on write nth=3                                   found by --timeout, then aborted",
    "  corrupt on read nth=5                                 found by the checksum",
    "  gone after=1000"
  };

  @Parameters(
      index = "0",
      arity = "0..1",
      paramLabel = "TOPIC",
      description = "A command, sim, or faults.")
  private @Nullable String topic;

  @Spec private @Nullable CommandSpec spec;

  HelpCommand(OutputStreams streams) {
    super(streams);
  }

  @Override
  int run() {
    String text = text();
    print(
        () -> out().print(text),
        () -> {
          Map<String, Object> object = new LinkedHashMap<>();
          object.put("topic", topic);
          object.put("text", text);
          return object;
        });
    return ExitCode.OK;
  }

  private String text() {
    String wanted = topic;
    if (wanted == null) {
      return parent().getUsageMessage();
    }
    return switch (wanted) {
      case "sim" -> printed(HelpCommand::printAddresses);
      case "faults" -> printed(out -> List.of(FAULTS).forEach(out::println));
      default -> {
        CommandLine command = parent().getSubcommands().get(wanted);
        if (command == null) {
          throw new UsageException("no help on '" + wanted + "': give a command, sim, or faults");
        }
        yield command.getUsageMessage();
      }
    };
  }

  private static String printed(Consumer<PrintStream> printer) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    PrintStream stream = new PrintStream(bytes, true, StandardCharsets.UTF_8);
    printer.accept(stream);
    return bytes.toString(StandardCharsets.UTF_8);
  }

  private CommandLine parent() {
    CommandSpec own = spec;
    if (own == null) {
      throw new IllegalStateException("picocli sets this before it runs a command");
    }
    return own.commandLine().getParent();
  }

  private static void printAddresses(PrintStream out) {
    out.println("sim:key=value,… is an NVMe controller inside this process. With file= its data");
    out.println(
        "survives; otherwise the data is lost when the command ends. After a backslash, the");
    out.println(
        "next character is taken literally. The keys size, lba, media, file and readonly are");
    out.println("for namespace 1; with ns2. in front they are for namespace 2, and so on.");
    out.println();
    Table table = new Table(INDENT);
    for (Map.Entry<String, String> key : SimConfigParser.keys().entrySet()) {
      table.row(key.getKey() + "=", key.getValue());
    }
    table.row("pinned=", "true: pin namespace 1, in memory, for the GPU that reads it (false)");
    table.print(out);
    out.println();
    out.println("Examples:");
    out.println("  sim:");
    out.println("  sim:size=1GiB,lba=4096,mdts=1MiB,workers=2");
    out.println("  sim:file=disk.img,size=64MiB,latency=20us");
    out.println("  sim:size=64MiB,ns2.size=16MiB,ns2.lba=4096");
    out.println();
    out.println("gpunvme sim serve offers such a controller to other programs.");
  }
}
