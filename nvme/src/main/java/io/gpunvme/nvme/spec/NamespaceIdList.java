package io.gpunvme.nvme.spec;

import java.lang.foreign.MemorySegment;
import java.util.Objects;
import java.util.stream.IntStream;

/** A page of 1024 namespace identifiers, ended by a zero entry. */
abstract sealed class NamespaceIdList permits ActiveNamespaceList, ChangedNamespaceList {
  /** Bytes of the structure. */
  public static final int SIZE = 4096;

  /** Entries in the structure. */
  public static final int ENTRIES = SIZE / Integer.BYTES;

  final MemorySegment s;

  NamespaceIdList(MemorySegment segment) {
    s = Wire.first(segment, SIZE, "a namespace list");
  }

  /** Returns the structure's bytes. */
  public final MemorySegment segment() {
    return s;
  }

  /** Entry {@code index}, 0..1023, an unsigned NSID; 0 ends the list. */
  public final int nsid(int index) {
    return Wire.i32(s, offset(index));
  }

  /** Sets entry {@code index}, 0..1023. */
  public final void nsid(int index, int nsid) {
    Wire.i32(s, offset(index), nsid);
  }

  /** Number of entries before the first zero. */
  public final int count() {
    int count = 0;
    while (count < ENTRIES && nsid(count) != 0) {
      count++;
    }
    return count;
  }

  /** The entries before the first zero, in the order of the list. */
  public final IntStream stream() {
    return IntStream.range(0, count()).map(this::nsid);
  }

  private static long offset(int index) {
    return (long) Objects.checkIndex(index, ENTRIES) * Integer.BYTES;
  }
}
