package io.gpunvme.gpu.accel;

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

  /** For tests that open it by other ways. */
  public static void require() {
    open().close();
  }
}
