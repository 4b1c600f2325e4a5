package io.gpunvme.models.format;

import static io.gpunvme.models.format.GgufBytes.ARRAY;
import static io.gpunvme.models.format.GgufBytes.BOOL;
import static io.gpunvme.models.format.GgufBytes.F32;
import static io.gpunvme.models.format.GgufBytes.F64;
import static io.gpunvme.models.format.GgufBytes.I16;
import static io.gpunvme.models.format.GgufBytes.I32;
import static io.gpunvme.models.format.GgufBytes.I64;
import static io.gpunvme.models.format.GgufBytes.I8;
import static io.gpunvme.models.format.GgufBytes.STRING;
import static io.gpunvme.models.format.GgufBytes.U16;
import static io.gpunvme.models.format.GgufBytes.U32;
import static io.gpunvme.models.format.GgufBytes.U64;
import static io.gpunvme.models.format.GgufBytes.U8;
import static io.gpunvme.models.format.GgufBytes.start;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import io.gpunvme.models.format.FormatException.Kind;
import io.gpunvme.storage.fs.BytesReader;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

class GgufTest {
  private static final long MANY = 1L << 32;

  static Stream<Arguments> good() {
    return Stream.of(
        arguments("nothing", start(0, 0), 0),
        arguments("version 2", start(2, 0, 0), 0),
        arguments("metadata alone, not padded", start(0, 1).key("a", U8).u8(1), 0),
        arguments("a scalar", start(1, 0).tensor("t", 0, 0).pad(32).zeros(4), 1),
        arguments("no elements", start(1, 0).tensor("t", 0, 0, 3, 0).pad(32), 1),
        arguments(
            "no elements of many", start(1, 0).tensor("t", 0, 0, 2, Long.MAX_VALUE, 0).pad(32), 1),
        arguments("padded", start(1, 0).tensor("t", 0, 0, 3).pad(32).zeros(32), 1),
        arguments("the last not padded", start(1, 0).tensor("t", 0, 0, 3).pad(32).zeros(12), 1),
        arguments("something behind", start(1, 0).tensor("t", 0, 0, 3).pad(32).zeros(99), 1),
        arguments(
            "two",
            start(2, 0).tensor("t", 24, 0, 33).tensor("u", 8, 64, 32, 2).pad(32).zeros(64 + 68),
            2),
        arguments(
            "no elements between others",
            start(3, 0)
                .tensor("t", 24, 0, 1)
                .tensor("u", 8, 32, 32, 0)
                .tensor("v", 24, 32, 1)
                .pad(32)
                .zeros(33),
            3),
        arguments(
            "alignment 8",
            start(2, 1)
                .u32("general.alignment", 8)
                .tensor("t", 24, 0, 1)
                .tensor("u", 24, 8, 1)
                .pad(8)
                .zeros(9),
            2),
        arguments(
            "alignment 4096",
            start(2, 1)
                .u32("general.alignment", 4096)
                .tensor("t", 24, 0, 1)
                .tensor("u", 24, 4096, 1)
                .pad(4096)
                .zeros(4097),
            2),
        arguments("an empty name", start(1, 0).tensor("", 24, 0, 1).pad(32).zeros(1), 1),
        arguments(
            "a name of 127 bytes",
            start(1, 0).tensor("x".repeat(127), 24, 0, 1).pad(32).zeros(1),
            1),
        arguments("a key of 65535 bytes", start(0, 1).key("k".repeat(65535), U8).u8(0), 0),
        arguments("an empty array", start(0, 1).array("a", STRING, 0), 0),
        arguments(
            "arrays in arrays",
            start(0, 1)
                .array("a", ARRAY, 2)
                .i32(ARRAY)
                .i64(1)
                .i32(U8)
                .i64(2)
                .u8(1)
                .u8(2)
                .i32(STRING)
                .i64(1)
                .text("x"),
            0));
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("good")
  void reads(String what, GgufBytes file, int tensors) {
    ModelHeader read = Gguf.read(file.reader());
    assertThat(read.tensors()).hasSize(tensors);
    assertThat(read.format()).startsWith("GGUF v");
    assertThat(read.fileBytes()).isEqualTo(file.size());
    assertThat(ModelFiles.readHeader(file.reader()).tensors()).isEqualTo(read.tensors());
  }

  static Stream<Arguments> bad() {
    return Stream.of(
        arguments("version 0", start(0, 0, 0), Kind.UNSUPPORTED, "version 0"),
        arguments("version 1", start(1, 0, 0), Kind.UNSUPPORTED, "version 1"),
        arguments("version 4", start(4, 0, 0), Kind.UNSUPPORTED, "version 4"),
        arguments("big endian", start(3 << 24, 0, 0), Kind.UNSUPPORTED, "big endian"),
        arguments(
            "more tensors than fit",
            start(2, 0).tensor("t", 24, 0, 0),
            Kind.CORRUPT,
            "2 tensors do not fit"),
        arguments(
            "tensors below 0",
            start(-1, 0).zeros(99),
            Kind.CORRUPT,
            "18446744073709551615 tensors"),
        arguments("more keys than fit", start(0, 3).zeros(28), Kind.CORRUPT, "3 metadata keys"),
        arguments("keys below 0", start(0, Long.MIN_VALUE).zeros(99), Kind.CORRUPT, "keys"),
        arguments("keys past the end", start(0, 1).key("k", U64).i32(1), Kind.TRUNCATED, "'k'"),
        arguments("a key below 0", start(0, 1).i64(-1).zeros(20), Kind.CORRUPT, "a key of"),
        arguments(
            "a key of 65536 bytes",
            start(0, 1).key("k".repeat(65536), U8).u8(0),
            Kind.CORRUPT,
            "a key of 65536"),
        arguments("a key past the end", start(0, 1).i64(500).zeros(20), Kind.TRUNCATED, "a key"),
        arguments("an empty key", start(0, 1).key("", U8).zeros(9), Kind.CORRUPT, "empty"),
        arguments(
            "a key that is not UTF-8",
            start(0, 1).i64(1).u8(0xFF).i32(U8).zeros(9),
            Kind.CORRUPT,
            "not UTF-8"),
        arguments(
            "a key twice",
            start(0, 2).key("k", U8).u8(1).key("k", U8).u8(1),
            Kind.CORRUPT,
            "'k' is there twice"),
        arguments(
            "an unknown value type", start(0, 1).key("k", 13).zeros(9), Kind.CORRUPT, "type 13"),
        arguments(
            "a value type below 0",
            start(0, 1).key("k", -1).zeros(9),
            Kind.CORRUPT,
            "type 4294967295"),
        arguments("an unknown item type", start(0, 1).array("k", 99, 0), Kind.CORRUPT, "type 99"),
        arguments("truth of 2", start(0, 1).key("k", BOOL).u8(2), Kind.CORRUPT, "not 0 or 1"),
        arguments(
            "text past the end",
            start(0, 1).key("k", STRING).i64(9).zeros(8),
            Kind.TRUNCATED,
            "of 9 bytes"),
        arguments(
            "text below 0",
            start(0, 1).key("k", STRING).i64(-9).zeros(8),
            Kind.TRUNCATED,
            "18446744073709551607 bytes"),
        arguments(
            "items past the end",
            start(0, 1).array("k", U16, 5).zeros(9),
            Kind.TRUNCATED,
            "of 5 items"),
        arguments(
            "items below 0",
            start(0, 1).array("k", U16, -5).zeros(9),
            Kind.TRUNCATED,
            "items passes"),
        arguments(
            "items beyond counting",
            start(0, 1).array("k", F64, Long.MAX_VALUE).zeros(9),
            Kind.TRUNCATED,
            "items passes"),
        arguments(
            "texts past the end",
            start(0, 1).array("k", STRING, 1).i64(2).u8(1),
            Kind.TRUNCATED,
            "of 2 bytes"),
        arguments(
            "more texts than fit",
            start(0, 1).array("k", STRING, 2).text("").zeros(7),
            Kind.TRUNCATED,
            "of 2 items"),
        arguments("arrays in arrays without end", nested(9), Kind.UNSUPPORTED, "8 deep"),
        arguments(
            "alignment of another type",
            start(0, 1).key("general.alignment", U64).i64(32),
            Kind.CORRUPT,
            "U64 32"),
        arguments("alignment 0", start(0, 1).u32("general.alignment", 0), Kind.CORRUPT, "U32 0"),
        arguments("alignment 4", start(0, 1).u32("general.alignment", 4), Kind.CORRUPT, "U32 4"),
        arguments("alignment 24", start(0, 1).u32("general.alignment", 24), Kind.CORRUPT, "24"),
        arguments(
            "a name of 128 bytes",
            start(1, 0).tensor("x".repeat(128), 24, 0, 1).pad(32).zeros(1),
            Kind.CORRUPT,
            "name of 128"),
        arguments("a name below 0", start(1, 0).i64(-1).zeros(99), Kind.CORRUPT, "name of"),
        arguments(
            "a name that is not UTF-8",
            start(1, 0).i64(2).u8(0xC0).u8(0x80).i32(0).i32(0).i64(0).pad(32).zeros(4),
            Kind.CORRUPT,
            "not UTF-8"),
        arguments(
            "a name twice",
            start(2, 0).tensor("t", 24, 0, 1).tensor("t", 24, 32, 1).pad(32).zeros(64),
            Kind.CORRUPT,
            "'t': corrupt: it is there twice"),
        arguments(
            "5 dimensions",
            start(1, 0).tensor("t", 24, 0, 1, 1, 1, 1, 1).pad(32).zeros(1),
            Kind.CORRUPT,
            "5 dimensions"),
        arguments(
            "a dimension below 0",
            start(1, 0).tensor("t", 24, 0, -1).pad(32).zeros(1),
            Kind.CORRUPT,
            "negative"),
        arguments(
            "elements beyond counting",
            start(1, 0).tensor("t", 24, 0, MANY, MANY).pad(32).zeros(1),
            Kind.CORRUPT,
            "2^63 elements or more"),
        arguments(
            "bytes beyond counting",
            start(1, 0).tensor("t", 28, 0, MANY, MANY / 8).pad(32).zeros(1),
            Kind.CORRUPT,
            "2^63 bytes or more"),
        arguments(
            "a removed type",
            start(1, 0).tensor("t", 4, 0, 32).pad(32).zeros(32),
            Kind.UNSUPPORTED,
            "type 4 (Q4_2) was removed"),
        arguments(
            "another removed type",
            start(1, 0).tensor("t", 33, 0, 32).pad(32).zeros(32),
            Kind.UNSUPPORTED,
            "(Q4_0_8_8) was removed"),
        arguments(
            "an unknown type",
            start(1, 0).tensor("t", 43, 0, 32).pad(32).zeros(32),
            Kind.UNSUPPORTED,
            "type 43 is unknown"),
        arguments(
            "a type below 0",
            start(1, 0).tensor("t", -1, 0, 32).pad(32).zeros(32),
            Kind.UNSUPPORTED,
            "type 4294967295"),
        arguments(
            "part of a block",
            start(1, 0).tensor("t", 2, 0, 33).pad(32).zeros(64),
            Kind.CORRUPT,
            "rows of 33"),
        arguments(
            "blocks over rows",
            start(1, 0).tensor("t", 2, 0, 16, 2).pad(32).zeros(64),
            Kind.CORRUPT,
            "rows of 16"),
        arguments(
            "a scalar in blocks",
            start(1, 0).tensor("t", 2, 0).pad(32).zeros(64),
            Kind.CORRUPT,
            "rows of 1 "),
        arguments(
            "not at the start",
            start(1, 0).tensor("t", 24, 32, 1).pad(32).zeros(64),
            Kind.CORRUPT,
            "begins at 32, not at 0"),
        arguments(
            "a hole",
            start(2, 0).tensor("t", 24, 0, 1).tensor("u", 24, 64, 1).pad(32).zeros(99),
            Kind.CORRUPT,
            "begins at 64, not at 32"),
        arguments(
            "not aligned",
            start(2, 0).tensor("t", 24, 0, 1).tensor("u", 24, 1, 1).pad(32).zeros(99),
            Kind.CORRUPT,
            "begins at 1, not at 32"),
        arguments(
            "an offset below 0",
            start(1, 0).tensor("t", 24, -32, 1).pad(32).zeros(99),
            Kind.CORRUPT,
            "begins at 18446744073709551584"),
        arguments(
            "data cut",
            start(1, 0).tensor("t", 24, 0, 9).pad(32).zeros(8),
            Kind.TRUNCATED,
            "'t': truncated: its 9 bytes at 64 go past the end, byte 72"),
        arguments("padding cut", start(1, 0).tensor("t", 24, 0, 0), Kind.TRUNCATED, "padding"),
        arguments(
            "an alignment past the end",
            start(1, 1).u32("general.alignment", 1L << 31).tensor("t", 24, 0, 0).pad(32),
            Kind.TRUNCATED,
            "padding"),
        arguments(
            "tensors cut",
            start(1, 0).text("name").i32(4).i64(1).zeros(9),
            Kind.TRUNCATED,
            "dimension"));
  }

  private static GgufBytes nested(int depth) {
    GgufBytes file = start(0, 1).array("k", ARRAY, 1);
    for (int i = 0; i < depth; i++) {
      file.i32(ARRAY).i64(1);
    }
    return file.i32(U8).i64(0);
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("bad")
  void refuses(String what, GgufBytes file, Kind kind, String message) {
    expect(file.reader(), kind, message);
  }

  private static FormatException expect(BytesReader file, Kind kind, String message) {
    FormatException e = catchThrowableOfType(FormatException.class, () -> Gguf.read(file));
    assertThat(e).isNotNull().hasMessageContaining(message).hasMessageContaining("memory");
    assertThat(e.kind()).as(e.getMessage()).isEqualTo(kind);
    return e;
  }

  @Test
  void whatIsNoGguf() {
    byte[] good = start(0, 0).bytes();
    for (int bytes = 0; bytes < good.length; bytes++) {
      expect(new BytesReader(Arrays.copyOf(good, bytes)), Kind.NOT_THIS_FORMAT, "not a GGUF");
    }
    good[3] ^= 1;
    expect(new BytesReader(good), Kind.NOT_THIS_FORMAT, "not a GGUF");
  }

  @Test
  void everyLengthOfACutFileIsRefused() {
    byte[] file =
        start(2, 3)
            .key("a", STRING)
            .text("value")
            .array("b", STRING, 2)
            .text("x")
            .text("y")
            .array("c", ARRAY, 1)
            .i32(F32)
            .i64(1)
            .f32(1)
            .tensor("t", 0, 0, 3)
            .tensor("u", 2, 32, 32)
            .pad(32)
            .zeros(32 + 18)
            .bytes();
    assertThat(Gguf.read(new BytesReader(file)).tensors()).hasSize(2);
    for (int bytes = 0; bytes < file.length; bytes++) {
      byte[] cut = Arrays.copyOf(file, bytes);
      assertThat(catchThrowableOfType(FormatException.class, () -> Gguf.read(new BytesReader(cut))))
          .as("%d bytes", bytes)
          .isNotNull();
    }
  }

  @Test
  void tellsWhatItFound() {
    GgufBytes file =
        start(2, 13)
            .key("u8", U8)
            .u8(255)
            .key("i8", I8)
            .u8(255)
            .key("u16", U16)
            .i16(-1)
            .key("i16", I16)
            .i16(-1)
            .key("u32", U32)
            .i32(-1)
            .key("i32", I32)
            .i32(-1)
            .key("f32", F32)
            .f32(0.1f)
            .key("bool", BOOL)
            .u8(1)
            .key("string", STRING)
            .text("höhe")
            .key("u64", U64)
            .i64(-1)
            .key("i64", I64)
            .i64(-1)
            .key("f64", F64)
            .f64(0.1)
            .array("array", I16, 3)
            .i16(1)
            .i16(-2)
            .i16(3)
            .tensor("w", 1, 0, 5, 3, 2)
            .tensor("q", 2, 64, 64, 3)
            .pad(32);
    long data = file.size();
    ModelHeader read = Gguf.read(file.zeros(64 + 108).reader());
    assertThat(read.tensors())
        .containsExactly(
            new TensorInfo("w", ElementType.F16, new long[] {2, 3, 5}, data, 60),
            new TensorInfo("q", ElementType.Q4_0, new long[] {3, 64}, data + 64, 108));
    assertThat(read.dataOffset()).isEqualTo(data);
    assertThat(read.alignment()).isEqualTo(32);
    assertThat(read.metadata().keySet())
        .containsExactly(
            "u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "string", "u64", "i64", "f64",
            "array");
    assertThat(read.metadata().values().stream().map(MetaValue::toString))
        .containsExactly(
            "255",
            "-1",
            "65535",
            "-1",
            "4294967295",
            "-1",
            "0.1",
            "true",
            "höhe",
            "18446744073709551615",
            "-1",
            "0.1",
            "3 of I16");
    assertThat(read.metadata().values().stream().map(MetaValue::type))
        .containsExactly(
            ValueType.U8,
            ValueType.I8,
            ValueType.U16,
            ValueType.I16,
            ValueType.U32,
            ValueType.I32,
            ValueType.F32,
            ValueType.BOOL,
            ValueType.STRING,
            ValueType.U64,
            ValueType.I64,
            ValueType.F64,
            ValueType.ARRAY);
    assertThat(read.whole("u32")).hasValue(4294967295L);
    assertThat(read.whole("u64")).isEmpty();
    assertThat(read.whole("i64")).hasValue(-1);
    assertThat(read.whole("string")).isEmpty();
    assertThat(items(read, "array").first(2))
        .containsExactly(
            new MetaValue.Whole(ValueType.I16, 1), new MetaValue.Whole(ValueType.I16, -2));
  }

  private static MetaValue.Items items(ModelHeader header, String key) {
    return (MetaValue.Items) header.metadata().get(key);
  }

  @Test
  void arraysOfArraysAreReadWhenAskedFor() {
    GgufBytes file =
        start(0, 1)
            .array("a", ARRAY, 2)
            .i32(STRING)
            .i64(2)
            .text("x")
            .text("")
            .i32(BOOL)
            .i64(2)
            .u8(0)
            .u8(7);
    MetaValue.Items outer = items(Gguf.read(file.reader()), "a");
    assertThat(outer.elementType()).isEqualTo(ValueType.ARRAY);
    MetaValue.Items texts = (MetaValue.Items) outer.first(9).getFirst();
    assertThat(texts.first(9)).containsExactly(new MetaValue.Text("x"), new MetaValue.Text(""));
    MetaValue.Items flags = (MetaValue.Items) outer.first(9).getLast();
    assertThat(flags.first(1)).containsExactly(new MetaValue.Flag(false));
    assertThat(catchThrowableOfType(FormatException.class, () -> flags.first(2)))
        .hasMessageContaining("truth value of 7");
  }

  @Test
  void aTokenizerStaysInTheFile() {
    int count = 150_000;
    GgufBytes file = start(0, 3).array("tokens", STRING, count);
    for (int i = 0; i < count; i++) {
      file.text("token" + i);
    }
    file.array("scores", F32, count).zeros(4 * count).array("types", I32, count).zeros(4 * count);
    BytesReader reader = file.reader();
    ModelHeader read = Gguf.read(reader);
    assertThat(reader.bytesRead()).isLessThan(file.size());
    AtomicLong seen = new AtomicLong();
    items(read, "tokens")
        .forEach(
            token ->
                assertThat(token).isEqualTo(new MetaValue.Text("token" + seen.getAndIncrement())));
    assertThat(seen).hasValue(count);
    assertThat(items(read, "types").count()).isEqualTo(count);
    assertThat(items(read, "tokens").first(0)).isEmpty();
  }

  @Test
  void onlyTheHeaderIsRead() {
    GgufBytes file = start(1, 1).array("big", U64, 1L << 30);
    byte[] head = file.bytes();
    // The array's items and everything behind them are zeros: an empty name, no dimension, F32.
    long behind = head.length + (8L << 30);
    BytesReader reader = new BytesReader(head, behind + 1000);
    assertThat(Gguf.read(reader).tensors())
        .containsExactly(
            new TensorInfo(
                "", ElementType.F32, new long[0], Math.ceilDiv(behind + 24, 32) * 32, 4));
    assertThat(reader.bytesRead()).isLessThan(200_000);
  }

  @Test
  void textThatWouldFillMemoryIsRefused() {
    byte[] head = start(0, 2).key("a", STRING).i64(65 << 20).bytes();
    expect(new BytesReader(head, 1L << 40), Kind.UNSUPPORTED, "bytes of text");
    GgufBytes many = start(0, 20);
    for (int i = 0; i < 20; i++) {
      many.key("k" + i, STRING).i64(4 << 20).zeros(4 << 20);
    }
    expect(many.reader(), Kind.UNSUPPORTED, "bytes of text");
  }

  @Test
  void moreThanAnyModelHasIsRefused() {
    long size = 1L << 40;
    expect(new BytesReader(start((1 << 20) + 1, 0).bytes(), size), Kind.UNSUPPORTED, "tensors");
    expect(new BytesReader(start(0, (1 << 16) + 1).bytes(), size), Kind.UNSUPPORTED, "keys");
    // As many as may be: all with an empty name.
    expect(new BytesReader(start(1 << 20, 0).bytes(), size), Kind.CORRUPT, "there twice");
  }

  @Test
  void valuesThatAreNoUtf8AreShownAllTheSame() {
    GgufBytes file = start(0, 1).key("k", STRING).i64(2).u8('a').u8(0xFF);
    assertThat(Gguf.read(file.reader()).text("k")).contains("a\ufffd");
  }
}
