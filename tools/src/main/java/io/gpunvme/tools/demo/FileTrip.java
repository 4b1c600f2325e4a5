package io.gpunvme.tools.demo;

import io.gpunvme.base.CloseAll;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.HostMemoryKind;
import io.gpunvme.gpu.accel.HostWindow;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.Extent;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.gpu.transfer.TransferReport;
import io.gpunvme.gpu.transfer.TransferTotal;
import io.gpunvme.nvme.driver.BlockDevice;
import io.gpunvme.nvme.driver.Namespace;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.sim.DoorbellWindow;
import io.gpunvme.sim.SimulatedController;
import io.gpunvme.storage.BlockRun;
import io.gpunvme.tools.ssd.BlockMover;
import io.gpunvme.tools.ssd.Checksum;
import io.gpunvme.tools.ssd.Ssds;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;

/**
 * A file's way onto SSDs and back into accelerator memory. Each SSD gets the next part of the file,
 * one after the other. For one thread.
 */
final class FileTrip implements AutoCloseable {
  /** File bytes written to an SSD at a time. */
  private static final long PUT_WINDOW = 64L << 20;

  /** Most accelerator memory used; a longer file goes through it in turns. */
  private static final long GET_WINDOW = 1L << 30;

  private final Accelerator accelerator;
  private final InitiatorOptions options;
  private final DemoListener listener;
  private final List<Leg> legs;

  /** Media of SSDs, while a GPU's copy engines work on them. */
  private final List<HostWindow> media = new ArrayList<>();

  private final boolean pinned;

  /** The part of one SSD. */
  private record Leg(
      NvmeController controller, Namespace namespace, List<BlockRun> runs, Placement placement) {
    long bytes() {
      return Ssds.bytes(runs);
    }

    /** The SSD, if it is ours. */
    Optional<SimulatedController> ssd() {
      return controller.function() instanceof SimulatedController sim
          ? Optional.of(sim)
          : Optional.empty();
    }

    /** The SSD's medium, if it is memory. */
    Optional<MemorySegment> medium() {
      return ssd().flatMap(s -> s.mediaMemory(namespace.nsid()));
    }
  }

  /**
   * One way of the file.
   *
   * @param byCpu commands that the CPU submitted, by the SSDs' count, if all are ours
   * @param sha256 of the file's bytes, in hexadecimal
   * @param window bytes that were moved at a time
   */
  record Moved(TransferReport report, OptionalLong byCpu, String sha256, long window) {}

  /** Both ways. */
  record Result(Moved put, long flushNanos, Moved get) {}

  /**
   * Lets a GPU's copy engines work on the SSDs' media themselves, where they are memory.
   *
   * @param runs where the file goes to
   */
  FileTrip(
      List<BlockRun> runs,
      Accelerator accelerator,
      InitiatorOptions options,
      DemoListener listener) {
    this.accelerator = accelerator;
    this.options = options;
    this.listener = listener;
    legs = Ssds.bySsd(runs).stream().map(this::leg).toList();
    try {
      for (Leg leg : legs) {
        if (!leg.placement.hostData()) {
          leg.medium().ifPresent(m -> media.add(accelerator.mapHost(m, HostMemoryKind.MEMORY)));
        }
      }
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, this::close);
      throw e;
    }
    pinned = !media.isEmpty();
  }

  private Leg leg(List<BlockRun> own) {
    NvmeController controller = own.getFirst().controller();
    Placement placement = options.placement(controller, accelerator);
    return new Leg(controller, own.getFirst().namespace(), own, placement);
  }

  /** Whether a medium is memory that was pinned for a GPU. */
  boolean pinned() {
    return pinned;
  }

  /**
   * Puts the file there, and gets it back.
   *
   * @param bytes of the file, no more than are in the runs
   * @throws io.gpunvme.nvme.NvmeException if an SSD fails
   */
  Result run(Path file, long bytes) throws IOException {
    Moved put = put(file, bytes);
    long flush = flush();
    return new Result(put, flush, get(bytes));
  }

  private BlockMover mover(Leg leg, long window) {
    return BlockMover.open(
        leg.controller,
        leg.namespace,
        accelerator,
        options.with(options.initiator(), leg.placement),
        leg.bytes(),
        window,
        new DemoProgress(listener));
  }

  /** I/O commands that were submitted through the CPU's doorbells so far, if all SSDs are ours. */
  private OptionalLong byCpu() {
    long sum = 0;
    for (Leg leg : legs) {
      Optional<SimulatedController> own = leg.ssd();
      if (own.isEmpty()) {
        return OptionalLong.empty();
      }
      sum += own.get().stats().ioCommands(DoorbellWindow.CPU);
    }
    return OptionalLong.of(sum);
  }

  private OptionalLong byCpuSince(OptionalLong before) {
    OptionalLong now = byCpu();
    return now.isPresent()
        ? OptionalLong.of(now.getAsLong() - before.getAsLong())
        : OptionalLong.empty();
  }

  private Moved put(Path file, long bytes) throws IOException {
    listener.phase(DemoPhase.PUT, bytes);
    OptionalLong byCpu = byCpu();
    Checksum checksum = new Checksum();
    TransferTotal total = new TransferTotal();
    long window = 0;
    long left = bytes;
    try (InputStream in = Files.newInputStream(file)) {
      for (Leg leg : legs) {
        long part = Math.min(left, leg.bytes());
        try (BlockMover mover = mover(leg, PUT_WINDOW)) {
          mover.write(in, leg.runs, part, checksum);
          total.add(mover.report());
          window = mover.window();
        }
        left -= part;
      }
    }
    return new Moved(total.report(), byCpuSince(byCpu), checksum.hex(), window);
  }

  private long flush() {
    long start = System.nanoTime();
    for (Leg leg : legs) {
      try (BlockDevice blocks = BlockDevice.open(leg.controller, leg.namespace, 1)) {
        blocks.flush();
      }
    }
    return System.nanoTime() - start;
  }

  private Moved get(long bytes) throws IOException {
    OptionalLong byCpu = byCpu();
    Checksum checksum = new Checksum();
    TransferTotal total = new TransferTotal();
    long window = 0;
    long left = bytes;
    for (Leg leg : legs) {
      try (BlockMover mover = mover(leg, GET_WINDOW)) {
        for (List<Extent> extents : mover.windows(leg.runs)) {
          long part = Math.min(left, mover.bytes(extents));
          listener.phase(DemoPhase.GET, part);
          mover.load(extents);
          listener.phase(DemoPhase.CHECK, part);
          mover.drain(part, checksum, checked());
          left -= part;
        }
        total.add(mover.report());
        window = mover.window();
      }
    }
    return new Moved(total.report(), byCpuSince(byCpu), checksum.hex(), window);
  }

  /** Tells the listener how much has been checked. */
  private OutputStream checked() {
    return new OutputStream() {
      @Override
      public void write(int one) {
        listener.moved(1);
      }

      @Override
      public void write(byte[] bytes, int from, int length) {
        listener.moved(length);
      }
    };
  }

  /** The GPU lets go of the media. */
  @Override
  public void close() {
    CloseAll.newestFirst(media);
  }
}
