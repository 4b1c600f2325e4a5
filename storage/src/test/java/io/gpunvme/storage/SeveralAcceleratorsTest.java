package io.gpunvme.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.cuda.Cuda;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.cuda.FakeDriver;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.queue.CpuCuda;
import io.gpunvme.gpu.queue.DeviceRows;
import io.gpunvme.gpu.queue.KernelStorage;
import io.gpunvme.gpu.queue.KernelStorageOptions;
import io.gpunvme.gpu.queue.PageCache;
import io.gpunvme.gpu.queue.PageCacheOptions;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.storage.path.PathKind;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** One storage that several accelerators use. */
@Timeout(120)
class SeveralAcceleratorsTest {
  private static final int BYTES = 1 << 20;

  @TempDir Path folder;

  private final byte[] data = new byte[BYTES];

  private Path file() throws IOException {
    new Random(1).nextBytes(data);
    return Files.write(folder.resolve("file"), data);
  }

  private static byte[] read(GpuStorage storage, Accelerator accelerator, int offset, int length) {
    try (DeviceBuffer buffer = accelerator.allocate(length)) {
      storage.read(offset, buffer, 0, length);
      byte[] got = new byte[length];
      buffer.copyToHost(0, MemorySegment.ofArray(got));
      return got;
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "file:%s",
        "sim:latency=0,file=%s",
        "stripe:sim:latency=0,file=%1$s,sim:latency=0,file=%1$s;unit=64KiB",
      })
  void eachReadsTheSameBytes(String address) throws IOException {
    String name = address.formatted(file());
    try (Accelerator one = CpuAccelerator.open();
        Accelerator other = CpuAccelerator.open();
        GpuStorage storage = GpuStorage.open(name, one)) {
      byte[] first = read(storage, one, 1234, 100_000);
      GpuStorage theirs = storage.on(other);
      assertThat(theirs.accelerator()).isSameAs(other);
      assertThat(theirs.address()).isEqualTo(storage.address());
      assertThat(read(theirs, other, 1234, 100_000)).isEqualTo(first);
      if (!name.startsWith("stripe")) {
        assertThat(first).isEqualTo(Arrays.copyOfRange(data, 1234, 101_234));
      }
      // Each counts its own.
      assertThat(theirs.stats().values()).allMatch(s -> s.readBytes() == 100_000);
      theirs.close();
      theirs.close();
      assertThatThrownBy(() -> read(theirs, other, 0, 1))
          .isInstanceOf(StorageClosedException.class);
      assertThat(read(storage, one, 0, 10)).hasSize(10);
    }
  }

  @Test
  void whoClosesTheStorageClosesItForAll() throws IOException {
    try (Accelerator one = CpuAccelerator.open();
        Accelerator other = CpuAccelerator.open()) {
      GpuStorage storage = GpuStorage.open("sim:latency=0,file=" + file(), one);
      GpuStorage theirs = storage.on(other);
      GpuStorage again = theirs.on(one);
      assertThat(read(again, one, 7, 100)).isEqualTo(Arrays.copyOfRange(data, 7, 107));
      storage.close();
      assertThatThrownBy(() -> read(theirs, other, 0, 1))
          .isInstanceOf(StorageClosedException.class);
      assertThatThrownBy(() -> read(again, one, 0, 1)).isInstanceOf(StorageClosedException.class);
      assertThatThrownBy(() -> storage.on(other)).isInstanceOf(StorageClosedException.class);
    }
  }

  @Test
  void writesOfPartsOfOneBlockDoNotLoseEachOther() throws Exception {
    try (Accelerator one = CpuAccelerator.open();
        Accelerator other = CpuAccelerator.open();
        GpuStorage storage =
            GpuStorage.open(
                StorageAddress.parse("sim:latency=0,size=1MiB,lba=4096"),
                one,
                StorageOptions.defaults().withWrite(true));
        GpuStorage theirs = storage.on(other)) {
      Thread even = writer(storage, one, 0);
      Thread odd = writer(theirs, other, 1);
      even.join();
      odd.join();
      byte[] expected = new byte[4096];
      for (int i = 0; i < expected.length; i++) {
        expected[i] = (byte) (i / 16 + 1);
      }
      assertThat(read(storage, one, 0, 4096)).isEqualTo(expected);
    }
  }

  /** Writes every other 16 bytes of the first block, each time anew. */
  private static Thread writer(GpuStorage storage, Accelerator accelerator, int first) {
    return Thread.ofPlatform()
        .start(
            () -> {
              try (DeviceBuffer buffer = accelerator.allocate(16)) {
                for (int i = first; i < 256; i += 2) {
                  byte[] part = new byte[16];
                  Arrays.fill(part, (byte) (i + 1));
                  buffer.copyFromHost(MemorySegment.ofArray(part), 0);
                  storage.write(16L * i, buffer, 0, 16);
                }
              }
            });
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
      rows = storage.rowsForKernels(cache, 0, BYTES / 256, 256, false);
      stream = gpu.context().stream();
    }

    void gather(int rounds, long seed) {
      Random random = new Random(seed);
      for (int r = 0; r < rounds; r++) {
        long[] ids = random.longs(200, 0, rows.count()).toArray();
        try (DeviceBuffer device = gpu.allocatePinned(8L * ids.length);
            DeviceBuffer target = gpu.allocatePinned(256L * ids.length)) {
          device.copyFromHost(MemorySegment.ofArray(ids), 0);
          rows.gather(stream, device.deviceAddress(), ids.length, target.deviceAddress());
          rows.synchronize();
          byte[] got = new byte[256 * ids.length];
          target.copyToHost(0, MemorySegment.ofArray(got));
          for (int i = 0; i < ids.length; i++) {
            int at = (int) ids[i] * 256;
            assertThat(Arrays.copyOfRange(got, i * 256, (i + 1) * 256))
                .isEqualTo(Arrays.copyOfRange(data, at, at + 256));
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

  @Test
  void kernelsOfTwoGpusReadOneSsdAtTheSameTime() throws Exception {
    Cuda cuda = FakeDriver.load(CpuCuda.library(2));
    String address = "sim:latency=0,lba=512,file=" + file();
    StorageOptions options =
        StorageOptions.defaults()
            .with(InitiatorOptions.defaults().with(InitiatorKind.GPU, Placement.HOST));
    try (GpuAccelerator one = GpuAccelerator.open(cuda.device(0));
        GpuAccelerator other = GpuAccelerator.open(cuda.device(1));
        GpuStorage storage = GpuStorage.open(StorageAddress.parse(address), one, options)) {
      GpuStorage theirs = storage.on(other);
      try (Rows first = new Rows(one, storage);
          Rows second = new Rows(other, theirs)) {
        List<Throwable> failures = new CopyOnWriteArrayList<>();
        Thread thread = Thread.ofPlatform().unstarted(() -> second.gather(5, 2));
        thread.setUncaughtExceptionHandler((_, e) -> failures.add(e));
        thread.start();
        first.gather(5, 3);
        // Transfers by kernels of each, beside the kernels that gather.
        assertThat(read(storage, one, 4096, 64 << 10))
            .isEqualTo(Arrays.copyOfRange(data, 4096, 4096 + (64 << 10)));
        assertThat(read(theirs, other, 8192, 64 << 10))
            .isEqualTo(Arrays.copyOfRange(data, 8192, 8192 + (64 << 10)));
        thread.join();
        assertThat(failures).isEmpty();
      }
      assertThat(theirs.explain().modes().get(PathKind.DIRECT)).startsWith("GPU-initiated");
    }
  }
}
