package io.gpunvme.storage.path.pinned;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.storage.path.PathCall;
import io.gpunvme.storage.path.PathCounters;
import io.gpunvme.storage.path.Range;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;

/** A file of random bytes, and checks of what was read from it. */
final class PinnedFixture {
  private final Path file;
  private final byte[] content;
  private final SplittableRandom random;
  private final long seed = Long.getLong("gpunvme.seed", System.nanoTime());

  PinnedFixture(Path file, int bytes) throws IOException {
    this.file = file;
    random = new SplittableRandom(seed);
    content = new byte[bytes];
    random.nextBytes(content);
    Files.write(file, content);
  }

  /** Which repeats it, for messages. */
  long seed() {
    return seed;
  }

  Path file() {
    return file;
  }

  byte[] content() {
    return content;
  }

  SplittableRandom random() {
    return random;
  }

  static PathCall call() {
    return new PathCall("a file", new PathCounters());
  }

  /** Ranges of random places and lengths, packed with gaps into the buffer; some end the file. */
  List<Range> ranges(DeviceBuffer buffer, int count, int longest) {
    List<Range> ranges = new ArrayList<>();
    long at = random.nextInt(100);
    for (int i = 0; i < count; i++) {
      int length = random.nextInt(10) == 0 ? random.nextInt(16) : random.nextInt(longest);
      int offset =
          random.nextInt(10) == 0
              ? content.length - length
              : random.nextInt(content.length - length);
      if (random.nextInt(3) == 0) {
        length = length / 4096 * 4096;
        offset = offset / 4096 * 4096;
        at = Math.ceilDiv(at, 4096L) * 4096;
      }
      if (at + length > buffer.size()) {
        break;
      }
      ranges.add(new Range(offset, buffer, at, length));
      at += length + random.nextInt(3) * 7L;
    }
    return ranges;
  }

  /** Compares the whole buffer: what was asked for, and that nothing else was touched. */
  void requireRead(DeviceBuffer buffer, List<Range> ranges, byte background) {
    byte[] expected = new byte[(int) buffer.size()];
    java.util.Arrays.fill(expected, background);
    for (Range range : ranges) {
      System.arraycopy(
          content,
          (int) range.offset(),
          expected,
          (int) range.bufferOffset(),
          (int) range.length());
    }
    byte[] actual = new byte[expected.length];
    buffer.copyToHost(0, MemorySegment.ofArray(actual));
    assertThat(java.util.Arrays.mismatch(actual, expected)).as("seed %d", seed).isEqualTo(-1);
  }

  static void fill(DeviceBuffer buffer, byte value) {
    byte[] all = new byte[(int) buffer.size()];
    java.util.Arrays.fill(all, value);
    buffer.copyFromHost(MemorySegment.ofArray(all), 0);
  }

  static long bytes(List<Range> ranges) {
    return ranges.stream().mapToLong(Range::length).sum();
  }
}
