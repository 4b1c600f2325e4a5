package io.gpunvme.models.raw;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.models.format.ElementType;
import io.gpunvme.models.format.FormatException;
import io.gpunvme.models.format.FormatException.Kind;
import io.gpunvme.models.format.HeapRoom;
import io.gpunvme.models.format.MetaValue;
import io.gpunvme.models.format.MetaValue.Items;
import io.gpunvme.models.format.TensorInfo;
import io.gpunvme.models.format.ValueType;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Superblocks and indexes, right and wrong. */
class RawModelTest {
  private static RawImage image() {
    return RawImage.of(new Random(5), 4096, 1000);
  }

  @ParameterizedTest
  @ValueSource(longs = {512, 4096, 1 << 20})
  void whatWasLaidOutIsRead(long alignment) {
    RawImage image = RawImage.of(new Random(1), alignment, 0);
    RawModel model = image.read();
    assertThat(model.superblock().uuid()).isEqualTo(RawImage.ID);
    assertThat(model.superblock().created()).isEqualTo(RawImage.WHEN);
    assertThat(model.superblock().name()).isEqualTo("a model");
    assertThat(model.superblock().stripe()).isEqualTo(RawImage.STRIPE);
    assertThat(model.superblock().totalBytes()).isEqualTo(image.bytes.length);
    assertThat(model.format()).isEqualTo("safetensors");
    assertThat(model.metadata()).isEqualTo(RawImage.metadata());
    assertThat(model.tensors().stream().map(RawTensor::info).toList())
        .isEqualTo(image.layout.tensors());
    for (RawTensor t : model.tensors()) {
      assertThat(t.info().offset() % alignment).isZero();
      assertThat(t.crc32c())
          .isEqualTo(RawImage.crc(image.bytes, t.info().offset(), t.info().bytes()));
    }
  }

  /** The places that docs/raw-models.md has, written by hand. */
  @Test
  void fieldsAreWhereTheDocumentSays() {
    RawImage image = image();
    ByteBuffer b = image.words();
    assertThat(Arrays.copyOf(image.bytes, 8))
        .isEqualTo("gpunvme\u001A".getBytes(StandardCharsets.US_ASCII));
    assertThat(b.getInt(8)).isEqualTo(1);
    assertThat(b.getInt(12)).isEqualTo(4096);
    assertThat(b.getLong(16)).isEqualTo(image.bytes.length - 1000);
    assertThat(b.getLong(24)).isEqualTo(image.layout.indexOffset());
    assertThat(b.getLong(32)).isEqualTo(image.bytes.length - 1000 - image.layout.indexOffset());
    assertThat(b.getInt(40)).isEqualTo(RawImage.crc(image.bytes, b.getLong(24), b.getLong(32)));
    assertThat(b.getInt(44)).isEqualTo(3);
    assertThat(b.getLong(48)).isEqualTo(4096);
    assertThat(b.getLong(56)).isEqualTo(4096);
    assertThat(b.get(64)).isEqualTo((byte) 0x01);
    assertThat(b.get(79)).isEqualTo((byte) 0xEF);
    assertThat(b.getLong(80)).isEqualTo(RawImage.WHEN.toEpochMilli());
    assertThat(b.get(88)).isEqualTo((byte) 7);
    assertThat(new String(image.bytes, 96, 7, StandardCharsets.UTF_8)).isEqualTo("a model");
    assertThat(b.getLong(352)).isEqualTo(65_536);
    assertThat(b.getInt(4092)).isEqualTo(RawImage.crc(image.bytes, 0, 4092));
  }

  @Test
  void arraysOfMetadataStay() {
    Items inner = new TestItems(ValueType.U8, List.of(new MetaValue.Whole(ValueType.U8, 255)));
    Items words =
        new TestItems(
            ValueType.STRING, List.of(new MetaValue.Text("a"), new MetaValue.Text("\"b\"")));
    RawLayout layout =
        RawLayout.of(
            512,
            "",
            "GGUF",
            Map.of("words", words, "nested", new TestItems(ValueType.ARRAY, List.of(inner, inner))),
            List.of());
    byte[] index = layout.index(Map.of());
    byte[] bytes = new byte[(int) layout.totalBytes()];
    byte[] block = layout.superblock(index, RawImage.ID, RawImage.WHEN, Stripe.NONE).encode();
    System.arraycopy(block, 0, bytes, 0, block.length);
    System.arraycopy(index, 0, bytes, (int) layout.indexOffset(), index.length);
    Map<String, MetaValue> read = RawModel.read(new MemoryDevice(bytes), Stripe.NONE).metadata();
    assertThat(((Items) read.get("words")).first(9)).isEqualTo(words.first(9));
    Items nested = (Items) read.get("nested");
    assertThat(nested.elementType()).isEqualTo(ValueType.ARRAY);
    assertThat(nested.count()).isEqualTo(2);
    assertThat(((Items) nested.first(1).getFirst()).first(9)).isEqualTo(inner.first(9));
  }

  @Test
  void anIndexThatTheHeapCannotHoldIsRefusedBeforeItIsRead() {
    RawImage image = image();
    MemoryDevice device = new MemoryDevice(image.bytes);
    long indexBytes = image.words().getLong(32);
    assertThatExceptionOfType(FormatException.class)
        .isThrownBy(
            () -> RawModel.read(device, RawImage.STRIPE, new HeapRoom("m", 4 * indexBytes - 1)))
        .withMessageContaining("Java's heap")
        .satisfies(e -> assertThat(e.kind()).isEqualTo(Kind.UNSUPPORTED));
    assertThat(device.bytesRead).isLessThanOrEqualTo(2 * 4096);
    assertThat(RawModel.read(device, RawImage.STRIPE, new HeapRoom("m", 4 * indexBytes)).tensors())
        .isNotEmpty();
  }

  private record TestItems(ValueType elementType, List<MetaValue> values) implements Items {
    @Override
    public long count() {
      return values.size();
    }

    @Override
    public void forFirst(long most, Consumer<MetaValue> to) {
      values.stream().limit(most).forEach(to);
    }
  }

  private static Arguments wrong(String what, Kind kind, Consumer<RawImage> how) {
    return Arguments.of(what, kind, how);
  }

  private static Consumer<RawImage> sealed(Consumer<ByteBuffer> change) {
    return image -> {
      change.accept(image.words());
      image.seal();
    };
  }

  private static Consumer<RawImage> index(String from, String to) {
    return image -> {
      String json = image.index();
      assertThat(json).contains(from);
      image.replaceIndex(json.replace(from, to));
    };
  }

  private static String tensor(long offset, String rest) {
    return "{\"tensors\":[{\"name\":\"a\",\"type\":\"U8\",\"shape\":[4],\"offset\":%d,\"bytes\":4%s}]}"
        .formatted(offset, rest);
  }

  private static Consumer<RawImage> json(String json) {
    return image -> image.replaceIndex(json);
  }

  static Stream<Arguments> superblocks() {
    return Stream.of(
        wrong("magic", Kind.NOT_THIS_FORMAT, i -> i.bytes[0] ^= 1),
        wrong("one bit", Kind.CORRUPT, i -> i.bytes[3000] ^= 1),
        wrong("version", Kind.UNSUPPORTED, sealed(b -> b.putInt(8, 2))),
        wrong("length", Kind.UNSUPPORTED, sealed(b -> b.putInt(12, 8192))),
        wrong("another unit", Kind.UNSUPPORTED, sealed(b -> b.putLong(352, 4096))),
        wrong("a stripe of one", Kind.CORRUPT, sealed(b -> b.putInt(44, 1))),
        wrong("a stripe without a unit", Kind.CORRUPT, sealed(b -> b.putLong(352, 0))),
        wrong("a unit without a stripe", Kind.CORRUPT, sealed(b -> b.putInt(44, 0))),
        wrong("a unit of 3000", Kind.CORRUPT, sealed(b -> b.putLong(352, 3000))),
        wrong("behind the unit", Kind.UNSUPPORTED, sealed(b -> b.put(360, (byte) 1))),
        wrong("reserved byte", Kind.UNSUPPORTED, sealed(b -> b.put(95, (byte) 1))),
        wrong("rest", Kind.UNSUPPORTED, sealed(b -> b.put(4091, (byte) 1))),
        wrong("behind the name", Kind.UNSUPPORTED, sealed(b -> b.put(96 + 7, (byte) 1))),
        wrong("total", Kind.CORRUPT, sealed(b -> b.putLong(16, b.getLong(16) + 1))),
        wrong("huge total", Kind.CORRUPT, sealed(b -> b.putLong(16, -1))),
        wrong("index too far", Kind.CORRUPT, sealed(b -> b.putLong(24, Long.MAX_VALUE))),
        wrong("index before the data", Kind.CORRUPT, sealed(b -> b.putLong(24, 512))),
        wrong("negative index", Kind.CORRUPT, sealed(b -> b.putLong(32, -5))),
        wrong("no index", Kind.CORRUPT, sealed(b -> b.putLong(32, 0))),
        wrong(
            "index beyond the limit",
            Kind.CORRUPT,
            sealed(b -> b.putLong(32, 100_000_001).putLong(16, b.getLong(24) + 100_000_001))),
        wrong(
            "index beyond the device",
            Kind.TRUNCATED,
            sealed(b -> b.putLong(32, 100_000_000).putLong(16, b.getLong(24) + 100_000_000))),
        wrong("data in the superblock", Kind.CORRUPT, sealed(b -> b.putLong(48, 0))),
        wrong("data unaligned", Kind.CORRUPT, sealed(b -> b.putLong(48, 4608))),
        wrong("alignment 0", Kind.CORRUPT, sealed(b -> b.putLong(56, 0))),
        wrong("alignment 256", Kind.CORRUPT, sealed(b -> b.putLong(56, 256))),
        wrong("alignment 3000", Kind.CORRUPT, sealed(b -> b.putLong(56, 3000))),
        wrong("alignment 2 MiB", Kind.CORRUPT, sealed(b -> b.putLong(56, 2 << 20))),
        wrong("name", Kind.CORRUPT, sealed(b -> b.put(96, (byte) 0xC0))),
        wrong("index' bit", Kind.CORRUPT, i -> i.bytes[(int) i.layout.indexOffset() + 9] ^= 1));
  }

  static Stream<Arguments> indexes() {
    String crc = ",\"crc32c\":\"00000000\"";
    return Stream.of(
        wrong("no JSON", Kind.CORRUPT, json("tensors")),
        wrong("no tensors", Kind.CORRUPT, json("{}")),
        wrong("two objects", Kind.CORRUPT, json("{\"tensors\":[]}{}")),
        wrong("tensors twice", Kind.CORRUPT, json("{\"tensors\":[],\"tensors\":[]}")),
        wrong("no checksum", Kind.CORRUPT, json(tensor(4096, ""))),
        wrong("short checksum", Kind.CORRUPT, json(tensor(4096, ",\"crc32c\":\"000000\""))),
        wrong("no hexadecimal", Kind.CORRUPT, json(tensor(4096, ",\"crc32c\":\"0000000g\""))),
        wrong("unaligned", Kind.CORRUPT, json(tensor(4100, crc))),
        wrong("in the superblock", Kind.CORRUPT, json(tensor(0, crc))),
        wrong("behind the index", Kind.CORRUPT, json(tensor(1L << 40, crc))),
        wrong("far", Kind.CORRUPT, json(tensor(Long.MAX_VALUE & -4096, crc))),
        wrong("negative", Kind.CORRUPT, json(tensor(-4096, crc))),
        wrong("length", Kind.CORRUPT, json(tensor(4096, crc).replace("[4]", "[5]"))),
        wrong(
            "elements",
            Kind.CORRUPT,
            json(tensor(4096, crc).replace("4]", "4,99999999999,9999999999]"))),
        wrong("type", Kind.UNSUPPORTED, json(tensor(4096, crc).replace("U8", "U9"))),
        wrong("no name", Kind.CORRUPT, json(tensor(4096, crc).replace("\"name\":\"a\",", ""))),
        wrong("names twice", Kind.CORRUPT, index("layers.3.w", "layers.2.w")),
        wrong("overlap", Kind.CORRUPT, RawModelTest::overlap),
        wrong("metadata's type", Kind.CORRUPT, index("[\"I8\",", "[\"I9\",")),
        wrong("metadata's range", Kind.CORRUPT, index("-128", "-129")),
        wrong("metadata too long", Kind.CORRUPT, index("\"-128\"]", "\"1\",\"1\"]")),
        wrong("metadata empty", Kind.CORRUPT, index("[\"I8\",\"-128\"]", "[]")),
        wrong(
            "array without items", Kind.CORRUPT, index("[\"I8\",\"-128\"]", "[\"ARRAY\",\"U8\"]")),
        wrong(
            "arrays too deep",
            Kind.CORRUPT,
            index("[\"I8\",\"-128\"]", "[\"ARRAY\"," + deep(16) + "]")));
  }

  /** An array in arrays. */
  private static String deep(int levels) {
    return levels == 0 ? "\"U8\",[]" : "\"ARRAY\",[[" + deep(levels - 1) + "]]";
  }

  private static void overlap(RawImage image) {
    List<TensorInfo> all = image.layout.tensors();
    TensorInfo long1 = all.stream().filter(t -> t.bytes() > 0).reduce((a, b) -> a).orElseThrow();
    TensorInfo next = all.get(all.indexOf(long1) + 1);
    image.replaceIndex(
        image
            .index()
            .replace("\"offset\":" + next.offset() + ",", "\"offset\":" + long1.offset() + ","));
  }

  @ParameterizedTest
  @MethodSource({"superblocks", "indexes"})
  void whatIsWrongIsRefused(String what, Kind kind, Consumer<RawImage> how) {
    RawImage image = image();
    how.accept(image);
    assertThatExceptionOfType(FormatException.class)
        .as(what)
        .isThrownBy(image::read)
        .satisfies(e -> assertThat(e.kind()).as(e.getMessage()).isEqualTo(kind))
        .withMessageStartingWith("memory");
  }

  @Test
  void arraysMayBeDeep() {
    RawImage image = image();
    index("[\"I8\",\"-128\"]", "[\"ARRAY\"," + deep(15) + "]").accept(image);
    assertThat(image.read().metadata()).containsKey("i8");
  }

  @Test
  void whatIsNotKnownInTheIndexIsIgnored() {
    RawImage image = image();
    image.replaceIndex(image.index().replaceFirst("\\{", "{\"later\":[1,{\"a\":null}],"));
    assertThat(image.read().tensors()).hasSize(13);
  }

  @Test
  void whereNothingIsTheCommandIsNamed() {
    for (int size : new int[] {0, 7, 4095, 10_000}) {
      assertThatExceptionOfType(FormatException.class)
          .isThrownBy(() -> RawModel.read(new MemoryDevice(new byte[size]), Stripe.NONE))
          .satisfies(e -> assertThat(e.kind()).isEqualTo(Kind.NOT_THIS_FORMAT))
          .withMessageContaining("gpunvme write-model");
    }
  }

  @Test
  void layoutsThatMakeNoSenseAreRefused() {
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(() -> RawLayout.of(1000, "", "", Map.of(), List.of()));
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(() -> RawLayout.of(512, "ä".repeat(128), "", Map.of(), List.of()));
    long most = Long.MAX_VALUE - 10_000;
    List<TensorInfo> two =
        List.of(
            new TensorInfo("a", ElementType.U8, new long[] {most}, 0, most),
            new TensorInfo("b", ElementType.U8, new long[] {most}, 0, most));
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(() -> RawLayout.of(4096, "", "", Map.of(), two));
  }

  /** Both would be written as a question mark: a model that nobody could read. */
  @Test
  void namesThatAreNoUnicodeAreRefused() {
    List<TensorInfo> tensors =
        Stream.of("\ud800", "\ud801")
            .map(n -> new TensorInfo(n, ElementType.U8, new long[] {1}, 0, 1))
            .toList();
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(() -> RawLayout.of(4096, "", "", Map.of(), tensors))
        .withMessageContaining("UTF-8");
    Map<String, MetaValue> metadata = Map.of("\udc00", new MetaValue.Text("a"));
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(() -> RawLayout.of(4096, "", "", metadata, List.of()));
    TensorInfo whole = new TensorInfo("\ud83d\ude00", ElementType.U8, new long[] {1}, 0, 1);
    assertThat(RawLayout.of(4096, "", "", Map.of(), List.of(whole)).tensors()).hasSize(1);
  }
}
