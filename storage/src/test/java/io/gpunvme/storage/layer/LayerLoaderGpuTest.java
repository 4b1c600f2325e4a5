package io.gpunvme.storage.layer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.cuda.CudaFunction;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.cuda.KernelArguments;
import io.gpunvme.cuda.LaunchShape;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.accel.TestGpu;
import io.gpunvme.gpu.queue.GpuModule;
import io.gpunvme.storage.GpuStorage;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What kernels see of layers for which their stream waits. */
@Tag("gpu")
@Timeout(180)
class LayerLoaderGpuTest {
  private static final int SIZE = 24 << 20;
  private static final int LAYER = 1 << 20;
  private static final int LAYERS = SIZE / LAYER;
  private static final int STREAMS = 24;

  /** Adds up a layer's words, each in times of its number, and lingers. */
  private static final String KERNEL =
      """
      extern "C" __global__ void sum(const unsigned int* data, unsigned int words, unsigned long long linger,
                                     unsigned long long* result) {
        unsigned long long total = 0;
        for (unsigned int i = threadIdx.x; i < words; i += blockDim.x) {
          total += data[i] * (i + 1ull);
        }
        atomicAdd(result, total);
        long long begin = clock64();
        while (clock64() - begin < linger) {
        }
      }
      """;

  @TempDir Path folder;

  private final GpuAccelerator gpu = TestGpu.open();
  private Sources source;
  private GpuModule module;
  private CudaFunction sum;
  private DeviceBuffer results;

  @BeforeEach
  void prepare() throws IOException {
    source = Sources.in(folder, SIZE);
    module = GpuModule.compile(gpu, "sum.cu", KERNEL);
    sum = module.function("sum");
    results = gpu.allocate(4096 * (long) Long.BYTES);
  }

  @AfterEach
  void close() {
    gpu.close();
  }

  private List<String> addresses() {
    return List.of(source.ssd(""), source.file() + "?path=pinned", source.file() + "?path=mmap");
  }

  private void launch(CudaStream stream, LoadedLayer layer, int result, long linger) {
    stream.launch(
        sum,
        LaunchShape.of(1, 256),
        new KernelArguments()
            .addLong(layer.deviceAddress())
            .addInt((int) layer.layer().bytes() / Integer.BYTES)
            .addLong(linger)
            .addLong(results.deviceAddress() + (long) result * Long.BYTES));
  }

  private long expected(Layer layer) {
    ByteBuffer words = ByteBuffer.wrap(source.content()).order(ByteOrder.LITTLE_ENDIAN);
    long total = 0;
    for (int i = 0; i < layer.bytes() / Integer.BYTES; i++) {
      int word = words.getInt((int) layer.offset() + i * Integer.BYTES);
      total += Integer.toUnsignedLong(word) * (i + 1L);
    }
    return total;
  }

  private void requireRight(List<Layer> layers) {
    long[] seen = new long[layers.size()];
    results.copyToHost(0, MemorySegment.ofArray(seen));
    for (int i = 0; i < seen.length; i++) {
      // The kernel multiplies 32-bit words by 64-bit numbers, unsigned as here.
      assertThat(seen[i]).as("%d: %s", i, layers.get(i)).isEqualTo(expected(layers.get(i)));
    }
  }

  private void clear() {
    results.copyFromHost(MemorySegment.ofArray(new long[4096]), 0);
  }

  private static List<Layer> twice() {
    List<Layer> layers = new ArrayList<>(Sources.equal(LAYERS, LAYER));
    layers.addAll(Sources.equal(LAYERS, LAYER));
    return layers;
  }

  @Test
  void aKernelSeesItsLayer() {
    for (String address : addresses()) {
      for (long linger : new long[] {0, 2_000_000}) {
        clear();
        try (GpuStorage storage = GpuStorage.open(address, gpu);
            CudaStream stream = gpu.context().stream();
            LayerLoader loader = LayerLoader.open(storage, LAYER, 3)) {
          List<Layer> layers = twice();
          loader.prefetch(layers);
          for (int i = 0; i < layers.size(); i++) {
            LoadedLayer layer = loader.next(stream);
            launch(stream, layer, i, linger);
            layer.release(stream);
          }
          stream.synchronize();
          loader.awaitTaken();
          requireRight(layers);
          assertThat(loader.stats().layers()).isEqualTo(layers.size());
          System.out.printf(
              "%s, %d cycles: overlap %.2f%n", address, linger, loader.stats().overlap());
        }
      }
    }
  }

  /** More streams than the GPU has hardware queues: some share one with those that read. */
  @Test
  void manyStreamsTakeLayers() {
    for (String address : addresses()) {
      clear();
      List<CudaStream> streams = new ArrayList<>();
      for (int i = 0; i < STREAMS; i++) {
        streams.add(gpu.context().stream());
      }
      try (GpuStorage storage = GpuStorage.open(address, gpu);
          LayerLoader loader = LayerLoader.open(storage, LAYER, 4)) {
        List<Layer> layers = twice();
        loader.prefetch(layers);
        for (int i = 0; i < layers.size(); i++) {
          CudaStream stream = streams.get(i % STREAMS);
          LoadedLayer layer = loader.next(stream);
          launch(stream, layer, i, 100_000);
          layer.release(stream);
        }
        streams.forEach(CudaStream::synchronize);
        loader.awaitTaken();
        requireRight(layers);
      }
      streams.forEach(CudaStream::close);
    }
  }

  @Test
  void theCpuMayWaitToo() {
    try (GpuStorage storage = GpuStorage.open(source.ssd(""), gpu);
        LayerLoader loader = LayerLoader.open(storage, LAYER, 2);
        DeviceBuffer buffer = gpu.allocate(LAYER)) {
      List<Layer> layers = twice();
      loader.prefetch(layers);
      for (Layer layer : layers) {
        try (LoadedLayer loaded = loader.next()) {
          assertThat(source.isIn(loaded.buffer(), loaded.bufferOffset(), layer)).isTrue();
        }
      }
      loader.load(layers.get(5), buffer, 0);
      assertThat(source.isIn(buffer, 0, layers.get(5))).isTrue();
      assertThat(loader.pinnedBytes()).isPositive();
    }
  }

  @Test
  void aFailedLayerLetsTheStreamGoOn() {
    String fault = ",faults=status=media/unrecovered-read dnr on read lba=12288..12289";
    try (GpuStorage storage = GpuStorage.open(source.ssd(fault), gpu);
        CudaStream stream = gpu.context().stream();
        LayerLoader loader = LayerLoader.open(storage, LAYER, 2)) {
      loader.prefetch(Sources.equal(12, LAYER));
      int failures = 0;
      for (int i = 0; i < 12; i++) {
        try {
          LoadedLayer layer = loader.next(stream);
          launch(stream, layer, i, 0);
          layer.release(stream);
        } catch (LayerException e) {
          assertThat(e.layer().name()).isEqualTo("l6");
          failures++;
        }
      }
      stream.synchronize();
      if (failures == 0) {
        assertThatExceptionOfType(LayerException.class)
            .isThrownBy(loader::awaitTaken)
            .satisfies(e -> assertThat(e.layer().name()).isEqualTo("l6"));
      }
    }
  }

  @Test
  void closingInTheMiddleLetsStreamsGoOn() {
    for (int taken = 0; taken < 6; taken++) {
      String address = source.ssd(",latency=20ms");
      try (GpuStorage storage = GpuStorage.open(address, gpu);
          CudaStream stream = gpu.context().stream()) {
        LayerLoader loader = LayerLoader.open(storage, LAYER, 3);
        loader.prefetch(twice());
        for (int i = 0; i < taken; i++) {
          LoadedLayer layer = loader.next(stream);
          launch(stream, layer, i, 100_000);
          if (i < taken - 1) {
            layer.release(stream);
          }
        }
        loader.close();
        stream.synchronize();
      }
    }
  }
}
