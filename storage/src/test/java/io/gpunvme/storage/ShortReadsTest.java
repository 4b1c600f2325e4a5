package io.gpunvme.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.storage.path.PathKind;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.StorageException;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Reads by the caller's thread, while others close the storage or this thread reads already. */
@Timeout(120)
class ShortReadsTest {
  private static final int BLOCK = 4096;
  private static final int BLOCKS = 256;

  private final CpuAccelerator cpu = CpuAccelerator.open();
  private final ExecutorService threads = Executors.newCachedThreadPool();

  @AfterEach
  void close() {
    threads.shutdownNow();
    cpu.close();
  }

  /** Each block of it is filled with its number. */
  private GpuStorage open(String options) {
    GpuStorage storage =
        GpuStorage.open(
            StorageAddress.parse("sim:size=1MiB,lba=4096," + options),
            cpu,
            StorageOptions.defaults().withWrite(true));
    byte[] data = new byte[BLOCKS * BLOCK];
    for (int i = 0; i < data.length; i++) {
      data[i] = (byte) (i / BLOCK);
    }
    try (DeviceBuffer all = cpu.allocate(data.length)) {
      all.copyFromHost(MemorySegment.ofArray(data), 0);
      storage.write(0, all, 0, data.length);
    }
    return storage;
  }

  private static void readBlock(GpuStorage storage, int block, DeviceBuffer target) {
    TransferResult result = storage.read((long) block * BLOCK, target, 0, BLOCK);
    assertThat(result.bytes()).isEqualTo(BLOCK);
    byte[] found = new byte[BLOCK];
    target.copyToHost(0, MemorySegment.ofArray(found));
    assertThat(found).containsOnly((byte) block);
  }

  @Test
  void closingWaitsForThoseOfSeveralThreads() throws Exception {
    GpuStorage storage = open("latency=0");
    AtomicInteger done = new AtomicInteger();
    List<Future<?>> all = new ArrayList<>();
    for (int t = 0; t < 4; t++) {
      int me = t;
      all.add(
          threads.submit(
              () -> {
                SplittableRandom random = new SplittableRandom(me);
                try (DeviceBuffer own = cpu.allocate(BLOCK)) {
                  while (true) {
                    readBlock(storage, random.nextInt(BLOCKS), own);
                    done.incrementAndGet();
                  }
                }
              }));
    }
    while (done.get() < 500) {
      Thread.sleep(1);
    }
    storage.close();
    int then = done.get();
    for (Future<?> one : all) {
      assertThatExceptionOfType(ExecutionException.class)
          .isThrownBy(one::get)
          .satisfies(
              e ->
                  assertThat(e.getCause())
                      .isInstanceOfAny(StorageClosedException.class, StorageException.class));
    }
    assertThat(storage.stats().get(PathKind.DIRECT).operations())
        .as("the commands of all threads are counted")
        .isGreaterThan(done.get());
    // Each thread may have been about to count the last one.
    assertThat(done.get() - then).isLessThanOrEqualTo(4);
  }

  /** The length is not asked for before each read. */
  @ParameterizedTest
  @ValueSource(strings = {"auto", "mmap", "pinned"})
  void aFileThatBecameShorterOrLonger(String path, @TempDir Path folder) throws IOException {
    Path file = Files.write(folder.resolve("data"), new byte[10 * BLOCK]);
    try (GpuStorage storage = GpuStorage.open("file:" + file + "?path=" + path, cpu);
        FileChannel writer = FileChannel.open(file, StandardOpenOption.WRITE);
        DeviceBuffer target = cpu.allocate(16 * BLOCK)) {
      storage.read(9 * BLOCK, target, 0, BLOCK);
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> storage.read(9 * BLOCK, target, 0, BLOCK + 1));
      writer.truncate(5 * BLOCK);
      List<Range> ranges = List.of(new Range(9 * BLOCK, target, 0, BLOCK));
      for (ThrowingCallable read :
          List.<ThrowingCallable>of(
              () -> storage.read(9 * BLOCK, target, 0, BLOCK), () -> storage.read(ranges))) {
        assertThatExceptionOfType(StorageException.class)
            .isThrownBy(read)
            .satisfies(e -> assertThat(e.kind()).isEqualTo(StorageException.Kind.SHORT_READ));
      }
      storage.read(4 * BLOCK, target, 0, BLOCK);
      if (path.equals("pinned")) {
        writer.write(ByteBuffer.allocate(20 * BLOCK), 0);
        storage.read(19 * BLOCK, target, 0, BLOCK);
      }
    }
  }

  @Test
  void closingCancelsOne() throws Exception {
    InitiatorOptions one =
        InitiatorOptions.defaults().with(InitiatorKind.CPU, Placement.HOST).with(1, 1, 0);
    GpuStorage storage =
        GpuStorage.open(
            StorageAddress.parse("sim:size=256MiB,lba=4096,latency=20ms"),
            cpu,
            StorageOptions.defaults().with(one));
    try (DeviceBuffer target = cpu.allocate(256 << 20)) {
      CountDownLatch begun = new CountDownLatch(1);
      Future<?> running =
          threads.submit(
              () -> {
                begun.countDown();
                storage.read(0, target, 0, 256 << 20);
              });
      begun.await();
      Thread.sleep(200);
      storage.close();
      assertThatExceptionOfType(ExecutionException.class)
          .isThrownBy(running::get)
          .satisfies(
              e ->
                  assertThat(e.getCause())
                      .isInstanceOfSatisfying(
                          StorageException.class,
                          s -> assertThat(s.kind()).isEqualTo(StorageException.Kind.CANCELLED)));
    }
  }

  @Test
  void aProgramThatATransferAsksMayTransferToo() {
    try (GpuStorage storage = open("latency=30ms");
        DeviceBuffer outer = cpu.allocate(BLOCK);
        DeviceBuffer inner = cpu.allocate(BLOCK)) {
      AtomicInteger asked = new AtomicInteger();
      storage.read(
          List.of(new Range(7 * BLOCK, outer, 0, BLOCK)),
          () -> {
            asked.incrementAndGet();
            readBlock(storage, 11, inner);
            return false;
          });
      assertThat(asked).hasPositiveValue();
      assertThat(outer.segment().get(ValueLayout.JAVA_BYTE, 5)).isEqualTo((byte) 7);
      readBlock(storage, 3, outer);
    }
  }

  @Test
  void aProgramThatATransferAsksLearnsThatTheStorageIsBeingClosed() {
    GpuStorage storage = open("latency=30ms");
    try (DeviceBuffer outer = cpu.allocate(BLOCK);
        DeviceBuffer inner = cpu.allocate(BLOCK)) {
      List<CompletableFuture<Void>> closing = new ArrayList<>();
      List<RuntimeException> met = new ArrayList<>();
      try {
        storage.read(
            List.of(new Range(0, outer, 0, BLOCK)),
            () -> {
              if (closing.isEmpty()) {
                closing.add(CompletableFuture.runAsync(storage::close, threads));
                try {
                  while (true) {
                    readBlock(storage, 11, inner);
                  }
                } catch (RuntimeException e) {
                  met.add(e);
                }
              }
              return false;
            });
      } catch (StorageException e) {
        assertThat(e.kind()).isEqualTo(StorageException.Kind.CANCELLED);
      }
      assertThat(met)
          .singleElement()
          .isInstanceOfAny(StorageClosedException.class, StorageException.class);
      closing.getFirst().join();
    }
  }
}
