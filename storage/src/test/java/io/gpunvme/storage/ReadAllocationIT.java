package io.gpunvme.storage;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Once compiled, a short read by the caller's thread allocates its result, and nothing else; for
 * its system calls there may be a few segments besides, as the compiler decides.
 */
class ReadAllocationIT {
  private static final String SSD = "sim:size=1MiB,lba=4096,latency=0";
  private static final int SIZE = 1 << 20;
  private static final int READS = 1_000;
  private static final int ROUNDS = 1_000;
  private static final long RESULT = 48;
  private static final long SEGMENTS = 400;

  @TempDir Path folder;

  @Test
  void wholeBlocksOfAnSsd() {
    requireNoMore(SSD, 4096, RESULT);
  }

  @Test
  void partsOfBlocksOfAnSsd() {
    requireNoMore(SSD, 512, RESULT);
  }

  @Test
  void aMappedFile() throws Exception {
    requireNoMore("file:" + file() + "?path=mmap", 4096, RESULT);
  }

  @Test
  void aCachedFileByPinned() throws Exception {
    requireNoMore("file:" + file() + "?path=pinned", 4096, RESULT + SEGMENTS);
  }

  @Test
  void aFileByThePathThatSuits() throws Exception {
    requireNoMore(file().toString(), 4096, RESULT + SEGMENTS);
  }

  private Path file() throws Exception {
    return Files.write(folder.resolve("data"), new byte[SIZE]);
  }

  private static void requireNoMore(String address, int bytes, long limit) {
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    try (CpuAccelerator cpu = CpuAccelerator.open();
        GpuStorage storage = GpuStorage.open(address, cpu);
        DeviceBuffer buffer = cpu.allocate(8192)) {
      long least = Long.MAX_VALUE;
      for (int round = 0; round < ROUNDS && least > limit * READS; round++) {
        long before = threads.getCurrentThreadAllocatedBytes();
        for (int i = 0; i < READS; i++) {
          storage.read(i % 255 * 4096L, buffer, 0, bytes);
        }
        least = Math.min(least, threads.getCurrentThreadAllocatedBytes() - before);
      }
      assertThat(least / READS).as("bytes a read, best of %d rounds", ROUNDS).isBetween(0L, limit);
    }
  }
}
