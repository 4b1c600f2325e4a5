package io.gpunvme.models.tensor;

import io.gpunvme.cuda.CudaStream;
import io.gpunvme.gpu.accel.Accelerator;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Makes floats of quantised tensors that are in the memory of an accelerator. Safe for all threads.
 *
 * <p>Floats are bit for bit those that {@code gguf.quants.dequantize} of ggml's Python package
 * makes: computed in single precision, each operation rounded by itself. Elements of 8 bits become
 * singles and are multiplied by their scales. The single is then rounded to the target's type, to
 * the nearest and of two equally near ones to the even one; what is too large becomes an infinity.
 * What is not a number stays so, with any bits.
 *
 * <p>There is nothing to close: it lives as long as its accelerator.
 */
public interface Dequantizer {
  /**
   * Opens it: kernels on a CUDA GPU, the CPU on the stand-in. Of other accelerators the memory is
   * copied to the host for it. Loading kernels may wait for kernels that run: do it before you
   * launch one that waits for others.
   *
   * @param accelerator stays the caller's
   * @throws io.gpunvme.cuda.CudaModuleException if the driver cannot compile the kernels for this
   *     GPU
   */
  static Dequantizer open(Accelerator accelerator) {
    return accelerator
        .cuda()
        .<Dequantizer>map(CudaDequantizer::load)
        .orElseGet(HostDequantizer::new);
  }

  /**
   * Makes the floats of all tensors. On a GPU this starts it and returns: it is carried out in the
   * order of the stream, and the buffers stay open until then. Else they are there when this
   * returns.
   *
   * @param tensors of this accelerator's buffers, of both kinds
   * @param stream of the GPU; null where there is none
   * @throws io.gpunvme.base.InvalidRequestException if a buffer is another accelerator's, or there
   *     is a stream without a GPU or none with one; nothing is written then
   * @throws io.gpunvme.cuda.CudaException if the GPU failed
   */
  void dequantize(List<Quantized> tensors, @Nullable CudaStream stream);
}
