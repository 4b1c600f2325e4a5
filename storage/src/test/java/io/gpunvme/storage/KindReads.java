package io.gpunvme.storage;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.storage.kind.Kind;
import io.gpunvme.storage.kind.ReadRequest;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.SplittableRandom;

/** Random elements of random kinds in one call, compared with the source's bytes. */
final class KindReads {
  private final ReadRequest request;
  private final int[] numbers;
  private final byte[] content;
  private final SplittableRandom random;

  /**
   * @param numbers of the request's kinds
   * @param content of the source
   */
  KindReads(ReadRequest request, int[] numbers, byte[] content, SplittableRandom random) {
    this.request = request;
    this.numbers = numbers;
    this.content = content;
    this.random = random;
  }

  /**
   * Reads and compares the whole buffer.
   *
   * @param expected what the buffer holds before, and afterwards
   */
  void check(GpuStorage storage, DeviceBuffer buffer, byte[] expected, int reads) {
    int[] kinds = new int[reads];
    long[] indexes = new long[reads];
    long[] lengths = new long[reads];
    long[] places = new long[reads];
    long at = random.nextInt(5000);
    long bytes = 0;
    for (int i = 0; i < reads; i++) {
      kinds[i] = numbers[random.nextInt(numbers.length)];
      Kind kind = request.kind(kinds[i]);
      // The source may be an image of whole blocks, and shorter.
      long count = Math.min(kind.count(), (storage.size() - kind.offset()) / kind.element());
      lengths[i] = Math.min(count, random.nextInt(random.nextBoolean() ? 3 : 20));
      indexes[i] = random.nextLong(count - lengths[i] + 1);
      long length = lengths[i] * kind.element();
      if (at + length > expected.length) {
        lengths[i] = 0;
        length = 0;
      }
      places[i] = at;
      int from = (int) kind.offset(indexes[i], lengths[i]);
      System.arraycopy(content, from, expected, (int) at, (int) length);
      bytes += length;
      at = Math.min(expected.length, at + length + random.nextInt(3) * random.nextInt(4096));
    }
    TransferResult result = storage.read(request, kinds, indexes, lengths, buffer, places);
    assertThat(result.bytes()).isEqualTo(bytes);
    assertThat(result.ranges()).isEqualTo(reads);
    byte[] seen = new byte[expected.length];
    buffer.copyToHost(0, MemorySegment.ofArray(seen));
    assertThat(Arrays.mismatch(seen, expected)).as("%s", storage.explain()).isEqualTo(-1);
  }
}
