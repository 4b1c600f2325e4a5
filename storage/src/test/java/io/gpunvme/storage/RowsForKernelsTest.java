package io.gpunvme.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.cuda.FakeDriver;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.queue.CpuCuda;
import io.gpunvme.gpu.queue.DeviceRows;
import io.gpunvme.gpu.queue.DeviceStatus;
import io.gpunvme.gpu.queue.KernelStorage;
import io.gpunvme.gpu.queue.KernelStorageOptions;
import io.gpunvme.gpu.queue.PageCache;
import io.gpunvme.gpu.queue.PageCacheOptions;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.queue.RowsFailedException;
import io.gpunvme.nvme.driver.ControllerOptions;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Rows of what has an address, moved by the real kernels on the CPU. */
@Timeout(120)
class RowsForKernelsTest {
  private static final int PAGE = 4096;
  private static final int BYTES = 96 * PAGE;
  private static final Duration LIMIT = Duration.ofSeconds(30);

  @TempDir Path folder;

  private final Random random = new Random(1);
  private final byte[] data = new byte[BYTES];
  private GpuAccelerator gpu;

  @BeforeEach
  void open() throws IOException {
    gpu = GpuAccelerator.open(FakeDriver.load(CpuCuda.library()).device(0));
    random.nextBytes(data);
    Files.write(folder.resolve("file"), data);
  }

  @AfterEach
  void close() {
    gpu.close();
  }

  /** Rows from byte 1000 of the file on, behind a cache. */
  private final class Rig implements AutoCloseable {
    static final int OFFSET = 1000;

    final GpuStorage storage;
    final KernelStorage kernels;
    final PageCache cache;
    final DeviceRows rows;
    final int rowBytes;
    final CudaStream stream = gpu.context().stream();

    Rig(int rowBytes, boolean writable, int cachedPages, String more) {
      StorageOptions options =
          StorageOptions.defaults().with(ControllerOptions.builder().allowWrite(writable).build());
      String address = "sim:latency=0,lba=512" + more + ",file=" + folder.resolve("file");
      storage = GpuStorage.open(StorageAddress.parse(address), gpu, options);
      kernels = storage.forKernels(KernelStorageOptions.in(Placement.HOST).with(2, 32));
      cache = kernels.cache(PageCacheOptions.of((long) cachedPages * PAGE));
      long count = (BYTES - OFFSET) / rowBytes;
      rows = storage.rowsForKernels(cache, OFFSET, count, rowBytes, writable);
      this.rowBytes = rowBytes;
    }

    byte[] gather(long... ids) {
      try (DeviceBuffer device = gpu.allocatePinned(8L * ids.length);
          DeviceBuffer target = gpu.allocatePinned((long) rowBytes * ids.length)) {
        device.copyFromHost(MemorySegment.ofArray(ids), 0);
        rows.gather(stream, device.deviceAddress(), ids.length, target.deviceAddress());
        rows.synchronize();
        byte[] got = new byte[rowBytes * ids.length];
        target.copyToHost(0, MemorySegment.ofArray(got));
        return got;
      }
    }

    void update(byte[] source, long... ids) {
      try (DeviceBuffer device = gpu.allocatePinned(8L * ids.length);
          DeviceBuffer from = gpu.allocatePinned(source.length)) {
        device.copyFromHost(MemorySegment.ofArray(ids), 0);
        from.copyFromHost(MemorySegment.ofArray(source), 0);
        rows.update(stream, device.deviceAddress(), ids.length, from.deviceAddress());
        rows.synchronize();
      }
    }

    byte[] expected(long... ids) {
      byte[] all = new byte[rowBytes * ids.length];
      for (int i = 0; i < ids.length; i++) {
        int from = (int) (OFFSET + ids[i] * rowBytes);
        System.arraycopy(data, from, all, i * rowBytes, rowBytes);
      }
      return all;
    }

    long[] ids(int count) {
      return random.longs(count, 0, rows.count()).toArray();
    }

    @Override
    public void close() {
      rows.close();
      stream.close();
      cache.close();
      kernels.close();
      storage.close();
    }
  }

  @Test
  void rowsOfAnyLengthAreGatheredInAnyOrder() {
    for (int rowBytes : new int[] {1, 6, 16, 100, 4096, 10_000}) {
      try (Rig rig = new Rig(rowBytes, false, 32, "")) {
        for (int count : new int[] {1, 3, 200}) {
          long[] ids = rig.ids(count);
          ids[count - 1] = ids[0];
          assertThat(rig.gather(ids))
              .as("%d rows of %d", count, rowBytes)
              .isEqualTo(rig.expected(ids));
        }
      }
    }
  }

  @Test
  void aCacheOfOneSetIsEnough() {
    try (Rig rig = new Rig(4096, false, 16, "")) {
      long[] ids = rig.ids(500);
      assertThat(rig.gather(ids)).isEqualTo(rig.expected(ids));
      assertThat(rig.cache.counters().evictions()).isPositive();
    }
  }

  @Test
  void whatWasFetchedIsNotReadAgain() {
    try (Rig rig = new Rig(512, false, 256, "");
        DeviceBuffer device = gpu.allocatePinned(8 * 50)) {
      long[] ids = rig.ids(50);
      device.copyFromHost(MemorySegment.ofArray(ids), 0);
      rig.rows.fetch(rig.stream, device.deviceAddress(), ids.length);
      rig.rows.synchronize();
      long reads = rig.cache.counters().reads();
      assertThat(reads).isBetween(10L, 100L);
      assertThat(rig.gather(ids)).isEqualTo(rig.expected(ids));
      assertThat(rig.cache.counters().reads()).isEqualTo(reads);
    }
  }

  @Test
  void whatIsUpdatedIsGatheredAndOnceFlushedOnTheSsd() throws IOException {
    long[] ids = {5, 0, 77};
    byte[] values = new byte[3 * 1000];
    random.nextBytes(values);
    try (Rig rig = new Rig(1000, true, 16, "")) {
      rig.update(values, ids);
      assertThat(rig.gather(ids)).isEqualTo(values);
      rig.cache.flush(LIMIT);
    }
    for (int i = 0; i < ids.length; i++) {
      int at = (int) (Rig.OFFSET + ids[i] * 1000);
      System.arraycopy(values, i * 1000, data, at, 1000);
    }
    assertThat(Files.readAllBytes(folder.resolve("file"))).isEqualTo(data);
  }

  @Test
  void rowsThatAreNotThereAreToldAndNobodyTakesThemForOthers() {
    try (Rig rig = new Rig(64, false, 32, "")) {
      long count = rig.rows.count();
      for (long wrong : new long[] {count, -1, Long.MIN_VALUE}) {
        assertThatExceptionOfType(RowsFailedException.class)
            .isThrownBy(() -> rig.gather(3, wrong, 4))
            .matches(e -> e.status() == DeviceStatus.ARGUMENT && e.id() == wrong && e.rows() == 1)
            .withMessageContaining("rows 0 to " + (count - 1));
      }
      // Told once; then the rows can be used again.
      assertThat(rig.gather(3)).isEqualTo(rig.expected(3));
      try (DeviceBuffer device = gpu.allocatePinned(16);
          DeviceBuffer target = gpu.allocatePinned(128)) {
        device.copyFromHost(MemorySegment.ofArray(new long[] {count, 1}), 0);
        rig.rows.gather(rig.stream, device.deviceAddress(), 2, target.deviceAddress());
        assertThatExceptionOfType(RowsFailedException.class).isThrownBy(rig.rows::synchronize);
        byte[] got = target.segment().asSlice(0, 128).toArray(ValueLayout.JAVA_BYTE);
        byte[] none = new byte[64];
        Arrays.fill(none, (byte) 0xFF);
        assertThat(Arrays.copyOf(got, 64)).isEqualTo(none);
        assertThat(Arrays.copyOfRange(got, 64, 128)).isEqualTo(rig.expected(1));
      }
    }
  }

  @Test
  void aFailureOfTheSsdIsToldByTheNextCall() {
    String fault = ",faults=status=media/unrecovered-read-error dnr on read lba=8";
    try (Rig rig = new Rig(4096, false, 32, fault);
        DeviceBuffer device = gpu.allocatePinned(8);
        DeviceBuffer target = gpu.allocatePinned(4096)) {
      rig.rows.gather(rig.stream, device.deviceAddress(), 1, target.deviceAddress());
      rig.stream.synchronize();
      long end = System.nanoTime() + LIMIT.toNanos();
      assertThatExceptionOfType(RowsFailedException.class)
          .isThrownBy(
              () -> {
                while (System.nanoTime() < end) {
                  rig.rows.fetch(rig.stream, device.deviceAddress(), 0);
                }
              })
          .matches(e -> (e.status() & 0x7FF) == 0x281 && e.id() == 0);
      assertThat(rig.kernels.errors().total()).isPositive();
    }
  }

  @Test
  void aFlushTellsOfUpdatesThatFailed() throws IOException {
    String fault = ",faults=status=media/unrecovered-read-error dnr on read lba=8";
    byte[] values = new byte[2 * 4096];
    random.nextBytes(values);
    try (Rig rig = new Rig(4096, true, 32, fault);
        DeviceBuffer device = gpu.allocatePinned(16);
        DeviceBuffer source = gpu.allocatePinned(values.length)) {
      device.copyFromHost(MemorySegment.ofArray(new long[] {0, 7}), 0);
      source.copyFromHost(MemorySegment.ofArray(values), 0);
      rig.rows.update(rig.stream, device.deviceAddress(), 2, source.deviceAddress());
      assertThatExceptionOfType(RowsFailedException.class)
          .isThrownBy(() -> rig.cache.flush(LIMIT))
          .matches(e -> e.id() == 0);
      rig.cache.flush(LIMIT);
      // Told once more, to whoever has the rows; then it is over.
      assertThatExceptionOfType(RowsFailedException.class).isThrownBy(rig.rows::synchronize);
      rig.rows.synchronize();
    }
    // The other row was written by the flush that said so.
    byte[] there = Files.readAllBytes(folder.resolve("file"));
    int at = Rig.OFFSET + 7 * 4096;
    assertThat(Arrays.copyOfRange(there, at, at + 4096))
        .isEqualTo(Arrays.copyOfRange(values, 4096, 8192));
  }

  @Test
  void kernelsThatFollowEachOtherLeaveRoomForOthersToEnd() throws Exception {
    try (Rig rig = new Rig(512, false, 64, "");
        DeviceBuffer device = gpu.allocatePinned(80);
        ExecutorService other = Executors.newSingleThreadExecutor()) {
      device.copyFromHost(MemorySegment.ofArray(rig.ids(10)), 0);
      AtomicBoolean over = new AtomicBoolean();
      Future<?> busy =
          other.submit(
              () -> {
                while (!over.get()) {
                  rig.rows.fetch(rig.stream, device.deviceAddress(), 10);
                }
              });
      long end = System.nanoTime() + Duration.ofMillis(2500).toNanos();
      int times = 0;
      while (System.nanoTime() < end) {
        rig.rows.synchronize();
        rig.cache.flush(LIMIT);
        times++;
      }
      over.set(true);
      busy.get();
      assertThat(times).isPositive();
      rig.rows.synchronize();
      rig.kernels.recover();
    }
  }

  @Test
  void severalThreadsAndStreamsMayCall() throws Exception {
    try (Rig rig = new Rig(512, false, 64, "");
        ExecutorService threads = Executors.newFixedThreadPool(4)) {
      List<Future<?>> all = new ArrayList<>();
      for (int t = 0; t < 4; t++) {
        long[] ids = rig.ids(40);
        all.add(
            threads.submit(
                () -> {
                  try (CudaStream own = gpu.context().stream();
                      DeviceBuffer device = gpu.allocatePinned(8L * ids.length);
                      DeviceBuffer target = gpu.allocatePinned(512L * ids.length)) {
                    device.copyFromHost(MemorySegment.ofArray(ids), 0);
                    for (int i = 0; i < 20; i++) {
                      rig.rows.gather(
                          own, device.deviceAddress(), ids.length, target.deviceAddress());
                    }
                    rig.rows.synchronize();
                    byte[] got = new byte[512 * ids.length];
                    target.copyToHost(0, MemorySegment.ofArray(got));
                    assertThat(got).isEqualTo(rig.expected(ids));
                  }
                }));
      }
      for (Future<?> one : all) {
        one.get();
      }
    }
  }

  @Test
  void closingWaitsForWhatRuns() {
    String slow = ",faults=delay=200ms on read";
    byte[] got = new byte[4096];
    Rig rig = new Rig(4096, false, 32, slow);
    try (DeviceBuffer device = gpu.allocatePinned(8);
        DeviceBuffer target = gpu.allocatePinned(4096)) {
      rig.rows.gather(rig.stream, device.deviceAddress(), 1, target.deviceAddress());
      rig.kernels.close();
      target.copyToHost(0, MemorySegment.ofArray(got));
    }
    assertThat(got).isEqualTo(rig.expected(0));
    rig.stream.close();
    rig.storage.close();
  }

  @Test
  void whatCannotBeIsRefused() {
    try (Rig rig = new Rig(4096, false, 32, "")) {
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> rig.rows.update(rig.stream, 0, 1, 0))
          .withMessageContaining("read only");
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> rig.rows.gather(rig.stream, 0, -1, 0));
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> rig.rows.gather(rig.stream, 0, Long.MAX_VALUE / 8, 0));
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> rig.storage.rowsForKernels(rig.cache, 0, BYTES, 2, false))
          .withMessageContaining("inside");
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> rig.storage.rowsForKernels(rig.cache, 0, 0, 2, false));
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> rig.storage.rowsForKernels(rig.cache, 0, 1, 8, true))
          .withMessageContaining("opened for writing");
      rig.rows.close();
      assertThatExceptionOfType(IllegalStateException.class).isThrownBy(rig.rows::synchronize);
    }
    try (CpuAccelerator cpu = CpuAccelerator.open();
        GpuStorage storage =
            GpuStorage.open(StorageAddress.parse("sim:size=1MiB"), cpu, StorageOptions.defaults());
        KernelStorage kernels =
            storage.forKernels(KernelStorageOptions.in(Placement.HOST).with(1, 32));
        PageCache cache = kernels.cache(PageCacheOptions.of(16L * PAGE))) {
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> storage.rowsForKernels(cache, 0, 1, 8, false))
          .withMessageContaining("CPU stand-in");
    }
  }
}
