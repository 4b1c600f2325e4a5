package io.gpunvme.storage.layer;

import io.gpunvme.base.InvalidRequestException;

/**
 * Bytes of a storage that are needed together.
 *
 * @param name for messages and statistics; need not be unique
 * @param offset of the first byte in the storage; needs no alignment, whole blocks are faster
 * @param bytes 0 or more
 */
public record Layer(String name, long offset, long bytes) {
  /** Checks the numbers. */
  public Layer {
    if (offset < 0 || bytes < 0 || offset > Long.MAX_VALUE - bytes) {
      throw new InvalidRequestException(
          "layer '%s' cannot be %d bytes at %d".formatted(name, bytes, offset));
    }
  }

  /**
   * Whole logical blocks.
   *
   * @param lba the first block
   * @param blocks how many
   * @param blockSize bytes of each, &gt; 0
   */
  public static Layer ofBlocks(String name, long lba, long blocks, int blockSize) {
    if (lba < 0 || blocks < 0 || blockSize <= 0 || lba > Long.MAX_VALUE / blockSize - blocks) {
      throw new InvalidRequestException(
          "layer '%s' cannot be %d blocks of %d bytes at block %d"
              .formatted(name, blocks, blockSize, lba));
    }
    return new Layer(name, lba * blockSize, blocks * blockSize);
  }

  @Override
  public String toString() {
    return "layer '%s' (%d bytes at %d)".formatted(name, bytes, offset);
  }
}
