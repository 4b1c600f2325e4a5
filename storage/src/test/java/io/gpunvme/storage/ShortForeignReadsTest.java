package io.gpunvme.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.cuda.FakeDriver;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.device.DeviceAddress;
import io.gpunvme.gpu.queue.CpuCuda;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.storage.path.PathKind;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.testing.CLibrary;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Short reads of an embedded SSD beside code that uses CUDA: by the CPU, by many threads side by
 * side.
 */
@Timeout(180)
class ShortForeignReadsTest {
  private static final int BYTES = 24 << 20;
  private static final int BLOCK = 4096;

  /** The longest that is the CPU's. */
  private static final int SHORT = 16 << 20;

  /** Bytes behind a read that stay. */
  private static final int GUARD = 64;

  private static final String DEVICE = "sim:size=24MiB,lba=4096,latency=0";
  private static final String BY_CPU = "; up to 16 MiB CPU-initiated";

  private final long seed = Long.getLong("gpunvme.seed", System.nanoTime());
  private final byte[] content = new byte[BYTES];
  private final CLibrary cuda = new CLibrary(CpuCuda.library());
  private final GpuAccelerator gpu = GpuAccelerator.open(FakeDriver.load(cuda.file()).device(0));
  private final ExecutorService threads = Executors.newCachedThreadPool();

  @AfterEach
  void close() {
    threads.shutdownNow();
    gpu.close();
  }

  private GpuStorage open(String device, InitiatorOptions who) {
    return GpuStorage.open(
        StorageAddress.parse(device),
        gpu,
        StorageOptions.defaults().with(who.withForeignCuda(true)).withWrite(true));
  }

  /** Writes random content, and returns the storage. */
  private GpuStorage filled(GpuStorage storage) {
    new SplittableRandom(seed).nextBytes(content);
    try (DeviceBuffer all = gpu.allocate(BYTES)) {
      all.copyFromHost(MemorySegment.ofArray(content), 0);
      storage.write(0, all, 0, BYTES);
    }
    return storage;
  }

  private GpuStorage filled() {
    return filled(open(DEVICE, InitiatorOptions.defaults()));
  }

  private int launches() {
    return cuda.callInt("fake_calls", "cuLaunchKernel");
  }

  private boolean launches(Runnable read) {
    int before = launches();
    read.run();
    return launches() > before;
  }

  private void requireContent(DeviceBuffer buffer, long at, long offset, int length) {
    byte[] seen = new byte[length];
    buffer.copyToHost(at, MemorySegment.ofArray(seen));
    int first = Arrays.mismatch(seen, Arrays.copyOfRange(content, (int) offset, BYTES));
    assertThat(first == length || first < 0)
        .as("seed %d: %d bytes from %d to %d, first wrong: %d", seed, length, offset, at, first)
        .isTrue();
  }

  @Test
  void theLengthSaysWhoIssuesTheCommands() {
    try (GpuStorage storage = open(DEVICE, InitiatorOptions.defaults());
        DeviceBuffer buffer = gpu.allocate(BYTES)) {
      assertThat(launches(() -> storage.read(0, buffer, 0, BLOCK))).isFalse();
      assertThat(launches(() -> storage.read(1, buffer, 1, SHORT))).isFalse();
      assertThat(launches(() -> storage.write(5, buffer, 1, SHORT))).isFalse();
      List<Range> two = List.of(new Range(0, buffer, 0, 512), new Range(BLOCK, buffer, 512, 512));
      assertThat(launches(() -> storage.read(two))).isFalse();
      assertThat(launches(() -> storage.read(0, buffer, 0, SHORT + BLOCK))).isTrue();
      assertThat(storage.explain().modes().get(PathKind.DIRECT)).contains("GPU-initiated, host");
      assertThat(storage.read(0, buffer, 0, BLOCK).mode()).contains(BY_CPU);
    }
  }

  @Test
  void anInitiatorThatIsNamedIsObeyed() {
    InitiatorOptions named = InitiatorOptions.defaults().with(InitiatorKind.GPU, null);
    try (GpuStorage storage = open(DEVICE, named);
        DeviceBuffer buffer = gpu.allocate(1 << 20)) {
      assertThat(launches(() -> storage.read(0, buffer, 0, BLOCK))).isTrue();
      assertThat(launches(() -> storage.read(0, buffer, 0, 1 << 20))).isTrue();
      assertThat(storage.explain().modes().get(PathKind.DIRECT))
          .startsWith("GPU-initiated, host")
          .doesNotContain("CPU-initiated");
    }
  }

  /** Then kernels read all, and nobody says otherwise. */
  @Test
  void withoutAQueuePairForTheCpuItIsSaid() {
    try (GpuStorage storage = filled(open(DEVICE + ",queues=1", InitiatorOptions.defaults()));
        DeviceBuffer buffer = gpu.allocate(1 << 20)) {
      assertThat(launches(() -> storage.read(0, buffer, 0, BLOCK))).isTrue();
      storage.read(77, buffer, 0, (1 << 20) - 1);
      requireContent(buffer, 0, 77, (1 << 20) - 1);
      assertThat(storage.explain().modes().get(PathKind.DIRECT)).doesNotContain("CPU-initiated");
    }
  }

  private Future<?> start(GpuStorage storage, SplittableRandom random, int reads) {
    return threads.submit(
        () -> {
          try (DeviceBuffer buffer = gpu.allocate(BYTES + GUARD)) {
            for (int i = 0; i < reads; i++) {
              // Now and then so long that kernels read it.
              int most = random.nextInt(10) == 0 ? BYTES : 3 << 20;
              int length = 1 + random.nextInt(random.nextBoolean() ? 10_000 : most - 8);
              int at = random.nextInt(8);
              int offset = random.nextInt(BYTES - length + 1);
              buffer.copyFromHost(MemorySegment.ofArray(new byte[GUARD]), at + length);
              storage.read(offset, buffer, at, length);
              requireContent(buffer, at, offset, length);
              byte[] after = new byte[GUARD];
              buffer.copyToHost(at + length, MemorySegment.ofArray(after));
              assertThat(after).as("seed %d: what is behind a read", seed).containsOnly(0);
            }
          }
        });
  }

  @Test
  void manyThreadsReadAnythingBesideThoseWhoTakeMemory() throws Exception {
    SplittableRandom random = new SplittableRandom(seed);
    AtomicBoolean over = new AtomicBoolean();
    try (GpuStorage storage = filled()) {
      Future<?> foreign =
          threads.submit(
              () -> {
                while (!over.get()) {
                  gpu.context().allocate(BLOCK).close();
                  Thread.yield();
                }
              });
      List<Future<?>> readers = new ArrayList<>();
      // More than there are pieces to stage in, so that some wait.
      for (int i = 0; i < 20; i++) {
        readers.add(start(storage, random.split(), 12));
      }
      try {
        for (Future<?> reader : readers) {
          reader.get();
        }
      } finally {
        over.set(true);
      }
      foreign.get();
    }
  }

  private GpuStorage over(Device device) {
    return GpuStorage.over(
        device.controller(), gpu, StorageOptions.defaults().withForeignCuda(true).withWrite(true));
  }

  private static Device device(String... faults) {
    return Device.open(
        DeviceAddress.parse(DEVICE),
        ControllerOptions.builder().allowWrite(true).build(),
        String.join(";", faults));
  }

  /** What takes long is served by queues of its own, and by memory of its own. */
  @Test
  void nobodyWaitsForARequestOfAnotherThread() throws Exception {
    try (Device device = device("delay=6s on read lba=0 count=1");
        GpuStorage storage = filled(over(device));
        DeviceBuffer buffer = gpu.allocate(BYTES)) {
      Future<?> slow = threads.submit(() -> storage.read(0, buffer, 0, 1 << 20));
      List<CompletableFuture<Void>> others = new ArrayList<>();
      for (int i = 1; i < 15; i++) {
        int at = i << 20;
        others.add(
            CompletableFuture.runAsync(
                () -> {
                  for (int round = 0; round < 4; round++) {
                    storage.read(at + 3, buffer, at, (1 << 20) - 3);
                  }
                  requireContent(buffer, at, at + 3, (1 << 20) - 3);
                },
                threads));
      }
      CompletableFuture.allOf(others.toArray(CompletableFuture[]::new)).get(5, TimeUnit.SECONDS);
      assertThat(slow.isDone()).isFalse();
      slow.get();
      requireContent(buffer, 0, 0, 1 << 20);
    }
  }

  @Test
  void aFailureIsThatOfItsRequestOnly() {
    // The first block of a command.
    int bad = 704 * 1024 / BLOCK;
    try (Device device = device("status=media/unrecovered-read dnr on read lba=" + bad);
        GpuStorage storage = filled(over(device));
        DeviceBuffer buffer = gpu.allocate(BYTES)) {
      for (int i = 0; i < 3; i++) {
        assertThatExceptionOfType(StorageException.class)
            .isThrownBy(() -> storage.read(5, buffer, 0, 1 << 20))
            .satisfies(
                e -> {
                  assertThat(e.kind()).isEqualTo(StorageException.Kind.IO);
                  assertThat(e.offset()).isEqualTo((long) bad * BLOCK);
                });
        storage.read((bad + 1L) * BLOCK + 1, buffer, 0, 1 << 20);
        requireContent(buffer, 0, (bad + 1L) * BLOCK + 1, 1 << 20);
      }
    }
  }

  /** Closing returns when nothing uses the buffer any more. */
  @Test
  void closingEndsReadsThatAreUnderWay() throws Exception {
    try (DeviceBuffer buffer = gpu.allocate(BYTES)) {
      GpuStorage storage = filled();
      List<Future<?>> readers = new ArrayList<>();
      for (int i = 0; i < 6; i++) {
        int at = i * (4 << 20);
        readers.add(
            threads.submit(
                () -> {
                  while (true) {
                    storage.read(at, buffer, at, 4 << 20);
                  }
                }));
      }
      while (storage.stats().get(PathKind.DIRECT).operations() < 20) {
        Thread.onSpinWait();
      }
      storage.close();
      buffer.copyFromHost(MemorySegment.ofArray(new byte[BYTES]), 0);
      for (Future<?> reader : readers) {
        assertThatExceptionOfType(ExecutionException.class)
            .isThrownBy(reader::get)
            .satisfies(
                e ->
                    assertThat(e.getCause())
                        .isInstanceOfAny(StorageException.class, StorageClosedException.class));
      }
      byte[] seen = new byte[BYTES];
      buffer.copyToHost(0, MemorySegment.ofArray(seen));
      assertThat(seen).containsOnly(0);
    }
  }
}
