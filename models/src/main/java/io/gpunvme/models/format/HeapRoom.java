package io.gpunvme.models.format;

import io.gpunvme.models.format.FormatException.Kind;

/**
 * Room for the header of one file in Java's heap. The longest that the formats allow need more than
 * a small heap has: without this, the collector searches for room for half a minute, and then
 * fails. For one thread.
 */
public final class HeapRoom {
  /** What becomes of a byte of a header: its text, and objects for names, shapes and values. */
  private static final long BYTES_FOR_EACH = 4;

  private final String file;
  private final long heapBytes;
  private long taken;

  /**
   * Room in a heap.
   *
   * @param file for messages
   * @param heapBytes what the heap may have at most
   */
  public HeapRoom(String file, long heapBytes) {
    this.file = file;
    this.heapBytes = heapBytes;
  }

  /** Room in the heap of this process. */
  public static HeapRoom here(String file) {
    return new HeapRoom(file, Runtime.getRuntime().maxMemory());
  }

  /**
   * Takes room for a header, or for more of one whose length only its end tells. To be called
   * before anything is allocated.
   *
   * @throws FormatException if there is too little for all that was taken
   */
  public void take(long headerBytes) {
    taken += headerBytes;
    if (taken > heapBytes / BYTES_FOR_EACH) {
      throw FormatException.of(
          Kind.UNSUPPORTED,
          file,
          "its header of at least %d bytes needs more memory than Java's heap of %d MiB has: give java -Xmx%dm or more (by GPUNVME_JAVA_OPTS, unless java is yours)"
              .formatted(taken, heapBytes >> 20, (taken * BYTES_FOR_EACH >> 20) + 1));
    }
  }
}
