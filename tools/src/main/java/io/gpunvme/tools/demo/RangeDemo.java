package io.gpunvme.tools.demo;

import io.gpunvme.base.ByteRange;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.Accelerators;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.nvme.driver.Namespace;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.spec.IdentifyController;
import java.io.IOException;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;

/**
 * What is on an SSD, read into accelerator memory and compared with what the CPU reads. Writes
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
   * @param device its namespace 1 is read
   * @param wanted null: the first 256 MiB, or what there is
   * @throws io.gpunvme.base.InvalidRequestException if an option makes no sense
   * @throws io.gpunvme.nvme.NvmeException if the SSD fails
   */
  public static RangeReport run(
      Device device, @Nullable ByteRange wanted, InitiatorOptions options, DemoListener listener)
      throws IOException {
    NvmeController controller = device.controller();
    Namespace namespace = controller.namespace(1);
    ByteRange range =
        wanted == null ? new ByteRange(0, Math.min(FIRST.bytes(), namespace.bytes())) : wanted;
    long first = Demo.firstBlock(namespace, range);
    Accelerators.Choice choice = options.accelerator();
    try (Accelerator accelerator = choice.accelerator();
        CpuAccelerator host = CpuAccelerator.open()) {
      Placement placement = options.placement(controller, accelerator);
      InitiatorOptions there = options.with(options.initiator(), placement);
      InitiatorOptions cpu = InitiatorOptions.defaults().with(InitiatorKind.CPU, Placement.HOST);
      DemoProgress progress = new DemoProgress(listener);
      try (BlockMover one =
              BlockMover.open(
                  controller, namespace, accelerator, there, range.bytes(), WINDOW, progress);
          BlockMover two =
              BlockMover.open(
                  controller, namespace, host, cpu, range.bytes(), one.window(), progress)) {
        Comparison comparison = new Comparison(one, two, listener);
        long wrong = comparison.run(first, range.bytes(), namespace.blockSize());
        return new RangeReport(
            device.address().toString(),
            controller.identify().getText(IdentifyController.MN),
            range,
            namespace.blockSize(),
            controller.maxTransferBytes(),
            accelerator.name(),
            choice.reason(),
            one.window(),
            one.report(),
            two.report(),
            comparison.arrived.hex(),
            comparison.there.hex(),
            wrong < 0 ? -1 : range.offset() + wrong);
      }
    }
  }

  /** Reads a window of the range by both, in turns. */
  private static final class Comparison {
    private final BlockMover one;
    private final BlockMover two;
    private final DemoListener listener;
    private final Checksum arrived = new Checksum();
    private final Checksum there = new Checksum();

    Comparison(BlockMover one, BlockMover two, DemoListener listener) {
      this.one = one;
      this.two = two;
      this.listener = listener;
    }

    /** Where the first piece begins that differs, bytes; -1 if none does. */
    long run(long first, long bytes, int block) throws IOException {
      long wrong = -1;
      for (long at = 0; at < bytes; at += two.window()) {
        long part = Math.min(two.window(), bytes - at);
        long lba = first + at / block;
        List<Long> sums = read(one, DemoPhase.GET, lba, part, arrived);
        List<Long> others = read(two, DemoPhase.COMPARE, lba, part, there);
        for (int i = 0; wrong < 0 && i < sums.size(); i++) {
          wrong = sums.get(i).equals(others.get(i)) ? -1 : at + (long) i * BlockMover.PIECE;
        }
      }
      return wrong;
    }

    /** A checksum of each piece. */
    private List<Long> read(
        BlockMover mover, DemoPhase phase, long lba, long bytes, Checksum checksum)
        throws IOException {
      listener.phase(phase, bytes);
      mover.load(lba, bytes);
      listener.phase(DemoPhase.CHECK, bytes);
      List<Long> sums = new ArrayList<>();
      mover.drain(bytes, checksum, new Sums(listener, sums));
      return sums;
    }
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
