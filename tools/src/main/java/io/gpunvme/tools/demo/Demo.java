package io.gpunvme.tools.demo;

import io.gpunvme.base.ByteRange;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.Accelerators;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.device.DeviceAddress;
import io.gpunvme.nvme.driver.Namespace;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.storage.BlockRun;
import io.gpunvme.tools.sample.SampleModel;
import io.gpunvme.tools.ssd.BorrowedBlocks;
import io.gpunvme.tools.ssd.FreeSpace;
import io.gpunvme.tools.ssd.Ssds;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The main job end to end: a file is put on an SSD and read back over several queue pairs into
 * accelerator memory. One run at a time.
 */
public final class Demo {
  private final DemoOptions options;
  private final DemoListener listener;
  private final Accelerators.Choice choice;
  private final long start = System.nanoTime();

  private Demo(DemoOptions options, DemoListener listener, Accelerators.Choice choice) {
    this.options = options;
    this.listener = listener;
    this.choice = choice;
  }

  /**
   * Runs the demo on an SSD that is made for it. The caller's folder keeps the files; nothing else
   * is left behind.
   *
   * @throws NoSuchFileException if the file to move does not exist
   * @throws InvalidRequestException if an option makes no sense
   * @throws io.gpunvme.nvme.NvmeException if the SSD fails
   */
  public static DemoReport run(DemoOptions options, DemoListener listener) throws IOException {
    Accelerators.Choice choice = options.initiator().accelerator();
    try (Accelerator _ = choice.accelerator()) {
      return new Demo(options, listener, choice).onOwn();
    }
  }

  /**
   * Runs it on somebody's SSDs, and puts back what was there.
   *
   * @param ssds open for writing; stay the caller's
   * @param range where the file goes to, at the address of the SSDs
   * @param options whose device is not used; the folder keeps what was there meanwhile
   * @throws NoSuchFileException if the file to move does not exist
   * @throws InvalidRequestException if an option makes no sense, or the file does not fit
   * @throws io.gpunvme.tools.ssd.NotRestoredException if an SSD does not take back what was there
   * @throws io.gpunvme.nvme.NvmeException if an SSD fails
   */
  public static DemoReport run(
      Ssds ssds, ByteRange range, DemoOptions options, DemoListener listener) throws IOException {
    Accelerators.Choice choice = options.initiator().accelerator();
    try (Accelerator _ = choice.accelerator()) {
      return new Demo(options, listener, choice).onSomebodys(ssds, range);
    }
  }

  // ---- an SSD of its own

  private DemoReport onOwn() throws IOException {
    Accelerator accelerator = choice.accelerator();
    // An address that makes no sense is found before a sample is made.
    DemoDevice ssd = DemoDevice.of(options, accelerator.gpu());
    Path file = file();
    long bytes = size(file);
    DeviceAddress address = ssd.sizedFor(bytes);
    try (Device device = Device.open(address, options.controller(), options.faults())) {
      NvmeController controller = device.controller();
      Namespace namespace = controller.namespace(1);
      long blocks = Math.ceilDiv(bytes, namespace.blockSize());
      List<BlockRun> runs = List.of(new BlockRun(controller, namespace, 0, blocks));
      try (FileTrip trip = trip(runs)) {
        FileTrip.Result result = trip.run(file, bytes);
        return report(file, runs, address.toString(), null, ssd.image(), trip.pinned(), result);
      }
    }
  }

  private FileTrip trip(List<BlockRun> runs) {
    return new FileTrip(runs, choice.accelerator(), options.initiator(), listener);
  }

  // ---- somebody's

  private DemoReport onSomebodys(Ssds ssds, ByteRange range) throws IOException {
    RangeDemo.requireBlocksFrom(ssds.blocksToWrite(range), range);
    Path file = file();
    long bytes = size(file);
    List<BlockRun> runs = blocks(ssds, range, bytes);
    try (FileTrip trip = trip(runs)) {
      BorrowedBlocks borrowed =
          BorrowedBlocks.borrow(runs, options.folder(), new DemoBorrowing(listener));
      FileTrip.Result result = borrowed.during(() -> trip.run(file, bytes));
      return report(file, runs, ssds.address(), range, null, trip.pinned(), result);
    }
  }

  /** The first blocks of the range, as many as the file takes. */
  private static List<BlockRun> blocks(Ssds ssds, ByteRange range, long bytes) {
    if (bytes > range.bytes()) {
      throw new InvalidRequestException(
          "a file of %d bytes does not fit into the range %s".formatted(bytes, range));
    }
    int block = RangeDemo.blockSize(ssds.blocksToWrite(range));
    long needed = Math.min(range.bytes(), Math.ceilDiv(bytes, block) * block);
    List<BlockRun> runs = ssds.blocksToWrite(new ByteRange(range.offset(), needed));
    if (Ssds.bytes(runs) < bytes) {
      throw new InvalidRequestException(
          "a file of %d bytes does not fit into the range %s of %s: %d bytes of it are whole blocks of an SSD"
              .formatted(bytes, range, ssds.address(), Ssds.bytes(runs)));
    }
    return runs;
  }

  // ---- the file

  private Path file() throws IOException {
    Path given = options.file();
    return given == null ? makeSample() : given;
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
    FreeSpace.require(options.folder(), model.bytes());
    listener.phase(DemoPhase.SAMPLE, model.bytes());
    model.write(file, listener::moved);
    return file;
  }

  // ---- what it did

  private DemoReport report(
      Path file,
      List<BlockRun> runs,
      String address,
      @Nullable ByteRange range,
      @Nullable Path image,
      boolean pinned,
      FileTrip.Result result)
      throws IOException {
    FileTrip.Moved put = result.put();
    FileTrip.Moved get = result.get();
    List<NvmeController> controllers = Ssds.controllers(runs);
    return new DemoReport(
        file,
        options.file() == null,
        size(file),
        address,
        range,
        image,
        pinned,
        RangeDemo.models(controllers),
        controllers.size(),
        RangeDemo.blockSize(runs),
        controllers.stream().mapToLong(NvmeController::maxTransferBytes).min().orElse(0),
        choice.accelerator().name(),
        choice.reason(),
        get.window(),
        put.report(),
        put.byCpu(),
        result.flushNanos(),
        get.report(),
        get.byCpu(),
        put.sha256(),
        get.sha256(),
        System.nanoTime() - start);
  }
}
