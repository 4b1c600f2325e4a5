package io.gpunvme.models.tensor;

/**
 * What a number of zero bytes does to a CRC-32C: {@link Crc32c#combine} for many parts of the same
 * length. Safe for all threads.
 */
final class CrcShift {
  private static final int VALUES = 1 << Byte.SIZE;
  private static final int LOW = VALUES - 1;

  private final int[] byte0 = new int[VALUES];
  private final int[] byte1 = new int[VALUES];
  private final int[] byte2 = new int[VALUES];
  private final int[] byte3 = new int[VALUES];

  /** By as many bytes. */
  CrcShift(long bytes) {
    int power = Crc32c.power(bytes);
    for (int value = 0; value < VALUES; value++) {
      byte0[value] = Crc32c.multiply(value, power);
      byte1[value] = Crc32c.multiply(value << 8, power);
      byte2[value] = Crc32c.multiply(value << 16, power);
      byte3[value] = Crc32c.multiply(value << 24, power);
    }
  }

  int apply(int crc) {
    return byte0[crc & LOW] ^ byte1[crc >>> 8 & LOW] ^ byte2[crc >>> 16 & LOW] ^ byte3[crc >>> 24];
  }
}
