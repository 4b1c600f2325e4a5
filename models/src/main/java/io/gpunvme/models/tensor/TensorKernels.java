package io.gpunvme.models.tensor;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import java.util.List;

/**
 * Work on tensors that are in the memory of an accelerator. For one thread.
 *
 * <p>Everything sees what calls that had returned before have written to the buffers, on this
 * object or by a path, and what {@link #stridedCopy} was called for before on this object. Buffers
 * are those of the accelerator, of both kinds: its own memory and pinned memory.
 */
public interface TensorKernels extends AutoCloseable {
  /**
   * Opens them: kernels on a CUDA GPU, the CPU on the stand-in. Of other accelerators the memory is
   * copied to the host for it.
   *
   * @param accelerator stays the caller's
   * @throws io.gpunvme.cuda.CudaModuleException if the driver cannot compile the kernels for this
   *     GPU
   */
  static TensorKernels open(Accelerator accelerator) {
    return accelerator
        .cuda()
        .<TensorKernels>map(CudaTensorKernels::load)
        .orElseGet(HostTensorKernels::new);
  }

  /**
   * Starts a copy of rows, as when a part of each row of a matrix is taken out. Any alignment is
   * right. It is fastest if both addresses, both pitches and the width are multiples of 16 bytes;
   * 8, 4 and 2 are the next best. The buffers stay open until {@link #await}.
   *
   * @param sourceOffset of the first row, in bytes
   * @param sourcePitch bytes from the start of a row to the start of the next, &gt;= 0
   * @param targetPitch the same, at least {@code width} if there are several rows
   * @param width bytes of a row to copy, &gt;= 0
   * @param rows &gt;= 0
   * @throws io.gpunvme.base.InvalidRequestException if a row leaves its buffer, rows of the target
   *     overlap, or what is read and what is written are parts of one buffer that overlap; nothing
   *     is copied then
   * @throws io.gpunvme.cuda.CudaException if the GPU failed
   */
  void stridedCopy(
      DeviceBuffer source,
      long sourceOffset,
      long sourcePitch,
      DeviceBuffer target,
      long targetOffset,
      long targetPitch,
      long width,
      long rows);

  /** Returns when the copies are over. */
  void await();

  /**
   * The CRC-32C (Castagnoli's polynomial, RFC 3720 appendix B.4) of each piece, as {@link
   * java.util.zip.CRC32C} has it; of nothing 0. Waits for the copies, too. Many pieces in one call
   * take less than one by one.
   *
   * @throws io.gpunvme.base.InvalidRequestException if a piece leaves its buffer
   * @throws io.gpunvme.cuda.CudaException if the GPU failed
   */
  int[] crc32c(List<Piece> pieces);

  /** The CRC-32C of one piece. */
  default int crc32c(DeviceBuffer buffer, long offset, long length) {
    return crc32c(List.of(new Piece(buffer, offset, length)))[0];
  }

  /** Waits for the copies. Idempotent, also after the accelerator's close; use after it throws. */
  @Override
  void close();

  /**
   * A part of a buffer, of any alignment.
   *
   * @param offset in bytes
   * @param length in bytes, &gt;= 0
   */
  record Piece(DeviceBuffer buffer, long offset, long length) {}
}
