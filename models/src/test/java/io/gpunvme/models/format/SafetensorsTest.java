package io.gpunvme.models.format;

import static io.gpunvme.models.format.SafetensorsBytes.entry;
import static io.gpunvme.models.format.SafetensorsBytes.file;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import io.gpunvme.models.format.FormatException.Kind;
import io.gpunvme.storage.fs.BytesReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

class SafetensorsTest {
  private static final String A = entry("U8", "[1]", 0, 1);

  static Stream<Arguments> good() {
    return Stream.of(
        arguments("nothing", "{}", 0, 0),
        arguments("nothing, padded", "{}      ", 0, 0),
        arguments("metadata", "{\"__metadata__\":{\"a\":\"b\",\"\":\"\"}}", 0, 0),
        arguments("one", "{\"a\":" + A + "}", 1, 1),
        arguments("white space inside", "{\n\t\"a\" :\r " + A + "\n} ", 1, 1),
        arguments(
            "any order of keys",
            "{\"a\":{\"data_offsets\":[0,1],\"shape\":[1],\"dtype\":\"U8\"}}",
            1,
            1),
        arguments(
            "unknown keys",
            "{\"a\":{\"x\":{\"y\":[1,2.5e3,true,false,null,\"\"]},\"dtype\":\"U8\",\"shape\":[1],"
                + "\"data_offsets\":[0,1]}}",
            1,
            1),
        arguments(
            "any order of tensors",
            "{\"b\":" + entry("U8", "[2]", 1, 3) + ",\"a\":" + A + "}",
            3,
            2),
        arguments("a scalar", "{\"a\":" + entry("F64", "[]", 0, 8) + "}", 8, 1),
        arguments("no elements", "{\"a\":" + entry("F64", "[3,0]", 0, 0) + "}", 0, 1),
        arguments(
            "no elements of many",
            "{\"a\":" + entry("F64", "[0,9223372036854775807,2]", 0, 0) + "}",
            0,
            1),
        arguments(
            "no elements in the middle",
            "{\"a\":"
                + A
                + ",\"b\":"
                + entry("I8", "[0]", 1, 1)
                + ",\"c\":"
                + entry("I8", "[1]", 1, 2)
                + "}",
            2,
            3),
        arguments(
            "an odd start", "{\"a\":" + A + ",\"b\":" + entry("F64", "[1]", 1, 9) + "}", 9, 2),
        arguments("4 bits", "{\"a\":" + entry("F4", "[2,3]", 0, 3) + "}", 3, 1),
        arguments("6 bits", "{\"a\":" + entry("F6_E2M3", "[4]", 0, 3) + "}", 3, 1),
        arguments("an empty name", "{\"\":" + A + "}", 1, 1),
        arguments("escapes", "{\"\\u0041\\n\\/\\ud83d\\ude00\":" + A + "}", 1, 1),
        arguments("letters of the world", "{\"höhe.重み.😀\":" + A + "}", 1, 1),
        arguments(
            "64 dimensions",
            "{\"a\":" + entry("U8", "[1" + ",1".repeat(63) + "]", 0, 1) + "}",
            1,
            1));
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("good")
  void reads(String what, String header, int dataBytes, int tensors) {
    byte[] file = file(header, dataBytes);
    ModelHeader read = Safetensors.read(new BytesReader(file));
    assertThat(read.tensors()).hasSize(tensors);
    assertThat(read.dataOffset()).isEqualTo(file.length - dataBytes);
    assertThat(read.tensorBytes()).isEqualTo(dataBytes);
    assertThat(read.format()).isEqualTo("safetensors");
    assertThat(ModelFiles.readHeader(new BytesReader(file)).tensors()).isEqualTo(read.tensors());
  }

  static Stream<Arguments> bad() {
    return Stream.of(
        arguments("a list", "[]", 0, Kind.NOT_THIS_FORMAT, "begin with '{'"),
        arguments("leading space", " {}", 0, Kind.NOT_THIS_FORMAT, "begin with '{'"),
        arguments("byte order mark", "\ufeff{}", 0, Kind.NOT_THIS_FORMAT, "begin with '{'"),
        arguments("trailing newline", "{}\n", 0, Kind.CORRUPT, "spaces"),
        arguments("trailing zero", "{}\0", 0, Kind.CORRUPT, "spaces"),
        arguments("two objects", "{}{}", 0, Kind.CORRUPT, "JSON"),
        arguments("only a brace", "{       ", 0, Kind.CORRUPT, "spaces"),
        arguments("unfinished", "{\"a\":{}", 0, Kind.CORRUPT, "needs dtype"),
        arguments("unfinished object", "{\"__metadata__\":{}", 0, Kind.CORRUPT, "JSON"),
        arguments("comment", "{/**/}", 0, Kind.CORRUPT, "JSON"),
        arguments("hash comment", "{#\n}", 0, Kind.CORRUPT, "JSON"),
        arguments("single quotes", "{'a':" + A + "}", 1, Kind.CORRUPT, "JSON"),
        arguments("no quotes", "{a:" + A + "}", 1, Kind.CORRUPT, "JSON"),
        arguments("equals", "{\"a\"=" + A + "}", 1, Kind.CORRUPT, "JSON"),
        arguments("arrow", "{\"a\"=>" + A + "}", 1, Kind.CORRUPT, "JSON"),
        arguments("semicolon", "{\"a\":" + A + ";}", 1, Kind.CORRUPT, "JSON"),
        arguments("trailing comma", "{\"a\":" + A + ",}", 1, Kind.CORRUPT, "JSON"),
        arguments("leading comma", "{,\"a\":" + A + "}", 1, Kind.CORRUPT, "JSON"),
        arguments("comma in a list", shape("[1,]"), 1, Kind.CORRUPT, "JSON"),
        arguments("two commas", shape("[1,,1]"), 1, Kind.CORRUPT, "JSON"),
        arguments("NaN", shape("[NaN]"), 1, Kind.CORRUPT, "JSON"),
        arguments("Infinity", shape("[-Infinity]"), 1, Kind.CORRUPT, "JSON"),
        arguments("leading zero", shape("[01]"), 1, Kind.CORRUPT, "JSON"),
        arguments("plus", shape("[+1]"), 1, Kind.CORRUPT, "JSON"),
        arguments("hexadecimal", shape("[0x1]"), 1, Kind.CORRUPT, "JSON"),
        arguments("dot", shape("[1.]"), 1, Kind.CORRUPT, "JSON"),
        arguments("fraction", shape("[1.0]"), 1, Kind.CORRUPT, "whole number"),
        arguments("exponent", shape("[1e0]"), 1, Kind.CORRUPT, "whole number"),
        arguments("negative", shape("[-1]"), 1, Kind.CORRUPT, "whole number"),
        arguments("minus zero", shape("[-0]"), 0, Kind.CORRUPT, "whole number"),
        arguments("number as text", shape("[\"1\"]"), 1, Kind.CORRUPT, "whole number"),
        arguments("truth", shape("[true]"), 1, Kind.CORRUPT, "whole number"),
        arguments("null", shape("[null]"), 1, Kind.CORRUPT, "whole number"),
        arguments("2^63", shape("[9223372036854775808,0]"), 0, Kind.CORRUPT, "whole number"),
        arguments("2^64", shape("[18446744073709551616,0]"), 0, Kind.CORRUPT, "whole number"),
        arguments("a nested shape", shape("[[1]]"), 1, Kind.CORRUPT, "whole number"),
        arguments("a shape that is a number", shape("1"), 1, Kind.CORRUPT, "array"),
        arguments(
            "capital literal",
            "{\"a\":{\"x\":True,\"dtype\":\"U8\",\"shape\":[1]," + "\"data_offsets\":[0,1]}}",
            1,
            Kind.CORRUPT,
            "JSON"),
        arguments("raw control character", "{\"a\u0001\":" + A + "}", 1, Kind.CORRUPT, "JSON"),
        arguments("raw newline in text", "{\"a\n\":" + A + "}", 1, Kind.CORRUPT, "JSON"),
        arguments("unknown escape", "{\"\\a\":" + A + "}", 1, Kind.CORRUPT, "JSON"),
        arguments("escaped quote of C", "{\"\\'\":" + A + "}", 1, Kind.CORRUPT, "JSON"),
        arguments("escaped newline", "{\"\\\n\":" + A + "}", 1, Kind.CORRUPT, "JSON"),
        arguments("short escape", "{\"\\u12\":" + A + "}", 1, Kind.CORRUPT, "JSON"),
        arguments("high surrogate", "{\"\\ud83d\":" + A + "}", 1, Kind.CORRUPT, "surrogate"),
        arguments("low surrogate", "{\"\\ude00\":" + A + "}", 1, Kind.CORRUPT, "surrogate"),
        arguments(
            "surrogates the wrong way",
            "{\"\\ude00\\ud83d\":" + A + "}",
            1,
            Kind.CORRUPT,
            "surrogate"),
        arguments(
            "control character in what is ignored",
            "{\"a\":{\"x\":\"\n\"," + A.substring(1) + "}",
            1,
            Kind.CORRUPT,
            "JSON"),
        arguments(
            "a huge number in what is ignored",
            "{\"a\":{\"x\":1" + "0".repeat(5000) + "," + A.substring(1) + "}",
            1,
            Kind.CORRUPT,
            "JSON"),
        arguments(
            "too deep",
            "{\"a\":{\"x\":" + "[".repeat(200) + "]".repeat(200) + "," + A.substring(1) + "}",
            1,
            Kind.CORRUPT,
            "JSON"),
        arguments(
            "a name twice", "{\"a\":" + A + ",\"a\":" + A + "}", 1, Kind.CORRUPT, "there twice"),
        arguments(
            "a name twice, escaped",
            "{\"a\":" + A + ",\"\\u0061\":" + A + "}",
            1,
            Kind.CORRUPT,
            "there twice"),
        arguments(
            "a key twice",
            "{\"a\":{\"shape\":[1],\"shape\":[1],\"dtype\":\"U8\"," + "\"data_offsets\":[0,1]}}",
            1,
            Kind.CORRUPT,
            "there twice"),
        arguments(
            "metadata twice",
            "{\"__metadata__\":{},\"__metadata__\":{}}",
            0,
            Kind.CORRUPT,
            "there twice"),
        arguments(
            "a metadata key twice",
            "{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}",
            0,
            Kind.CORRUPT,
            "there twice"),
        arguments(
            "metadata that is a number",
            "{\"__metadata__\":{\"a\":1}}",
            0,
            Kind.CORRUPT,
            "text is expected"),
        arguments(
            "metadata that is null",
            "{\"__metadata__\":null}",
            0,
            Kind.CORRUPT,
            "object is expected"),
        arguments(
            "metadata that is a tensor",
            "{\"__metadata__\":" + A + "}",
            1,
            Kind.CORRUPT,
            "text is expected"),
        arguments(
            "an entry that is a list",
            "{\"a\":[\"U8\",[1],[0,1]]}",
            1,
            Kind.CORRUPT,
            "object is expected"),
        arguments("an entry that is null", "{\"a\":null}", 0, Kind.CORRUPT, "object is expected"),
        arguments(
            "no dtype",
            "{\"a\":{\"shape\":[1],\"data_offsets\":[0,1]}}",
            1,
            Kind.CORRUPT,
            "needs dtype"),
        arguments(
            "no shape",
            "{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}",
            1,
            Kind.CORRUPT,
            "needs dtype"),
        arguments(
            "no offsets",
            "{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}",
            1,
            Kind.CORRUPT,
            "needs dtype"),
        arguments("one offset", offsets("[0]"), 1, Kind.CORRUPT, "needs dtype"),
        arguments("three offsets", offsets("[0,1,1]"), 1, Kind.CORRUPT, "two numbers"),
        arguments("offsets backwards", offsets("[1,0]"), 1, Kind.CORRUPT, "not a range"),
        arguments(
            "offsets beyond counting",
            offsets("[0,9223372036854775807]"),
            1,
            Kind.CORRUPT,
            "not a range"),
        arguments(
            "unknown dtype",
            "{\"a\":" + entry("I4", "[2]", 0, 1) + "}",
            1,
            Kind.UNSUPPORTED,
            "'I4'"),
        arguments(
            "a small dtype",
            "{\"a\":" + entry("u8", "[1]", 0, 1) + "}",
            1,
            Kind.UNSUPPORTED,
            "'u8'"),
        arguments(
            "dtype of GGUF",
            "{\"a\":" + entry("Q4_0", "[32]", 0, 18) + "}",
            18,
            Kind.UNSUPPORTED,
            "'Q4_0'"),
        arguments(
            "dtype that is a number",
            "{\"a\":{\"dtype\":8,\"shape\":[1]," + "\"data_offsets\":[0,1]}}",
            1,
            Kind.CORRUPT,
            "text is expected"),
        arguments(
            "fewer bytes than elements",
            "{\"a\":" + entry("U8", "[2]", 0, 1) + "}",
            1,
            Kind.CORRUPT,
            "has 2 bytes, not 1"),
        arguments(
            "more bytes than elements",
            "{\"a\":" + entry("F32", "[]", 0, 8) + "}",
            8,
            Kind.CORRUPT,
            "has 4 bytes, not 8"),
        arguments(
            "half a byte",
            "{\"a\":" + entry("F4", "[3]", 0, 2) + "}",
            2,
            Kind.CORRUPT,
            "not whole blocks"),
        arguments(
            "part of a byte",
            "{\"a\":" + entry("F6_E3M2", "[6]", 0, 5) + "}",
            5,
            Kind.CORRUPT,
            "not whole blocks"),
        arguments(
            "elements beyond counting",
            shape("[4294967296,4294967296]"),
            1,
            Kind.CORRUPT,
            "2^63 elements or more"),
        arguments(
            "elements beyond counting, then none",
            shape("[4294967296,4294967296,0]"),
            0,
            Kind.CORRUPT,
            "2^63 elements or more"),
        arguments(
            "bytes beyond counting",
            "{\"a\":" + entry("F64", "[2305843009213693952]", 0, 0) + "}",
            0,
            Kind.CORRUPT,
            "2^63 bytes or more"),
        arguments(
            "65 dimensions",
            shape("[1" + ",1".repeat(64) + "]"),
            1,
            Kind.UNSUPPORTED,
            "more than 64 dimensions"),
        arguments(
            "a hole at the start",
            "{\"a\":" + entry("U8", "[1]", 1, 2) + "}",
            2,
            Kind.CORRUPT,
            "a hole, or an overlap"),
        arguments(
            "a hole",
            "{\"a\":" + A + ",\"b\":" + entry("U8", "[1]", 2, 3) + "}",
            3,
            Kind.CORRUPT,
            "a hole, or an overlap"),
        arguments(
            "an overlap",
            "{\"a\":" + entry("U8", "[2]", 0, 2) + ",\"b\":" + entry("U8", "[2]", 1, 3) + "}",
            3,
            Kind.CORRUPT,
            "a hole, or an overlap"),
        arguments(
            "the same bytes",
            "{\"a\":" + A + ",\"b\":" + A + "}",
            1,
            Kind.CORRUPT,
            "a hole, or an overlap"),
        arguments(
            "nothing in the middle of something",
            "{\"a\":" + entry("U8", "[2]", 0, 2) + ",\"b\":" + entry("U8", "[0]", 1, 1) + "}",
            2,
            Kind.CORRUPT,
            "a hole, or an overlap"),
        arguments("bytes behind", "{\"a\":" + A + "}", 2, Kind.CORRUPT, "its header says"),
        arguments("bytes behind nothing", "{}", 1, Kind.CORRUPT, "its header says"),
        arguments(
            "bytes missing",
            "{\"a\":" + entry("U8", "[9]", 0, 9) + "}",
            8,
            Kind.TRUNCATED,
            "download the file again"));
  }

  private static String shape(String shape) {
    return "{\"a\":" + entry("U8", shape, 0, 1) + "}";
  }

  private static String offsets(String offsets) {
    return "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":" + offsets + "}}";
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("bad")
  void refuses(String what, String header, int dataBytes, Kind kind, String message) {
    expect(file(header, dataBytes), kind, message);
  }

  private static FormatException expect(byte[] file, Kind kind, String message) {
    FormatException e =
        catchThrowableOfType(FormatException.class, () -> Safetensors.read(new BytesReader(file)));
    assertThat(e).isNotNull().hasMessageContaining(message).hasMessageContaining("memory");
    assertThat(e.kind()).as(e.getMessage()).isEqualTo(kind);
    assertThat(e.file()).isEqualTo("memory");
    return e;
  }

  @Test
  void lengthsOfHeadersThatCannotBe() {
    byte[] good = "{}      ".getBytes(StandardCharsets.UTF_8);
    for (int bytes = 0; bytes < 10; bytes++) {
      expect(Arrays.copyOf(file(good, 0), bytes), Kind.NOT_THIS_FORMAT, "only");
    }
    expect(file(0, good, 0), Kind.CORRUPT, "would have 0 bytes");
    expect(file(1, good, 0), Kind.CORRUPT, "would have 1 bytes");
    expect(file(9, good, 0), Kind.TRUNCATED, "header of 9 bytes");
    expect(file(100_000_000, good, 0), Kind.TRUNCATED, "header of 100000000 bytes");
    expect(file(100_000_001, good, 0), Kind.CORRUPT, "would have 100000001 bytes");
    expect(file(-1, good, 0), Kind.CORRUPT, "18446744073709551615 bytes");
    expect(file(Long.MIN_VALUE, good, 0), Kind.CORRUPT, "9223372036854775808 bytes");
    byte[] pickle = new byte[100];
    Arrays.fill(pickle, (byte) 0x80);
    expect(pickle, Kind.NOT_THIS_FORMAT, "not a safetensors file");
  }

  @Test
  void bytesThatAreNoUtf8() {
    int[][] wrong = {
      {0x80},
      {0xC0, 0x80},
      {0xC3},
      {0xE2, 0x82},
      {0xED, 0xA0, 0x80},
      {0xF5, 0x80, 0x80, 0x80},
      {0xFF},
      {0xF0, 0x80, 0x80, 0x80}
    };
    for (int[] bytes : wrong) {
      byte[] header =
          ("{\"" + "x".repeat(bytes.length) + "\":" + A + "}").getBytes(StandardCharsets.UTF_8);
      for (int i = 0; i < bytes.length; i++) {
        header[2 + i] = (byte) bytes[i];
      }
      expect(file(header, 1), Kind.CORRUPT, "UTF-8");
    }
  }

  @Test
  void tellsWhatItFound() {
    String header =
        "{\"__metadata__\":{\"format\":\"pt\",\"z\":\"höhe\"},\"w\":"
            + entry("BF16", "[2,3]", 4, 16)
            + ",\"b\":"
            + entry("I16", "[2]", 0, 4)
            + "}";
    byte[] file = file(header, 16);
    BytesReader reader = new BytesReader(file);
    ModelHeader read = Safetensors.read(reader);
    long data = file.length - 16;
    assertThat(read.tensors())
        .containsExactly(
            new TensorInfo("b", ElementType.I16, new long[] {2}, data, 4),
            new TensorInfo("w", ElementType.BF16, new long[] {2, 3}, data + 4, 12));
    assertThat(read.metadata().keySet()).containsExactly("format", "z");
    assertThat(read.text("z")).contains("höhe");
    assertThat(read.text("w")).isEmpty();
    assertThat(read.whole("z")).isEmpty();
    assertThat(read.fileBytes()).isEqualTo(file.length);
    assertThat(read.alignment()).isEqualTo(1);
  }

  @Test
  void onlyTheHeaderIsRead() {
    long bytes = 1L << 40;
    String header = "{\"a\":" + entry("U8", "[" + bytes + "]", 0, bytes) + "}";
    byte[] head = file(header, 0);
    BytesReader reader = new BytesReader(head, head.length + bytes);
    assertThat(Safetensors.read(reader).tensorBytes()).isEqualTo(bytes);
    assertThat(reader.bytesRead()).isLessThan(200_000);
  }

  @Test
  void aLongHeaderIsReadInPieces() {
    StringBuilder header = new StringBuilder("{");
    int count = 20_000;
    for (int i = 0; i < count; i++) {
      header
          .append(i == 0 ? "" : ",")
          .append("\"model.layers.")
          .append(i)
          .append(".weight\":")
          .append(entry("F16", "[8]", 16L * i, 16L * i + 16));
    }
    header.append("}").append(" ".repeat(10_000));
    BytesReader reader = new BytesReader(file(header.toString(), 16 * count));
    assertThat(Safetensors.read(reader).tensors())
        .hasSize(count)
        .last()
        .extracting(TensorInfo::name)
        .isEqualTo("model.layers.19999.weight");
    assertThat(reader.bytesRead()).isLessThan(header.length() + 300_000L);
  }

  @Test
  void messagesNameTensorAndPlace() {
    FormatException e =
        expect(
            file("{\"bad\\u0000name\":" + entry("F4", "[3]", 0, 2) + "}", 2), Kind.CORRUPT, "F4");
    assertThat(e.tensor()).isEqualTo("bad\0name");
    assertThat(e).hasMessageContaining("tensor 'bad\\x00name'");
    assertThat(expect(file("{}\n", 0), Kind.CORRUPT, "at byte 10").offset()).isEqualTo(10);
    String name = "x".repeat(1000);
    assertThat(
            expect(file("{\"" + name + "\":" + entry("F4", "[3]", 0, 2) + "}", 2), Kind.CORRUPT, "")
                .getMessage())
        .hasSizeLessThan(300);
  }
}
