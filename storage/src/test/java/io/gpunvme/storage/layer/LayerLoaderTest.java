package io.gpunvme.storage.layer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.HeldStorage;
import io.gpunvme.storage.layer.LayerException.Reason;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.StorageException;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Random;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Layers on the CPU stand-in. */
@Timeout(300)
class LayerLoaderTest {
  private static final int SIZE = 1 << 20;
  private static final int LAYER = 32 << 10;

  @TempDir Path folder;

  private final Accelerator cpu = CpuAccelerator.open();
  private Sources source;

  @BeforeEach
  void prepare() throws IOException {
    source = Sources.in(folder, SIZE);
  }

  @AfterEach
  void close() {
    cpu.close();
  }

  private List<String> addresses() {
    return List.of(source.ssd(""), source.file() + "?path=mmap", source.file().toString());
  }

  private GpuStorage ssd(String more) {
    return GpuStorage.open(source.ssd(more), cpu);
  }

  private void requireRight(LoadedLayer loaded) {
    assertThat(source.isIn(loaded.buffer(), loaded.bufferOffset(), loaded.layer()))
        .as("%s", loaded.layer())
        .isTrue();
  }

  @Test
  void layersComeInTheCallersOrder() {
    for (String address : addresses()) {
      try (GpuStorage storage = GpuStorage.open(address, cpu);
          LayerLoader loader = LayerLoader.open(storage, LAYER, 3)) {
        List<Layer> layers = new ArrayList<>(Sources.equal(32, LAYER));
        layers.add(layers.getFirst());
        layers.add(layers.getFirst());
        loader.prefetch(layers.subList(0, 20));
        loader.prefetch(layers.subList(20, layers.size()));
        for (Layer layer : layers) {
          try (LoadedLayer loaded = loader.next()) {
            assertThat(loaded.layer()).isEqualTo(layer);
            assertThat(loaded.deviceAddress() % 4096).isZero();
            loaded.await();
            requireRight(loaded);
          }
        }
        assertThat(loader.remaining()).isZero();
        assertThatExceptionOfType(NoSuchElementException.class).isThrownBy(loader::next);
        LayerStats stats = loader.stats();
        assertThat(stats.layers()).isEqualTo(layers.size());
        assertThat(stats.bytes()).isEqualTo((long) layers.size() * LAYER);
        assertThat(stats.readNanos()).isPositive();
        assertThat(stats.overlap()).isBetween(0.0, 1.0);
        assertThat(stats.recent()).hasSize(layers.size());
        assertThat(stats.recent().getLast().name()).isEqualTo("l0");
      }
    }
  }

  @Test
  void piecesOfSeveralStoragesMakeALayer() {
    long seed = System.nanoTime();
    System.out.println("LayerLoaderTest: -Dgpunvme.seed=" + seed);
    SplittableRandom random = new SplittableRandom(seed);
    List<GpuStorage> storages =
        addresses().stream().map(address -> GpuStorage.open(address, cpu)).toList();
    try (LayerLoader loader =
        LayerLoader.open(storages, LAYER, 3, LayerOptions.defaults().withReads(3))) {
      List<Layer> layers = new ArrayList<>();
      for (int i = 0; i < 40; i++) {
        layers.add(new Layer("l" + i, pieces(random)));
      }
      loader.prefetch(layers);
      for (Layer layer : layers) {
        try (LoadedLayer loaded = loader.next()) {
          assertThat(loaded.layer()).isEqualTo(layer);
          for (Layer.Piece piece : layer.pieces()) {
            Layer there = new Layer(layer.name(), piece.offset(), piece.bytes());
            assertThat(source.isIn(loaded.buffer(), loaded.bufferOffset() + piece.place(), there))
                .as("%s of %s", piece, layer)
                .isTrue();
          }
        }
      }
      Layer elsewhere = new Layer("elsewhere", List.of(new Layer.Piece(3, 0, 1, 0)));
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> loader.prefetch(List.of(elsewhere)))
          .withMessageContaining("storage 3");
      Layer beyond =
          new Layer("beyond", List.of(new Layer.Piece(0, 0, 1, 0), new Layer.Piece(2, SIZE, 1, 1)));
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> loader.prefetch(List.of(beyond)))
          .withMessageContaining("beyond");
    } finally {
      storages.forEach(GpuStorage::close);
    }
  }

  /** Side by side, with gaps of any length, in any order. */
  private static List<Layer.Piece> pieces(SplittableRandom random) {
    List<Layer.Piece> pieces = new ArrayList<>();
    long place = random.nextInt(100);
    int count = random.nextInt(1, 8);
    for (int i = 0; i < count; i++) {
      int bytes = random.nextInt(LAYER / 10);
      pieces.add(new Layer.Piece(random.nextInt(3), random.nextInt(SIZE - bytes), bytes, place));
      place += bytes + random.nextInt(100);
    }
    Collections.shuffle(pieces, new Random(random.nextLong()));
    return pieces;
  }

  @Test
  void aPieceThatFailsFailsItsLayerOnly() {
    try (GpuStorage good = GpuStorage.open(source.file().toString(), cpu);
        GpuStorage bad = ssd(",faults=status=media/unrecovered-read dnr on read lba=0..7");
        LayerLoader loader =
            LayerLoader.open(List.of(good, bad), LAYER, 2, LayerOptions.defaults())) {
      Layer broken =
          new Layer(
              "broken", List.of(new Layer.Piece(0, 0, 9000, 0), new Layer.Piece(1, 0, 512, 9000)));
      Layer whole =
          new Layer(
              "whole",
              List.of(new Layer.Piece(0, 0, 9000, 0), new Layer.Piece(1, 8192, 512, 9000)));
      loader.prefetch(List.of(whole, broken, whole));
      loader.next().close();
      assertThatExceptionOfType(LayerException.class)
          .isThrownBy(loader::next)
          .withMessageContaining("layer 'broken' (9512 bytes in 2 pieces)");
      loader.next().close();
    }
  }

  @Test
  void aHeldSlotIsNeverReadInto() {
    try (GpuStorage storage = ssd("");
        LayerLoader loader = LayerLoader.open(storage, LAYER, 3)) {
      loader.prefetch(Sources.equal(32, LAYER));
      LoadedLayer first = loader.next();
      LoadedLayer second = loader.next();
      LoadedLayer third = loader.next();
      assertThat(read(storage)).isEqualTo(3L * LAYER);
      assertThatIllegalStateException()
          .isThrownBy(loader::next)
          .withMessageContaining("l3")
          .withMessageContaining("all 3");
      second.release();
      try (LoadedLayer fourth = loader.next()) {
        assertThat(fourth.layer().name()).isEqualTo("l3");
        requireRight(fourth);
      }
      requireRight(first);
      requireRight(third);
      second.release();
      assertThatIllegalStateException().isThrownBy(second::deviceAddress);
      for (int i = 4; i < 32; i++) {
        loader.next().close();
        requireRight(first);
        requireRight(third);
      }
    }
  }

  private static long read(GpuStorage storage) {
    return storage.stats().values().stream().mapToLong(s -> s.readBytes()).sum();
  }

  @Test
  void whatMakesNoSenseIsRefusedBeforeAnythingIsRead() {
    try (GpuStorage storage = ssd("")) {
      long needed = LayerLoader.gpuBytes(storage, 1000, 4);
      assertThat(needed).isEqualTo(4 * 4096);
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(
              () ->
                  LayerLoader.open(
                      storage, 1000, 4, LayerOptions.defaults().withMaxBytes(needed - 1)))
          .withMessageContaining("16384")
          .withMessageContaining("16383");
      for (long bytes : new long[] {0, -1, Long.MAX_VALUE, Long.MAX_VALUE / 3}) {
        assertThatExceptionOfType(InvalidRequestException.class)
            .isThrownBy(() -> LayerLoader.open(storage, bytes, 4));
      }
      for (int depth : new int[] {0, -1, 1025}) {
        assertThatExceptionOfType(InvalidRequestException.class)
            .isThrownBy(() -> LayerLoader.open(storage, 4096, depth));
      }
      try (LayerLoader loader =
          LayerLoader.open(storage, 1000, 4, LayerOptions.defaults().withMaxBytes(needed))) {
        assertThat(loader.gpuBytes()).isEqualTo(needed);
        assertThat(loader.pinnedBytes()).isZero();
        assertThatExceptionOfType(InvalidRequestException.class)
            .isThrownBy(
                () -> loader.prefetch(List.of(new Layer("a", 0, 1), new Layer("long", 0, 1001))))
            .withMessageContaining("long");
        assertThatExceptionOfType(InvalidRequestException.class)
            .isThrownBy(() -> loader.prefetch(List.of(new Layer("out", SIZE - 1, 2))))
            .withMessageContaining("out");
        assertThat(loader.remaining()).isZero();
        assertThat(read(storage)).isZero();
      }
    }
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(() -> new Layer("x", -1, 1));
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(() -> new Layer("x", List.of()));
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(() -> new Layer.Piece(0, 0, 2, Long.MAX_VALUE - 1));
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(() -> new Layer("x", Long.MAX_VALUE, 1));
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(() -> Layer.ofBlocks("x", Long.MAX_VALUE / 512, 1, 512));
    assertThat(Layer.ofBlocks("x", 3, 2, 512)).isEqualTo(new Layer("x", 1536, 1024));
  }

  @Test
  void oneLayerGoesWhereTheCallerWants() {
    try (GpuStorage storage = ssd("");
        LayerLoader loader = LayerLoader.open(storage, 4096, 2);
        DeviceBuffer buffer = cpu.allocate(SIZE)) {
      Layer layer = new Layer("whole", 77, 300_000);
      loader.load(layer, buffer, 5);
      assertThat(source.isIn(buffer, 5, layer)).isTrue();
      loader.load(0, 512, buffer, 0);
      assertThat(source.isIn(buffer, 0, new Layer("", 0, 512))).isTrue();
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> loader.load(layer, buffer, SIZE));
    }
  }

  @Test
  void aLayerThatFailsIsNamedAndTheOthersCome() {
    String fault = ",faults=status=media/unrecovered-read dnr on read lba=192..193";
    try (GpuStorage storage = ssd(fault);
        LayerLoader loader = LayerLoader.open(storage, LAYER, 2);
        DeviceBuffer buffer = cpu.allocate(LAYER)) {
      List<Layer> layers = Sources.equal(8, LAYER);
      loader.prefetch(layers);
      for (int i = 0; i < 8; i++) {
        if (i == 3) {
          assertThatExceptionOfType(LayerException.class)
              .isThrownBy(loader::next)
              .satisfies(e -> assertThat(e.reason()).isEqualTo(Reason.READ))
              .satisfies(e -> assertThat(e.layer()).isEqualTo(layers.get(3)))
              .withMessageContaining("'l3'")
              .withCauseInstanceOf(StorageException.class);
        } else {
          try (LoadedLayer loaded = loader.next()) {
            assertThat(loaded.layer()).isEqualTo(layers.get(i));
            requireRight(loaded);
          }
        }
      }
      assertThat(loader.stats().layers()).isEqualTo(7);
      assertThatExceptionOfType(LayerException.class)
          .isThrownBy(() -> loader.load(layers.get(3), buffer, 0))
          .withMessageContaining("'l3'");
    }
  }

  @Test
  void cancellingForgetsWhatWasNotTaken() {
    try (GpuStorage storage = ssd(",latency=2ms");
        LayerLoader loader = LayerLoader.open(storage, LAYER, 3)) {
      for (int round = 0; round < 5; round++) {
        loader.prefetch(Sources.equal(20, LAYER));
        LoadedLayer held = loader.next();
        loader.cancel();
        assertThat(loader.remaining()).isZero();
        assertThatExceptionOfType(NoSuchElementException.class).isThrownBy(loader::next);
        Layer other = new Layer("other", 999, LAYER);
        loader.prefetch(List.of(other, other, other));
        for (int i = 0; i < 3; i++) {
          try (LoadedLayer loaded = loader.next()) {
            assertThat(loaded.layer()).isEqualTo(other);
            requireRight(loaded);
          }
        }
        requireRight(held);
        held.close();
      }
    }
  }

  @Test
  void aCancelledReadIsOverBeforeItsSlotIsReadIntoAgain() throws InterruptedException {
    Layer slow = new Layer("slow", 0, LAYER);
    Layer other = new Layer("other", 12_345, LAYER);
    CountDownLatch began = new CountDownLatch(1);
    CountDownLatch otherBegan = new CountDownLatch(1);
    CountDownLatch end = new CountDownLatch(1);
    Consumer<Range> holding =
        range -> {
          if (range.offset() == 0) {
            began.countDown();
            await(end);
          } else {
            otherBegan.countDown();
          }
        };
    try (GpuStorage storage = HeldStorage.open(source.content(), cpu, holding);
        LayerLoader loader = LayerLoader.open(storage, LAYER, 1)) {
      loader.prefetch(List.of(slow));
      await(began);
      loader.cancel();
      loader.prefetch(List.of(other));
      // It has every chance to do wrong, and does so at once if at all.
      boolean early = otherBegan.await(200, TimeUnit.MILLISECONDS);
      end.countDown();
      assertThat(early).isFalse();
      try (LoadedLayer loaded = loader.next()) {
        assertThat(loaded.layer()).isEqualTo(other);
        requireRight(loaded);
      }
    }
  }

  private static void await(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  @Test
  void closingEndsWhatIsUnderWay()
      throws InterruptedException, ExecutionException, TimeoutException {
    long before = layerThreads();
    GpuStorage storage = ssd(",latency=200ms");
    LayerLoader loader = LayerLoader.open(storage, LAYER, 3);
    loader.prefetch(Sources.equal(20, LAYER));
    CompletableFuture<LoadedLayer> taker = CompletableFuture.supplyAsync(loader::next);
    loader.close();
    loader.close();
    try {
      taker.get(30, TimeUnit.SECONDS).release();
    } catch (ExecutionException e) {
      // Before it took a layer, or after.
      assertThat(e.getCause()).isInstanceOfAny(LayerException.class, IllegalStateException.class);
    }
    assertThatIllegalStateException().isThrownBy(loader::next);
    assertThatIllegalStateException().isThrownBy(() -> loader.prefetch(List.of()));
    assertThat(layerThreads()).isEqualTo(before);
    storage.close();
  }

  private static long layerThreads() {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(t -> t.getName().equals("gpunvme-layers"))
        .count();
  }

  @Test
  void theStorageMayEndFirst() {
    GpuStorage storage = ssd(",latency=5ms");
    LayerLoader loader = LayerLoader.open(storage, LAYER, 2);
    loader.prefetch(Sources.equal(10, LAYER));
    storage.close();
    int failed = 0;
    for (int i = 0; i < 10; i++) {
      try (LoadedLayer loaded = loader.next()) {
        requireRight(loaded);
      } catch (LayerException e) {
        failed++;
      }
    }
    assertThat(failed).isPositive();
    loader.close();
  }

  @Test
  void aStandInHasNoStreams() {
    assertThatExceptionOfType(StorageException.class)
        .isThrownBy(
            () -> {
              throw new NoStreams("data", "CPU").noStreams();
            })
        .withMessageContaining("next()");
  }

  /** Sizes, depths, holders and cancellations as they come; each layer's bytes are compared. */
  @Test
  void anyOrderOfAnySizes() {
    long seed = Long.getLong("gpunvme.seed", System.nanoTime());
    System.out.println("LayerLoaderTest: -Dgpunvme.seed=" + seed);
    SplittableRandom random = new SplittableRandom(seed);
    for (int round = 0; round < 40; round++) {
      String address = addresses().get(random.nextInt(3));
      int longest = 1 + random.nextInt(100_000);
      int depth = 1 + random.nextInt(5);
      LayerOptions options =
          LayerOptions.defaults()
              .withReads(1 + random.nextInt(4))
              .withPatience(Duration.ofMinutes(1));
      try (GpuStorage storage = GpuStorage.open(address, cpu);
          LayerLoader loader = LayerLoader.open(storage, longest, depth, options)) {
        fuzz(loader, random, longest, depth);
      }
    }
  }

  private void fuzz(LayerLoader loader, SplittableRandom random, int longest, int depth) {
    List<Layer> expected = new ArrayList<>();
    List<LoadedLayer> held = new ArrayList<>();
    for (int step = 0; step < 60; step++) {
      switch (random.nextInt(5)) {
        case 0 -> {
          int bytes = random.nextInt(longest + 1);
          Layer layer = new Layer("s" + step, random.nextInt(SIZE - bytes), bytes);
          List<Layer> more = List.of(layer, new Layer("n", 0, 0), layer);
          loader.prefetch(more);
          expected.addAll(more);
        }
        case 1 -> {
          if (random.nextInt(10) == 0) {
            loader.cancel();
            expected.clear();
          }
        }
        case 2 -> {
          if (!held.isEmpty()) {
            LoadedLayer loaded = held.remove(random.nextInt(held.size()));
            requireRight(loaded);
            loaded.release();
          }
        }
        default -> {
          if (!expected.isEmpty() && held.size() < depth) {
            LoadedLayer loaded = loader.next();
            assertThat(loaded.layer()).isEqualTo(expected.removeFirst());
            requireRight(loaded);
            held.add(loaded);
          }
        }
      }
      assertThat(loader.remaining()).isEqualTo(expected.size());
    }
    held.forEach(this::requireRight);
  }
}
