package io.gpunvme.cli;

import io.gpunvme.nvme.driver.ControllerOptions;
import java.time.Duration;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** How long a command may take, and how long it may be. */
final class CommandLimits {
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
    return timeout != null || maxTransfer != null;
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
}
