package io.gpunvme.capi;

import static java.nio.file.StandardOpenOption.WRITE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.Cuda;
import io.gpunvme.cuda.FakeDriver;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.models.TensorSlice;
import io.gpunvme.models.format.ElementType;
import io.gpunvme.models.format.SafetensorsWriter;
import io.gpunvme.storage.path.StorageException;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Memory of several GPUs, whichever one a storage was opened for. */
@Timeout(60)
class SeveralGpusTest {
  private static final int BYTES = 1 << 20;

  @TempDir Path folder;

  private final FakeDriver fake =
      FakeDriver.fresh("-DFAKE_DEVICES=2", "-DFAKE_INTERIOR=1", "-DFAKE_MAPPED=0");
  private final Cuda cuda = fake.load();
  private final byte[] data = new byte[BYTES];
  private Memory first;
  private Memory second;

  @BeforeEach
  void open() throws IOException {
    new Random(1).nextBytes(data);
    Files.write(folder.resolve("file"), data);
    first = new Memory("gpu:0", GpuAccelerator.open(cuda.device(0)), n -> of(n));
    second = new Memory("gpu:1", GpuAccelerator.open(cuda.device(1)), n -> of(n));
  }

  private Memory of(int ordinal) {
    return ordinal == 0 ? first : second;
  }

  @AfterEach
  void close() {
    second.accelerator().close();
    first.accelerator().close();
    fake.assertClean("closing the accelerators");
  }

  private String address(String kind) {
    return kind + folder.resolve("file");
  }

  private byte[] bytesAt(Memory memory, long address, int length) {
    byte[] got = new byte[length];
    Place place = memory.find(address, length);
    assertThat(place).isNotNull();
    place.buffer().copyToHost(place.offset(address), MemorySegment.ofArray(got));
    place.release().run();
    return got;
  }

  private byte[] part(int offset, int length) {
    return Arrays.copyOfRange(data, offset, offset + length);
  }

  @ParameterizedTest
  @ValueSource(strings = {"file:", "sim:latency=0,file="})
  void oneReadGoesToWhereTheMemoryIs(String kind) throws Throwable {
    try (Storage storage = Storage.open(address(kind), first, false)) {
      long there = second.allocateForItself(8192);
      storage.transfer(false, List.of(new Storage.Item(100, there + 7, 5000)), null);
      assertThat(bytesAt(second, there + 7, 5000)).isEqualTo(part(100, 5000));
      // Nothing of the first GPU was used on the way.
      assertThat(storage.storage().stats().values()).allMatch(s -> s.readBytes() == 0);
      // Who asks for the counts hears of all of it.
      assertThat(storage.stats()).contains("\"read_bytes\":5000");
      second.freeForItself(there);
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"file:", "sim:latency=0,file="})
  void manyReadsGoToSeveralGpusAndTheHostAtOnce(String kind) throws Throwable {
    try (Arena arena = Arena.ofConfined();
        Storage storage = Storage.open(address(kind), first, false)) {
      long one = first.allocateForItself(64 << 10);
      long other = second.allocateForItself(64 << 10);
      MemorySegment host = arena.allocate(64 << 10);
      List<Storage.Item> items = new ArrayList<>();
      for (int i = 0; i < 16; i++) {
        items.add(new Storage.Item(3000L * i, one + 4096L * i, 2000));
        items.add(new Storage.Item(100_000 + 3000L * i, other + 4096L * i, 2000));
      }
      items.add(new Storage.Item(500_000, host.address(), 60_000));
      for (int how = 0; how < 3; how++) {
        first.find(one, 1).buffer().copyFromHost(MemorySegment.ofArray(new byte[64 << 10]), 0);
        second.find(other, 1).buffer().copyFromHost(MemorySegment.ofArray(new byte[64 << 10]), 0);
        host.fill((byte) 0);
        switch (how) {
          case 0 -> storage.transfer(false, items, null);
          case 1 -> storage.transfer(false, items, () -> false);
          default -> {
            Request request = storage.submit(false, items);
            assertThat(request.await(TimeUnit.SECONDS.toNanos(30))).isTrue();
          }
        }
        for (int i = 0; i < 16; i++) {
          assertThat(bytesAt(first, one + 4096L * i, 2000)).isEqualTo(part(3000 * i, 2000));
          assertThat(bytesAt(second, other + 4096L * i, 2000))
              .isEqualTo(part(100_000 + 3000 * i, 2000));
        }
        assertThat(host.asSlice(0, 60_000).toArray(ValueLayout.JAVA_BYTE))
            .isEqualTo(part(500_000, 60_000));
      }
      first.freeForItself(one);
      second.freeForItself(other);
    }
  }

  @Test
  void whatFailsForOneGpuFailsForAll() throws Throwable {
    try (Storage storage = Storage.open(address("file:"), first, false)) {
      long one = first.allocateForItself(4096);
      long other = second.allocateForItself(4096);
      List<Storage.Item> items =
          List.of(new Storage.Item(0, one, 4096), new Storage.Item(BYTES - 10, other, 4096));
      assertThatThrownBy(() -> storage.transfer(false, items, null))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("4096 bytes");
      assertThatThrownBy(() -> storage.submit(false, items))
          .isInstanceOf(InvalidRequestException.class);
      first.freeForItself(one);
      second.freeForItself(other);
    }
  }

  @Test
  void writesComeFromAllOfThem() throws Throwable {
    try (Storage storage = Storage.open(address("file:"), first, true)) {
      long one = first.allocateForItself(4096);
      long other = second.allocateForItself(4096);
      byte[] ones = filled(1);
      byte[] others = filled(2);
      first.find(one, 1).buffer().copyFromHost(MemorySegment.ofArray(ones), 0);
      second.find(other, 1).buffer().copyFromHost(MemorySegment.ofArray(others), 0);
      storage.transfer(
          true, List.of(new Storage.Item(0, one, 4096), new Storage.Item(8192, other, 4096)), null);
      byte[] written = Files.readAllBytes(folder.resolve("file"));
      assertThat(Arrays.copyOf(written, 4096)).isEqualTo(ones);
      assertThat(Arrays.copyOfRange(written, 8192, 12_288)).isEqualTo(others);
      first.freeForItself(one);
      second.freeForItself(other);
    }
  }

  private static byte[] filled(int value) {
    byte[] all = new byte[4096];
    Arrays.fill(all, (byte) value);
    return all;
  }

  @Test
  void aStorageForAnotherGpuIsClosedWithTheFirst() throws Throwable {
    Storage storage = Storage.open(address("sim:latency=0,file="), first, false);
    Storage theirs = storage.on(second);
    assertThat(theirs.memory()).isSameAs(second);
    assertThat(theirs.storage().accelerator()).isSameAs(second.accelerator());
    long there = theirs.allocate(4096);
    theirs.transfer(false, List.of(new Storage.Item(0, there, 4096)), null);
    assertThat(bytesAt(second, there, 4096)).isEqualTo(part(0, 4096));
    Storage closedBefore = storage.on(second);
    closedBefore.close();
    storage.close();
    assertThatThrownBy(
            () -> theirs.transfer(false, List.of(new Storage.Item(0, there, 4096)), null))
        .isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(() -> storage.on(second)).isInstanceOf(IllegalStateException.class);
    theirs.close();
  }

  // ---- models

  /** Of one tensor "t", the data, in rows of 1024 bytes, and a second "u" in a file of its own. */
  private String model() throws IOException {
    for (String name : List.of("t", "u")) {
      byte[] head =
          new SafetensorsWriter().tensor(name, ElementType.U8, 1024, 1024).layout(4096).head();
      byte[] file = Arrays.copyOf(head, head.length + BYTES);
      System.arraycopy(data, 0, file, head.length, BYTES);
      Files.write(folder.resolve(name + ".safetensors"), file);
    }
    Files.writeString(
        folder.resolve("model.safetensors.index.json"),
        "{\"weight_map\": {\"t\": \"t.safetensors\", \"u\": \"u.safetensors\"}}");
    return folder.resolve("model.safetensors.index.json").toString();
  }

  private static Model.Read read(int tensor, int dimension, int start, int stop, long address) {
    return new Model.Read(tensor, new TensorSlice(dimension, start, stop), address, BYTES);
  }

  @Test
  void tensorsGoToTheGpusThatHaveTheMemory() throws Exception {
    try (Arena arena = Arena.ofConfined();
        Model model = Model.open(model(), first)) {
      long one = first.allocateForItself(BYTES);
      long other = second.allocateForItself(BYTES);
      MemorySegment host = arena.allocate(BYTES);
      model.read(
          List.of(
              read(0, 0, 0, 512, one),
              read(0, 0, 512, 1024, other),
              read(1, TensorSlice.BYTES, 7, 2000, other + (600 << 10)),
              read(1, 0, 100, 110, host.address())));
      assertThat(bytesAt(first, one, 512 << 10)).isEqualTo(part(0, 512 << 10));
      assertThat(bytesAt(second, other, 512 << 10)).isEqualTo(part(512 << 10, 512 << 10));
      assertThat(bytesAt(second, other + (600 << 10), 1993)).isEqualTo(part(7, 1993));
      assertThat(host.asSlice(0, 10 << 10).toArray(ValueLayout.JAVA_BYTE))
          .isEqualTo(part(100 << 10, 10 << 10));
      JsonObject read =
          JsonParser.parseString(model.stats()).getAsJsonObject().getAsJsonObject("accelerators");
      assertThat(read.keySet()).containsExactlyInAnyOrder("gpu:0", "gpu:1");
      assertThat(readBytes(read, "gpu:0")).isEqualTo((512 << 10) + (10 << 10));
      assertThat(readBytes(read, "gpu:1")).isEqualTo((512 << 10) + 1993);
      first.freeForItself(one);
      second.freeForItself(other);
    }
  }

  private static long readBytes(JsonObject accelerators, String name) {
    return accelerators.getAsJsonObject(name).getAsJsonObject("paths").asMap().values().stream()
        .mapToLong(path -> path.getAsJsonObject().get("read_bytes").getAsLong())
        .sum();
  }

  @Test
  void whatFailsForOneGpuEndsTheReadOfAModel() throws Exception {
    try (Model model = Model.open(model(), first)) {
      long one = first.allocateForItself(BYTES);
      long other = second.allocateForItself(BYTES);
      try (var cut = Files.newByteChannel(folder.resolve("u.safetensors"), WRITE)) {
        cut.truncate(BYTES / 2);
      }
      assertThatThrownBy(
              () -> model.read(List.of(read(0, 0, 0, 512, one), read(1, 0, 512, 1024, other))))
          .isInstanceOf(RuntimeException.class)
          .hasMessageContaining("u.safetensors");
      // What is left does what it is asked to.
      model.read(List.of(read(0, 0, 0, 512, other)));
      assertThat(bytesAt(second, other, 512 << 10)).isEqualTo(part(0, 512 << 10));
      first.freeForItself(one);
      second.freeForItself(other);
    }
  }

  @Test
  void rulesDivideTensors() throws Exception {
    try (Model model = Model.open(model(), first)) {
      int[] whole = {-1, -1};
      assertThat(model.shards("rows", whole, 2)).containsExactly(0, 0);
      assertThat(model.shards("rows", whole, 3)).containsExactly(-1, -1);
      assertThat(model.shards("^t$=1\n.=whole", whole, 4)).containsExactly(1, -1);
      assertThat(model.shards(null, new int[] {1, -7}, 4)).containsExactly(1, -1);
      for (int[] uneven : List.of(new int[] {0, -1}, new int[] {2, -1})) {
        assertThatThrownBy(() -> model.shards(null, uneven, 3))
            .isInstanceOf(InvalidRequestException.class)
            .hasMessageContaining("tensor 't' cannot be divided into 3 parts");
      }
      assertThatThrownBy(() -> model.shards("rows", new int[1], 2))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("has 2 tensors");
      assertThatThrownBy(() -> model.shards("rows", whole, 0))
          .isInstanceOf(InvalidRequestException.class);
    }
  }

  @Test
  void whatIsBoundToAGpuRefusesMemoryOfAnother() {
    long there = second.allocateForItself(4096);
    assertThatThrownBy(() -> first.place(there, 4096))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining(
            "is memory of gpu:1 Fake 41, and this was opened for gpu:0 Fake 40: open it for the"
                + " one that has the memory");
    second.freeForItself(there);
  }

  @Test
  void severalTransfersAreOverWhenAllAreAndTheFirstFailureEndsTheOthers() {
    List<CompletableFuture<?>> parts = List.of(new Part(), new Part(), new Part());
    SeveralTransfers all = new SeveralTransfers(parts);
    StorageException why =
        new StorageException(StorageException.Kind.IO, "a test", -1, -1, "failed", null);
    parts.get(1).completeExceptionally(why);
    // The others were asked to end, and are not over yet.
    assertThat(parts).filteredOn(p -> p != parts.get(1)).allMatch(p -> ((Part) p).asked);
    assertThat(all).isNotDone();
    parts.get(0).complete(null);
    parts.get(2).completeExceptionally(new IllegalStateException("ended"));
    assertThat(all).isCompletedExceptionally();
    assertThat(all.exceptionNow()).isSameAs(why);
  }

  /** A transfer that does not end at once when it is asked to. */
  private static final class Part extends CompletableFuture<Void> {
    private boolean asked;

    @Override
    public boolean cancel(boolean mayInterruptIfRunning) {
      asked = true;
      return !isDone();
    }
  }
}
