package io.gpunvme.cli;

import io.gpunvme.gpu.transfer.InitiatorKind;
import picocli.CommandLine.Option;

/** The option of all commands that either a GPU or the CPU carries out. */
final class InitiatorOption {
  @Option(
      names = "--initiator",
      paramLabel = "WHO",
      converter = Converters.Initiator.class,
      description =
          "Who submits the commands: gpu (a kernel), cpu, or auto: the GPU if there is one"
              + " (auto).")
  private InitiatorKind kind = InitiatorKind.AUTO;

  /** The initiator that the option names. */
  InitiatorKind kind() {
    return kind;
  }
}
