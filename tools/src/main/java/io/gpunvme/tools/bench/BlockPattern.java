package io.gpunvme.tools.bench;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.stream.LongStream;

/** What the benchmarks put on their SSDs; {@code kernels/reads.cu} knows the same. */
public final class BlockPattern {
  private static final ValueLayout.OfLong LONG =
      ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  private static final long CHUNK = 1 << 20;

  private BlockPattern() {}

  /** The finalizer of splitmix64. */
  public static long hash(long value) {
    long x = value + 0x9E3779B97F4A7C15L;
    x = (x ^ x >>> 30) * 0xBF58476D1CE4E5B9L;
    x = (x ^ x >>> 27) * 0x94D049BB133111EBL;
    return x ^ x >>> 31;
  }

  /** Makes every block begin with its number and the hash of it, and end the other way round. */
  static void stampBlocks(MemorySegment medium, int blockSize) {
    LongStream.range(0, medium.byteSize() / blockSize)
        .parallel()
        .forEach(
            block -> {
              long at = block * blockSize;
              long last = at + blockSize - 2 * Long.BYTES;
              medium.set(LONG, at, block);
              medium.set(LONG, at + Long.BYTES, hash(block));
              medium.set(LONG, last, hash(block));
              medium.set(LONG, last + Long.BYTES, block);
            });
  }

  /** Whether the {@code blockSize} bytes at {@code offset} are that block. */
  static boolean isBlock(MemorySegment memory, long offset, int blockSize, long block) {
    long last = offset + blockSize - 2 * Long.BYTES;
    long hash = hash(block);
    return memory.get(LONG, offset) == block
        && memory.get(LONG, offset + Long.BYTES) == hash
        && memory.get(LONG, last) == hash
        && memory.get(LONG, last + Long.BYTES) == block;
  }

  /** Makes every 8-byte word the hash of its position; a multiple of 8 bytes. */
  static void hashWords(MemorySegment medium) {
    LongStream.range(0, Math.ceilDiv(medium.byteSize(), CHUNK))
        .parallel()
        .forEach(
            chunk -> {
              long end = Math.min(medium.byteSize(), (chunk + 1) * CHUNK);
              for (long at = chunk * CHUNK; at < end; at += Long.BYTES) {
                medium.set(LONG, at, hash(at / Long.BYTES));
              }
            });
  }

  /** Makes every word the hash of its number, which is {@code first} for the first one. */
  static void hashWords(MemorySegment memory, long first) {
    for (long at = 0; at < memory.byteSize(); at += Long.BYTES) {
      memory.set(LONG, at, hash(first + at / Long.BYTES));
    }
  }

  /** Whether every word is the hash of its number, which is {@code first} for the first one. */
  static boolean areHashes(MemorySegment memory, long first) {
    for (long at = 0; at < memory.byteSize(); at += Long.BYTES) {
      if (memory.get(LONG, at) != hash(first + at / Long.BYTES)) {
        return false;
      }
    }
    return true;
  }

  /**
   * Requires that every word is the hash of its position.
   *
   * @param position of the first byte, a multiple of 8
   * @param id of the benchmark, for the message
   * @throws BenchException if one is not
   */
  public static void requireWords(MemorySegment memory, long position, String id) {
    for (long i = 0; i < memory.byteSize(); i += Long.BYTES) {
      if (memory.get(LONG, i) != hash((position + i) / Long.BYTES)) {
        throw new BenchException(id + ": wrong data at byte " + (position + i));
      }
    }
  }

  /** Words that are not the hash of their position. */
  static long wrongWords(MemorySegment memory) {
    return LongStream.range(0, Math.ceilDiv(memory.byteSize(), CHUNK))
        .parallel()
        .map(
            chunk -> {
              long wrong = 0;
              long end = Math.min(memory.byteSize(), (chunk + 1) * CHUNK);
              for (long at = chunk * CHUNK; at < end; at += Long.BYTES) {
                wrong += memory.get(LONG, at) == hash(at / Long.BYTES) ? 0 : 1;
              }
              return wrong;
            })
        .sum();
  }
}
