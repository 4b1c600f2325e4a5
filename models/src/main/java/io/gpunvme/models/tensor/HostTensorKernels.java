package io.gpunvme.models.tensor;

import io.gpunvme.gpu.accel.DeviceBuffer;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import java.util.zip.CRC32C;

/**
 * {@link TensorKernels} on the CPU. Memory that the CPU does not address is copied to the host and
 * back.
 */
final class HostTensorKernels implements TensorKernels {
  /** What one thread takes at once for a checksum. */
  private static final long PART_BYTES = 4 << 20;

  /** Most that is copied from memory of others at once. */
  private static final int STAGED_BYTES = 1 << 20;

  private boolean closed;

  @Override
  public void stridedCopy(
      DeviceBuffer source,
      long sourceOffset,
      long sourcePitch,
      DeviceBuffer target,
      long targetOffset,
      long targetPitch,
      long width,
      long rows) {
    requireOpen();
    StridedRows all =
        new StridedRows(
            source, sourceOffset, sourcePitch, target, targetOffset, targetPitch, width, rows);
    if (all.isEmpty()) {
      return;
    }
    if (all.isContiguous()) {
      copy(source, sourceOffset, target, targetOffset, all.bytes());
      return;
    }
    for (long row = 0; row < rows; row++) {
      long from = sourceOffset + row * sourcePitch;
      copy(source, from, target, targetOffset + row * targetPitch, width);
    }
  }

  private static void copy(DeviceBuffer source, long from, DeviceBuffer target, long to, long n) {
    if (source.isHost()) {
      target.copyFromHost(source.segment().asSlice(from, n), to);
    } else if (target.isHost()) {
      source.copyToHost(from, target.segment().asSlice(to, n));
    } else {
      MemorySegment staged = staging(n);
      for (long done = 0; done < n; done += staged.byteSize()) {
        MemorySegment part = staged.asSlice(0, Math.min(staged.byteSize(), n - done));
        source.copyToHost(from + done, part);
        target.copyFromHost(part, to + done);
      }
    }
  }

  private static MemorySegment staging(long bytes) {
    return MemorySegment.ofArray(new byte[(int) Math.min(bytes, STAGED_BYTES)]);
  }

  /** Nothing is ever on its way. */
  @Override
  public void await() {
    requireOpen();
  }

  @Override
  public int[] crc32c(List<Piece> pieces) {
    requireOpen();
    PieceChecks.require(pieces);
    List<Part> parts = new ArrayList<>();
    for (int i = 0; i < pieces.size(); i++) {
      Piece piece = pieces.get(i);
      for (long done = 0; done < piece.length(); done += PART_BYTES) {
        long length = Math.min(PART_BYTES, piece.length() - done);
        parts.add(new Part(i, piece.buffer(), piece.offset() + done, length));
      }
    }
    Stream<Part> stream = parts.size() > 1 ? parts.parallelStream() : parts.stream();
    int[] ofParts = stream.mapToInt(Part::crc).toArray();
    int[] crcs = new int[pieces.size()];
    for (int i = 0; i < ofParts.length; i++) {
      Part part = parts.get(i);
      crcs[part.piece] = Crc32c.combine(crcs[part.piece], ofParts[i], part.length);
    }
    return crcs;
  }

  /** What one thread has to do. */
  private record Part(int piece, DeviceBuffer buffer, long offset, long length) {
    int crc() {
      CRC32C crc = new CRC32C();
      if (buffer.isHost()) {
        crc.update(buffer.segment().asSlice(offset, length).asByteBuffer());
        return (int) crc.getValue();
      }
      MemorySegment staged = staging(length);
      for (long done = 0; done < length; done += staged.byteSize()) {
        MemorySegment part = staged.asSlice(0, Math.min(staged.byteSize(), length - done));
        buffer.copyToHost(offset + done, part);
        crc.update(part.asByteBuffer());
      }
      return (int) crc.getValue();
    }
  }

  private void requireOpen() {
    if (closed) {
      throw new IllegalStateException("these tensor kernels are closed");
    }
  }

  @Override
  public void close() {
    closed = true;
  }
}
