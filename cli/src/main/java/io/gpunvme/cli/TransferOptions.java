package io.gpunvme.cli;

import io.gpunvme.gpu.transfer.InitiatorOptions;
import picocli.CommandLine.Option;

/** Options of all commands that move blocks. */
final class TransferOptions {
  @Option(
      names = "--queues",
      paramLabel = "N",
      converter = Converters.Count.class,
      description = "I/O queue pairs (4).")
  private int queues;

  @Option(
      names = "--depth",
      paramLabel = "N",
      converter = Converters.Count.class,
      description = "Commands in flight per queue pair (16; 256 for a GPU).")
  private int depth;

  @Option(
      names = "--threads",
      paramLabel = "N",
      converter = Converters.Count.class,
      description = "CPU threads that drive the queue pairs (half the processors, at most 4).")
  private int threads;

  /** The options; 0 for those that were not given. */
  InitiatorOptions initiator() {
    return InitiatorOptions.defaults().with(queues, depth, threads);
  }
}
