package io.gpunvme.models.format;

import io.gpunvme.models.format.FormatException.Kind;

/**
 * Room for headers in Java's heap. The longest that the formats allow need more than a small heap
 * has: without this, the collector searches for room for half a minute, and then fails.
 */
final class HeapRoom {
  /** What becomes of a byte of a header: its text, and objects for names, shapes and values. */
  private static final long BYTES_FOR_EACH = 4;

  private HeapRoom() {}

  /**
   * Checks that a header may fit.
   *
   * @throws FormatException if not
   */
  static void require(String file, long headerBytes) {
    require(file, headerBytes, Runtime.getRuntime().maxMemory());
  }

  static void require(String file, long headerBytes, long heapBytes) {
    if (headerBytes > heapBytes / BYTES_FOR_EACH) {
      throw FormatException.of(
          Kind.UNSUPPORTED,
          file,
          "its header of %d bytes needs more memory than Java's heap of %d MiB has: give java -Xmx%dm (by GPUNVME_JAVA_OPTS, unless java is yours)"
              .formatted(headerBytes, heapBytes >> 20, (headerBytes * BYTES_FOR_EACH >> 20) + 1));
    }
  }
}
