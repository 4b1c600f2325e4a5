package io.gpunvme.cli;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.gpu.transfer.TransferListener;
import io.gpunvme.nvme.driver.Namespace;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.tools.ssd.BlockMover;
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

  private static final long WINDOW = 64L << 20;

  /** The options; 0 for those that were not given. */
  InitiatorOptions initiator() {
    return InitiatorOptions.defaults().with(queues, depth, threads);
  }

  /**
   * Moves so many bytes between streams and the namespace.
   *
   * @param host stays open longer
   */
  BlockMover mover(
      NvmeController controller,
      Namespace namespace,
      Accelerator host,
      long bytes,
      TransferListener listener) {
    return BlockMover.open(controller, namespace, host, initiator(), bytes, WINDOW, listener);
  }

  /** Blocks that {@code bytes} bytes take up; they must lie in the namespace. */
  static long blocks(Namespace namespace, long lba, long bytes) {
    long blocks = Math.ceilDiv(bytes, namespace.blockSize());
    if (bytes <= 0) {
      throw new UsageException("nothing to do: 0 bytes");
    }
    if (lba > namespace.blocks() || blocks > namespace.blocks() - lba) {
      throw new UsageException(
          "blocks %d..%d are not all in namespace %d, which ends at LBA %d"
              .formatted(lba, lba + blocks - 1, namespace.nsid(), namespace.blocks() - 1));
    }
    return blocks;
  }
}
