package io.gpunvme.storage.fs.ext4;

/**
 * The checksums of metadata: CRC-32C without the usual inversion at the end, so that a result is
 * the start of the next part, and the CRC-16 of older group descriptors (polynomial 0x8005).
 *
 * @see <a href="https://docs.kernel.org/filesystems/ext4/checksums.html">Checksums</a>
 */
final class Checksums {
  /** What both begin with. */
  static final int START = -1;

  private static final int[] CRC32C = table(0x82F63B78);
  private static final int[] CRC16 = table(0xA001);

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
    int c = crc;
    for (int i = from; i < from + count; i++) {
      c = c >>> 8 ^ CRC32C[(c ^ bytes.u8(i)) & 0xFF];
    }
    return c;
  }

  /** Of a number of four bytes, as it lies on the device. */
  static int crc32c(int crc, int number) {
    int c = crc;
    for (int shift = 0; shift < 32; shift += 8) {
      c = c >>> 8 ^ CRC32C[(c ^ number >>> shift) & 0xFF];
    }
    return c;
  }

  /** Of zeros: where a checksum lies, it counts as that. */
  static int crc32cZeros(int crc, int count) {
    int c = crc;
    for (int i = 0; i < count; i++) {
      c = c >>> 8 ^ CRC32C[c & 0xFF];
    }
    return c;
  }

  static int crc16(int crc, Bytes bytes, int from, int count) {
    int c = crc & 0xFFFF;
    for (int i = from; i < from + count; i++) {
      c = c >>> 8 ^ CRC16[(c ^ bytes.u8(i)) & 0xFF];
    }
    return c;
  }

  static int crc16(int crc, int number) {
    int c = crc & 0xFFFF;
    for (int shift = 0; shift < 32; shift += 8) {
      c = c >>> 8 ^ CRC16[(c ^ number >>> shift) & 0xFF];
    }
    return c;
  }
}
