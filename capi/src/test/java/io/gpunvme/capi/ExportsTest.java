package io.gpunvme.capi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Everything as C calls it, on the stand-in. */
@Timeout(300)
class ExportsTest {
  private static final int BYTES = 4 << 20;

  @TempDir Path folder;

  private final Table table = new Table();
  private final byte[] content = new byte[BYTES];
  private MemorySegment source;
  private MemorySegment target;
  private long storage;

  @BeforeEach
  void open() {
    new SplittableRandom(9).nextBytes(content);
    source = table.arena().allocate(BYTES, 8).copyFrom(MemorySegment.ofArray(content));
    target = table.arena().allocate(BYTES, 8);
    storage = open("sim:size=4MiB", 1);
    assertThat(transfer(storage, 1, table.ranges(0, source.address(), BYTES), 1L)).isZero();
  }

  @AfterEach
  void close() {
    assertThat(table.call("close", storage)).as(table::error).isZero();
    table.close();
  }

  private long open(String uri, int flags) {
    return table.make("open", table.text(uri), table.text("cpu"), flags);
  }

  private byte[] bytes(long at, long n) {
    return target.asSlice(at, n).toArray(ValueLayout.JAVA_BYTE);
  }

  private byte[] content(long from, long n) {
    return Arrays.copyOfRange(content, (int) from, (int) (from + n));
  }

  private int transfer(long handle, int write, MemorySegment ranges, long count) {
    MemorySegment none = MemorySegment.NULL;
    return table.call("transfer", handle, write, ranges, count, none, none);
  }

  private int read(long offset, long at, long n) {
    return transfer(storage, 0, table.ranges(offset, target.address() + at, n), 1L);
  }

  private String text(long handle, int which) {
    MemorySegment needed = table.arena().allocate(8, 8);
    assertThat(table.call("text", handle, which, MemorySegment.NULL, 0L, needed)).isZero();
    long bytes = needed.get(ValueLayout.JAVA_LONG, 0);
    MemorySegment text = table.arena().allocate(bytes);
    assertThat(table.call("text", handle, which, text, bytes, MemorySegment.NULL)).isZero();
    assertThat(text.getString(0).getBytes(StandardCharsets.UTF_8)).hasSize((int) bytes - 1);
    MemorySegment shorter = table.arena().allocate(5);
    assertThat(table.call("text", handle, which, shorter, 5L, needed)).isZero();
    assertThat(text.getString(0)).startsWith(shorter.getString(0));
    assertThat(shorter.getString(0)).hasSize(4);
    return text.getString(0);
  }

  @Test
  void anyBytesAreRead() {
    assertThat(read(12_345, 77, 100_001)).isZero();
    assertThat(bytes(77, 100_001)).isEqualTo(content(12_345, 100_001));
    assertThat(bytes(76, 1)).containsOnly(0);
    assertThat(read(BYTES - 1, 0, 1)).isZero();
    assertThat(read(0, 0, 0)).isZero();
    MemorySegment three =
        table.ranges(5, target.address() + 1000, 10, 4096, target.address() + 8192, 4096, 0, 1, 0);
    assertThat(transfer(storage, 0, three, 3L)).isZero();
    assertThat(bytes(1000, 10)).isEqualTo(content(5, 10));
    assertThat(bytes(8192, 4096)).isEqualTo(content(4096, 4096));
  }

  @Test
  void whatMakesNoSenseIsSaid() {
    assertThat(read(BYTES - 1, 0, 2)).isEqualTo(CapiStatus.INVALID);
    assertThat(table.error()).contains("" + BYTES);
    assertThat(read(-1, 0, 2)).isEqualTo(CapiStatus.INVALID);
    assertThat(read(0, 0, -1)).isEqualTo(CapiStatus.INVALID);
    assertThat(transfer(storage, 0, table.ranges(0, 0, 10), 1L)).isEqualTo(CapiStatus.INVALID);
    assertThat(transfer(storage, 0, table.ranges(0, 0, 10), -1L)).isEqualTo(CapiStatus.INVALID);
    MemorySegment out = table.arena().allocate(8, 8);
    assertThat(table.call("open", table.text("nothing:x"), table.text("cpu"), 0, out)).isNegative();
    assertThat(table.call("open", table.text("sim:"), table.text("tpu"), 0, out))
        .isEqualTo(CapiStatus.INVALID);
    assertThat(table.error()).contains("tpu");
    assertThat(table.call("open", table.text("sim:"), table.text("cpu"), 6, out))
        .isEqualTo(CapiStatus.INVALID);
    String missing = folder.resolve("missing").toString();
    assertThat(table.call("open", table.text(missing), table.text("cpu"), 0, out)).isNegative();
    assertThat(table.error()).contains("missing");
  }

  @Test
  void handlesAreChecked() {
    long closed = open("sim:size=1MiB", 0);
    assertThat(table.call("close", closed)).isZero();
    for (long handle : new long[] {closed, 0, -1, 12_345}) {
      assertThat(table.call("flush", handle)).isEqualTo(CapiStatus.CLOSED);
      assertThat(table.call("close", handle)).isEqualTo(CapiStatus.CLOSED);
    }
    assertThat(table.call("cancel", storage)).isEqualTo(CapiStatus.CLOSED);
    assertThat(table.error()).contains("is not of type Request");
  }

  @Test
  void withoutTheFlagNothingIsWritten() {
    long readOnly = open("sim:size=1MiB", 0);
    int code = transfer(readOnly, 1, table.ranges(0, source.address(), 512), 1L);
    assertThat(code).as(table::error).isIn(CapiStatus.PERMISSION, CapiStatus.INVALID);
    assertThat(table.call("close", readOnly)).isZero();
  }

  @Test
  void requestsEndByThemselves() {
    List<Long> requests = new ArrayList<>();
    for (int i = 0; i < 20; i++) {
      MemorySegment range = table.ranges(i * 1000L, target.address() + i * 2000L, 1000);
      requests.add(table.make("submit", storage, 0, range, 1L));
    }
    for (int i = 0; i < 20; i++) {
      assertThat(table.call("await", requests.get(i), -1L)).isZero();
      assertThat(table.call("await", requests.get(i), 0L)).isZero();
      assertThat(bytes(i * 2000L, 1000)).isEqualTo(content(i * 1000L, 1000));
      assertThat(table.call("close", requests.get(i))).isZero();
    }
  }

  @Test
  void requestsAreCancelled() {
    long slow = open("sim:size=4MiB,latency=300ms", 0);
    MemorySegment range = table.ranges(0, target.address(), BYTES);
    long request = table.make("submit", slow, 0, range, 1L);
    assertThat(table.call("await", request, 1000L)).isEqualTo(CapiStatus.PENDING);
    assertThat(table.call("cancel", request)).isZero();
    assertThat(table.call("await", request, -1L)).isIn(CapiStatus.CANCELLED, CapiStatus.OK);
    long another = table.make("submit", slow, 0, range, 1L);
    assertThat(table.call("close", another)).as("waits until it is over").isZero();
    assertThat(table.call("close", request)).isZero();
    assertThat(table.call("close", slow)).isZero();
  }

  /** What C asks with: sets the word that it is given. */
  private static int yes(MemorySegment data) {
    data.reinterpret(4).set(ValueLayout.JAVA_INT, 0, 1);
    return 1;
  }

  @Test
  void whoWaitsIsAskedAndEndsIt() throws ReflectiveOperationException {
    long slow = open("sim:size=4MiB,latency=100ms", 0);
    MemorySegment question =
        Linker.nativeLinker()
            .upcallStub(
                MethodHandles.lookup()
                    .findStatic(
                        ExportsTest.class,
                        "yes",
                        MethodType.methodType(int.class, MemorySegment.class)),
                FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.ADDRESS),
                table.arena());
    MemorySegment asked = table.arena().allocate(4, 4);
    MemorySegment range = table.ranges(0, target.address(), BYTES);
    assertThat(table.call("transfer", slow, 0, range, 1L, question, asked))
        .isEqualTo(CapiStatus.CANCELLED);
    assertThat(asked.get(ValueLayout.JAVA_INT, 0)).isEqualTo(1);
    assertThat(table.call("close", slow)).isZero();
  }

  @Test
  void streamsNeedAGpu() {
    MemorySegment out = table.arena().allocate(8, 8);
    MemorySegment range = table.ranges(0, target.address(), 512);
    assertThat(table.call("submitOnStream", storage, 0, range, 0L, out))
        .isEqualTo(CapiStatus.UNSUPPORTED);
  }

  @Test
  void statsOfASetHaveItsMembers() {
    long set = open("stripe:sim:size=1MiB,lba=512,sim:size=1MiB,lba=4096;unit=4096", 0);
    assertThat(transfer(set, 0, table.ranges(0, target.address(), 16384), 1L)).isZero();
    // In one call: the rates of now may be longer or shorter in the next.
    MemorySegment text = table.arena().allocate(1 << 16);
    assertThat(table.call("text", set, 0, text, text.byteSize(), MemorySegment.NULL)).isZero();
    JsonObject stats = JsonParser.parseString(text.getString(0)).getAsJsonObject();
    assertThat(stats.getAsJsonArray("members")).hasSize(2);
    JsonObject second = stats.getAsJsonArray("members").get(1).getAsJsonObject();
    assertThat(second.get("name").getAsString()).contains("lba=4096");
    assertThat(second.get("read_bytes").getAsLong()).isEqualTo(8192);
    assertThat(second.get("requests").getAsLong()).isEqualTo(1);
    assertThat(second.get("operations").getAsLong()).isPositive();
    assertThat(second.get("slow").isJsonNull()).isTrue();
    assertThat(stats.getAsJsonObject("slowest").get("name").getAsString()).contains("sim:");
    assertThat(stats.getAsJsonObject("slowest").get("why").getAsString()).contains("GB/s");
    assertThat(table.call("close", set)).isZero();
  }

  @Test
  void textsSayWhatHappened() {
    assertThat(read(0, 0, 4096)).isZero();
    MemorySegment address = table.arena().allocate(8, 8);
    assertThat(table.call("allocate", storage, 4096L, address)).isZero();
    JsonObject stats = JsonParser.parseString(text(storage, 0)).getAsJsonObject();
    JsonObject direct = stats.getAsJsonObject("paths").getAsJsonObject("direct");
    assertThat(direct.get("read_bytes").getAsLong()).isEqualTo(4096);
    assertThat(stats.getAsJsonObject("memory").get("accelerator_bytes").getAsLong()).isPositive();
    assertThat(stats.getAsJsonArray("members")).isEmpty();
    assertThat(stats.get("slowest").isJsonNull()).isTrue();
    assertThat(text(storage, 1)).contains("direct");
    MemorySegment info = table.arena().allocate(Structs.INFO, 8);
    assertThat(table.call("info", storage, info)).isZero();
    assertThat(info.get(ValueLayout.JAVA_LONG, Structs.INFO_SIZE)).isEqualTo(BYTES);
    assertThat(info.get(ValueLayout.JAVA_INT, Structs.INFO_GPU)).isZero();
    MemorySegment plan = table.arena().allocate(Structs.PLAN, 8);
    assertThat(table.call("plan", storage, table.ranges(1, 0, 511, 8192, 0, 4096), 2L, plan))
        .isZero();
    assertThat(plan.get(ValueLayout.JAVA_LONG, Structs.PLAN_IOS)).isEqualTo(2);
    assertThat(plan.get(ValueLayout.JAVA_LONG, Structs.PLAN_BYTES)).isEqualTo(512 + 4096);
    assertThat(plan.get(ValueLayout.JAVA_LONG, Structs.PLAN_OVERREAD)).isEqualTo(1);
  }

  @Test
  void memoryOfTheAcceleratorIsTakenAndFreed() {
    long address = table.make("allocate", storage, 10_000L);
    assertThat(transfer(storage, 0, table.ranges(7, address + 5, 9000), 1L)).isZero();
    assertThat(table.call("copy", storage, 1, address + 5, target, 9000L)).isZero();
    assertThat(bytes(0, 9000)).isEqualTo(content(7, 9000));
    assertThat(table.call("copy", storage, 0, address, source, 8000L)).isZero();
    assertThat(table.call("copy", storage, 1, address, target, 8000L)).isZero();
    assertThat(bytes(0, 8000)).isEqualTo(content(0, 8000));
    assertThat(table.call("copy", storage, 1, address, target, 13_000L))
        .isEqualTo(CapiStatus.INVALID);
    assertThat(table.call("release", storage, address)).isZero();
    assertThat(table.call("release", storage, address)).isEqualTo(CapiStatus.INVALID);
    MemorySegment out = table.arena().allocate(8, 8);
    assertThat(table.call("allocate", storage, 0L, out)).isEqualTo(CapiStatus.INVALID);
  }

  @Test
  void kindsAreRead() {
    long kinds = table.make("kindsOpen", storage);
    assertThat(table.call("kindsAdd", kinds, 3, 0, 1000L, 5000L, 50L)).isZero();
    assertThat(table.call("kindsAdd", kinds, 8, 1, 16L, 4L, 512L)).isZero();
    assertThat(table.call("kindsAdd", kinds, 3, 0, 0L, 10L, 1L)).isEqualTo(CapiStatus.INVALID);
    MemorySegment numbers = table.arena().allocateFrom(ValueLayout.JAVA_INT, 8, 3);
    MemorySegment indexes = table.arena().allocateFrom(ValueLayout.JAVA_LONG, 1, 98);
    MemorySegment counts = table.arena().allocateFrom(ValueLayout.JAVA_LONG, 2, 2);
    int code =
        table.call("kindsRead", kinds, numbers, indexes, counts, 2L, target.address(), 1124L);
    assertThat(code).as(table::error).isZero();
    assertThat(bytes(0, 1024)).isEqualTo(content(17 * 512, 1024));
    assertThat(bytes(1024, 100)).isEqualTo(content(1000 + 98 * 50, 100));
    assertThat(
            table.call("kindsRead", kinds, numbers, indexes, counts, 2L, target.address(), 1123L))
        .isEqualTo(CapiStatus.INVALID);
    counts.setAtIndex(ValueLayout.JAVA_LONG, 1, 3);
    assertThat(table.call("kindsRead", kinds, numbers, indexes, counts, 2L, target.address(), -1L))
        .isEqualTo(CapiStatus.INVALID);
    assertThat(table.call("close", kinds)).isZero();
  }

  @Test
  void layersComeInTheirOrder() {
    long loader = table.make("layersOpen", storage, 100_000L, 2);
    assertThat(table.call("layersLoad", loader, 77L, 50_000L, target.address())).isZero();
    assertThat(bytes(0, 50_000)).isEqualTo(content(77, 50_000));
    MemorySegment offsets = table.arena().allocateFrom(ValueLayout.JAVA_LONG, 100, 200_000, 5);
    MemorySegment lengths = table.arena().allocateFrom(ValueLayout.JAVA_LONG, 99_999, 1, 4096);
    assertThat(table.call("layersPrefetch", loader, offsets, lengths, 3L)).isZero();
    MemorySegment address = table.arena().allocate(8, 8);
    MemorySegment bytes = table.arena().allocate(8, 8);
    for (int i = 0; i < 3; i++) {
      assertThat(table.call("layersNext", loader, 0, 0L, address, bytes)).isZero();
      long n = bytes.get(ValueLayout.JAVA_LONG, 0);
      assertThat(n).isEqualTo(lengths.getAtIndex(ValueLayout.JAVA_LONG, i));
      byte[] layer =
          CTypes.at(address.get(ValueLayout.JAVA_LONG, 0), n).toArray(ValueLayout.JAVA_BYTE);
      assertThat(layer).isEqualTo(content(offsets.getAtIndex(ValueLayout.JAVA_LONG, i), n));
    }
    assertThat(table.call("layersNext", loader, 0, 0L, address, bytes))
        .isEqualTo(CapiStatus.NOT_FOUND);
    assertThat(table.call("close", loader)).isZero();
  }

  @Test
  void layersArePlanned() {
    long[] sizes = new long[6 * 10];
    for (int i = 0; i < 10; i++) {
      System.arraycopy(new long[] {4096, 6144, 2048, 4096, 0, 0}, 0, sizes, 6 * i, 6);
    }
    MemorySegment layers = table.arena().allocateFrom(ValueLayout.JAVA_LONG, sizes);
    MemorySegment plan = table.arena().allocate(Structs.LAYER_PLAN, 8);
    MemorySegment stays = table.arena().allocate(10).fill((byte) 7);
    long budget = 6 * 4096 + 2 * 6144;
    assertThat(table.call("planLayers", layers, 10L, budget, 0, plan, stays)).isZero();
    assertThat(stays.toArray(ValueLayout.JAVA_BYTE)).containsExactly(1, 0, 0, 0, 0, 1, 0, 0, 0, 0);
    assertThat(plan.asSlice(0, 72).toArray(ValueLayout.JAVA_LONG))
        .containsExactly(4096, 5 * 4096, 2 * 6144, 4096, budget, 8 * 4096, 0, 0, 0);
    assertThat(plan.asSlice(72, 12).toArray(ValueLayout.JAVA_INT)).containsExactly(4, 2, 0);
    MemorySegment none = MemorySegment.NULL;
    assertThat(table.call("planLayers", layers, 10L, -1L, 2, plan, none)).isZero();
    assertThat(plan.get(ValueLayout.JAVA_INT, Structs.LAYER_PLAN_SLOTS)).isZero();
    assertThat(table.call("planLayers", layers, 10L, 1L, 3, plan, none))
        .isEqualTo(CapiStatus.INVALID);
    assertThat(table.error()).contains("" + 5 * 4096);
    assertThat(table.call("planLayers", layers, 10L, 0L, 1, plan, none))
        .isEqualTo(CapiStatus.INVALID);
    assertThat(table.call("planLayers", layers, -1L, 0L, 0, plan, none))
        .isEqualTo(CapiStatus.INVALID);
    layers.setAtIndex(ValueLayout.JAVA_LONG, 4, 8192);
    layers.setAtIndex(ValueLayout.JAVA_LONG, 5, 512);
    plan.fill((byte) 7);
    assertThat(table.call("planLayers", layers, 10L, 0L, 0, plan, none)).isZero();
    assertThat(plan.asSlice(32, 40).toArray(ValueLayout.JAVA_LONG))
        .containsExactly(11 * 4096 + 512, 10 * 4096, 8192, 5 * 4096, 512);
    assertThat(plan.asSlice(72, 12).toArray(ValueLayout.JAVA_INT)).containsExactly(4, 2, 2);
    layers.set(ValueLayout.JAVA_LONG, 0, -1);
    assertThat(table.call("planLayers", layers, 10L, 0L, 0, plan, none))
        .isEqualTo(CapiStatus.INVALID);
  }

  @Test
  void tensorsAreReadWhereTheyAreWanted() throws IOException {
    String header =
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[4,6],\"data_offsets\":[0,96]},"
            + "\"b\":{\"dtype\":\"U8\",\"shape\":[5],\"data_offsets\":[96,101]}}";
    header += " ".repeat(-header.length() & 7);
    MemorySegment file = MemorySegment.ofArray(new byte[8 + header.length() + 101]);
    file.set(ValueLayout.JAVA_LONG_UNALIGNED, 0, header.length());
    file.asSlice(8).copyFrom(MemorySegment.ofArray(header.getBytes(StandardCharsets.UTF_8)));
    MemorySegment.copy(source, 0, file, 8 + header.length(), 101);
    Path model = folder.resolve("m.safetensors");
    Files.write(model, file.toArray(ValueLayout.JAVA_BYTE));
    long weights = table.make("weightsOpen", table.text(model.toString()), table.text("cpu"));
    JsonObject all = JsonParser.parseString(text(weights, 2)).getAsJsonObject();
    assertThat(all.getAsJsonArray("tensors").size()).isEqualTo(2);
    JsonObject first = all.getAsJsonArray("tensors").get(0).getAsJsonObject();
    assertThat(first.get("dtype").getAsString()).isEqualTo("F32");
    MemorySegment reads = table.arena().allocate(2 * Structs.READ, 8);
    set(reads, 0, 0, 1, 2, 5, target.address() + 100, 48);
    set(reads, 1, 1, -1, 0, 0, target.address(), 5);
    assertThat(table.call("weightsRead", weights, reads, 2L)).as(table::error).isZero();
    assertThat(bytes(0, 5)).isEqualTo(content(96, 5));
    for (int row = 0; row < 4; row++) {
      assertThat(bytes(100 + row * 12, 12)).isEqualTo(content(row * 24 + 8, 12));
    }
    set(reads, 1, 1, -1, 0, 0, target.address(), 4);
    assertThat(table.call("weightsRead", weights, reads, 2L)).isEqualTo(CapiStatus.INVALID);
    assertThat(table.error()).contains("'b' has 5 bytes");
    set(reads, 1, 2, -1, 0, 0, target.address(), 4);
    assertThat(table.call("weightsRead", weights, reads, 2L)).isEqualTo(CapiStatus.NOT_FOUND);
    assertThat(table.call("close", weights)).isZero();
  }

  private static void set(MemorySegment reads, int i, int tensor, int dimension, long... numbers) {
    long at = i * Structs.READ;
    reads.set(ValueLayout.JAVA_INT, at + Structs.READ_TENSOR, tensor);
    reads.set(ValueLayout.JAVA_INT, at + Structs.READ_DIMENSION, dimension);
    for (int k = 0; k < numbers.length; k++) {
      reads.set(ValueLayout.JAVA_LONG, at + Structs.READ_START + 8L * k, numbers[k]);
    }
  }

  @Test
  void tensorsBecomeFloats() {
    MemorySegment stored = table.arena().allocate(64, 16);
    MemorySegment floats = table.arena().allocate(64, 16);
    for (int i = 0; i < 12; i++) {
      stored.set(ValueLayout.JAVA_BYTE, i, (byte) (i - 6));
    }
    stored.set(ValueLayout.JAVA_FLOAT, 16, 0.5f);
    stored.set(ValueLayout.JAVA_FLOAT, 20, -3);
    MemorySegment all = table.arena().allocate(2 * Structs.QUANTIZED, 8);
    set(all, 0, "I8", stored.address(), "F32", floats.address(), 3, 4);
    set(all, 1, "I8", stored.address() + 5, "BF16", floats.address() + 48, 0, 4);
    MemorySegment scales = all.asSlice(Structs.QUANTIZED_SCALES, 24);
    scales.copyFrom(table.ranges(stored.address() + 16, 2, 4));
    assertThat(table.call("dequantize", table.text("cpu"), all, 2L, 0L)).as(table::error).isZero();
    for (int i = 0; i < 12; i++) {
      float scale = i < 8 ? 0.5f : -3;
      assertThat(floats.getAtIndex(ValueLayout.JAVA_FLOAT, i)).isEqualTo((i - 6) * scale);
    }
    assertThat(table.call("dequantize", table.text("cpu"), MemorySegment.NULL, 0L, 0L)).isZero();

    assertThat(table.call("dequantize", table.text("cpu"), all, 1L, 5L))
        .as("there are no streams without a GPU")
        .isEqualTo(CapiStatus.UNSUPPORTED);
    assertThat(table.call("dequantize", table.text("cpu"), all, -1L, 0L))
        .isEqualTo(CapiStatus.INVALID);
    set(all, 0, "Q2_K", stored.address(), "F32", floats.address(), 3, 256);
    assertThat(table.call("dequantize", table.text("cpu"), all, 1L, 0L))
        .isEqualTo(CapiStatus.UNSUPPORTED);
    assertThat(table.error()).contains("Q2_K");
    set(all, 0, "Q2_L", stored.address(), "F32", floats.address(), 3, 256);
    assertThat(table.call("dequantize", table.text("cpu"), all, 1L, 0L))
        .isEqualTo(CapiStatus.INVALID);
    assertThat(table.error()).contains("Q2_L");
    set(all, 0, "I8", stored.address(), "F32", floats.address(), -1, 256);
    assertThat(table.call("dequantize", table.text("cpu"), all, 1L, 0L))
        .isEqualTo(CapiStatus.INVALID);
    set(all, 0, "I8", 0, "F32", floats.address(), 1, 4);
    assertThat(table.call("dequantize", table.text("cpu"), all, 1L, 0L))
        .isEqualTo(CapiStatus.INVALID);
    set(all, 0, "I8", stored.address(), "F32", floats.address(), 1L << 62, 4);
    assertThat(table.call("dequantize", table.text("cpu"), all, 1L, 0L))
        .isEqualTo(CapiStatus.INVALID);
  }

  private void set(
      MemorySegment all,
      int i,
      String type,
      long source,
      String targetType,
      long target,
      long rows,
      long columns) {
    MemorySegment one = all.asSlice(i * Structs.QUANTIZED, Structs.QUANTIZED).fill((byte) 0);
    one.set(ValueLayout.ADDRESS, Structs.QUANTIZED_TYPE, table.text(type));
    one.set(ValueLayout.JAVA_LONG, Structs.QUANTIZED_SOURCE, source);
    one.set(ValueLayout.ADDRESS, Structs.QUANTIZED_TARGET_TYPE, table.text(targetType));
    one.set(ValueLayout.JAVA_LONG, Structs.QUANTIZED_TARGET, target);
    one.set(ValueLayout.JAVA_LONG, Structs.QUANTIZED_ROWS, rows);
    one.set(ValueLayout.JAVA_LONG, Structs.QUANTIZED_COLUMNS, columns);
  }

  @Test
  void blocksAreReadAndWritten() {
    long image =
        table.make("gpuOpen", table.text("sim:file=" + folder.resolve("image") + ",size=1MiB"));
    assertThat(table.call("gpuTransfer", image, 1, 3L, 2L, source.address()))
        .as("of a file that stays nobody said that it is to be written")
        .isEqualTo(CapiStatus.PERMISSION);
    assertThat(table.call("close", image)).isZero();
    long gpu = table.make("gpuOpen", table.text("sim:size=1MiB,lba=4096"));
    assertThat(table.call("gpuTransfer", gpu, 1, 3L, 2L, source.address())).isZero();
    assertThat(table.call("gpuTransfer", gpu, 0, 4L, 1L, target.address())).isZero();
    assertThat(bytes(0, 4096)).isEqualTo(content(4096, 4096));
    for (int i = 0; i < 5; i++) {
      assertThat(table.call("gpuStart", gpu, 0, 3L, 1L, target.address() + i * 8192L, 0L)).isZero();
    }
    assertThat(table.call("gpuSynchronize", gpu)).isZero();
    assertThat(bytes(4 * 8192, 4096)).isEqualTo(content(0, 4096));
    assertThat(table.call("gpuTransfer", gpu, 0, 256L, 1L, target.address()))
        .isEqualTo(CapiStatus.INVALID);
    assertThat(table.call("gpuTransfer", gpu, 0, -1L, 1L, target.address()))
        .isEqualTo(CapiStatus.INVALID);
    long kinds = table.make("kindsOpen", gpu);
    assertThat(table.call("kindsAdd", kinds, 0, 1, 3L, 2L, 4096L)).isZero();
    assertThat(table.call("close", kinds)).isZero();
    assertThat(table.call("close", gpu)).isZero();
  }

  @Test
  void anotherTablesVersionIsRefused() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Exports.fill(0, Exports.VERSION + 1))
        .withMessageContaining("version " + (Exports.VERSION + 1));
  }

  @Test
  void aFunctionIsMadeOnce() {
    long made = table.address(1);
    assertThat(made).isNotZero();
    assertThat(table.call("make", 1L)).isZero();
    assertThat(table.address(1)).isEqualTo(made);
  }

  @ParameterizedTest
  @ValueSource(longs = {0, -1, Long.MAX_VALUE, Long.MIN_VALUE})
  void thereAreNoOtherFunctions(long place) {
    assertThat(table.call("make", place)).isNegative();
    assertThat(table.call("make", Exports.TABLE.size() + 1L)).isNegative();
  }
}
