package io.gpunvme.storage.soak;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/** What the bytes of a storage must be: a function of the storage, the version and the place. */
final class Content {
  private static final VarHandle WORD =
      MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN)
          .withInvokeExactBehavior();

  private static final long STORAGE_STRIDE = 0xD1342543DE82EF95L;
  private static final long VERSION_STRIDE = 0xAF251AF3B0F025B5L;
  private static final long WORD_STRIDE = 0x9E3779B97F4A7C15L;

  private Content() {}

  /** Bytes from {@code offset} on. */
  static byte[] of(long storage, long version, long offset, int length) {
    long first = offset & -Long.BYTES;
    int skipped = (int) (offset - first);
    byte[] words = new byte[Math.ceilDiv(skipped + length, Long.BYTES) * Long.BYTES];
    long base = storage * STORAGE_STRIDE ^ version * VERSION_STRIDE;
    for (int i = 0; i < words.length; i += Long.BYTES) {
      WORD.set(words, i, mixed(base + (first + i) * WORD_STRIDE));
    }
    byte[] bytes = new byte[length];
    System.arraycopy(words, skipped, bytes, 0, length);
    return bytes;
  }

  /** SplitMix64's. */
  private static long mixed(long z) {
    z = (z ^ z >>> 30) * 0xBF58476D1CE4E5B9L;
    z = (z ^ z >>> 27) * 0x94D049BB133111EBL;
    return z ^ z >>> 31;
  }
}
