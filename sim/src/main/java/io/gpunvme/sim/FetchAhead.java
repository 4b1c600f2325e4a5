package io.gpunvme.sim;

import io.gpunvme.nvme.spec.Sqe;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import org.jspecify.annotations.Nullable;

/**
 * Entries of a submission queue, copied many at a time: from remote memory because each copy takes
 * a while, from host memory because each entry is a cache miss and a copy has many of them under
 * way. The host may not touch what it has announced until it is fetched, so copying it early is no
 * difference. Guarded by the worker's lock.
 */
final class FetchAhead {
  private static final ValueLayout.OfLong LONG =
      ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final int WORDS = Sqe.SIZE / Long.BYTES;

  /** Entries copied at once at most. */
  private static final int MOST_REMOTE = 256;

  private static final int MOST_OF_HOST = 32;

  private final RingMemory ring;
  private final @Nullable RemoteChannel channel;
  private final @Nullable MemorySegment staging;
  private final long[] entries;
  private final int most;
  private int first;
  private int count;

  /**
   * @param channel to the memory that the ring lies in; null if that is host memory
   */
  FetchAhead(RingMemory ring, @Nullable RemoteChannel channel) {
    this.ring = ring;
    this.channel = channel;
    most = channel == null ? MOST_OF_HOST : MOST_REMOTE;
    staging = channel == null ? null : channel.takeStaging((long) most * Sqe.SIZE);
    entries = new long[most * WORDS];
  }

  /** Whether all copied entries are taken. */
  boolean isEmpty() {
    return count == 0;
  }

  /**
   * Copies entry {@code index} and some that follow; all earlier ones are taken and the ring is
   * mapped.
   *
   * @param announced how many entries from there on the host has announced, above 0
   * @throws RemoteFailure if they cannot be copied
   */
  void load(int index, int announced) {
    int n = ring.run(index, Math.min(announced, most));
    MemorySegment from = staging;
    long offset = 0;
    if (channel == null || from == null) {
      from = ring.segment(index);
      offset = ring.offset(index);
    } else {
      channel.read(ring.offset(index), from.asSlice(0, (long) n * Sqe.SIZE));
    }
    MemorySegment.copy(from, LONG, offset, entries, 0, n * WORDS);
    first = index;
    count = n;
  }

  /** Word {@code n} of entry {@code index}, which is not taken yet. */
  long word(int index, int n) {
    return entries[(index - first) * WORDS + n];
  }

  /** Takes entry {@code index}, the next one, to {@code target}. */
  void take(int index, long[] target) {
    int from = (index - first) * WORDS;
    // Not arraycopy: a masked vector store, which it becomes, keeps the loads that follow waiting.
    for (int i = 0; i < WORDS; i++) {
      target[i] = entries[from + i];
    }
    count--;
  }

  /** The queue is gone. */
  void close() {
    if (channel != null && staging != null && !channel.isBroken()) {
      channel.giveBackStaging(staging);
    }
  }
}
