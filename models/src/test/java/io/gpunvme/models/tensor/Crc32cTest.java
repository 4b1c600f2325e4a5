package io.gpunvme.models.tensor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.charset.StandardCharsets;
import java.util.SplittableRandom;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.Test;

class Crc32cTest {
  private static int crc(byte[] bytes, int from, int to) {
    CRC32C crc = new CRC32C();
    crc.update(bytes, from, to - from);
    return (int) crc.getValue();
  }

  /** The check value of the CRC catalogue (CRC-32/ISCSI): of "123456789" it is E3069283h. */
  @Test
  void theCheckValueIsPutTogetherOfItsParts() {
    byte[] digits = "123456789".getBytes(StandardCharsets.US_ASCII);
    for (int cut = 0; cut <= digits.length; cut++) {
      int first = crc(digits, 0, cut);
      int second = crc(digits, cut, digits.length);
      assertThat(Crc32c.combine(first, second, digits.length - cut)).isEqualTo(0xE3069283);
    }
  }

  @Test
  void twoPartsMakeTheWhole() {
    long seed = Long.getLong("gpunvme.seed", System.nanoTime());
    SplittableRandom random = new SplittableRandom(seed);
    byte[] bytes = new byte[20_000];
    random.nextBytes(bytes);
    for (int round = 0; round < 2000; round++) {
      int end = random.nextInt(bytes.length + 1);
      int cut = random.nextInt(end + 1);
      assertThat(Crc32c.combine(crc(bytes, 0, cut), crc(bytes, cut, end), end - cut))
          .as("seed %d, %d of %d bytes", seed, cut, end)
          .isEqualTo(crc(bytes, 0, end));
    }
  }

  /** Lengths that nobody can hold: zero bytes in as many steps as the length has bits. */
  @Test
  void longPartsAreThoseOfTheirHalves() {
    CRC32C one = new CRC32C();
    one.update(0);
    int zeros = (int) one.getValue();
    int crc = 0x12345678;
    for (int bits = 0; bits < 61; bits++) {
      long length = 1L << bits;
      int twice = Crc32c.combine(zeros, zeros, length);
      int byHalves = Crc32c.combine(Crc32c.combine(crc, zeros, length), zeros, length);
      assertThat(Crc32c.combine(crc, twice, 2 * length)).as("2^%d", bits).isEqualTo(byHalves);
      zeros = twice;
    }
    assertThat(Crc32c.combine(crc, 0, Long.MAX_VALUE))
        .isEqualTo(Crc32c.combine(Crc32c.combine(crc, 0, Long.MAX_VALUE / 2), 0, 1L << 62));
  }

  @Test
  void nothingChangesNothing() {
    assertThat(Crc32c.combine(0x89ABCDEF, 0, 0)).isEqualTo(0x89ABCDEF);
    assertThat(Crc32c.combine(0, 0x89ABCDEF, 77)).isEqualTo(0x89ABCDEF);
  }

  @Test
  void negativeLengthsAreRefused() {
    assertThatThrownBy(() -> Crc32c.combine(1, 2, -1)).isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void aShiftIsTheSameByTables() {
    SplittableRandom random = new SplittableRandom(5);
    for (long length : new long[] {0, 1, 4096, 12_345_678_901L}) {
      CrcShift shift = new CrcShift(length);
      for (int i = 0; i < 100; i++) {
        int crc = random.nextInt();
        assertThat(shift.apply(crc)).isEqualTo(Crc32c.combine(crc, 0, length));
      }
    }
  }
}
