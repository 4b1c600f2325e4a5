package io.gpunvme.nvme.spec;

import java.lang.foreign.MemorySegment;
import java.util.Objects;

/** A structure of 4-byte entries looked up by number. */
abstract sealed class DwordTable permits CommandsEffectsLog, SupportedLogPages, FeatureEffectsLog {
  /** Entries per table: one for each value of a byte. */
  static final int ENTRIES = 256;

  final MemorySegment s;

  DwordTable(MemorySegment segment, int size) {
    s = Wire.first(segment, size, getClass().getSimpleName());
  }

  /** Returns the structure's bytes. */
  public final MemorySegment segment() {
    return s;
  }

  final int entry(long table, int index) {
    return Wire.i32(s, table + (long) Objects.checkIndex(index, ENTRIES) * Integer.BYTES);
  }

  final void entry(long table, int index, int value) {
    Wire.i32(s, table + (long) Objects.checkIndex(index, ENTRIES) * Integer.BYTES, value);
  }
}
