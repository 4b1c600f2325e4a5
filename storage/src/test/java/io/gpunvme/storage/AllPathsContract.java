package io.gpunvme.storage;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Random;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** One file, many random requests, every path: the same bytes, and no others touched. */
abstract class AllPathsContract {
  private static final int REQUESTS = 10_000;
  private static final int LONGEST = 64 << 10;
  private static final int BUFFER = 2 * LONGEST;

  /** No multiple of 4096: the end is one block of 512 bytes, which the path direct has too. */
  private static final int SIZE = (8 << 20) + 512;

  @TempDir Path folder;

  /** Whose memory is read into. */
  abstract Accelerator accelerator();

  /** Options of the path direct. */
  abstract StorageOptions direct();

  /** Paths that a file is opened by, if they are possible. */
  abstract String[] files();

  @Test
  void everyPathBringsTheSameBytes() throws IOException {
    long seed = Long.getLong("gpunvme.seed", System.nanoTime());
    System.out.println(getClass().getSimpleName() + " seed " + seed);
    byte[] content = new byte[SIZE];
    new Random(seed).nextBytes(content);
    Path file = folder.resolve("all.bin");
    Files.write(file, content);
    Map<String, GpuStorage> paths = new LinkedHashMap<>();
    try (Accelerator accelerator = accelerator()) {
      try {
        open(file, accelerator, paths);
        compare(content, seed, accelerator, paths);
      } finally {
        paths.values().forEach(GpuStorage::close);
      }
    }
  }

  private void open(Path file, Accelerator accelerator, Map<String, GpuStorage> paths) {
    String image = "sim:media=mapped,readonly=on,lba=512,file=" + file;
    paths.put("direct", GpuStorage.open(StorageAddress.parse(image), accelerator, direct()));
    for (String path : files()) {
      try {
        paths.put(path, GpuStorage.open(file + "?path=" + path, accelerator));
      } catch (StorageException e) {
        assertThat(e.kind()).isEqualTo(Kind.UNSUPPORTED);
        System.out.println("SKIP path " + path + ": " + e.getMessage());
      }
    }
    assertThat(paths).containsKeys("direct", "pinned", "mmap");
  }

  private static void compare(
      byte[] content, long seed, Accelerator accelerator, Map<String, GpuStorage> paths) {
    SplittableRandom random = new SplittableRandom(seed);
    byte[] expected = new byte[BUFFER];
    byte[] seen = new byte[BUFFER];
    Map<String, DeviceBuffer> buffers = new LinkedHashMap<>();
    paths.keySet().forEach(path -> buffers.put(path, accelerator.allocate(BUFFER)));
    for (int i = 0; i < REQUESTS; i++) {
      int length = random.nextInt(random.nextInt(LONGEST) + 1);
      int offset = random.nextInt(4) == 0 ? SIZE - length : random.nextInt(SIZE - length + 1);
      int at = random.nextInt(BUFFER - length + 1);
      System.arraycopy(content, offset, expected, at, length);
      for (Map.Entry<String, GpuStorage> path : paths.entrySet()) {
        path.getValue().read(offset, buffers.get(path.getKey()), at, length);
      }
      // What lies beside a request is seen by the next comparison.
      if (i % 8 == 7 || i == REQUESTS - 1) {
        for (Map.Entry<String, DeviceBuffer> buffer : buffers.entrySet()) {
          buffer.getValue().copyToHost(0, MemorySegment.ofArray(seen));
          assertThat(Arrays.mismatch(seen, expected))
              .as("%s, request %d: %d bytes at %d to %d", buffer.getKey(), i, length, offset, at)
              .isEqualTo(-1);
        }
      }
    }
    paths.forEach((name, storage) -> assertThat(storage.stats()).as(name).isNotEmpty());
  }
}
