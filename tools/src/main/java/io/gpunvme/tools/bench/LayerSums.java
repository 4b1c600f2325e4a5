package io.gpunvme.tools.bench;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.function.LongUnaryOperator;
import java.util.stream.LongStream;

/**
 * One number for the words of a layer: what each is, mixed with where it is. Two layers with a word
 * that differs, or with two words in another order, have different ones. The kernel has the same.
 */
final class LayerSums {
  private static final ValueLayout.OfLong LONG =
      ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN);

  /** Words that a thread takes at a time. */
  private static final long CHUNK = 1 << 17;

  private LayerSums() {}

  /**
   * Of words in memory.
   *
   * @param memory a multiple of 8 bytes, aligned to them
   * @param first the position of its first word
   */
  static long of(MemorySegment memory, long first) {
    return of(memory.byteSize() / Long.BYTES, first, i -> memory.getAtIndex(LONG, i));
  }

  /** Of words that are the hash of their position, as {@link BlockPattern} has them. */
  static long ofHashedWords(long words, long first) {
    return of(words, first, i -> BlockPattern.hash(first + i));
  }

  private static long of(long words, long first, LongUnaryOperator word) {
    return LongStream.range(0, Math.ceilDiv(words, CHUNK))
        .parallel()
        .map(
            chunk -> {
              long sum = 0;
              long end = Math.min(words, (chunk + 1) * CHUNK);
              for (long i = chunk * CHUNK; i < end; i++) {
                sum += BlockPattern.hash(word.applyAsLong(i) ^ (first + i));
              }
              return sum;
            })
        .sum();
  }
}
