package io.gpunvme.nvme.sim;

import io.gpunvme.nvme.spec.Sqe;
import java.lang.foreign.MemorySegment;

/**
 * Entries of a submission queue in remote memory, copied many at a time. The host may not touch
 * what it has announced until it is fetched, so copying it early is no difference. Guarded by the
 * worker's lock.
 */
final class FetchAhead {
  /** Entries copied at once at most. */
  private static final int MOST = 256;

  private final RingMemory ring;
  private final RemoteChannel channel;
  private final MemorySegment entries;
  private int first;
  private int count;

  FetchAhead(RingMemory ring, RemoteChannel channel) {
    this.ring = ring;
    this.channel = channel;
    entries = channel.takeStaging((long) MOST * Sqe.SIZE);
  }

  /**
   * Makes sure that entry {@code index} is here; the ring is mapped.
   *
   * @param announced how many entries from there on the host has announced, above 0
   * @throws RemoteFailure if it cannot be copied
   */
  void load(int index, int announced) {
    if (count == 0) {
      int n = ring.run(index, Math.min(announced, MOST));
      channel.read(ring.offset(index), entries.asSlice(0, (long) n * Sqe.SIZE));
      first = index;
      count = n;
    }
  }

  /** Takes entry {@code index}, the next one, to {@code target}. */
  void take(int index, MemorySegment target) {
    MemorySegment.copy(entries, (long) (index - first) * Sqe.SIZE, target, 0, Sqe.SIZE);
    count--;
  }

  /** The queue is gone. */
  void close() {
    if (!channel.isBroken()) {
      channel.giveBackStaging(entries);
    }
  }
}
