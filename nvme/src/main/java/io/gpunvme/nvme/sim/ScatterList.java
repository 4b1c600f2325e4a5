package io.gpunvme.nvme.sim;

import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/**
 * The pieces of host memory one command moves data to or from, in order. Adjacent pieces are one.
 *
 * <p>Valid only while the command executes: the worker's lock keeps the memory mapped. Reused from
 * command to command; grows to the largest transfer seen and allocates nothing afterwards.
 */
final class ScatterList {
  private static final int INITIAL = 4;

  private MemorySegment[] segments = new MemorySegment[INITIAL];
  private long[] offsets = new long[INITIAL];
  private long[] lengths = new long[INITIAL];
  private int count;
  private long total;

  /** How many pieces. */
  int count() {
    return count;
  }

  /** The memory piece {@code i} lies in. */
  MemorySegment segment(int i) {
    return segments[i];
  }

  /** Where in {@link #segment} piece {@code i} starts. */
  long offset(int i) {
    return offsets[i];
  }

  /** Bytes in piece {@code i}, above 0. */
  long length(int i) {
    return lengths[i];
  }

  /** Bytes in all pieces. */
  long total() {
    return total;
  }

  /** Forgets all pieces. */
  void clear() {
    count = 0;
    total = 0;
  }

  /** Appends a piece, {@code length} above 0. */
  void add(MemorySegment segment, long offset, long length) {
    total += length;
    int last = count - 1;
    if (last >= 0 && segment.equals(segments[last]) && offsets[last] + lengths[last] == offset) {
      lengths[last] += length;
      return;
    }
    if (count == segments.length) {
      segments = Arrays.copyOf(segments, count * 2);
      offsets = Arrays.copyOf(offsets, count * 2);
      lengths = Arrays.copyOf(lengths, count * 2);
    }
    segments[count] = segment;
    offsets[count] = offset;
    lengths[count] = length;
    count++;
  }

  /** Copies the first {@code bytes} from {@code source} to the host's memory. */
  void copyOut(MemorySegment source, long sourceOffset, long bytes) {
    long done = 0;
    for (int i = 0; done < bytes; i++) {
      long n = Math.min(lengths[i], bytes - done);
      MemorySegment.copy(source, sourceOffset + done, segments[i], offsets[i], n);
      done += n;
    }
  }

  /** Copies the first {@code bytes} of the host's memory to {@code target}. */
  void copyIn(MemorySegment target, long targetOffset, long bytes) {
    long done = 0;
    for (int i = 0; done < bytes; i++) {
      long n = Math.min(lengths[i], bytes - done);
      MemorySegment.copy(segments[i], offsets[i], target, targetOffset + done, n);
      done += n;
    }
  }
}
