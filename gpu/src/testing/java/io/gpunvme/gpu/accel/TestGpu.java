package io.gpunvme.gpu.accel;

import io.gpunvme.cuda.Cuda;
import io.gpunvme.cuda.CudaException;
import io.gpunvme.cuda.CudaNotFoundException;
import org.junit.jupiter.api.Assumptions;

/** The GPU of the tests tagged {@code gpu}. */
public final class TestGpu {
  private TestGpu() {}

  /** Opens it; where there is none the test is skipped, and says why. */
  public static GpuAccelerator open() {
    try {
      return GpuAccelerator.open();
    } catch (CudaNotFoundException | CudaException e) {
      return Assumptions.abort("no GPU: " + e.getMessage());
    }
  }

  /** The last one of those that there are; the same one if there is no other. */
  public static GpuAccelerator openLast() {
    require();
    return GpuAccelerator.open(Cuda.load().devices().getLast());
  }

  /** For tests that open it by other ways. */
  public static void require() {
    open().close();
  }
}
