package io.gpunvme.models;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.models.LoadRequest.Memory;
import io.gpunvme.models.LoadRequest.Order;
import io.gpunvme.models.format.ElementType;
import io.gpunvme.models.format.SafetensorsWriter;
import io.gpunvme.models.format.TensorInfo;
import io.gpunvme.storage.StorageAddress;
import io.gpunvme.storage.layer.Layer;
import io.gpunvme.storage.layer.LayerLoader;
import io.gpunvme.storage.layer.LayerOptions;
import io.gpunvme.storage.layer.LoadedLayer;
import io.gpunvme.storage.path.ReadBytes;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BooleanSupplier;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Models of two shards into the memory of whatever accelerator. */
abstract class WeightsContract {
  private static final String INDEX = "model.safetensors.index.json";

  @TempDir Path folder;

  private final Map<String, byte[]> content = new HashMap<>();
  private final Random random = new Random(11);
  private Accelerator accelerator;

  abstract Accelerator accelerator();

  /** Options of the files' addresses. */
  String[] paths() {
    return new String[] {"", "?path=mmap", "?path=pinned"};
  }

  @BeforeEach
  void prepare() throws IOException {
    accelerator = accelerator();
    SafetensorsWriter first = new SafetensorsWriter();
    first.tensor("model.layers.10.q_proj.weight", ElementType.BF16, 64, 96);
    first.tensor("model.layers.2.q_proj.weight", ElementType.BF16, 64, 96);
    first.tensor("model.layers.2.o_proj.weight", ElementType.F32, 12, 8, 6, 4);
    first.tensor("scalar", ElementType.F64);
    first.tensor("nothing", ElementType.F16, 3, 0, 5);
    first.tensor("odd", ElementType.U8, 12_347);
    SafetensorsWriter second = new SafetensorsWriter();
    second.tensor("wide", ElementType.F32, 40, 65_536);
    second.tensor("embed", ElementType.F16, 1000, 128);
    second.tensor("four", ElementType.F4, 8, 6);
    Map<String, String> places = new HashMap<>();
    write(first, "model-00001-of-00002.safetensors", places);
    write(second, "model-00002-of-00002.safetensors", places);
    StringBuilder map = new StringBuilder();
    places.forEach(
        (t, f) -> map.append(map.isEmpty() ? "" : ",").append("\"%s\":\"%s\"".formatted(t, f)));
    Files.writeString(
        folder.resolve(INDEX), "{\"metadata\":{},\"weight_map\":{%s}}".formatted(map));
  }

  @AfterEach
  void close() {
    // A test that was skipped before it began has none.
    if (accelerator != null) {
      accelerator.close();
    }
  }

  private void write(SafetensorsWriter writer, String name, Map<String, String> places)
      throws IOException {
    SafetensorsWriter.Layout layout = writer.layout(SafetensorsWriter.WORD);
    byte[] file = new byte[(int) layout.fileBytes()];
    random.nextBytes(file);
    System.arraycopy(layout.head(), 0, file, 0, layout.head().length);
    for (TensorInfo t : layout.tensors()) {
      content.put(t.name(), Arrays.copyOfRange(file, (int) t.offset(), (int) t.end()));
      places.put(t.name(), name);
    }
    Files.write(folder.resolve(name), file);
  }

  private Weights open(String how) {
    return Weights.open(StorageAddress.parse("file:" + folder + how), accelerator);
  }

  private static byte[] bytes(LoadedTensor t) {
    byte[] bytes = new byte[(int) t.bytes()];
    if (bytes.length > 0) {
      t.buffer().copyToHost(t.offset(), MemorySegment.ofArray(bytes));
    }
    return bytes;
  }

  private void check(LoadedWeights loaded) {
    for (LoadedTensor t : loaded.tensors()) {
      byte[] expected = sliced(t);
      assertThat(Arrays.mismatch(bytes(t), expected)).as("%s %s", t, t.slice()).isEqualTo(-1);
      assertThat(t.offset() % 256).isZero();
    }
  }

  /** Element by element, as somebody who knows nothing of rows and pitches would. */
  private byte[] sliced(LoadedTensor t) {
    byte[] all = content.get(t.name());
    TensorSlice slice = t.slice();
    if (slice == null) {
      return all;
    }
    long[] part = t.shape();
    try (Weights weights = open("")) {
      long[] whole = weights.tensors().get(t.name()).shape();
      double unit = t.type().blockBytes() / (double) t.type().blockElements();
      byte[] picked = new byte[(int) t.bytes()];
      long elements = Arrays.stream(part).reduce(1, (a, b) -> a * b);
      int step = t.type().blockElements();
      for (long e = 0; e < elements; e += step) {
        long rest = e;
        long at = 0;
        long scale = 1;
        for (int d = part.length - 1; d >= 0; d--) {
          long index = rest % part[d] + (d == slice.dimension() ? slice.start() : 0);
          at += index * scale;
          rest /= part[d];
          scale *= whole[d];
        }
        int n = t.type().blockBytes();
        System.arraycopy(all, (int) (at * unit), picked, (int) (e * unit), n);
      }
      return picked;
    }
  }

  @Test
  void aWholeModelByEveryPath() {
    for (String how : paths()) {
      for (Memory memory : Memory.values()) {
        try (Weights weights = open(how);
            LoadedWeights loaded = weights.load(LoadRequest.all().memory(memory))) {
          assertThat(weights.format()).isEqualTo("safetensors, 2 files");
          assertThat(loaded.names()).containsExactlyInAnyOrderElementsOf(content.keySet());
          check(loaded);
          assertThat(loaded.report().bytes()).isEqualTo(weights.bytes());
          assertThat(loaded.report().readBytes()).isGreaterThanOrEqualTo(weights.bytes());
          if (!how.isEmpty()) {
            assertThat(how).endsWith(loaded.report().path());
          }
        }
      }
    }
  }

  @Test
  void partsAlongEveryDimension() {
    List<LoadRequest> requests = new ArrayList<>();
    for (int d = 0; d < 4; d++) {
      requests.add(
          LoadRequest.all().slice("model.layers.2.o_proj.weight", new TensorSlice(d, 1, 3)));
    }
    requests.add(LoadRequest.all().slice("wide", new TensorSlice(1, 100, 200)));
    requests.add(LoadRequest.all().slice("wide", new TensorSlice(1, 4096, 65_536)));
    requests.add(LoadRequest.all().slice("wide", new TensorSlice(0, 3, 39)));
    requests.add(LoadRequest.all().slice("embed", new TensorSlice(1, 96, 128)));
    requests.add(LoadRequest.all().slice("four", new TensorSlice(1, 2, 4)));
    requests.add(LoadRequest.all().slice("embed", new TensorSlice(1, 3, 7)).within(0, 1 << 20));
    for (String how : paths()) {
      try (Weights weights = open(how)) {
        for (LoadRequest request : requests) {
          LoadRequest named = request.names(List.copyOf(request.slices().keySet()));
          try (LoadedWeights loaded = weights.load(named)) {
            check(loaded);
            assertThat(loaded.tensors()).hasSize(1);
          }
        }
        // Both halves have room for what there is, and no more; or the ring is as long as allowed.
        assertThat(weights.plan(requests.get(7)).ringBytes())
            .isBetween(1L, 2 * weights.tensors().get("embed").bytes() + 8192);
        assertThat(weights.plan(requests.getLast()).ringBytes()).isLessThanOrEqualTo(1 << 20);
        assertThat(weights.plan(requests.get(4)).ringBytes()).isZero();
      }
    }
  }

  @Test
  void ranksTogetherHaveEverythingOnce() {
    try (Weights weights = open("")) {
      long total = 0;
      for (int rank = 0; rank < 4; rank++) {
        LoadRequest request =
            LoadRequest.all()
                .names(
                    List.of(
                        "wide",
                        "embed",
                        "model.layers.2.q_proj.weight",
                        "model.layers.2.o_proj.weight"))
                .rank(rank, 4, ShardRules.megatron());
        try (LoadedWeights loaded = weights.load(request)) {
          check(loaded);
          total += loaded.tensor("model.layers.2.q_proj.weight").bytes();
          total += loaded.tensor("model.layers.2.o_proj.weight").bytes();
          assertThat(loaded.tensor("wide").slice()).isNull();
        }
      }
      assertThat(total)
          .isEqualTo(
              content.get("model.layers.2.q_proj.weight").length
                  + content.get("model.layers.2.o_proj.weight").length);
      LoadPlan rows =
          weights.plan(
              LoadRequest.all()
                  .matching(Pattern.compile("wide|embed"))
                  .rank(1, 4, ShardRules.rows()));
      assertThat(rows.readBytes()).isEqualTo(rows.bytes());
      assertThat(rows.bytes() * 4)
          .isEqualTo(content.get("wide").length + content.get("embed").length);
    }
  }

  @Test
  void namesPatternsAndOrders() {
    try (Weights weights = open("")) {
      LoadRequest layers =
          LoadRequest.all().matching(Pattern.compile("layers")).order(Order.LAYERS);
      try (LoadedWeights loaded = weights.load(layers)) {
        assertThat(loaded.names())
            .containsExactly(
                "model.layers.2.o_proj.weight",
                "model.layers.2.q_proj.weight",
                "model.layers.10.q_proj.weight");
        check(loaded);
      }
      List<String> given = List.of("wide", "scalar", "embed", "odd");
      try (LoadedWeights loaded = weights.load(LoadRequest.all().names(given).order(Order.GIVEN))) {
        assertThat(loaded.names()).containsExactlyElementsOf(given);
        check(loaded);
      }
    }
  }

  @Test
  void requestsThatDoNotFitAreRefused() {
    try (Weights weights = open("")) {
      List<LoadRequest> bad =
          List.of(
              LoadRequest.all().names(List.of("missing")),
              LoadRequest.all().names(List.of("odd", "odd")),
              LoadRequest.all().names(List.of()),
              LoadRequest.all().matching(Pattern.compile("^no such$")),
              LoadRequest.all().slice("missing", new TensorSlice(0, 0, 1)),
              LoadRequest.all().slice("scalar", new TensorSlice(0, 0, 1)),
              LoadRequest.all().slice("odd", new TensorSlice(0, 0, 12_348)),
              LoadRequest.all().slice("four", new TensorSlice(1, 1, 3)),
              LoadRequest.all().rank(0, 3, ShardRules.parse(List.of("embed=0"))));
      for (LoadRequest request : bad) {
        assertThatExceptionOfType(InvalidRequestException.class)
            .isThrownBy(() -> weights.plan(request));
      }
      assertThatExceptionOfType(StorageException.class)
          .isThrownBy(() -> weights.plan(LoadRequest.all().within(1 << 20, 1 << 20)))
          .satisfies(e -> assertThat(e.kind()).isEqualTo(Kind.ACCELERATOR_MEMORY));
    }
  }

  /** Reads that wait for each other end only if they are under way at the same time. */
  @Test
  void twoFilesAreReadAtATimeWhereThereIsMuchToRead() {
    try (Weights weights = open("");
        DeviceBuffer all = accelerator.allocate(24 << 20)) {
      List<TensorTarget> targets =
          List.of(
              new TensorTarget("odd", null, all, 0), new TensorTarget("wide", null, all, 1 << 20));
      long bytes = weights.bytes("odd", null) + weights.bytes("wide", null);
      CountDownLatch both = new CountDownLatch(2);
      weights.read(
          targets,
          () -> false,
          (storage, ranges, buffers, ends) -> {
            meet(both);
            storage.read(ranges, buffers, ends);
          },
          bytes);
      assertThat(bytes(all, 0, 12_347)).isEqualTo(content.get("odd"));
      assertThat(bytes(all, 1 << 20, content.get("wide").length)).isEqualTo(content.get("wide"));

      AtomicInteger atWork = new AtomicInteger();
      weights.read(
          targets,
          () -> false,
          (storage, ranges, buffers, ends) -> {
            assertThat(atWork.incrementAndGet()).isEqualTo(1);
            storage.read(ranges, buffers, ends);
            atWork.decrementAndGet();
          },
          bytes + 1);
    }
  }

  @Test
  void aFileThatCannotBeReadEndsTheReadOfAnother() {
    try (Weights weights = open("");
        DeviceBuffer all = accelerator.allocate(1 << 20)) {
      IllegalStateException failure = new IllegalStateException("the first");
      CountDownLatch both = new CountDownLatch(2);
      assertThatThrownBy(
              () ->
                  weights.read(
                      oddAndEmbed(all),
                      () -> false,
                      (storage, ranges, buffers, ends) -> {
                        meet(both);
                        if (ranges.length(0) == 12_347) {
                          throw failure;
                        }
                        readUntil(ends);
                      },
                      1))
          .isSameAs(failure);
    }
  }

  @Test
  void whoIsInterruptedWhileAnotherThreadReadsEndsThat() throws InterruptedException {
    try (Weights weights = open("");
        DeviceBuffer all = accelerator.allocate(1 << 20)) {
      CountDownLatch both = new CountDownLatch(2);
      CountDownLatch done = new CountDownLatch(1);
      AtomicReference<Throwable> thrown = new AtomicReference<>();
      AtomicBoolean kept = new AtomicBoolean();
      AtomicReference<Thread> caller = new AtomicReference<>();
      Thread thread =
          new Thread(
              () -> {
                try {
                  weights.read(
                      oddAndEmbed(all),
                      () -> false,
                      (storage, ranges, buffers, ends) -> {
                        meet(both);
                        if (Thread.currentThread() == caller.get()) {
                          done.countDown();
                          return;
                        }
                        readUntil(ends);
                      },
                      1);
                } catch (StorageException e) {
                  thrown.set(e);
                }
                kept.set(Thread.currentThread().isInterrupted());
              });
      caller.set(thread);
      thread.start();
      done.await();
      thread.interrupt();
      thread.join(60_000);
      assertThat(thread.isAlive()).isFalse();
      assertThat(thrown.get()).hasMessageContaining("ended");
      assertThat(kept).isTrue();
    }
  }

  @Test
  void tensorsAreReadToMemoryOfTheCaller() {
    for (String how : paths()) {
      try (Weights weights = open(how);
          DeviceBuffer one = accelerator.allocate(32 << 20);
          DeviceBuffer other = accelerator.allocate(1 << 20)) {
        TensorSlice columns = new TensorSlice(1, 5, 60_001);
        TensorSlice rows = new TensorSlice(0, 3, 17);
        String wide = "wide";
        String layer = "model.layers.2.q_proj.weight";
        weights.read(
            List.of(
                new TensorTarget(wide, columns, one, 12),
                new TensorTarget("odd", null, other, 4097),
                new TensorTarget(layer, rows, one, 20 << 20),
                new TensorTarget("nothing", null, other, 0),
                new TensorTarget("embed", null, one, 24 << 20)));
        assertThat(bytes(one, 12, weights.bytes(wide, columns)))
            .isEqualTo(columns(content.get(wide), 65_536 * 4, 5 * 4, 60_001 * 4));
        assertThat(bytes(other, 4097, 12_347)).isEqualTo(content.get("odd"));
        assertThat(bytes(one, 20 << 20, weights.bytes(layer, rows)))
            .isEqualTo(Arrays.copyOfRange(content.get(layer), 3 * 96 * 2, 17 * 96 * 2));
        assertThat(bytes(one, 24 << 20, 256_000)).isEqualTo(content.get("embed"));

        // Bytes, which may cut elements, and stop at the end.
        TensorSlice middle = new TensorSlice(TensorSlice.BYTES, 1001, 250_003);
        assertThat(weights.bytes("embed", middle)).isEqualTo(249_002);
        weights.read(List.of(new TensorTarget("embed", middle, one, 5), target("scalar", 4, one)));
        assertThat(bytes(one, 5, 249_002))
            .isEqualTo(Arrays.copyOfRange(content.get("embed"), 1001, 250_003));
        assertThat(bytes(one, 1 << 20, 3))
            .isEqualTo(Arrays.copyOfRange(content.get("scalar"), 1, 4));
        assertThatExceptionOfType(InvalidRequestException.class)
            .isThrownBy(
                () ->
                    weights.read(List.of(target("scalar", content.get("scalar").length + 1L, one))))
            .withMessageContaining("'scalar' has no bytes 1:");
        assertThatExceptionOfType(InvalidRequestException.class)
            .isThrownBy(() -> LoadRequest.all().slice("embed", middle))
            .withMessageContaining("slice a dimension");

        assertThatExceptionOfType(InvalidRequestException.class)
            .isThrownBy(() -> weights.read(List.of(new TensorTarget("none", null, one, 0))))
            .withMessageContaining("no tensor 'none'");
        assertThatExceptionOfType(InvalidRequestException.class)
            .isThrownBy(
                () -> weights.read(List.of(new TensorTarget("odd", null, other, (1 << 20) - 9))))
            .withMessageContaining("not inside a buffer");
      }
    }
  }

  /** Tensors of two files. */
  private static List<TensorTarget> oddAndEmbed(DeviceBuffer all) {
    return List.of(
        new TensorTarget("odd", null, all, 0), new TensorTarget("embed", null, all, 20_000));
  }

  /** A read that has no end of its own. */
  private static void readUntil(BooleanSupplier ends) {
    while (!ends.getAsBoolean()) {
      Thread.onSpinWait();
    }
    throw new StorageException(Kind.CANCELLED, "", -1, -1, "ended", null);
  }

  private static void meet(CountDownLatch all) {
    all.countDown();
    try {
      assertThat(all.await(60, TimeUnit.SECONDS)).as("the others come").isTrue();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  /** Bytes of a tensor from the second one on. */
  private static TensorTarget target(String name, long stop, DeviceBuffer buffer) {
    return new TensorTarget(name, new TensorSlice(TensorSlice.BYTES, 1, stop), buffer, 1 << 20);
  }

  @Test
  void anotherAcceleratorReadsTheSameFiles() {
    for (String how : paths()) {
      Weights weights = open(how);
      try (Weights theirs = weights.on(accelerator);
          DeviceBuffer buffer = accelerator.allocate(1 << 20)) {
        assertThat(theirs.tensors()).isEqualTo(weights.tensors());
        AtomicBoolean ends = new AtomicBoolean();
        theirs.read(List.of(new TensorTarget("embed", null, buffer, 100)), ends::get);
        assertThat(bytes(buffer, 100, 256_000)).isEqualTo(content.get("embed"));
        assertThat(sum(theirs)).isEqualTo(256_000);
        assertThat(sum(weights)).isZero();
        try (Weights closedBefore = weights.on(accelerator)) {
          assertThat(closedBefore.name()).isEqualTo(weights.name());
        }
        weights.close();
        // What it reads is closed with the first.
        assertThatExceptionOfType(IllegalStateException.class)
            .isThrownBy(() -> theirs.read(List.of(new TensorTarget("embed", null, buffer, 100))));
      } finally {
        weights.close();
      }
    }
  }

  private static long sum(Weights weights) {
    return weights.readBytes().values().stream().mapToLong(ReadBytes::bytes).sum();
  }

  private static byte[] bytes(DeviceBuffer buffer, long offset, long length) {
    byte[] bytes = new byte[(int) length];
    buffer.copyToHost(offset, MemorySegment.ofArray(bytes));
    return bytes;
  }

  private static byte[] columns(byte[] all, int pitch, int from, int to) {
    byte[] part = new byte[all.length / pitch * (to - from)];
    for (int row = 0; row < all.length / pitch; row++) {
      System.arraycopy(all, row * pitch + from, part, row * (to - from), to - from);
    }
    return part;
  }

  @Test
  void layersAreMadeOfTensorsOfAllFiles() {
    TensorSlice rows = new TensorSlice(0, 3, 9);
    TensorSlice columns = new TensorSlice(1, 10, 12);
    for (String how : paths()) {
      try (Weights weights = open(how);
          LayerLoader loader = weights.layers(1 << 20, 2, LayerOptions.defaults())) {
        Layer layer =
            weights.layer(
                "some",
                List.of(
                    new TensorPlace("odd", null, 5),
                    new TensorPlace("embed", rows, 16_384),
                    new TensorPlace("wide", columns, 32_768),
                    new TensorPlace("nothing", null, 0)));
        loader.prefetch(List.of(layer, layer));
        for (int i = 0; i < 2; i++) {
          try (LoadedLayer loaded = loader.next()) {
            byte[] seen = new byte[(int) loaded.layer().bytes()];
            loaded.buffer().copyToHost(loaded.bufferOffset(), MemorySegment.ofArray(seen));
            assertThat(Arrays.copyOfRange(seen, 5, 5 + 12_347)).isEqualTo(content.get("odd"));
            assertThat(Arrays.copyOfRange(seen, 16_384, 16_384 + 6 * 256))
                .isEqualTo(Arrays.copyOfRange(content.get("embed"), 3 * 256, 9 * 256));
            for (int row = 0; row < 40; row++) {
              int at = row * 65_536 * 4 + 40;
              assertThat(Arrays.copyOfRange(seen, 32_768 + row * 8, 32_768 + row * 8 + 8))
                  .isEqualTo(Arrays.copyOfRange(content.get("wide"), at, at + 8));
            }
          }
        }
        assertThatExceptionOfType(InvalidRequestException.class)
            .isThrownBy(() -> weights.layer("x", List.of(new TensorPlace("none", null, 0))));
        assertThatExceptionOfType(InvalidRequestException.class)
            .isThrownBy(() -> weights.layer("x", List.of(new TensorPlace("odd", null, -1))));
      }
    }
  }

  @Test
  void checksumsFindAChangedByte() throws IOException {
    Manifest manifest;
    try (Weights weights = open("")) {
      manifest = weights.manifest(LoadListener.NONE);
      Path file = Files.writeString(folder.resolve("m.json"), manifest.toJson().toString());
      assertThat(Manifest.read(file).entries()).isEqualTo(manifest.entries());
      try (Load load = weights.prepare(weights.plan(LoadRequest.all()), manifest);
          LoadedWeights loaded = load.run(LoadListener.NONE)) {
        assertThat(loaded.report().verified()).isEqualTo(content.size());
      }
      TensorInfo embed = weights.tensors().get("embed");
      try (RandomAccessFile shard =
          new RandomAccessFile(folder.resolve(weights.file("embed")).toFile(), "rw")) {
        shard.seek(embed.offset() + 5000);
        int was = shard.read();
        shard.seek(embed.offset() + 5000);
        shard.write(was ^ 1);
      }
    }
    try (Weights weights = open("");
        Load load = weights.prepare(weights.plan(LoadRequest.all()), manifest)) {
      assertThatExceptionOfType(StorageException.class)
          .isThrownBy(() -> load.run(LoadListener.NONE))
          .withMessageContaining("'embed'")
          .satisfies(e -> assertThat(e.kind()).isEqualTo(Kind.IO));
    }
  }

  @Test
  void aCancelledLoadGoesOnWhereItWas() {
    try (Weights weights = open("");
        Load load = weights.prepare(weights.plan(LoadRequest.all().memory(Memory.EACH)), null)) {
      load.batchBytes(1);
      List<Long> arrived = new ArrayList<>();
      assertThatExceptionOfType(StorageException.class)
          .isThrownBy(
              () ->
                  load.run(
                      bytes -> {
                        arrived.add(bytes);
                        load.cancel();
                      }))
          .satisfies(e -> assertThat(e.kind()).isEqualTo(Kind.CANCELLED));
      int before = arrived.size();
      // What was under way is waited for.
      assertThat(before).isBetween(1, content.size() - 1);
      try (LoadedWeights loaded = load.run(arrived::add)) {
        assertThat(arrived).hasSize(content.size());
        check(loaded);
        assertThat(loaded.report().readBytes()).isLessThan(weights.bytes() * 2);
      }
    }
  }

  @Test
  void aLoadThatIsCancelledBeforeItRunsDoesNotRun() {
    try (Weights weights = open("");
        Load load = weights.prepare(weights.plan(LoadRequest.all()), null)) {
      load.cancel();
      assertThatExceptionOfType(StorageException.class)
          .isThrownBy(() -> load.run(LoadListener.NONE))
          .satisfies(e -> assertThat(e.kind()).isEqualTo(Kind.CANCELLED));
      try (LoadedWeights loaded = load.run(LoadListener.NONE)) {
        check(loaded);
      }
    }
  }

  @Test
  void aModelWithoutTensorsIsLoadedAtOnce() throws IOException {
    Path file = folder.resolve("empty.safetensors");
    Files.write(file, new SafetensorsWriter().layout(SafetensorsWriter.WORD).head());
    try (Weights weights = Weights.open(StorageAddress.parse("file:" + file), accelerator);
        LoadedWeights loaded = weights.load(LoadRequest.all())) {
      assertThat(loaded.tensors()).isEmpty();
      assertThat(loaded.report().bytes()).isZero();
    }
  }

  @Test
  void tensorsOutliveWhateverBroughtThem() {
    LoadedTensor kept;
    try (Weights weights = open("");
        LoadedWeights loaded = weights.load(LoadRequest.all())) {
      kept = loaded.take("embed");
      assertThat(loaded.names()).doesNotContain("embed");
    }
    assertThat(bytes(kept)).isEqualTo(content.get("embed"));
    kept.close();
    kept.close();
    assertThatExceptionOfType(IllegalStateException.class).isThrownBy(kept::buffer);
  }
}
