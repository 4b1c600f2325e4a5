package io.gpunvme.storage.path.pinned;

import java.util.Arrays;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The reads or writes of a transfer in loads: what shares a slot and is taken by a thread as one.
 * Arrays, since there may be very many; filled by one thread, then read by several, who take loads
 * from it and keep the progress of those they took in it.
 */
final class IoList {
  /** In place of a slot's offset: the I/O is done in the buffer itself. */
  static final int STRAIGHT = -1;

  private static final int FIRST_CAPACITY = 4;

  private final AtomicInteger next = new AtomicInteger();

  private int count;
  private int loads;
  private int[] loadEnd = new int[FIRST_CAPACITY];
  private boolean[] loadStaged = new boolean[FIRST_CAPACITY];

  private long[] offset = new long[FIRST_CAPACITY];
  private int[] length = new int[FIRST_CAPACITY];
  private int[] place = new int[FIRST_CAPACITY];
  private int[] skip = new int[FIRST_CAPACITY];
  private int[] wanted = new int[FIRST_CAPACITY];
  private int[] range = new int[FIRST_CAPACITY];
  private long[] bufferOffset = new long[FIRST_CAPACITY];
  private int[] done = new int[FIRST_CAPACITY];

  /**
   * Adds an I/O to the load that is being filled.
   *
   * @param offset in the file
   * @param length bytes
   * @param place where in the slot, or {@link #STRAIGHT}
   * @param skip bytes at its start that nobody asked for
   * @param wanted bytes after these that somebody did
   * @param range whose they are, an index
   * @param bufferOffset of the first of them in that range's buffer
   */
  void add(long offset, int length, int place, int skip, int wanted, int range, long bufferOffset) {
    if (count == this.offset.length) {
      grow();
    }
    this.offset[count] = offset;
    this.length[count] = length;
    this.place[count] = place;
    this.skip[count] = skip;
    this.wanted[count] = wanted;
    this.range[count] = range;
    this.bufferOffset[count] = bufferOffset;
    count++;
    loadStaged[loads] |= place != STRAIGHT;
  }

  private void grow() {
    int capacity = Math.multiplyExact(count, 2);
    offset = Arrays.copyOf(offset, capacity);
    length = Arrays.copyOf(length, capacity);
    place = Arrays.copyOf(place, capacity);
    skip = Arrays.copyOf(skip, capacity);
    wanted = Arrays.copyOf(wanted, capacity);
    range = Arrays.copyOf(range, capacity);
    bufferOffset = Arrays.copyOf(bufferOffset, capacity);
    done = Arrays.copyOf(done, capacity);
  }

  /** Ends the load that is being filled, if it has anything. */
  void endLoad() {
    if (count == (loads == 0 ? 0 : loadEnd[loads - 1])) {
      return;
    }
    loadEnd[loads] = count;
    loads++;
    if (loads == loadEnd.length) {
      loadEnd = Arrays.copyOf(loadEnd, 2 * loads);
      loadStaged = Arrays.copyOf(loadStaged, 2 * loads);
    }
  }

  /** Takes the next load that nobody has; -1 if there is none. Any thread. */
  int take() {
    int taken = next.getAndIncrement();
    return taken < loads ? taken : -1;
  }

  /** Whether all loads are taken. */
  boolean isExhausted() {
    return next.get() >= loads;
  }

  int loads() {
    return loads;
  }

  /** I/Os in all loads. */
  int count() {
    return count;
  }

  /** The first I/O of a load. */
  int first(int load) {
    return load == 0 ? 0 : loadEnd[load - 1];
  }

  /** The I/O after the last of a load. */
  int end(int load) {
    return loadEnd[load];
  }

  /** Whether a load needs a slot. */
  boolean isStaged(int load) {
    return loadStaged[load];
  }

  long offset(int io) {
    return offset[io];
  }

  int length(int io) {
    return length[io];
  }

  boolean isStraight(int io) {
    return place[io] == STRAIGHT;
  }

  int place(int io) {
    return place[io];
  }

  int skip(int io) {
    return skip[io];
  }

  int wanted(int io) {
    return wanted[io];
  }

  int range(int io) {
    return range[io];
  }

  long bufferOffset(int io) {
    return bufferOffset[io];
  }

  /** Bytes of an I/O that were moved so far. */
  int done(int io) {
    return done[io];
  }

  void setDone(int io, int bytes) {
    done[io] = bytes;
  }
}
