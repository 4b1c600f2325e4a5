package io.gpunvme.storage;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.cuda.CudaStream;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.queue.DeviceRows;
import io.gpunvme.gpu.queue.KernelStorage;
import io.gpunvme.gpu.queue.KernelStorageOptions;
import io.gpunvme.gpu.queue.PageCache;
import io.gpunvme.gpu.queue.PageCacheOptions;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.storage.path.PathKind;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Kernels of two GPUs on one SSD at the same time; the GPUs may be one. */
@Timeout(120)
abstract class SeveralGpusContract {
  private static final int BYTES = 1 << 20;
  private static final int ROW = 256;

  @TempDir Path folder;

  private final byte[] data = new byte[BYTES];
  private final GpuAccelerator one;
  private final GpuAccelerator other;
  private final int rounds;

  /**
   * @param gpus two; closed after the test
   * @param rounds of kernels that each has
   */
  SeveralGpusContract(List<GpuAccelerator> gpus, int rounds) {
    one = gpus.getFirst();
    other = gpus.getLast();
    this.rounds = rounds;
  }

  @AfterEach
  void close() {
    other.close();
    one.close();
  }

  /** A gather of rows by the kernels of one GPU. */
  private final class Rows implements AutoCloseable {
    private final GpuAccelerator gpu;
    private final KernelStorage kernels;
    private final PageCache cache;
    private final DeviceRows rows;
    private final CudaStream stream;

    Rows(GpuAccelerator gpu, GpuStorage storage) {
      this.gpu = gpu;
      kernels = storage.forKernels(KernelStorageOptions.in(Placement.HOST).with(2, 32));
      cache = kernels.cache(PageCacheOptions.of(32 * 4096));
      rows = storage.rowsForKernels(cache, 0, BYTES / ROW, ROW, false);
      stream = gpu.context().stream();
    }

    void gather(int rounds, long seed) {
      Random random = new Random(seed);
      for (int r = 0; r < rounds; r++) {
        long[] ids = random.longs(200, 0, rows.count()).toArray();
        try (DeviceBuffer device = gpu.allocatePinned(8L * ids.length);
            DeviceBuffer target = gpu.allocatePinned((long) ROW * ids.length)) {
          device.copyFromHost(MemorySegment.ofArray(ids), 0);
          rows.gather(stream, device.deviceAddress(), ids.length, target.deviceAddress());
          rows.synchronize();
          byte[] got = new byte[ROW * ids.length];
          target.copyToHost(0, MemorySegment.ofArray(got));
          for (int i = 0; i < ids.length; i++) {
            int at = (int) ids[i] * ROW;
            assertThat(Arrays.copyOfRange(got, i * ROW, (i + 1) * ROW))
                .isEqualTo(Arrays.copyOfRange(data, at, at + ROW));
          }
        }
      }
    }

    @Override
    public void close() {
      rows.close();
      stream.close();
      cache.close();
      kernels.close();
    }
  }

  private void read(GpuStorage storage, GpuAccelerator gpu, int offset, int length) {
    try (DeviceBuffer buffer = gpu.allocate(length)) {
      storage.read(offset, buffer, 0, length);
      byte[] got = new byte[length];
      buffer.copyToHost(0, MemorySegment.ofArray(got));
      assertThat(got).isEqualTo(Arrays.copyOfRange(data, offset, offset + length));
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        ",faults=duplicate on io every=31;reorder=3 on io every=17;torn on io every=13"
      })
  void bothReadOneSsdAtTheSameTime(String faults) throws Exception {
    new Random(1).nextBytes(data);
    Path file = Files.write(folder.resolve("file"), data);
    String address = "sim:latency=0,lba=512,file=" + file + faults;
    StorageOptions options =
        StorageOptions.defaults()
            .with(InitiatorOptions.defaults().with(InitiatorKind.GPU, Placement.HOST));
    try (GpuStorage storage = GpuStorage.open(StorageAddress.parse(address), one, options)) {
      GpuStorage theirs = storage.on(other);
      try (Rows first = new Rows(one, storage);
          Rows second = new Rows(other, theirs)) {
        List<Throwable> failures = new CopyOnWriteArrayList<>();
        Thread thread = Thread.ofPlatform().unstarted(() -> second.gather(rounds, 2));
        thread.setUncaughtExceptionHandler((_, e) -> failures.add(e));
        thread.start();
        first.gather(rounds, 3);
        // Transfers by kernels of each, beside the kernels that gather.
        for (int i = 0; i < rounds; i++) {
          read(storage, one, 4096 * i, 64 << 10);
          read(theirs, other, 8192 * i, 64 << 10);
        }
        thread.join();
        assertThat(failures).isEmpty();
      }
      assertThat(theirs.explain().modes().get(PathKind.DIRECT)).startsWith("GPU-initiated");
    }
  }
}
