package io.gpunvme.storage.fs;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.BitSet;

/** Bytes in memory as a device or a file, which knows what was read of it. For one thread. */
public final class BytesReader implements BlockReader {
  /** Bytes of a place. */
  private static final int UNIT = 4;

  private final byte[] bytes;
  private final long size;
  private long budget = Long.MAX_VALUE;
  private long reads;
  private long bytesRead;
  private boolean closed;
  private BitSet touched; // by units; null: nobody asks

  /** A device of those very bytes. */
  public BytesReader(byte[] bytes) {
    this(bytes, bytes.length);
  }

  /** A device that begins with those bytes; the rest of it is zeros. */
  public BytesReader(byte[] bytes, long size) {
    this.bytes = bytes;
    this.size = size;
  }

  /** A copy of a file. */
  public static BytesReader of(Path file) {
    try {
      return new BytesReader(Files.readAllBytes(file));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Lets no more than that many bytes be read from now on, so that an endless loop shows. */
  public void limit(long most) {
    budget = most;
  }

  /** From now on {@link #places} are kept. */
  public void watch() {
    touched = new BitSet();
  }

  @Override
  public String name() {
    return "memory";
  }

  @Override
  public long size() {
    return size;
  }

  @Override
  public void read(long offset, MemorySegment target) {
    long length = target.byteSize();
    // No caller may let that happen, whatever the bytes say.
    if (closed || offset < 0 || length > size - offset) {
      throw new AssertionError(
          "%d bytes at %d of %d%s".formatted(length, offset, size, closed ? ", closed" : ""));
    }
    budget -= length;
    if (budget < 0) {
      throw new AssertionError("far too much is read");
    }
    reads++;
    bytesRead += length;
    long known = Math.clamp(bytes.length - offset, 0, length);
    MemorySegment.copy(
        MemorySegment.ofArray(bytes), Math.min(offset, bytes.length), target, 0, known);
    target.asSlice(known).fill((byte) 0);
    if (touched != null) {
      touched.set((int) offset / UNIT, (int) (offset + length + UNIT - 1) / UNIT);
    }
  }

  @Override
  public void close() {
    closed = true;
  }

  /** The bytes themselves. */
  public byte[] bytes() {
    return bytes;
  }

  /** How often it was read. */
  public long reads() {
    return reads;
  }

  /** How much was read. */
  public long bytesRead() {
    return bytesRead;
  }

  /** Whether it was closed. */
  public boolean isClosed() {
    return closed;
  }

  /** Counts from 0 again. */
  public void forget() {
    reads = 0;
    bytesRead = 0;
  }

  /** First bytes of the groups of four that were read. */
  public int[] places() {
    return touched.stream().map(unit -> unit * UNIT).toArray();
  }
}
