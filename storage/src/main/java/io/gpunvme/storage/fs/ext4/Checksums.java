package io.gpunvme.storage.fs.ext4;

import java.util.zip.CRC32C;

/**
 * The checksums of metadata: CRC-32C without the usual inversion at the end, so that a result is
 * the start of the next part, and the CRC-16 of older group descriptors (polynomial 0x8005).
 *
 * @see <a href="https://docs.kernel.org/filesystems/ext4/checksums.html">Checksums</a>
 */
final class Checksums {
  private static final int CRC32C_POLYNOMIAL = 0x82F63B78;

  /** What is shorter is done before the processor's instruction is made ready. */
  private static final int SHORT = 64;

  /** What both begin with. */
  static final int START = -1;

  private static final int[] TABLE32C = table(CRC32C_POLYNOMIAL);
  private static final int[] TABLE16 = table(0xA001);

  private Checksums() {}

  private static int[] table(int reversedPolynomial) {
    int[] table = new int[256];
    for (int i = 0; i < table.length; i++) {
      int crc = i;
      for (int bit = 0; bit < 8; bit++) {
        crc = (crc & 1) == 0 ? crc >>> 1 : crc >>> 1 ^ reversedPolynomial;
      }
      table[i] = crc;
    }
    return table;
  }

  static int crc32c(int crc, Bytes bytes, int from, int count) {
    if (count >= SHORT) {
      CRC32C sum = from(crc);
      bytes.update(sum, from, count);
      return ~(int) sum.getValue();
    }
    int c = crc;
    for (int i = from; i < from + count; i++) {
      c = c >>> 8 ^ TABLE32C[(c ^ bytes.u8(i)) & 0xFF];
    }
    return c;
  }

  /**
   * Java's, which is the processor's instruction, as if it had come to {@code crc}: it begins
   * always with the same, so the four bytes that lead from there to {@code crc} are put before.
   */
  private static CRC32C from(int crc) {
    CRC32C sum = new CRC32C();
    if (crc != START) {
      int number = START ^ before(crc);
      for (int shift = 0; shift < 32; shift += 8) {
        sum.update(number >>> shift);
      }
    }
    return sum;
  }

  /** What a checksum was before four bytes of zeros. */
  private static int before(int crc) {
    int c = crc;
    for (int bit = 0; bit < 32; bit++) {
      // The polynomial's highest bit says whether it was added.
      c = c < 0 ? (c ^ CRC32C_POLYNOMIAL) << 1 | 1 : c << 1;
    }
    return c;
  }

  /** Of a number of four bytes, as it lies on the device. */
  static int crc32c(int crc, int number) {
    int c = crc;
    for (int shift = 0; shift < 32; shift += 8) {
      c = c >>> 8 ^ TABLE32C[(c ^ number >>> shift) & 0xFF];
    }
    return c;
  }

  /** Of zeros: where a checksum lies, it counts as that. */
  static int crc32cZeros(int crc, int count) {
    int c = crc;
    for (int i = 0; i < count; i++) {
      c = c >>> 8 ^ TABLE32C[c & 0xFF];
    }
    return c;
  }

  static int crc16(int crc, Bytes bytes, int from, int count) {
    int c = crc & 0xFFFF;
    for (int i = from; i < from + count; i++) {
      c = c >>> 8 ^ TABLE16[(c ^ bytes.u8(i)) & 0xFF];
    }
    return c;
  }

  static int crc16(int crc, int number) {
    int c = crc & 0xFFFF;
    for (int shift = 0; shift < 32; shift += 8) {
      c = c >>> 8 ^ TABLE16[(c ^ number >>> shift) & 0xFF];
    }
    return c;
  }
}
