package io.gpunvme.models.tensor;

/**
 * Arithmetic on CRC-32C checksums. Bits of a checksum are coefficients of a polynomial over GF(2),
 * the highest bit that of x^0, modulo Castagnoli's polynomial (RFC 3720, appendix B.4): n more zero
 * bytes multiply it by x^8n.
 */
public final class Crc32c {
  /** Without x^32, which is implied. */
  private static final int POLYNOMIAL = 0x82F63B78;

  private static final int ONE = 1 << 31;
  private static final int X_TO_THE_8 = 1 << 23;

  /** x^(8 * 2^i): what 2^i bytes multiply by. */
  private static final int[] POWERS = new int[Long.SIZE - 1];

  static {
    int power = X_TO_THE_8;
    for (int i = 0; i < POWERS.length; i++) {
      POWERS[i] = power;
      power = multiply(power, power);
    }
  }

  private Crc32c() {}

  /**
   * The checksum of A followed by B.
   *
   * @param crcA of A
   * @param crcB of B
   * @param lengthB bytes of B, &gt;= 0
   */
  public static int combine(int crcA, int crcB, long lengthB) {
    return multiply(crcA, power(lengthB)) ^ crcB;
  }

  /** x^(8 * bytes). */
  static int power(long bytes) {
    if (bytes < 0) {
      throw new IllegalArgumentException("a length of " + bytes + " bytes");
    }
    int product = ONE;
    for (long rest = bytes; rest != 0; rest &= rest - 1) {
      product = multiply(product, POWERS[Long.numberOfTrailingZeros(rest)]);
    }
    return product;
  }

  static int multiply(int a, int b) {
    int product = 0;
    int shifted = b;
    for (int rest = a; rest != 0; rest <<= 1) {
      product ^= shifted & rest >> 31;
      shifted = shifted >>> 1 ^ POLYNOMIAL & -(shifted & 1);
    }
    return product;
  }
}
