package io.gpunvme.gpu.model;

import java.util.Arrays;

/** The states seen so far, whole (no fingerprints), numbered in the order of their arrival. */
final class StateSet {
  private static final int CHUNK = 1 << 14;

  private final int words;
  private long[][] chunks = new long[16][];
  private int[] table = new int[1 << 12];
  private int size;

  StateSet(int words) {
    this.words = words;
  }

  int size() {
    return size;
  }

  void load(int id, long[] to) {
    System.arraycopy(chunks[id / CHUNK], id % CHUNK * words, to, 0, words);
  }

  /** The number of this state; it is the new {@link #size} - 1 if the state is new. */
  int add(long[] state) {
    if (size * 2 >= table.length) {
      grow();
    }
    int at = hash(state, 0) & table.length - 1;
    while (table[at] != 0) {
      int id = table[at] - 1;
      if (equal(id, state)) {
        return id;
      }
      at = at + 1 & table.length - 1;
    }
    table[at] = size + 1;
    int chunk = size / CHUNK;
    if (chunk == chunks.length) {
      chunks = Arrays.copyOf(chunks, chunk * 2);
    }
    if (chunks[chunk] == null) {
      chunks[chunk] = new long[CHUNK * words];
    }
    System.arraycopy(state, 0, chunks[chunk], size % CHUNK * words, words);
    return size++;
  }

  private boolean equal(int id, long[] state) {
    long[] chunk = chunks[id / CHUNK];
    int at = id % CHUNK * words;
    return Arrays.equals(chunk, at, at + words, state, 0, words);
  }

  private int hash(long[] from, int at) {
    long h = 0;
    for (int i = at; i < at + words; i++) {
      h = (h ^ from[i]) * 0x9E3779B97F4A7C15L;
      h ^= h >>> 29;
    }
    return (int) (h ^ h >>> 32);
  }

  private void grow() {
    table = new int[table.length * 2];
    for (int id = 0; id < size; id++) {
      int at = hash(chunks[id / CHUNK], id % CHUNK * words) & table.length - 1;
      while (table[at] != 0) {
        at = at + 1 & table.length - 1;
      }
      table[at] = id + 1;
    }
  }
}
