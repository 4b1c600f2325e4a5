package io.gpunvme.storage.soak;

import java.util.ArrayList;
import java.util.List;

/**
 * The part of a storage that one worker writes, cell by cell; cells are not aligned to anything. A
 * cell holds its last version, and after a failed write, byte by byte, one of several.
 */
final class OwnedRange {
  private static final int CELL = 5000;

  private final long storage;
  private final long offset;
  private final List<List<Long>> cells = new ArrayList<>();
  private long lastVersion;

  /**
   * Of content of version 0.
   *
   * @param storage the number of its content
   */
  OwnedRange(long storage, long offset, int length) {
    this.storage = storage;
    this.offset = offset;
    for (int i = 0; i < length / CELL; i++) {
      cells.add(List.of(0L));
    }
  }

  int count() {
    return cells.size();
  }

  long offset(int cell) {
    return offset + (long) cell * CELL;
  }

  static int bytes(int count) {
    return count * CELL;
  }

  /** For a write. */
  synchronized long newVersion() {
    return ++lastVersion;
  }

  byte[] content(int first, int count, long version) {
    return Content.of(storage, version, offset(first), bytes(count));
  }

  synchronized void written(int first, int count, long version) {
    for (int i = first; i < first + count; i++) {
      cells.set(i, List.of(version));
    }
  }

  /** Each byte is as it was, or as it was to be. */
  synchronized void mayBeWritten(int first, int count, long version) {
    for (int i = first; i < first + count; i++) {
      List<Long> all = new ArrayList<>(cells.get(i));
      if (!all.contains(version)) {
        all.add(version);
        cells.set(i, List.copyOf(all));
      }
    }
  }

  /**
   * Allows in {@code allowed} what the cells may hold.
   *
   * @param allowed is for bytes from {@code start} on
   */
  synchronized void allow(Allowed allowed, long start, int length) {
    for (int i = 0; i < cells.size(); i++) {
      long from = Math.max(start, offset(i));
      long to = Math.min(start + length, offset(i + 1));
      if (from < to) {
        List<Long> versions = cells.get(i);
        for (int v = 0; v < versions.size(); v++) {
          byte[] bytes = Content.of(storage, versions.get(v), from, (int) (to - from));
          allowed.put((int) (from - start), bytes, v > 0);
        }
      }
    }
  }
}
