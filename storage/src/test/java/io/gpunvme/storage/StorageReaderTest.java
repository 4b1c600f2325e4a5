package io.gpunvme.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.storage.path.StorageException;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Random;
import java.util.SplittableRandom;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Bytes of a namespace in host memory, by NVMe commands of the embedded controller. */
class StorageReaderTest {
  private static final int SIZE = (12 << 20) + 1024;

  @TempDir Path folder;

  private final byte[] content = new byte[SIZE];

  /** Whose pinned memory is read into. */
  Accelerator accelerator() {
    return CpuAccelerator.open();
  }

  private String image() throws IOException {
    new Random(5).nextBytes(content);
    return "sim:lba=512,file=" + Files.write(folder.resolve("image"), content);
  }

  private void check(StorageReader reader, int offset, int length) {
    byte[] seen = new byte[length];
    reader.read(offset, MemorySegment.ofArray(seen));
    assertThat(Arrays.mismatch(seen, 0, length, content, offset, offset + length))
        .as("%d bytes at %d", length, offset)
        .isEqualTo(-1);
  }

  @Test
  void anyBytes() throws IOException {
    long seed = Long.getLong("gpunvme.seed", System.nanoTime());
    System.out.println("StorageReaderTest seed " + seed);
    SplittableRandom random = new SplittableRandom(seed);
    try (Accelerator accelerator = accelerator();
        GpuStorage storage = GpuStorage.open(image(), accelerator);
        StorageReader reader = new StorageReader(storage)) {
      assertThat(reader.size()).isEqualTo(SIZE);
      assertThat(reader.name()).startsWith("sim:");
      for (int i = 0; i < 2000; i++) {
        int length = random.nextInt(random.nextInt(100_000) + 1);
        check(reader, random.nextInt(SIZE - length + 1), length);
      }
      check(reader, 1, SIZE - 2);
      check(reader, 0, 5 << 20);
      check(reader, SIZE - 1, 1);
      check(reader, SIZE, 0);
      try (Arena arena = Arena.ofConfined()) {
        MemorySegment nativeMemory = arena.allocate(1000);
        reader.read(777, nativeMemory);
        MemorySegment expected = MemorySegment.ofArray(content).asSlice(777, 1000);
        assertThat(nativeMemory.mismatch(expected)).isEqualTo(-1);
      }
    }
  }

  @Test
  void shortReadsCloseTogetherAreOneCommand() throws IOException {
    try (Accelerator accelerator = accelerator();
        GpuStorage storage = GpuStorage.open(image(), accelerator);
        StorageReader reader = new StorageReader(storage)) {
      for (int i = 0; i < 1000; i++) {
        check(reader, i * 16, 16);
      }
      long read = storage.stats().values().stream().mapToLong(s -> s.readBytes()).sum();
      assertThat(read).isEqualTo(32 << 10);
    }
  }

  @Test
  void manyThreads() throws Exception {
    try (Accelerator accelerator = accelerator();
        GpuStorage storage = GpuStorage.open(image(), accelerator);
        StorageReader reader = new StorageReader(storage);
        ExecutorService threads = Executors.newFixedThreadPool(4)) {
      Callable<Boolean> work =
          () -> {
            SplittableRandom random = new SplittableRandom(Thread.currentThread().threadId());
            for (int i = 0; i < 300; i++) {
              check(reader, random.nextInt(SIZE - 80_000), random.nextInt(80_000));
            }
            return true;
          };
      for (Future<Boolean> done :
          threads.invokeAll(IntStream.range(0, 4).mapToObj(i -> work).toList())) {
        assertThat(done.get()).isTrue();
      }
    } catch (ExecutionException e) {
      throw new AssertionError(e.getCause());
    }
  }

  @Test
  void afterAFailureItGoesOn() throws IOException {
    Path rules =
        Files.writeString(
            folder.resolve("rules"), "status=media/unrecovered-read dnr on read count=1");
    try (Accelerator accelerator = accelerator();
        GpuStorage storage = GpuStorage.open(image() + ",faults=@" + rules, accelerator);
        StorageReader reader = new StorageReader(storage)) {
      assertThatExceptionOfType(StorageException.class)
          .isThrownBy(() -> reader.read(100, MemorySegment.ofArray(new byte[10])));
      for (int i = 0; i < 100; i++) {
        check(reader, i * 100_000, 5000);
      }
    }
  }

  @Test
  void misuse() throws IOException {
    try (Accelerator accelerator = accelerator();
        GpuStorage storage = GpuStorage.open(image(), accelerator)) {
      StorageReader reader = new StorageReader(storage);
      MemorySegment ten = MemorySegment.ofArray(new byte[10]);
      for (long at : new long[] {-1, SIZE - 9, SIZE + 1, Long.MAX_VALUE}) {
        assertThatExceptionOfType(InvalidRequestException.class)
            .isThrownBy(() -> reader.read(at, ten))
            .withMessageContaining("are not inside");
      }
      reader.close();
      reader.close();
      assertThatIllegalStateException().isThrownBy(() -> reader.read(0, ten));
    }
  }
}
