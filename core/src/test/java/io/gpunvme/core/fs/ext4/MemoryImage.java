package io.gpunvme.core.fs.ext4;

import io.gpunvme.core.fs.BlockReader;
import io.gpunvme.nvme.InvalidRequestException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.BitSet;

/** An image in memory that counts what is read of it. */
final class MemoryImage implements BlockReader {
  private static final int UNIT = 4;

  final byte[] bytes;
  final BitSet touched = new BitSet(); // by units
  long reads;
  long bytesRead;

  MemoryImage(byte[] bytes) {
    this.bytes = bytes;
  }

  static MemoryImage of(Path file) {
    try {
      return new MemoryImage(Files.readAllBytes(file));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Override
  public String name() {
    return "memory";
  }

  @Override
  public long size() {
    return bytes.length;
  }

  @Override
  public void read(long offset, MemorySegment target) {
    long length = target.byteSize();
    if (offset < 0 || length > bytes.length - offset) {
      throw new InvalidRequestException("%d bytes at %d leave it".formatted(length, offset));
    }
    reads++;
    bytesRead += length;
    touched.set((int) offset / UNIT, (int) (offset + length + UNIT - 1) / UNIT);
    MemorySegment.copy(MemorySegment.ofArray(bytes), offset, target, 0, length);
  }

  void forget() {
    reads = 0;
    bytesRead = 0;
    touched.clear();
  }

  /** First bytes of the units that were read. */
  int[] places() {
    return touched.stream().map(unit -> unit * UNIT).toArray();
  }
}
