package io.gpunvme.models.tensor;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;

/**
 * What one launch of {@code gpunvme_crc32c} is told and answers: a table of pieces and the
 * checksums of their chunks. Chunks end where addresses are multiples of {@link #CHUNK}. For one
 * thread.
 */
final class ChecksumRound {
  /** As in the kernel. */
  static final int CHUNK = 4096;

  /** Bytes of an entry of the table: address, bytes, and how many chunks come before. */
  private static final int ENTRY = 3 * Long.BYTES;

  private static final CrcShift BY_CHUNK = new CrcShift(CHUNK);

  private final MemorySegment memory;
  private final int mostPieces;
  private final int mostChunks;
  private final int[] owners;
  private int pieces;
  private int chunks;

  /**
   * @param memory of {@link #bytes}, which the kernel addresses too
   * @param mostPieces that a launch takes, &gt; 0
   * @param mostChunks the same, &gt; 0
   */
  ChecksumRound(MemorySegment memory, int mostPieces, int mostChunks) {
    this.memory = memory;
    this.mostPieces = mostPieces;
    this.mostChunks = mostChunks;
    this.owners = new int[mostPieces];
  }

  /** How much memory these numbers need. */
  static long bytes(int mostPieces, int mostChunks) {
    return checksums(mostPieces) + (long) mostChunks * Integer.BYTES;
  }

  /** Where the checksums begin in the memory. */
  static long checksums(int mostPieces) {
    return (long) mostPieces * ENTRY;
  }

  int pieces() {
    return pieces;
  }

  int chunks() {
    return chunks;
  }

  /**
   * Adds as much of a piece as there is room for.
   *
   * @param owner whose it is
   * @param address of the GPU
   * @param bytes &gt; 0
   * @return how many of the bytes were taken; 0 if it is full
   */
  long add(int owner, long address, long bytes) {
    if (pieces == mostPieces || chunks == mostChunks) {
      return 0;
    }
    long skipped = address & CHUNK - 1;
    long taken = Math.min(bytes, (long) (mostChunks - chunks) * CHUNK - skipped);
    long at = (long) pieces * ENTRY;
    memory.set(JAVA_LONG, at, address);
    memory.set(JAVA_LONG, at + Long.BYTES, taken);
    memory.set(JAVA_LONG, at + 2 * Long.BYTES, chunks);
    owners[pieces++] = owner;
    chunks += Math.toIntExact(Math.ceilDiv(skipped + taken, CHUNK));
    return taken;
  }

  /**
   * Appends what the kernel has answered to the checksums of the owners, and empties this.
   *
   * @param crcs by owner: of what was added for them in earlier rounds
   */
  void collect(int[] crcs) {
    long next = checksums(mostPieces);
    for (int i = 0; i < pieces; i++) {
      long address = memory.get(JAVA_LONG, (long) i * ENTRY);
      long end = address + memory.get(JAVA_LONG, (long) i * ENTRY + Long.BYTES);
      int crc = crcs[owners[i]];
      while (address != end) {
        long length = Math.min(CHUNK - (address & CHUNK - 1), end - address);
        int chunk = memory.get(JAVA_INT, next);
        crc = length == CHUNK ? BY_CHUNK.apply(crc) ^ chunk : Crc32c.combine(crc, chunk, length);
        address += length;
        next += Integer.BYTES;
      }
      crcs[owners[i]] = crc;
    }
    clear();
  }

  /** Forgets what was added. */
  void clear() {
    pieces = 0;
    chunks = 0;
  }
}
