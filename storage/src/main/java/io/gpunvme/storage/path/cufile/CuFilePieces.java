package io.gpunvme.storage.path.cufile;

import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.storage.path.Range;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The calls of one transfer, cut off its ranges when a thread asks for one. Long ranges are cut
 * where the file's offset is a multiple of the chunk, so that all but the first begin aligned. Safe
 * for all threads.
 */
final class CuFilePieces {
  private final List<Range> ranges;
  private final long chunk;
  private int next;
  private long done;

  CuFilePieces(List<Range> ranges, long chunk) {
    this.ranges = ranges;
    this.chunk = chunk;
  }

  /** A part of a range. */
  record Piece(long offset, DeviceBuffer buffer, long bufferOffset, long length) {
    private static final int PAGE = 4096;

    /** Whether cuFile can move it without memory of its own. */
    boolean aligned() {
      return ((offset | bufferOffset | length) & (PAGE - 1)) == 0;
    }

    /** What is left of it. */
    Piece after(long bytes) {
      return new Piece(offset + bytes, buffer, bufferOffset + bytes, length - bytes);
    }
  }

  /** How many there are, or {@code most} if they are more. */
  int count(int most) {
    long count = 0;
    for (Range r : ranges) {
      if (r.length() > 0) {
        count += (r.offset() + r.length() - 1) / chunk - r.offset() / chunk + 1;
      }
      if (count >= most) {
        return most;
      }
    }
    return (int) count;
  }

  /** The next one; null after the last. */
  synchronized @Nullable Piece next() {
    while (next < ranges.size()) {
      Range r = ranges.get(next);
      if (done < r.length()) {
        long offset = r.offset() + done;
        long length = Math.min(r.length() - done, chunk - offset % chunk);
        Piece piece = new Piece(offset, r.buffer(), r.bufferOffset() + done, length);
        done += length;
        return piece;
      }
      next++;
      done = 0;
    }
    return null;
  }
}
