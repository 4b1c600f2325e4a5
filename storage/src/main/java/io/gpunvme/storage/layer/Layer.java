package io.gpunvme.storage.layer;

import io.gpunvme.base.InvalidRequestException;
import java.util.List;

/**
 * Bytes that are needed together: one range of a storage, or pieces of several, which lie side by
 * side in a slot.
 *
 * @param name for messages and statistics; need not be unique
 * @param pieces one at least; they do not overlap in the slot
 */
public record Layer(String name, List<Piece> pieces) {
  /**
   * A range of a storage, and its place.
   *
   * @param storage which one of the loader's, counted from 0
   * @param offset of the first byte in the storage; needs no alignment, whole blocks are faster
   * @param bytes 0 or more
   * @param place of the first byte in the layer; any
   */
  public record Piece(int storage, long offset, long bytes, long place) {
    /** Checks the numbers. */
    public Piece {
      if (storage < 0 || !isRange(offset, bytes) || !isRange(place, bytes)) {
        throw new InvalidRequestException(
            "a piece of a layer cannot be %d bytes at %d of storage %d, to %d"
                .formatted(bytes, offset, storage, place));
      }
    }
  }

  /** Checks the pieces. */
  public Layer {
    pieces = List.copyOf(pieces);
    if (pieces.isEmpty()) {
      throw new InvalidRequestException("layer '%s' has no pieces".formatted(name));
    }
  }

  /**
   * One range of the only storage.
   *
   * @param offset of the first byte in the storage
   * @param bytes 0 or more
   */
  public Layer(String name, long offset, long bytes) {
    this(name, List.of(only(name, offset, bytes)));
  }

  private static Piece only(String name, long offset, long bytes) {
    if (!isRange(offset, bytes)) {
      throw new InvalidRequestException(
          "layer '%s' cannot be %d bytes at %d".formatted(name, bytes, offset));
    }
    return new Piece(0, offset, bytes, 0);
  }

  private static boolean isRange(long offset, long bytes) {
    return offset >= 0 && bytes >= 0 && offset <= Long.MAX_VALUE - bytes;
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

  /** Of the first piece in its storage. */
  public long offset() {
    return pieces.getFirst().offset();
  }

  /** Bytes that it takes of a slot: to the end of the last piece. */
  public long bytes() {
    long end = 0;
    for (Piece piece : pieces) {
      end = Math.max(end, piece.place() + piece.bytes());
    }
    return end;
  }

  @Override
  public String toString() {
    return pieces.size() == 1
        ? "layer '%s' (%d bytes at %d)".formatted(name, bytes(), offset())
        : "layer '%s' (%d bytes in %d pieces)".formatted(name, bytes(), pieces.size());
  }
}
