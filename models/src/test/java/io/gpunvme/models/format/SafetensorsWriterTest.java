package io.gpunvme.models.format;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.models.format.SafetensorsWriter.Layout;
import io.gpunvme.storage.fs.BytesReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class SafetensorsWriterTest {
  private static final long TERA = 1L << 40;

  @ParameterizedTest
  @ValueSource(ints = {8, 16, 4096, 1 << 20})
  void whatIsWrittenIsRead(int alignment) {
    Layout layout =
        new SafetensorsWriter()
            .metadata("format", "pt")
            .metadata("q\"\n\u2028", "höhe 😀")
            .tensor("b", ElementType.U8, 3)
            .tensor("a", ElementType.F4, 2, 5)
            .tensor("z\\\u0001", ElementType.F64)
            .tensor("é", ElementType.F16, 7, 0)
            .tensor("big", ElementType.F16, TERA, 3)
            .layout(alignment);
    ModelHeader read = Safetensors.read(new BytesReader(layout.head(), layout.fileBytes()));
    assertThat(read.tensors()).isEqualTo(layout.tensors());
    assertThat(read.tensors())
        .extracting(TensorInfo::name)
        .containsExactly("z\\\u0001", "big", "é", "b", "a");
    assertThat(read.dataOffset() % alignment).isZero();
    assertThat(read.dataOffset()).isEqualTo(layout.head().length);
    assertThat(read.metadata())
        .isEqualTo(
            Map.of(
                "format", new MetaValue.Text("pt"),
                "q\"\n\u2028", new MetaValue.Text("höhe 😀")));
  }

  @Test
  void headersAreThoseOfTheReference() {
    Layout layout =
        new SafetensorsWriter()
            .metadata("format", "pt")
            .tensor("w", ElementType.BF16, 2, 2)
            .tensor("a", ElementType.BF16, 1)
            .tensor("x", ElementType.I64, 1)
            .layout(8);
    String header =
        "{\"__metadata__\":{\"format\":\"pt\"},"
            + "\"x\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,8]},"
            + "\"a\":{\"dtype\":\"BF16\",\"shape\":[1],\"data_offsets\":[8,10]},"
            + "\"w\":{\"dtype\":\"BF16\",\"shape\":[2,2],\"data_offsets\":[10,18]}}";
    assertThat(new String(layout.head(), 8, header.length(), StandardCharsets.UTF_8))
        .isEqualTo(header);
    assertThat(layout.head().length % 8).isZero();
    assertThat(layout.head().length - 8 - header.length()).isBetween(0, 7);
  }

  @Test
  void nothingIsAFile() {
    Layout layout = new SafetensorsWriter().layout(8);
    assertThat(layout.head()).hasSize(16);
    assertThat(Safetensors.read(new BytesReader(layout.head())).tensors()).isEmpty();
  }

  @Test
  void whatTheFormatCannotHold() {
    SafetensorsWriter writer = new SafetensorsWriter().tensor("a", ElementType.U8, 1);
    assertInvalid(() -> writer.tensor("a", ElementType.U8, 1));
    assertInvalid(() -> writer.tensor("__metadata__", ElementType.U8, 1));
    assertInvalid(() -> writer.tensor("q", ElementType.Q4_0, 32));
    assertInvalid(() -> writer.tensor("half", ElementType.F4, 3));
    assertInvalid(() -> writer.tensor("negative", ElementType.U8, -1));
    assertInvalid(() -> writer.tensor("\ud800", ElementType.U8, 1));
    assertInvalid(() -> writer.metadata("\udc00", ""));
    assertInvalid(() -> writer.metadata("", "x\ud800"));
    assertInvalid(() -> writer.tensor("deep", ElementType.U8, new long[65]));
    assertInvalid(() -> writer.layout(4));
    assertInvalid(() -> writer.layout(24));
    assertInvalid(() -> writer.layout(1 << 25));
    assertInvalid(() -> new SafetensorsWriter().metadata("a", "x".repeat(100_000_000)).layout(8));
    assertInvalid(
        () ->
            new SafetensorsWriter()
                .tensor("a", ElementType.U8, Long.MAX_VALUE - 8)
                .tensor("b", ElementType.U8, 100)
                .layout(8));
  }

  private static void assertInvalid(org.assertj.core.api.ThrowableAssert.ThrowingCallable call) {
    assertThatThrownBy(call).isInstanceOf(InvalidRequestException.class);
  }
}
