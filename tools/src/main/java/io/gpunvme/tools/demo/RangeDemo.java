package io.gpunvme.tools.demo;

import io.gpunvme.base.ByteRange;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.Accelerators;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.Extent;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.gpu.transfer.TransferTotal;
import io.gpunvme.nvme.driver.Namespace;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.spec.IdentifyController;
import io.gpunvme.storage.BlockRun;
import io.gpunvme.tools.demo.RangeReport.Difference;
import io.gpunvme.tools.ssd.BlockMover;
import io.gpunvme.tools.ssd.Checksum;
import io.gpunvme.tools.ssd.Ssds;
import java.io.IOException;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;

/**
 * What is on SSDs, read into accelerator memory and compared with what the CPU reads. Writes
 * nothing. One run at a time.
 */
public final class RangeDemo {
  /** Bytes that are read and compared in turns. */
  private static final long WINDOW = 256L << 20;

  /** What is read if nothing is named. */
  private static final ByteRange FIRST = new ByteRange(0, 256L << 20);

  private RangeDemo() {}

  /**
   * Runs it.
   *
   * @param ssds stay the caller's
   * @param wanted bytes at their address; null: the first 256 MiB, or what there is
   * @throws InvalidRequestException if an option makes no sense, or the range is not inside, or
   *     does not begin and end with blocks
   * @throws io.gpunvme.storage.path.StorageException if the address is a file of a mounted file
   *     system
   * @throws io.gpunvme.nvme.NvmeException if an SSD fails
   */
  public static RangeReport run(
      Ssds ssds, @Nullable ByteRange wanted, InitiatorOptions options, DemoListener listener)
      throws IOException {
    ByteRange range =
        wanted == null
            ? new ByteRange(0, Math.max(1, Math.min(FIRST.bytes(), ssds.size())))
            : wanted;
    List<BlockRun> runs = ssds.blocks(range);
    if (wanted != null) {
      requireBlocksFrom(runs, range);
      if ((range.offset() + range.bytes()) % blockSize(runs) != 0) {
        throw notAtABlock(runs, range, "end");
      }
    }
    Accelerators.Choice choice = options.accelerator();
    try (Accelerator accelerator = choice.accelerator();
        CpuAccelerator host = CpuAccelerator.open()) {
      Comparison comparison = new Comparison(accelerator, host, options, listener);
      for (List<BlockRun> own : Ssds.bySsd(runs)) {
        comparison.run(own);
      }
      List<NvmeController> controllers = Ssds.controllers(runs);
      return new RangeReport(
          ssds.address(),
          models(controllers),
          controllers.size(),
          range.offset(),
          Ssds.bytes(runs),
          blockSize(runs),
          controllers.stream().mapToLong(NvmeController::maxTransferBytes).min().orElse(0),
          accelerator.name(),
          choice.reason(),
          comparison.window,
          comparison.get.report(),
          comparison.byCpu.report(),
          comparison.arrived.hex(),
          comparison.there.hex(),
          comparison.difference);
    }
  }

  /** What SSDs say they are. */
  static String models(List<NvmeController> controllers) {
    return controllers.stream()
        .map(one -> one.identify().getText(IdentifyController.MN).strip())
        .distinct()
        .collect(Collectors.joining(", "));
  }

  /** Requires that a range begins with a block. */
  static void requireBlocksFrom(List<BlockRun> runs, ByteRange range) {
    if (range.offset() % blockSize(runs) != 0) {
      throw notAtABlock(runs, range, "begin");
    }
  }

  private static InvalidRequestException notAtABlock(
      List<BlockRun> runs, ByteRange range, String edge) {
    return new InvalidRequestException(
        "the range %s does not %s at a multiple of the SSD's blocks of %d bytes"
            .formatted(range, edge, blockSize(runs)));
  }

  /** The largest logical block. */
  static int blockSize(List<BlockRun> runs) {
    return runs.stream().mapToInt(run -> run.namespace().blockSize()).max().orElse(1);
  }

  /** Reads blocks by both, a window at a time. */
  private static final class Comparison {
    private static final InitiatorOptions CPU =
        InitiatorOptions.defaults().with(InitiatorKind.CPU, Placement.HOST);

    private final Accelerator accelerator;
    private final CpuAccelerator host;
    private final InitiatorOptions options;
    private final DemoListener listener;
    private final Checksum arrived = new Checksum();
    private final Checksum there = new Checksum();
    private final TransferTotal get = new TransferTotal();
    private final TransferTotal byCpu = new TransferTotal();
    private long window;
    private @Nullable Difference difference;

    Comparison(
        Accelerator accelerator,
        CpuAccelerator host,
        InitiatorOptions options,
        DemoListener listener) {
      this.accelerator = accelerator;
      this.host = host;
      this.options = options;
      this.listener = listener;
    }

    /**
     * Of one SSD.
     *
     * @param runs of one namespace, at least one
     */
    void run(List<BlockRun> runs) throws IOException {
      NvmeController controller = runs.getFirst().controller();
      Namespace namespace = runs.getFirst().namespace();
      long bytes = Ssds.bytes(runs);
      Placement placement = options.placement(controller, accelerator);
      InitiatorOptions here = options.with(options.initiator(), placement);
      DemoProgress progress = new DemoProgress(listener);
      try (BlockMover one =
              BlockMover.open(controller, namespace, accelerator, here, bytes, WINDOW, progress);
          BlockMover two =
              BlockMover.open(controller, namespace, host, CPU, bytes, one.window(), progress)) {
        window = two.window();
        for (List<Extent> extents : two.windows(runs)) {
          compare(one, two, extents, controller.name());
        }
        get.add(one.report());
        byCpu.add(two.report());
      }
    }

    private void compare(BlockMover one, BlockMover two, List<Extent> extents, String ssd)
        throws IOException {
      List<Long> sums = read(one, DemoPhase.GET, extents, arrived);
      List<Long> others = read(two, DemoPhase.COMPARE, extents, there);
      for (int i = 0; difference == null && i < sums.size(); i++) {
        if (!sums.get(i).equals(others.get(i))) {
          difference = new Difference(ssd, lba(extents, (long) i * BlockMover.PIECE, two.block()));
        }
      }
    }

    /** A checksum of each piece. */
    private List<Long> read(
        BlockMover mover, DemoPhase phase, List<Extent> extents, Checksum checksum)
        throws IOException {
      long bytes = mover.bytes(extents);
      listener.phase(phase, bytes);
      mover.load(extents);
      listener.phase(DemoPhase.CHECK, bytes);
      List<Long> sums = new ArrayList<>();
      mover.drain(bytes, checksum, new Sums(listener, sums));
      return sums;
    }
  }

  /** The block of a byte of the window. */
  private static long lba(List<Extent> extents, long at, int block) {
    Extent found = extents.getFirst();
    for (Extent e : extents) {
      found = e.bufferOffset() <= at ? e : found;
    }
    return found.slba() + (at - found.bufferOffset()) / block;
  }

  /** Makes a checksum of each piece, and tells the listener of it. */
  private static final class Sums extends OutputStream {
    private final DemoListener listener;
    private final List<Long> sums;

    Sums(DemoListener listener, List<Long> sums) {
      this.listener = listener;
      this.sums = sums;
    }

    @Override
    public void write(int one) {
      write(new byte[] {(byte) one}, 0, 1);
    }

    @Override
    public void write(byte[] bytes, int from, int length) {
      CRC32C sum = new CRC32C();
      sum.update(bytes, from, length);
      sums.add(sum.getValue());
      listener.moved(length);
    }
  }
}
