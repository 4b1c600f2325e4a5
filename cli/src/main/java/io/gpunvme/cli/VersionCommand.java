package io.gpunvme.cli;

import io.gpunvme.base.Version;
import io.gpunvme.cli.output.OutputStreams;
import java.util.LinkedHashMap;
import java.util.Map;
import picocli.CommandLine.Command;

/** {@code gpunvme version}. */
@Command(
    name = "version",
    description = "Print the versions of this program, of Java and of the system.",
    footer = {"", "Example:", "  gpunvme version --json"})
final class VersionCommand extends BaseCommand {
  VersionCommand(OutputStreams streams) {
    super(streams);
  }

  @Override
  int run() {
    print(
        () -> {
          out().println("gpunvme " + Version.VERSION);
          out().println("Java " + java() + ", " + system());
        },
        this::object);
    return ExitCode.OK;
  }

  private Map<String, Object> object() {
    Map<String, Object> object = new LinkedHashMap<>();
    object.put("version", Version.VERSION);
    object.put("java", java());
    object.put("system", system());
    return object;
  }

  private static String java() {
    return Runtime.version().toString();
  }

  private static String system() {
    return "%s %s %s"
        .formatted(
            System.getProperty("os.name"),
            System.getProperty("os.version"),
            System.getProperty("os.arch"));
  }
}
