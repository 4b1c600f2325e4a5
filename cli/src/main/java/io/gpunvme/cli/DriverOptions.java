package io.gpunvme.cli;

import io.gpunvme.nvme.driver.ControllerOptions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import org.jspecify.annotations.Nullable;
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

  @Option(
      names = "--timeout",
      paramLabel = "TIME",
      converter = Converters.Time.class,
      description =
          "Abort and repeat a command after this time, e.g. 500ms (30s). The recovery's own"
              + " commands have the same limit.")
  private @Nullable Duration timeout;

  @Option(
      names = "--max-transfer",
      paramLabel = "SIZE",
      converter = Converters.Transfer.class,
      description =
          "Longest transfer of one command, e.g. 4MiB (1MiB). The SSD's own limit (MDTS) may be"
              + " lower.")
  private @Nullable Long maxTransfer;

  /** Whether there is one of them. */
  boolean given() {
    return faults != null || timeout != null || maxTransfer != null;
  }

  ControllerOptions controller(boolean allowWrite) {
    ControllerOptions.Builder options = ControllerOptions.builder().allowWrite(allowWrite);
    Long most = maxTransfer;
    if (most != null) {
      options.maxTransferBytes(most);
    }
    Duration given = timeout;
    if (given != null) {
      Duration recovery = ControllerOptions.defaults().recoveryTimeout();
      options
          .ioTimeout(given)
          .adminTimeout(given)
          .recoveryTimeout(given.compareTo(recovery) < 0 ? given : recovery);
    }
    return options.build();
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
