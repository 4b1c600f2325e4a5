package io.gpunvme.models;

import io.gpunvme.models.format.TensorInfo;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Tensors cut into pieces that are loaded one batch after the other, so that a model goes through
 * memory that does not hold all of it.
 */
final class TensorPieces {
  private static final long BLOCK = 4096;

  /**
   * A tensor, or a contiguous part of one.
   *
   * @param tensor its index among all
   * @param slice null: all of it
   * @param offset of its first byte in the tensor
   */
  record Piece(int tensor, @Nullable TensorSlice slice, long offset, long bytes) {}

  private TensorPieces() {}

  /**
   * Batches, in the tensors' order; no tensor is twice in one.
   *
   * @param most bytes in a batch, unless one row of a tensor has more
   */
  static List<List<Piece>> batches(List<TensorInfo> tensors, long most) {
    List<List<Piece>> batches = new ArrayList<>();
    List<Piece> batch = new ArrayList<>();
    Set<Integer> inBatch = new HashSet<>();
    long bytes = 0;
    for (int i = 0; i < tensors.size(); i++) {
      for (Piece p : pieces(i, tensors.get(i), most)) {
        if (!batch.isEmpty() && (bytes + p.bytes() > most || inBatch.contains(i))) {
          batches.add(batch);
          batch = new ArrayList<>();
          inBatch.clear();
          bytes = 0;
        }
        batch.add(p);
        inBatch.add(i);
        bytes += p.bytes();
      }
    }
    if (!batch.isEmpty()) {
      batches.add(batch);
    }
    return batches;
  }

  private static List<Piece> pieces(int index, TensorInfo t, long most) {
    int d = 0;
    while (d < t.rank() && t.dimension(d) == 1) {
      d++;
    }
    if (t.bytes() <= most || d == t.rank()) {
      return List.of(new Piece(index, null, 0, t.bytes()));
    }
    long length = t.dimension(d);
    // Blocks of a type are not divided.
    long unit = d == t.rank() - 1 ? t.type().blockElements() : 1;
    if (t.elements() / length * unit % t.type().blockElements() != 0) {
      // Rows share blocks: nothing but all of them is whole bytes.
      return List.of(new Piece(index, null, 0, t.bytes()));
    }
    long unitBytes = t.bytes() / (length / unit);
    long step = unit * unitsAtATime(unitBytes, most);
    List<Piece> pieces = new ArrayList<>();
    for (long first = 0; first < length; first += step) {
      long stop = Math.min(length, first + step);
      long from = first / unit * unitBytes;
      pieces.add(
          new Piece(
              index, new TensorSlice(d, first, stop), from, (stop - first) / unit * unitBytes));
    }
    return pieces;
  }

  /** As many as fit, best whole blocks of a device, which are written without detours. */
  private static long unitsAtATime(long unitBytes, long most) {
    long fit = Math.max(1, most / unitBytes);
    long whole = BLOCK / Math.min(BLOCK, Long.lowestOneBit(unitBytes));
    return fit < whole ? fit : fit / whole * whole;
  }
}
