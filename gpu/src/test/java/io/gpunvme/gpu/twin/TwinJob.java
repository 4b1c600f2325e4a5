package io.gpunvme.gpu.twin;

import static io.gpunvme.gpu.queue.DeviceLayout.getInt;
import static io.gpunvme.gpu.queue.DeviceLayout.getLong;
import static io.gpunvme.gpu.queue.DeviceLayout.setInt;
import static io.gpunvme.gpu.queue.DeviceLayout.setLong;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * {@code struct Job} of {@code twin.cpp}: random commands of one thread on blocks of its own, with
 * a model of what these blocks hold. Used by one thread at a time.
 */
final class TwinJob {
  /** Bytes of the structure. */
  static final long SIZE = 128;

  /** A block whose content the model has. */
  private static final byte KNOWN = 1;

  /** A block that a write without an end may still change. */
  private static final byte LOST = 2;

  private static final long SEED = 64;
  private static final long OPERATIONS = 72;
  private static final long SINGLE = 84;
  private static final long RESULTS = 88;

  private final MemorySegment struct;
  private final MemorySegment state;

  /**
   * @param ns, queue, buffer addresses of the structures
   * @param bufferOffset where in the buffer this job's part begins, of chunks * chunkBlocks blocks
   * @param first first block of the namespace that is this job's; all its blocks are zeroes
   */
  TwinJob(
      Arena arena,
      long ns,
      long queue,
      long buffer,
      long bufferOffset,
      long first,
      int blocks,
      int blockSize,
      int chunks,
      int chunkBlocks) {
    struct = arena.allocate(SIZE, Long.BYTES);
    state = arena.allocate(blocks).fill(KNOWN);
    setLong(struct, 0, ns);
    setLong(struct, 8, queue);
    setLong(struct, 16, buffer);
    setLong(struct, 24, bufferOffset);
    setLong(struct, 32, first);
    setLong(struct, 40, blocks);
    setLong(struct, 48, arena.allocate((long) blocks * blockSize).address());
    setLong(struct, 56, state.address());
    setInt(struct, 76, chunks);
    setInt(struct, 80, chunkBlocks);
  }

  /** Makes it ready to run: how many operations, and whether each is one Read or Write. */
  long prepare(long seed, int operations, boolean single) {
    setLong(struct, SEED, seed);
    setInt(struct, OPERATIONS, operations);
    setInt(struct, SINGLE, single ? 1 : 0);
    struct.asSlice(RESULTS).fill((byte) 0);
    return struct.address();
  }

  /** After recovery: nothing is under way any more, but what became of such writes is unknown. */
  void recovered() {
    for (long i = 0; i < state.byteSize(); i++) {
      if (state.get(ValueLayout.JAVA_BYTE, i) == LOST) {
        state.set(ValueLayout.JAVA_BYTE, i, (byte) 0);
      }
    }
  }

  /** What became of the operations of the last run. */
  Outcome outcome() {
    return new Outcome(
        getInt(struct, RESULTS),
        getInt(struct, RESULTS + 4),
        getInt(struct, RESULTS + 8),
        getInt(struct, RESULTS + 12),
        getInt(struct, RESULTS + 16),
        getInt(struct, RESULTS + 20),
        getInt(struct, RESULTS + 24),
        getInt(struct, RESULTS + 28),
        getLong(struct, RESULTS + 32));
  }

  /**
   * Operations by their end.
   *
   * @param failed with a status from the controller
   * @param refused before submission, kArgument
   * @param wrong with other data, or another status, than they must have
   * @param lastStatus of those that failed
   * @param wrongAt the first block of the first wrong one
   */
  record Outcome(
      int succeeded,
      int failed,
      int timeouts,
      int stopped,
      int busy,
      int refused,
      int wrong,
      int lastStatus,
      long wrongAt) {
    static final Outcome NONE = new Outcome(0, 0, 0, 0, 0, 0, 0, 0, 0);

    Outcome plus(Outcome o) {
      return new Outcome(
          succeeded + o.succeeded,
          failed + o.failed,
          timeouts + o.timeouts,
          stopped + o.stopped,
          busy + o.busy,
          refused + o.refused,
          wrong + o.wrong,
          o.lastStatus != 0 ? o.lastStatus : lastStatus,
          wrong == 0 ? o.wrongAt : wrongAt);
    }
  }
}
