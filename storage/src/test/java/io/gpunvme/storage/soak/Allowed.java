package io.gpunvme.storage.soak;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** The bytes that may be in some place: one for each place, or one of several. */
final class Allowed {
  private final byte[] first;
  private final List<Other> others = new ArrayList<>();

  private record Other(int at, byte[] bytes) {
    boolean has(int i, byte b) {
      return i >= at && i < at + bytes.length && bytes[i - at] == b;
    }
  }

  Allowed(byte[] first) {
    this.first = first;
  }

  /** These bytes at {@code at}: instead of the first ones, or besides all that are allowed. */
  void put(int at, byte[] bytes, boolean besides) {
    if (besides) {
      others.add(new Other(at, bytes));
    } else {
      System.arraycopy(bytes, 0, first, at, bytes.length);
    }
  }

  /** The first byte from {@code at} on that is not allowed; -1 if there is none. */
  int mismatch(byte[] seen, int at) {
    int length = first.length;
    int i = Arrays.mismatch(seen, at, at + length, first, 0, length);
    while (i >= 0) {
      if (!isOther(i, seen[at + i])) {
        return i;
      }
      int from = i + 1;
      int next = Arrays.mismatch(seen, at + from, at + length, first, from, length);
      i = next < 0 ? -1 : from + next;
    }
    return -1;
  }

  private boolean isOther(int i, byte b) {
    for (Other other : others) {
      if (other.has(i, b)) {
        return true;
      }
    }
    return false;
  }
}
