package io.gpunvme.models.tensor;

import io.gpunvme.base.InvalidRequestException;
import java.util.List;

/** Whether pieces are inside their buffers. */
final class PieceChecks {
  private PieceChecks() {}

  static void require(List<TensorKernels.Piece> pieces) {
    for (TensorKernels.Piece piece : pieces) {
      long size = piece.buffer().size();
      if (piece.offset() < 0 || piece.length() < 0 || piece.length() > size - piece.offset()) {
        throw new InvalidRequestException(
            "a checksum of %d bytes from offset %d: these are not inside the buffer of %d bytes"
                .formatted(piece.length(), piece.offset(), size));
      }
    }
  }
}
