package io.gpunvme.sim;

import java.lang.foreign.Arena;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * One worker's commands that are not in use. Grows by slabs to the most that were ever outstanding
 * and never shrinks. Guarded by the worker's lock.
 */
final class CommandPool {
  private static final int SLAB = 64;
  private static final long BIT_BUCKET_BYTES = 64 << 10;

  private final DmaSpace dma;
  private final RemoteChannels channels;

  private final DmaRegion bitBucket;
  private @Nullable SimCommand[] free = new SimCommand[SLAB];
  private int count;

  /**
   * @param memory the worker's, for data that nobody wants
   */
  CommandPool(DmaSpace dma, RemoteChannels channels, Arena memory) {
    this.dma = dma;
    this.channels = channels;
    bitBucket =
        new DmaRegion(0, BIT_BUCKET_BYTES, memory.allocate(BIT_BUCKET_BYTES, Long.BYTES), true);
  }

  /** A command with nothing in it but what its last use left. */
  SimCommand take() {
    if (count == 0) {
      grow();
    }
    SimCommand c = free[--count];
    if (c == null) {
      throw new IllegalStateException("the command pool lost a command");
    }
    return c;
  }

  /** Takes a command back. */
  void release(SimCommand c) {
    if (c.state == SimCommand.State.FREE) {
      throw new IllegalStateException("command " + c.cid + " was released twice");
    }
    c.state = SimCommand.State.FREE;
    if (c.fault != null) {
      c.fault = null;
    }
    if (count == free.length) {
      free = Arrays.copyOf(free, count * 2);
    }
    if (free[count] != c) {
      free[count] = c;
    }
    count++;
  }

  private void grow() {
    for (int i = 0; i < SLAB; i++) {
      free[i] = new SimCommand(dma, channels, bitBucket);
    }
    count = SLAB;
  }
}
