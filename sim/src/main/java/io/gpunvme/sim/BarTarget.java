package io.gpunvme.sim;

import java.lang.foreign.MemorySegment;

/** What is behind one BAR of the controller: accesses of 4 bytes, and perhaps memory. */
interface BarTarget {
  /** Size in bytes, a power of two. */
  long size();

  /** Reads at an offset inside, a multiple of 4. */
  int read(long offset);

  /** Writes at an offset inside, a multiple of 4. */
  void write(long offset, int value);

  /** The part that is plain memory; empty if none is. */
  default MemorySegment mapped() {
    return MemorySegment.NULL;
  }

  /** The same as {@link #mapped} for a peer: as large, with the same layout. */
  default MemorySegment mappedForPeer() {
    return mapped();
  }

  /** Where in the BAR {@link #mapped} begins. */
  default long mappedAt() {
    return 0;
  }
}
