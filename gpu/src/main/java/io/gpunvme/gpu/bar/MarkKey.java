package io.gpunvme.gpu.bar;

import java.security.SecureRandom;

/**
 * What the marks of one round of a search are made of: 128 random bits. A mark is two words of 8
 * bytes, little endian; no two marks of a round have the same first word, nor the same second one.
 * {@code marks.cu} makes the same ones.
 */
public record MarkKey(long low, long high) {
  private static final SecureRandom RANDOM = new SecureRandom();

  /** Odd, so that every number of a mark gives another sum. */
  private static final long STEP = 0x9E37_79B9_7F4A_7C15L;

  /** One that nobody else has, and memory cannot contain by chance. */
  public static MarkKey random() {
    return new MarkKey(RANDOM.nextLong(), RANDOM.nextLong());
  }

  /** The first word of a mark. */
  public long first(long mark) {
    return mix(low + mark * STEP);
  }

  /** The second word of a mark. */
  public long second(long mark) {
    return mix(high + mark * STEP);
  }

  /** Stafford's 13th variant of MurmurHash3's finalizer, which is a bijection. */
  private static long mix(long word) {
    long x = (word ^ word >>> 30) * 0xBF58_476D_1CE4_E5B9L;
    x = (x ^ x >>> 27) * 0x94D0_49BB_1331_11EBL;
    return x ^ x >>> 31;
  }
}
