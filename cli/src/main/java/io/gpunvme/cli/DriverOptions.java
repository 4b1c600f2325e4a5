package io.gpunvme.cli;

import io.gpunvme.nvme.driver.ControllerOptions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** Options of all commands that open devices. */
final class DriverOptions {
  @Option(
      names = "--faults",
      paramLabel = "RULES",
      description =
          "Faults of an embedded device: rules separated by ';', or @file (see gpunvme help"
              + " faults).")
  private @Nullable String faults;

  @Mixin private final CommandLimits limits = new CommandLimits();

  /** Whether there is one of them. */
  boolean given() {
    return faults != null || limits.given();
  }

  ControllerOptions controller(boolean allowWrite) {
    return limits.controller(allowWrite);
  }

  /** The text of the rules, empty for none. */
  String faults() throws IOException {
    String given = faults;
    if (given == null) {
      return "";
    }
    return given.startsWith("@") ? Files.readString(Path.of(given.substring(1))) : given;
  }
}
