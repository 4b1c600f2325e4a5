package io.gpunvme.storage.path.cufile;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.accel.TestGpu;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.nvme.pci.NumaHome;
import io.gpunvme.storage.path.DataPath;
import io.gpunvme.storage.path.DataPathContract;
import io.gpunvme.storage.path.PathCall;
import io.gpunvme.storage.path.PathCounters;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import io.gpunvme.storage.path.Verdict;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestReporter;
import org.junit.jupiter.api.io.TempDir;

/** The path with the real cuFile, on the temporary folder's file system. */
@Tag("gpu")
final class CuFilePathGpuTest {
  private static void require(Path file, Accelerator accelerator) {
    Verdict verdict = CuFilePath.judge(file.toString(), accelerator);
    if (!verdict.possible()) {
      accelerator.close();
      Assumptions.abort(verdict.reason() + "; " + verdict.fix());
    }
  }

  private abstract static class OnGpu extends DataPathContract {
    abstract CuFileOptions options();

    @Override
    protected Accelerator accelerator() {
      return TestGpu.open();
    }

    @Override
    protected DataPath open(Path file, Accelerator accelerator) {
      require(file, accelerator);
      return CuFilePath.open(
          file.toString(), true, (GpuAccelerator) accelerator, options(), NumaHome.NONE);
    }
  }

  @Nested
  class Defaults extends OnGpu {
    @Override
    CuFileOptions options() {
      return CuFileOptions.defaults();
    }
  }

  @Nested
  class PastThePageCache extends OnGpu {
    @Override
    CuFileOptions options() {
      return CuFileOptions.defaults().withDirect(true).withChunk(1 << 20);
    }
  }

  @Test
  void theModeSaysWhichWayTheBytesTook(@TempDir Path folder, TestReporter reporter)
      throws IOException {
    int length = 64 << 20;
    Path file = Files.write(folder.resolve("data"), new byte[length]);
    try (GpuAccelerator gpu = TestGpu.open()) {
      require(file, gpu);
      reporter.publishEntry("judge", CuFilePath.judge(file.toString(), gpu).toString());
      try (CuFilePath path =
              CuFilePath.open(
                  file.toString(), false, gpu, CuFileOptions.defaults(), NumaHome.NONE);
          DeviceBuffer buffer = gpu.allocate(length)) {
        path.register(buffer);
        reporter.publishEntry("opened", path.mode());
        path.transfer(
            Direction.READ,
            List.of(new Range(0, buffer, 0, length)),
            new PathCall("data", new PathCounters()));
        reporter.publishEntry("mode", path.mode());
        assertThat(path.mode()).containsAnyOf("compatibility mode (", "direct (");
      }
    }
    assertThat(Path.of("cufile.log").toAbsolutePath()).doesNotExist();
  }

  @Test
  void batchesBringTheBytes(@TempDir Path folder) throws IOException {
    byte[] content = new byte[1 << 20];
    new Random(5).nextBytes(content);
    Path file = Files.write(folder.resolve("data"), content);
    CuFileOptions batches =
        CuFileOptions.defaults().withChunk(64 << 10).withThreads(1).withBatch(16);
    try (GpuAccelerator gpu = TestGpu.open()) {
      require(file, gpu);
      try (CuFilePath path = CuFilePath.open(file.toString(), false, gpu, batches, NumaHome.NONE);
          DeviceBuffer buffer = gpu.allocate(content.length)) {
        assertThat(path.mode()).contains("batches of 16");
        path.transfer(
            Direction.READ,
            List.of(new Range(0, buffer, 0, content.length)),
            new PathCall("data", new PathCounters()));
        byte[] seen = new byte[content.length];
        buffer.copyToHost(0, MemorySegment.ofArray(seen));
        assertThat(Arrays.mismatch(seen, content)).isEqualTo(-1);
      }
    }
  }

  @Test
  void aFileInMemoryIsRefusedForItsTrueReason() throws IOException {
    Path shm = Path.of("/dev/shm");
    Assumptions.assumeTrue(Files.isWritable(shm), "no /dev/shm");
    Path file = Files.createTempFile(shm, "gpunvme", ".bin");
    try (GpuAccelerator gpu = TestGpu.open()) {
      Verdict verdict = CuFilePath.judge(file.toString(), gpu);
      assertThat(verdict.possible()).isFalse();
      Assumptions.assumeTrue(verdict.reason().contains("tmpfs"), verdict::reason);
      // What the library itself answers agrees.
      assertThatExceptionOfType(StorageException.class)
          .isThrownBy(
              () ->
                  CuFilePath.open(
                          file.toString(), false, gpu, CuFileOptions.defaults(), NumaHome.NONE)
                      .close())
          .satisfies(e -> assertThat(e.kind()).isEqualTo(Kind.UNSUPPORTED));
    } finally {
      Files.delete(file);
    }
  }
}
