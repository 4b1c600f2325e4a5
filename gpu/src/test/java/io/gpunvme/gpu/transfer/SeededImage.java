package io.gpunvme.gpu.transfer;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * Contents of a namespace that follow from a seed: whoever knows it can check them, by another way
 * than they were written.
 */
public final class SeededImage {
  private static final ValueLayout.OfLong LONG =
      ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  private SeededImage() {}

  /** What stands at {@code position}, a multiple of 8 bytes from the start of the namespace. */
  private static long word(long seed, long position) {
    long x = (seed ^ position * 0x9E3779B97F4A7C15L) * 0xBF58476D1CE4E5B9L;
    x = (x ^ x >>> 32) * 0x94D049BB133111EBL;
    return x ^ x >>> 29;
  }

  /** Fills {@code bytes} (a multiple of 8) of memory with what belongs at {@code position}. */
  static void fill(MemorySegment to, long seed, long position, long bytes) {
    for (long at = 0; at < bytes; at += Long.BYTES) {
      to.set(LONG, at, word(seed, position + at));
    }
  }

  /** Where in the memory the first wrong word is, -1 if none is. */
  static long mismatch(MemorySegment memory, long seed, long position, long bytes) {
    for (long at = 0; at < bytes; at += Long.BYTES) {
      if (memory.get(LONG, at) != word(seed, position + at)) {
        return at;
      }
    }
    return -1;
  }

  /**
   * Checks image files from outside.
   *
   * @param arguments seed, image file, and how many bytes of it
   */
  public static void main(String[] arguments) throws IOException {
    long seed = Long.parseLong(arguments[0]);
    Path file = Path.of(arguments[1]);
    long bytes = Long.parseLong(arguments[2]);
    try (Arena arena = Arena.ofConfined();
        FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
      if (channel.size() < bytes) {
        System.err.println(file + " has " + channel.size() + " bytes, not " + bytes);
        System.exit(1);
      }
      MemorySegment memory = channel.map(FileChannel.MapMode.READ_ONLY, 0, bytes, arena);
      long wrong = mismatch(memory, seed, 0, bytes);
      if (wrong >= 0) {
        System.err.printf(
            "%s: byte %d is not what the guest says it wrote (seed %d)%n", file, wrong, seed);
        System.exit(1);
      }
    }
    System.out.println(bytes + " bytes are what the guest says it wrote");
  }
}
