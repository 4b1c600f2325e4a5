package io.gpunvme.storage.injection;

import static io.gpunvme.storage.injection.Attempt.twice;
import static io.gpunvme.storage.injection.ScenarioMemory.fill;
import static io.gpunvme.storage.injection.ScenarioMemory.random;
import static io.gpunvme.storage.injection.ScenarioMemory.requireEqual;
import static io.gpunvme.storage.injection.ScenarioMemory.seen;
import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.cuda.CudaStream;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import io.gpunvme.storage.Batch;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.SetShape;
import io.gpunvme.storage.StorageAddress;
import io.gpunvme.storage.StorageOptions;
import io.gpunvme.storage.StreamGate;
import io.gpunvme.storage.StreamTransfers;
import io.gpunvme.storage.TransferResult;
import io.gpunvme.storage.layer.Layer;
import io.gpunvme.storage.layer.LayerLoader;
import io.gpunvme.storage.layer.LoadedLayer;
import io.gpunvme.storage.plan.Ranges;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.stream.Stream;

/** What people do with a storage, on the CPU stand-in, and with one for the CUDA driver. */
public final class StorageScenarios {
  private static final int SIZE = 1 << 20;
  private static final int LAYER = 64 << 10;
  private static final byte[] CONTENT = random(1, SIZE);
  private static final byte[] OTHER = random(2, SIZE);

  private StorageScenarios() {}

  private static final List<String> SOURCES =
      List.of("mmap", "pinned", "ssd", "stripe", "ssds", "replica");
  private static final List<String> USES = List.of("read", "write", "batch", "close", "layers");

  private static final StorageOptions OPTIONS =
      StorageOptions.defaults()
          .withWrite(true)
          .with(InitiatorOptions.defaults().with(InitiatorKind.CPU, Placement.HOST));

  /** What is done with an open storage and a buffer. */
  private interface Use {
    void of(Rig rig) throws Exception;
  }

  /** Every scenario, with each source that it is done with. */
  static Stream<String> names() {
    return Stream.of(
            Stream.of("recovery"),
            with("cpu", USES),
            with("gpu", USES),
            with("gpu", List.of("stream")))
        .flatMap(Function.identity());
  }

  private static Stream<String> with(String accelerator, List<String> uses) {
    return uses.stream()
        .flatMap(use -> SOURCES.stream().map(s -> String.join(" ", use, s, accelerator)));
  }

  /** A scenario of {@link #names}. */
  public static Scenario of(String name) {
    if (name.equals("recovery")) {
      return StorageScenarios::recovery;
    }
    String[] words = name.split(" ");
    Use use =
        switch (words[0]) {
          case "read" -> StorageScenarios::read;
          case "write" -> StorageScenarios::write;
          case "batch" -> StorageScenarios::batch;
          case "close" -> StorageScenarios::close;
          case "layers" -> StorageScenarios::layers;
          case "stream" -> StorageScenarios::stream;
          default -> throw new IllegalArgumentException(name);
        };
    ScenarioMemory memory = ScenarioMemory.of(words[2]);
    return folder -> {
      String address = address(words[1], folder);
      memory.with(accelerator -> withRig(address, accelerator, use));
    };
  }

  /** What is open. */
  private record Rig(GpuStorage storage, Accelerator accelerator, DeviceBuffer buffer) {
    byte[] bytes() {
      return seen(buffer, 0, SIZE);
    }

    /** Each byte of the buffer is as it was or as read. */
    void requireOldOrRead(byte[] before, int shift) {
      ScenarioMemory.requireOldOrRead(bytes(), before, CONTENT, shift);
    }
  }

  private static void withRig(String address, Accelerator accelerator, Use use) throws Exception {
    List<GpuStorage> storage = new ArrayList<>();
    List<DeviceBuffer> buffer = new ArrayList<>();
    twice("opens", () -> storage.add(open(address, accelerator)));
    twice("allocates", () -> buffer.add(accelerator.allocate(SIZE)));
    Rig rig = new Rig(storage.getFirst(), accelerator, buffer.getFirst());
    fill(rig.buffer(), new byte[SIZE]);
    try {
      use.of(rig);
    } finally {
      Attempt.succeeds("the storage closes", rig.storage()::close);
      Attempt.succeeds("the buffer closes", rig.buffer()::close);
    }
  }

  private static String address(String source, Path folder) throws IOException {
    Path file = Files.write(folder.resolve("data.bin"), CONTENT);
    return switch (source) {
      case "ssd" -> "sim:file=" + file;
      case "replica" ->
          "replica:file:%s?path=mmap,file:%s?path=mmap"
              .formatted(file, Files.write(folder.resolve("copy.bin"), CONTENT));
      case "stripe" -> striped("file:%s?path=mmap", folder);
      case "ssds" -> striped("sim:file=%s", folder);
      default ->
          file + "?path=" + source + (source.equals("pinned") ? "&chunk=256KiB&ring=1MiB" : "");
    };
  }

  private static String striped(String member, Path folder) throws IOException {
    // Unit by unit in turns.
    byte[][] halves = {new byte[SIZE / 2], new byte[SIZE / 2]};
    for (int i = 0; i < SIZE; i += 4096) {
      System.arraycopy(CONTENT, i, halves[i / 4096 % 2], i / 8192 * 4096, 4096);
    }
    return "stripe:%s,%s;unit=4096"
        .formatted(
            member.formatted(Files.write(folder.resolve("even.bin"), halves[0])),
            member.formatted(Files.write(folder.resolve("odd.bin"), halves[1])));
  }

  private static GpuStorage open(String address, Accelerator accelerator) {
    return GpuStorage.open(StorageAddress.parse(address), accelerator, OPTIONS);
  }

  /**
   * Commands are lost: the controller is reset, and the transfers come to their ends. A reset that
   * fails for want of something of the host's leaves the controller out of service; the next one
   * starts it again.
   */
  private static void recovery(Path folder) throws Exception {
    SimConfig config = SimConfig.parse("file=" + Files.write(folder.resolve("ssd"), CONTENT));
    List<NvmeController> controller = new ArrayList<>();
    List<GpuStorage> storage = new ArrayList<>();
    List<DeviceBuffer> buffer = new ArrayList<>();
    try (Accelerator cpu = CpuAccelerator.open()) {
      twice("opens the controller", () -> controller.add(openWithLosses(config)));
      twice("opens", () -> storage.add(GpuStorage.over(controller.getFirst(), cpu, OPTIONS)));
      twice("allocates", () -> buffer.add(cpu.allocate(SIZE)));
      Rig rig = new Rig(storage.getFirst(), cpu, buffer.getFirst());
      Attempt.Step step = () -> rig.storage().read(0, rig.buffer(), 0, SIZE);
      byte[] before = rig.bytes();
      try {
        if (!Attempt.succeeds("reads", step)) {
          rig.requireOldOrRead(before, 0);
          controller.getFirst().reset();
          Attempt.succeeds("reads again", step);
        }
        requireEqual(rig.bytes(), 0, CONTENT, 0, SIZE);
      } finally {
        Attempt.succeeds("the storage closes", rig.storage()::close);
        Attempt.succeeds("the buffer closes", rig.buffer()::close);
        Attempt.succeeds("the controller closes", controller.getFirst()::close);
      }
    }
  }

  private static NvmeController openWithLosses(SimConfig config) {
    SimulatedController device = SimulatedController.create(config);
    device.faults().add("drop on read lba=8 count=1");
    device.faults().add("drop on abort count=1");
    Duration soon = Duration.ofMillis(100);
    return NvmeController.open(
        device,
        ControllerOptions.builder()
            .allowWrite(true)
            .ioTimeout(soon)
            .adminTimeout(soon.multipliedBy(15))
            .recoveryTimeout(soon.multipliedBy(10))
            .build());
  }

  private static void read(Rig rig) {
    readOnce(rig, 777, 3, 5000);
    readOnce(rig, 0, 0, SIZE);
    readOnce(rig, 513, 1, 300_001);
    Ranges.Builder near = Ranges.builder();
    for (int i = 0; i < 50; i++) {
      near.add(100 + i * 10_000L, 500, 0, i * 10_000L);
    }
    Ranges ranges = near.build();
    byte[] before = rig.bytes();
    Attempt.Step all = () -> rig.storage().read(ranges, List.of(rig.buffer()));
    if (!Attempt.succeeds("reads ranges", all)) {
      rig.requireOldOrRead(before, 100);
      Attempt.succeeds("reads ranges again", all);
    }
    byte[] after = rig.bytes();
    for (int i = 0; i < 50; i++) {
      requireEqual(after, i * 10_000, CONTENT, 100 + i * 10_000, 500);
    }
  }

  private static void readOnce(Rig rig, int offset, int at, int length) {
    byte[] before = rig.bytes();
    Attempt.Step step = () -> rig.storage().read(offset, rig.buffer(), at, length);
    if (!Attempt.succeeds("reads", step)) {
      rig.requireOldOrRead(before, offset - at);
      Attempt.succeeds("reads again", step);
    }
    requireEqual(rig.bytes(), at, CONTENT, offset, length);
  }

  private static void write(Rig rig) {
    fill(rig.buffer(), OTHER);
    twice("writes", () -> rig.storage().write(513, rig.buffer(), 5, 5000));
    twice("writes much", () -> rig.storage().write(8192, rig.buffer(), 8192, SIZE / 2));
    twice("flushes", () -> rig.storage().flush());
    fill(rig.buffer(), new byte[SIZE]);
    twice("reads", () -> rig.storage().read(0, rig.buffer(), 0, SIZE));
    byte[] expected = CONTENT.clone();
    System.arraycopy(OTHER, 5, expected, 513, 5000);
    System.arraycopy(OTHER, 8192, expected, 8192, SIZE / 2);
    requireEqual(rig.bytes(), 0, expected, 0, SIZE);
  }

  private static void batch(Rig rig) {
    byte[] before = rig.bytes();
    Attempt.Step step =
        () -> {
          try (Batch batch = rig.storage().batch()) {
            for (int i = 0; i < 16; i++) {
              batch.read(i * 5000, rig.buffer(), i * 5000, 5000);
            }
            for (int got = 0; got < 16; ) {
              List<Batch.Outcome> some = batch.poll(1, Duration.ofSeconds(30));
              assertThat(some).isNotEmpty();
              got += some.size();
              for (Batch.Outcome one : some) {
                if (one.failure() != null) {
                  throw one.failure();
                }
              }
            }
          }
        };
    if (!Attempt.succeeds("a batch", step)) {
      rig.requireOldOrRead(before, 0);
      Attempt.succeeds("a batch again", step);
    }
    requireEqual(rig.bytes(), 0, CONTENT, 0, 16 * 5000);
  }

  /** While transfers are under way. */
  private static void close(Rig rig) throws InterruptedException {
    byte[] before = rig.bytes();
    List<CompletableFuture<TransferResult>> all = new ArrayList<>();
    for (int i = 0; i < 4; i++) {
      Attempt.succeeds("starts", () -> all.add(rig.storage().readAsync(0, rig.buffer(), 0, SIZE)));
    }
    twice("closes", rig.storage()::close);
    byte[] after = rig.bytes();
    rig.requireOldOrRead(before, 0);
    all.forEach(one -> one.handle((_, _) -> true).join());
    assertThat(rig.bytes()).as("the buffer after the storage was closed").isEqualTo(after);
  }

  private static void layers(Rig rig) {
    List<Layer> layers = new ArrayList<>();
    for (int i = 0; i < 8; i++) {
      layers.add(new Layer("l" + i, (long) i * LAYER, LAYER));
    }
    twice(
        "layers",
        () -> {
          try (LayerLoader loader = LayerLoader.open(rig.storage(), LAYER, 3)) {
            loader.prefetch(layers);
            for (Layer layer : layers) {
              try (LoadedLayer loaded = loader.next()) {
                loaded.await();
                byte[] seen = seen(loaded.buffer(), loaded.bufferOffset(), LAYER);
                requireEqual(seen, 0, CONTENT, (int) layer.offset(), LAYER);
              }
            }
          }
        });
  }

  /** Work behind a read sees its data, and a write takes what the stream has made. */
  private static void stream(Rig rig) {
    byte[] written = CONTENT.clone();
    Arrays.fill(written, 8192, 8192 + 5000, (byte) 7);
    if (!Attempt.succeeds("transfers in a stream's order", () -> streamOnce(rig, written))) {
      streamAgain(rig, written);
    }
    twice("reads", () -> rig.storage().read(0, rig.buffer(), 0, SIZE));
    requireEqual(rig.bytes(), 0, written, 0, SIZE);
  }

  /** A replica that could not read one of its copies is not written before it is opened again. */
  private static void streamAgain(Rig rig, byte[] written) {
    StorageAddress address = rig.storage().address();
    SetShape shape = address.shape();
    if (shape == null || shape.isStriped()) {
      Attempt.succeeds("transfers in a stream's order again", () -> streamOnce(rig, written));
      return;
    }
    try (GpuStorage anew = GpuStorage.open(address, rig.accelerator(), OPTIONS)) {
      Rig other = new Rig(anew, rig.accelerator(), rig.buffer());
      Attempt.succeeds("transfers in a stream's order again", () -> streamOnce(other, written));
    }
  }

  private static void streamOnce(Rig rig, byte[] written) throws Exception {
    GpuAccelerator gpu = (GpuAccelerator) rig.accelerator();
    long address = rig.buffer().deviceAddress();
    StreamTransfers streams = rig.storage().streams();
    try (DeviceBuffer copy = gpu.allocate(SIZE);
        DeviceBuffer word = gpu.allocatePinned(StreamGate.BYTES);
        CudaStream stream = gpu.context().stream()) {
      // Nothing of it is done before all of it is in the stream. Another thread opens the gate: a
      // transfer that cannot be put into the stream waits for what is in it.
      StreamGate gate = new StreamGate(word, 0);
      CountDownLatch isIn = new CountDownLatch(1);
      Thread opener =
          Thread.ofPlatform()
              .start(
                  () -> {
                    awaitSoon(isIn);
                    gate.open(1);
                  });
      try {
        gate.await(stream, 1);
        CompletableFuture<Void> read = streams.read(0, rig.buffer(), 0, SIZE, stream);
        stream.copyOnDeviceAsync(copy.deviceAddress(), address, SIZE);
        stream.fillAsync(address + 8192, (byte) 7, 5000);
        CompletableFuture<Void> write = streams.write(8192, rig.buffer(), 8192, 5000, stream);
        stream.fillAsync(address, (byte) 0, SIZE);
        isIn.countDown();
        read.get(30, TimeUnit.SECONDS);
        write.get(30, TimeUnit.SECONDS);
        stream.synchronize();
      } finally {
        isIn.countDown();
        opener.join();
      }
      // An earlier attempt may have written.
      ScenarioMemory.requireOldOrRead(seen(copy, 0, SIZE), CONTENT, written, 0);
    }
  }

  private static void awaitSoon(CountDownLatch latch) {
    try {
      var _ = latch.await(500, TimeUnit.MILLISECONDS);
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }
}
