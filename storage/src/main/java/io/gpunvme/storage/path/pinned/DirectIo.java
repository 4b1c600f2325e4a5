package io.gpunvme.storage.path.pinned;

import java.util.Locale;

/** Whether the page cache is gone past (O_DIRECT). */
public enum DirectIo {
  /**
   * Reads go past it where it does not hold the data; writes where they are long. Where the file
   * has no O_DIRECT, all goes through it.
   */
  AUTO,
  /** All reads, and whole blocks of writes, go past it; refused where the file has no O_DIRECT. */
  TRUE,
  /** All goes through it. */
  FALSE;

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
