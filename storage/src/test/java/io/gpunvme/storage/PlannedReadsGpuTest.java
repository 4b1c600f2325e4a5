package io.gpunvme.storage;

import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.accel.TestGpu;
import io.gpunvme.storage.kind.Kind;
import io.gpunvme.storage.kind.ReadRequest;
import io.gpunvme.storage.path.StorageException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Elements of kinds into GPU memory by every path of a file, in many rounds of staging memory. */
@Tag("gpu")
@Timeout(120)
class PlannedReadsGpuTest {
  /** Three halves of staging memory and no multiple of 4096: the halves take turns. */
  private static final int SIZE = (96 << 20) + 1234;

  private static final int ROWS = 16 << 20;
  private static final int REST = 80 << 20;
  private static final int BUFFER = 160 << 20;

  @TempDir Path folder;

  private static ReadRequest kinds() {
    return ReadRequest.builder()
        .add(new Kind(3, "tokens", 777, ROWS - 777, 13))
        .add(new Kind(9, "rows", ROWS, REST - ROWS, 4096))
        .add(new Kind(12, "", REST, SIZE - REST, 1000))
        .build();
  }

  @ParameterizedTest
  @ValueSource(strings = {"pinned", "mmap", "cufile", "auto"})
  void elementsOfKindsArriveWhereTheyBelong(String path) throws IOException {
    long seed = Long.getLong("gpunvme.seed", System.nanoTime());
    System.out.println("PlannedReadsGpuTest seed " + seed);
    byte[] content = new byte[SIZE];
    new Random(seed).nextBytes(content);
    Path file = Files.write(folder.resolve("kinds.bin"), content);
    KindReads reads =
        new KindReads(kinds(), new int[] {3, 9, 12}, content, new SplittableRandom(seed));
    byte[] expected = new byte[BUFFER];
    try (GpuAccelerator gpu = TestGpu.open();
        GpuStorage storage = open(file + "?path=" + path, gpu);
        DeviceBuffer buffer = gpu.allocate(BUFFER)) {
      for (int count : new int[] {1, 17, 400, 5000, 20_000, 20_000}) {
        reads.check(storage, buffer, expected, count);
      }
    }
  }

  private static GpuStorage open(String address, GpuAccelerator gpu) {
    try {
      return GpuStorage.open(address, gpu);
    } catch (StorageException e) {
      Assumptions.assumeFalse(e.kind() == StorageException.Kind.UNSUPPORTED, e.getMessage());
      throw e;
    }
  }
}
