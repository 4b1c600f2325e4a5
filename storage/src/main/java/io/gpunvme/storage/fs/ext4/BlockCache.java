package io.gpunvme.storage.fs.ext4;

import io.gpunvme.storage.fs.BlockReader;
import java.lang.foreign.MemorySegment;
import java.util.LinkedHashMap;
import java.util.Map;

/** Blocks of metadata that were read last, a few MiB at most. Safe for all threads. */
final class BlockCache {
  private static final int BYTES = 4 << 20;

  private final BlockReader reader;
  private final int blockSize;
  private final Map<Long, Bytes> blocks;

  BlockCache(BlockReader reader, int blockSize) {
    this.reader = reader;
    this.blockSize = blockSize;
    int most = BYTES / blockSize;
    blocks =
        new LinkedHashMap<>(64, 0.75f, true) {
          private static final long serialVersionUID = 1;

          @Override
          protected boolean removeEldestEntry(Map.Entry<Long, Bytes> eldest) {
            return size() > most;
          }
        };
  }

  /** A block of the file system, which is in it. */
  Bytes read(long number) {
    synchronized (blocks) {
      Bytes known = blocks.get(number);
      if (known != null) {
        return known;
      }
    }
    // Not under the lock: reading may take long, and two who read the same read the same bytes.
    byte[] bytes = new byte[blockSize];
    reader.read(number * blockSize, MemorySegment.ofArray(bytes));
    Bytes block = new Bytes(bytes);
    synchronized (blocks) {
      blocks.put(number, block);
    }
    return block;
  }
}
