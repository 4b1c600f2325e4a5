package io.gpunvme.sim;

import java.util.BitSet;

/**
 * The MSI-X table and pending bits as a BAR (PCI Express Base, 6.1.4): a message of a masked vector
 * stays pending and is sent when the mask is lifted. Safe for all threads.
 */
final class MsixTable implements BarTarget {
  /** The BAR it is. */
  static final int BAR = 4;

  private static final int ENTRY = 16;
  private static final int ENTRY_WORDS = 4;
  private static final int DATA_WORD = 2;
  private static final int CONTROL_WORD = 3;
  private static final int MASKED = 1;
  private static final int PAGE = 4096;

  private final int vectors;
  private final int[] words;
  private final BitSet pending;
  private InterruptSink sink = InterruptSink.NONE;
  private boolean enabled;
  private boolean functionMasked;

  /**
   * @param vectors 1..2048
   */
  MsixTable(int vectors) {
    this.vectors = vectors;
    words = new int[vectors * ENTRY_WORDS];
    pending = new BitSet(vectors);
    reset();
  }

  int vectors() {
    return vectors;
  }

  /** Offset of the pending bit array: behind the table, page aligned. */
  int pendingOffset() {
    return Math.ceilDiv(vectors * ENTRY, PAGE) * PAGE;
  }

  synchronized void sink(InterruptSink receiver) {
    sink = receiver;
  }

  /** Power-on state: every vector masked, MSI-X off. */
  synchronized void reset() {
    enabled = false;
    functionMasked = false;
    pending.clear();
    for (int v = 0; v < vectors; v++) {
      clearEntry(v);
    }
  }

  private void clearEntry(int vector) {
    int first = vector * ENTRY_WORDS;
    words[first] = 0;
    words[first + 1] = 0;
    words[first + DATA_WORD] = 0;
    words[first + CONTROL_WORD] = MASKED;
  }

  /** Masks or unmasks a vector, as a write to its entry does. */
  synchronized void mask(int vector, boolean masked) {
    words[vector * ENTRY_WORDS + CONTROL_WORD] = masked ? MASKED : 0;
    sendPending();
  }

  /** MSI-X Enable and Function Mask of the capability changed. */
  synchronized void control(boolean enable, boolean maskAll) {
    enabled = enable;
    functionMasked = maskAll;
    if (!enable) {
      pending.clear();
    }
    sendPending();
  }

  /** Sends the vector's message, or makes it pending. */
  synchronized void send(int vector) {
    if (enabled && vector < vectors) {
      pending.set(vector);
      sendPending();
    }
  }

  /** Forgets what is pending: the queues that wanted it are gone. */
  synchronized void forgetPending() {
    pending.clear();
  }

  private void sendPending() {
    if (!enabled || functionMasked) {
      return;
    }
    for (int v = pending.nextSetBit(0); v >= 0; v = pending.nextSetBit(v + 1)) {
      int first = v * ENTRY_WORDS;
      if ((words[first + CONTROL_WORD] & MASKED) == 0) {
        pending.clear(v);
        long address =
            Integer.toUnsignedLong(words[first]) | (long) words[first + 1] << Integer.SIZE;
        sink.message(v, address, words[first + DATA_WORD]);
      }
    }
  }

  @Override
  public long size() {
    long bytes = pendingOffset() + (long) Math.ceilDiv(vectors, Long.SIZE) * Long.BYTES;
    return Math.max(PAGE, Long.highestOneBit(bytes - 1) << 1);
  }

  @Override
  public synchronized int read(long offset) {
    int word = (int) (offset / Integer.BYTES);
    if (word < words.length) {
      return words[word];
    }
    int bits = (word - pendingOffset() / Integer.BYTES) * Integer.SIZE;
    int value = 0;
    for (int i = 0; bits >= 0 && i < Integer.SIZE; i++) {
      value |= pending.get(bits + i) ? 1 << i : 0;
    }
    return value;
  }

  @Override
  public synchronized void write(long offset, int value) {
    int word = (int) (offset / Integer.BYTES);
    if (word < words.length) {
      words[word] =
          switch (word % ENTRY_WORDS) {
            case 0 -> value & -Integer.BYTES;
            case CONTROL_WORD -> value & MASKED;
            default -> value;
          };
      sendPending();
    }
  }
}
