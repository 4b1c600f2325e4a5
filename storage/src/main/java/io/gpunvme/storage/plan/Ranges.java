package io.gpunvme.storage.plan;

import io.gpunvme.base.InvalidRequestException;
import java.util.Arrays;

/**
 * Runs of bytes of a source and their targets: each has an offset and a length in the source, a
 * target (the index of a buffer) and an offset in the target. Nothing needs to be aligned; lengths
 * may be 0. Immutable, and cheap for millions: four arrays.
 */
public final class Ranges {
  private final int size;
  private final long[] offset;
  private final long[] length;
  private final int[] target;
  private final long[] targetOffset;

  private Ranges(Builder built) {
    size = built.size;
    offset = Arrays.copyOf(built.offset, size);
    length = Arrays.copyOf(built.length, size);
    target = Arrays.copyOf(built.target, size);
    targetOffset = Arrays.copyOf(built.targetOffset, size);
  }

  /** No ranges yet. */
  public static Builder builder() {
    return new Builder();
  }

  /** How many. */
  public int size() {
    return size;
  }

  /** First byte in the source. */
  public long offset(int range) {
    return offset[range];
  }

  /** Bytes, 0 or more. */
  public long length(int range) {
    return length[range];
  }

  /** Index of the buffer. */
  public int target(int range) {
    return target[range];
  }

  /** First byte in the buffer. */
  public long targetOffset(int range) {
    return targetOffset[range];
  }

  /** One past the last byte of a target that any range touches: the size that its buffer needs. */
  public long targetEnd(int which) {
    long end = 0;
    for (int i = 0; i < size; i++) {
      if (target[i] == which && length[i] > 0) {
        end = Math.max(end, targetOffset[i] + length[i]);
      }
    }
    return end;
  }

  String describe(int range) {
    return "range %d (%d bytes at %d, to %d of target %d)"
        .formatted(range, length[range], offset[range], targetOffset[range], target[range]);
  }

  /** Collects ranges. Used by one thread. */
  public static final class Builder {
    private static final int FIRST = 16;

    private int size;
    private long[] offset = new long[FIRST];
    private long[] length = new long[FIRST];
    private int[] target = new int[FIRST];
    private long[] targetOffset = new long[FIRST];

    private Builder() {}

    /**
     * Adds a range.
     *
     * @throws InvalidRequestException if a number is negative, or an end is at 2^63 or more
     */
    public Builder add(long from, long bytes, int to, long at) {
      if (from < 0 || bytes < 0 || to < 0 || at < 0) {
        throw refused(from, bytes, to, at, "negative");
      }
      if (bytes > Long.MAX_VALUE - from || bytes > Long.MAX_VALUE - at) {
        throw refused(from, bytes, to, at, "too large");
      }
      if (size == offset.length) {
        grow();
      }
      offset[size] = from;
      length[size] = bytes;
      target[size] = to;
      targetOffset[size] = at;
      size++;
      return this;
    }

    /**
     * Adds a range. If it follows the last range in the source and in the target, both become one.
     */
    public Builder join(long from, long bytes, int to, long at) {
      int last = size - 1;
      boolean follows =
          size > 0
              && target[last] == to
              && offset[last] + length[last] == from
              && targetOffset[last] + length[last] == at
              && bytes >= 0
              && bytes <= Long.MAX_VALUE - from
              && bytes <= Long.MAX_VALUE - at;
      if (!follows) {
        return add(from, bytes, to, at);
      }
      length[last] += bytes;
      return this;
    }

    /**
     * Adds a range that goes right after the last one in its target, or to offset 0 of target 0.
     */
    public Builder add(long from, long bytes) {
      int last = size - 1;
      return size == 0
          ? add(from, bytes, 0, 0)
          : add(from, bytes, target[last], targetOffset[last] + length[last]);
    }

    private void grow() {
      if (size > Integer.MAX_VALUE / 2) {
        throw new InvalidRequestException(size + " ranges are the limit; split the request");
      }
      offset = Arrays.copyOf(offset, 2 * size);
      length = Arrays.copyOf(length, 2 * size);
      target = Arrays.copyOf(target, 2 * size);
      targetOffset = Arrays.copyOf(targetOffset, 2 * size);
    }

    private InvalidRequestException refused(long from, long bytes, int to, long at, String why) {
      return new InvalidRequestException(
          "range %d: offset %d, length %d, target %d or target offset %d is %s"
              .formatted(size, from, bytes, to, at, why));
    }

    /** The ranges added so far. */
    public Ranges build() {
      return new Ranges(this);
    }
  }
}
