package io.gpunvme.tools.demo;

import io.gpunvme.base.ByteRange;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.Accelerators;
import io.gpunvme.gpu.accel.HostMemoryKind;
import io.gpunvme.gpu.accel.HostWindow;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.device.DeviceAddress;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.gpu.transfer.TransferListener;
import io.gpunvme.gpu.transfer.TransferReport;
import io.gpunvme.nvme.driver.BlockDevice;
import io.gpunvme.nvme.driver.Namespace;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.spec.IdentifyController;
import io.gpunvme.sim.DoorbellWindow;
import io.gpunvme.sim.SimulatedController;
import io.gpunvme.tools.sample.SampleModel;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Optional;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/**
 * The main job end to end: a file is put on an SSD and read back over several queue pairs into
 * accelerator memory. One run at a time.
 */
public final class Demo {
  /** File bytes written to the SSD at a time. */
  private static final long PUT_WINDOW = 64L << 20;

  /** Most accelerator memory used; a longer file goes through it in turns. */
  private static final long GET_WINDOW = 1L << 30;

  private final DemoOptions options;
  private final DemoListener listener;

  private Demo(DemoOptions options, DemoListener listener) {
    this.options = options;
    this.listener = listener;
  }

  /**
   * Runs the demo. The caller's folder keeps the files; nothing else is left behind.
   *
   * @throws NoSuchFileException if the file to move does not exist
   * @throws InvalidRequestException if an option makes no sense
   * @throws io.gpunvme.nvme.NvmeException if the SSD fails
   */
  public static DemoReport run(DemoOptions options, DemoListener listener) throws IOException {
    return new Demo(options, listener).run();
  }

  private DemoReport run() throws IOException {
    Accelerators.Choice choice = options.initiator().accelerator();
    try (Accelerator accelerator = choice.accelerator()) {
      return run(accelerator, choice.reason());
    }
  }

  private DemoReport run(Accelerator accelerator, String reason) throws IOException {
    long start = System.nanoTime();
    // An address that makes no sense is found before a sample is made.
    DemoDevice ssd = DemoDevice.of(options, accelerator.gpu());
    Path file = options.file();
    boolean sample = file == null;
    if (file == null) {
      file = makeSample();
    }
    long bytes = size(file);
    DeviceAddress address = ssd.sizedFor(bytes);
    try (Device device = Device.open(address, options.controller(), options.faults())) {
      NvmeController controller = device.controller();
      Placement placement = options.initiator().placement(controller, accelerator);
      Namespace namespace = controller.namespace(options.nsid());
      Rig rig = new Rig(controller, namespace, first(namespace, bytes), accelerator, placement);
      try (HostWindow media = placement.hostData() ? null : rig.pinMedia()) {
        Path moved = file;
        BorrowedBlocks.Work<Trip> work = () -> thereAndBack(rig, moved, bytes);
        BorrowedBlocks borrowed = borrow(rig, bytes);
        Trip trip = borrowed == null ? work.run() : borrowed.during(work);
        Moved put = trip.put;
        Moved get = trip.get;
        return new DemoReport(
            file,
            sample,
            bytes,
            address.toString(),
            options.range(),
            ssd.image(),
            media != null,
            controller.identify().getText(IdentifyController.MN),
            rig.namespace().blockSize(),
            controller.maxTransferBytes(),
            accelerator.name(),
            reason,
            get.window(),
            put.report(),
            put.byCpu(),
            trip.flushNanos,
            get.report(),
            get.byCpu(),
            put.sha256(),
            get.sha256(),
            System.nanoTime() - start);
      }
    }
  }

  /** The first of the blocks that the file takes. */
  private long first(Namespace namespace, long bytes) {
    ByteRange range = options.range();
    if (range == null) {
      return 0;
    }
    if (bytes > range.bytes()) {
      throw new InvalidRequestException(
          "a file of %d bytes does not fit into the range %s".formatted(bytes, range));
    }
    return firstBlock(namespace, range);
  }

  /**
   * The first block of a range.
   *
   * @throws InvalidRequestException if it does not begin with a block, or is not all there
   */
  static long firstBlock(Namespace namespace, ByteRange range) {
    int block = namespace.blockSize();
    if (range.offset() % block != 0) {
      throw new InvalidRequestException(
          "the range %s does not begin at a multiple of the SSD's blocks of %d bytes"
              .formatted(range, block));
    }
    if (range.offset() + range.bytes() > namespace.bytes()) {
      throw new InvalidRequestException(
          "the range %s is not inside namespace %d, which has %d bytes"
              .formatted(range, namespace.nsid(), namespace.bytes()));
    }
    return range.offset() / block;
  }

  private @Nullable BorrowedBlocks borrow(Rig rig, long bytes) throws IOException {
    if (options.range() == null) {
      return null;
    }
    int block = rig.namespace().blockSize();
    return BorrowedBlocks.borrow(
        rig.controller(),
        rig.namespace(),
        rig.first(),
        Math.ceilDiv(bytes, block) * block,
        options.folder(),
        listener);
  }

  /**
   * One way of the file.
   *
   * @param byCpu commands that the CPU submitted, by the SSD's count, if it is ours
   * @param sha256 of the file's bytes, in hexadecimal
   * @param window bytes that were moved at a time
   */
  private record Moved(TransferReport report, OptionalLong byCpu, String sha256, long window) {}

  /** Both ways. */
  private record Trip(Moved put, long flushNanos, Moved get) {}

  private Trip thereAndBack(Rig rig, Path file, long bytes) throws IOException {
    Moved put = put(rig, file, bytes);
    long flush = flush(rig.controller(), rig.namespace());
    return new Trip(put, flush, get(rig, bytes));
  }

  /** Where the bytes go to and fro. */
  private record Rig(
      NvmeController controller,
      Namespace namespace,
      long first,
      Accelerator accelerator,
      Placement placement) {
    /** The SSD, if it is ours. */
    private Optional<SimulatedController> ssd() {
      return controller.function() instanceof SimulatedController sim
          ? Optional.of(sim)
          : Optional.empty();
    }

    /**
     * Lets a GPU's copy engines work on the SSD's medium itself, if it is memory.
     *
     * @return null if it is none
     */
    @Nullable HostWindow pinMedia() {
      Optional<MemorySegment> medium = ssd().flatMap(s -> s.mediaMemory(namespace.nsid()));
      return medium.map(m -> accelerator.mapHost(m, HostMemoryKind.MEMORY)).orElse(null);
    }

    /** I/O commands that were submitted through the CPU's doorbells so far. */
    long byCpu() {
      return ssd().map(s -> s.stats().ioCommands(DoorbellWindow.CPU)).orElse(0L);
    }

    /** How many since {@link #byCpu} was {@code before}. */
    OptionalLong byCpuSince(long before) {
      return ssd().isPresent() ? OptionalLong.of(byCpu() - before) : OptionalLong.empty();
    }

    BlockMover mover(InitiatorOptions wanted, long bytes, long window, TransferListener listener) {
      return BlockMover.open(
          controller,
          namespace,
          accelerator,
          wanted.with(wanted.initiator(), placement),
          bytes,
          window,
          listener);
    }
  }

  private static long size(Path file) throws IOException {
    if (!Files.exists(file)) {
      throw new NoSuchFileException(file.toString());
    }
    if (!Files.isRegularFile(file)) {
      throw new InvalidRequestException(file + " is not a regular file");
    }
    if (Files.size(file) == 0) {
      throw new InvalidRequestException(file + " is empty");
    }
    return Files.size(file);
  }

  private Path makeSample() throws IOException {
    SampleModel model = SampleModel.of(options.sampleBytes(), options.seed());
    Path file = options.folder().resolve("sample.safetensors");
    DemoDevice.requireSpace(options.folder(), model.bytes());
    listener.phase(DemoPhase.SAMPLE, model.bytes());
    model.write(file, listener::moved);
    return file;
  }

  // ---- onto the SSD

  private Moved put(Rig rig, Path file, long bytes) throws IOException {
    listener.phase(DemoPhase.PUT, bytes);
    long byCpu = rig.byCpu();
    try (InputStream in = Files.newInputStream(file);
        BlockMover mover =
            rig.mover(options.initiator(), bytes, PUT_WINDOW, new DemoProgress(listener))) {
      String sha256 = mover.write(in, rig.first(), bytes, false);
      return new Moved(mover.report(), rig.byCpuSince(byCpu), sha256, mover.window());
    }
  }

  private static long flush(NvmeController controller, Namespace namespace) {
    long start = System.nanoTime();
    try (BlockDevice blocks = BlockDevice.open(controller, namespace, 1)) {
      blocks.flush();
    }
    return System.nanoTime() - start;
  }

  // ---- and back

  private Moved get(Rig rig, long bytes) throws IOException {
    Checksum checksum = new Checksum();
    long byCpu = rig.byCpu();
    try (BlockMover mover =
        rig.mover(options.initiator(), bytes, GET_WINDOW, new DemoProgress(listener))) {
      for (long at = 0; at < bytes; at += mover.window()) {
        long part = Math.min(mover.window(), bytes - at);
        listener.phase(DemoPhase.GET, part);
        mover.load(rig.first() + at / rig.namespace().blockSize(), part);
        listener.phase(DemoPhase.CHECK, part);
        mover.drain(part, checksum, checked());
      }
      return new Moved(mover.report(), rig.byCpuSince(byCpu), checksum.hex(), mover.window());
    }
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
}
