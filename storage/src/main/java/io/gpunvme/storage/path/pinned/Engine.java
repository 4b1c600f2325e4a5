package io.gpunvme.storage.path.pinned;

import java.util.Locale;

/** How I/O is done at depth. */
public enum Engine {
  /** io_uring past the page cache where this process gets one; threads otherwise. */
  AUTO,
  /** io_uring, or a refusal. */
  URING,
  /** Threads, each with one system call at a time. */
  THREADS;

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
