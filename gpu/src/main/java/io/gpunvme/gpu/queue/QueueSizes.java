package io.gpunvme.gpu.queue;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.queue.DeviceLayout.Errors;
import io.gpunvme.gpu.queue.DeviceLayout.Slot;
import io.gpunvme.nvme.spec.Cqe;
import io.gpunvme.nvme.spec.Sqe;

/**
 * How long the parts of a device queue are. The rings are powers of two, longer than the number of
 * slots, so that neither can overflow: SQ &gt; depth, CQ &ge; 2 depth.
 *
 * @param depth slots, 1..{@link #MAX_DEPTH}; a multiple of 32 for shared queues
 * @param shared for any number of threads, or for one warp
 */
public record QueueSizes(int depth, boolean shared) {
  /**
   * The limit leaves at least 4 of a CID's 16 bits for the generation, as in a {@code QueuePair}.
   */
  public static final int MAX_DEPTH = 4096;

  /** Slots in a word of a shared queue's free bits. */
  public static final int WORD_BITS = 32;

  /** Records that an error log keeps; further ones are counted. */
  static final int ERROR_CAPACITY = 255;

  /**
   * Checks a depth.
   *
   * @param maxEntries the longest ring that the controller takes
   */
  static QueueSizes of(int depth, boolean shared, int maxEntries) {
    int most = maxDepth(shared, maxEntries);
    int step = shared ? WORD_BITS : 1;
    if (shared && most == 0) {
      throw new InvalidRequestException(
          "a shared queue needs rings of 64 entries, but the controller takes at most "
              + maxEntries
              + " (CAP.MQES)");
    }
    if (depth < 1 || depth > most || depth % step != 0) {
      throw new InvalidRequestException(
          "depth %d is outside %d..%d%s (rings have at most %d entries, and the completion queue"
                  .formatted(
                      depth, step, most, shared ? " or not a multiple of 32" : "", maxEntries)
              + " twice as many as the depth)");
    }
    return new QueueSizes(depth, shared);
  }

  /** The largest depth; 0 if there is none. */
  static int maxDepth(boolean shared, int maxEntries) {
    int most = Math.min(MAX_DEPTH, Integer.highestOneBit(maxEntries) / 2);
    return shared ? most / WORD_BITS * WORD_BITS : most;
  }

  /** log2 of the submission queue's entries. */
  public int sqBits() {
    return bits(depth + 1);
  }

  /** log2 of the completion queue's entries. */
  public int cqBits() {
    return bits(2 * depth);
  }

  /** Bits of the slot number in a CID. */
  public int slotBits() {
    return Math.max(1, bits(depth));
  }

  /** The smallest n with 2^n at least {@code entries}. */
  private static int bits(int entries) {
    return Integer.SIZE - Integer.numberOfLeadingZeros(entries - 1);
  }

  /** Submission queue entries. */
  public int sqSize() {
    return 1 << sqBits();
  }

  /** Completion queue entries. */
  public int cqSize() {
    return 1 << cqBits();
  }

  /** Bytes of the submission queue. */
  public long sqBytes() {
    return (long) sqSize() * Sqe.SIZE;
  }

  /** Bytes of the completion queue. */
  public long cqBytes() {
    return (long) cqSize() * Cqe.SIZE;
  }

  // ---- what one queue has besides its rings, one after the other

  long slotBytes() {
    return (long) depth * Integer.BYTES;
  }

  long infoBytes() {
    return depth * Slot.INFO_SIZE;
  }

  long freeBytes() {
    return shared ? (long) depth / Byte.SIZE : (long) Integer.BYTES << slotBits();
  }

  long markBytes() {
    return (long) sqSize() * Integer.BYTES;
  }

  static long errorBytes() {
    return Errors.RECORDS + ERROR_CAPACITY * Errors.RECORD_SIZE;
  }

  /** The same slot's next generation; FFFFh means "no command", so it is left out. */
  int nextCid(int cid) {
    int step = 1 << slotBits();
    int next = (cid + step) & 0xFFFF;
    return next == 0xFFFF ? (next + step) & 0xFFFF : next;
  }
}
