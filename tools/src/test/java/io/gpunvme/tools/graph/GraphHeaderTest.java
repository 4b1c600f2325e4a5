package io.gpunvme.tools.graph;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What is read of an image is looked at before it is used. */
class GraphHeaderTest {
  private static final GraphHeader GOOD = GraphHeader.plan(1000, 5000, true, true);

  private static GraphHeader read(ByteBuffer bytes, long size) {
    return GraphHeader.read(bytes.array(), size, "a.graph");
  }

  /** With a checksum that fits. */
  private static ByteBuffer sealed(ByteBuffer bytes) {
    CRC32C crc = new CRC32C();
    crc.update(bytes.array(), 0, 56);
    return bytes.order(ByteOrder.LITTLE_ENDIAN).putInt(56, (int) crc.getValue());
  }

  @Test
  void whatWasWrittenIsRead() {
    assertThat(read(GOOD.toBytes(), GOOD.bytes())).isEqualTo(GOOD);
    GraphHeader other = GraphHeader.plan((1L << 32) - 1, 1L << 40, false, false);
    assertThat(read(other.toBytes(), other.bytes())).isEqualTo(other);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "0  | 0                    | is no image",
        "8  | 2                    | version 2",
        "12 | 4                    | version",
        "16 | 0                    | vertices",
        "16 | -1                   | vertices",
        "16 | 4294967296           | vertices",
        "16 | 100000               | the edges begin",
        "24 | 0                    | edges",
        "24 | -5                   | edges",
        "24 | 9223372036854775807  | edges",
        "24 | 72057594037927936    | the weights begin",
        "24 | 70000                | the weights begin",
        "32 | 0                    | the offsets begin",
        "32 | 65537                | the offsets begin",
        "32 | -65536               | the offsets begin",
        "40 | 65536                | the edges begin",
        "40 | 9223372036854710272  | the edges begin",
        "48 | 0                    | the weights begin",
        "48 | 131072               | the weights begin",
        "48 | 1966080              | an incomplete copy",
      })
  void aWrongNumberIsSaid(int at, long value, String what) {
    ByteBuffer bytes = GOOD.toBytes().order(ByteOrder.LITTLE_ENDIAN);
    if (at == 8 || at == 12) {
      bytes.putInt(at, (int) value);
    } else {
      bytes.putLong(at, value);
    }
    assertThatExceptionOfType(GraphException.class)
        .isThrownBy(() -> read(sealed(bytes), GOOD.bytes()))
        .withMessageStartingWith("a.graph: is ")
        .withMessageContaining(what);
  }

  @Test
  void aPlaceForWeightsWithoutWeightsIsSaid() {
    ByteBuffer bytes = GOOD.toBytes().order(ByteOrder.LITTLE_ENDIAN).putInt(12, 1);
    assertThatExceptionOfType(GraphException.class)
        .isThrownBy(() -> read(sealed(bytes), GOOD.bytes()))
        .withMessageContaining("no weights");
  }

  @Test
  void damageIsFoundByTheChecksum() {
    for (int at = 8; at < 60; at++) {
      ByteBuffer bytes = GOOD.toBytes();
      bytes.put(at, (byte) (bytes.get(at) ^ 1));
      assertThatExceptionOfType(GraphException.class).isThrownBy(() -> read(bytes, GOOD.bytes()));
    }
  }

  @Test
  void whatIsTooShortIsSaid() {
    assertThatExceptionOfType(GraphException.class)
        .isThrownBy(() -> read(GOOD.toBytes(), GOOD.bytes() - GraphHeader.ALIGNMENT))
        .withMessageContaining("incomplete copy");
    assertThatExceptionOfType(GraphException.class)
        .isThrownBy(() -> GraphHeader.read(new byte[100], 100, "a.graph"))
        .withMessageContaining("is no image");
  }
}
