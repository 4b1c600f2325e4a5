package io.gpunvme.storage.fs.partition;

import io.gpunvme.storage.fs.BlockReader;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * A device in sectors.
 *
 * @param bytes in a sector: 512 or 4096
 */
record Sectors(BlockReader device, int bytes) {
  /** How many whole ones there are. */
  long count() {
    return device.size() / bytes;
  }

  /** Whether the sectors from {@code first} on, as many as {@code count}, are all there. */
  boolean has(long first, long count) {
    return first >= 0 && count >= 0 && first <= count() && count <= count() - first;
  }

  /** The bytes from a sector on; they must be there. */
  ByteBuffer read(long first, int length) {
    byte[] data = new byte[length];
    device.read(first * bytes, MemorySegment.ofArray(data));
    return ByteBuffer.wrap(data).order(ByteOrder.LITTLE_ENDIAN);
  }
}
