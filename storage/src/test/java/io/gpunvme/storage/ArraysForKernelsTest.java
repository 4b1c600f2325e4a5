package io.gpunvme.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.cuda.FakeDriver;
import io.gpunvme.cuda.KernelArguments;
import io.gpunvme.cuda.LaunchShape;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.queue.CpuCuda;
import io.gpunvme.gpu.queue.DeviceArray;
import io.gpunvme.gpu.queue.DirtyPagesException;
import io.gpunvme.gpu.queue.GpuModule;
import io.gpunvme.gpu.queue.KernelStorage;
import io.gpunvme.gpu.queue.KernelStorageOptions;
import io.gpunvme.gpu.queue.PageCache;
import io.gpunvme.gpu.queue.PageCacheOptions;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.nvme.driver.ControllerOptions;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Arrays of what has an address, stored to by the real kernels on the CPU. */
@Timeout(120)
class ArraysForKernelsTest {
  private static final ValueLayout.OfLong WORD =
      ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final int PAGE = 4096;
  private static final int PAGES = 64;
  private static final Duration LIMIT = Duration.ofSeconds(30);
  private static final KernelStorageOptions QUEUES =
      KernelStorageOptions.in(Placement.HOST).with(2, 32);

  @TempDir Path folder;

  private static GpuAccelerator gpu() {
    return GpuAccelerator.open(FakeDriver.load(CpuCuda.library()).device(0));
  }

  private GpuStorage open(GpuAccelerator gpu, boolean writable, String faults) throws IOException {
    Path file = folder.resolve("file");
    Files.write(file, new byte[PAGES * PAGE]);
    StorageOptions options =
        StorageOptions.defaults().with(ControllerOptions.builder().allowWrite(writable).build());
    String address = "sim:latency=0,lba=4096" + faults + ",file=" + file;
    return GpuStorage.open(StorageAddress.parse(address), gpu, options);
  }

  /** Each word of the array becomes the hash of its number, by pages that are written whole. */
  private static void store(GpuAccelerator gpu, KernelStorage kernels, DeviceArray array) {
    GpuModule module = GpuModule.resource(gpu, "arrays");
    try (CudaStream stream = gpu.context().stream();
        DeviceBuffer result = gpu.allocate(PAGE);
        Arena arena = Arena.ofConfined()) {
      MemorySegment args = arena.allocate(48, Long.BYTES);
      args.set(WORD, 0, array.deviceAddress());
      args.set(WORD, 8, result.deviceAddress());
      args.set(ValueLayout.JAVA_INT, 24, PAGE / Long.BYTES);
      args.set(ValueLayout.JAVA_INT, 40, 1);
      stream.launch(
          module.function("gpunvme_bench_array_writes"),
          LaunchShape.of(2, 2),
          new KernelArguments().addStruct(args));
      kernels.await(stream::isIdle, LIMIT);
      MemorySegment wrong = arena.allocate(Long.BYTES, Long.BYTES);
      result.copyToHost(0, wrong);
      assertThat(wrong.get(WORD, 0)).isZero();
    }
  }

  private static long hash(long i) {
    long x = i + 0x9e3779b97f4a7c15L;
    x = (x ^ x >>> 30) * 0xbf58476d1ce4e5b9L;
    x = (x ^ x >>> 27) * 0x94d049bb133111ebL;
    return x ^ x >>> 31;
  }

  @Test
  void whatKernelsStoreIsThereOnceItIsFlushed() throws IOException {
    try (GpuAccelerator gpu = gpu();
        GpuStorage storage = open(gpu, true, "");
        KernelStorage kernels = storage.forKernels(QUEUES);
        PageCache cache = kernels.cache(PageCacheOptions.of(16L * PAGE));
        DeviceArray array = storage.arrayForKernels(cache, PAGE, 40L * PAGE / 8, 8, true)) {
      store(gpu, kernels, array);
      cache.flush(LIMIT);
      cache.flush(LIMIT);

      assertThat(cache.counters().writes()).isEqualTo(40);
      MemorySegment all = MemorySegment.ofArray(new byte[PAGES * PAGE]);
      try (DeviceBuffer back = gpu.allocatePinned(all.byteSize())) {
        storage.read(0, back, 0, all.byteSize());
        back.copyToHost(0, all);
      }
      for (long i = 0; i < 40L * PAGE / 8; i++) {
        assertThat(all.get(WORD, PAGE + 8 * i)).isEqualTo(hash(i));
      }
      assertThat(all.get(WORD, 0)).isZero();
      assertThat(all.get(WORD, 41L * PAGE)).isZero();
    }
  }

  @Test
  void aFlushSaysWhatWasNotWritten() throws IOException {
    try (GpuAccelerator gpu = gpu();
        GpuStorage storage =
            open(gpu, true, ",faults=status=media/write-fault dnr on write nth=3");
        KernelStorage kernels = storage.forKernels(QUEUES);
        PageCache cache = kernels.cache(PageCacheOptions.of((long) PAGES * 16 * PAGE));
        DeviceArray array = storage.arrayForKernels(cache, 0, 8L * PAGE / 8, 8, true)) {
      store(gpu, kernels, array);

      assertThatExceptionOfType(DirtyPagesException.class)
          .isThrownBy(() -> cache.flush(LIMIT))
          .withMessageContaining("still in the cache")
          .matches(e -> (e.status() & 0x7FF) == 0x280);
      assertThat(kernels.errors().records()).hasSize(1);
      cache.flush(LIMIT);
      assertThat(cache.counters().writes()).isEqualTo(8);
    }
  }

  @Test
  void whoMayNotWriteHasArraysToRead() throws IOException {
    try (GpuAccelerator gpu = gpu();
        GpuStorage storage = open(gpu, false, "");
        KernelStorage kernels = storage.forKernels(QUEUES);
        PageCache cache = kernels.cache(PageCacheOptions.of(16L * PAGE))) {
      assertThat(storage.arrayForKernels(cache, 0, 512, 8, false).count()).isEqualTo(512);
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> storage.arrayForKernels(cache, 0, PAGES * PAGE, 8, false))
          .withMessageContaining("inside");
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> storage.arrayForKernels(cache, 0, 512, 8, true))
          .withMessageContaining("opened for writing");
    }
  }
}
