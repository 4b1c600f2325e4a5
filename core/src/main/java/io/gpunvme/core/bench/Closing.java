package io.gpunvme.core.bench;

import java.util.List;
import org.jspecify.annotations.Nullable;

/** Closes what a benchmark has opened. */
final class Closing {
  private Closing() {}

  /**
   * Closes all, the last one first, whatever fails; the list is empty afterwards.
   *
   * @throws RuntimeException the first failure
   */
  static void all(List<AutoCloseable> open) {
    RuntimeException first = null;
    for (AutoCloseable part : open.reversed()) {
      first = close(part, first);
    }
    open.clear();
    if (first != null) {
      throw first;
    }
  }

  private static @Nullable RuntimeException close(
      AutoCloseable part, @Nullable RuntimeException first) {
    try {
      part.close();
    } catch (RuntimeException e) {
      return first == null ? e : first;
    } catch (Exception e) {
      throw new IllegalStateException(e);
    }
    return first;
  }
}
