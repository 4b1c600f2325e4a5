package io.gpunvme.cuda;

import org.junit.jupiter.api.Assumptions;

/** The GPU of the tests that need one. */
public final class Gpu {
  private Gpu() {}

  /** The first GPU; skips the test, with the reason, where there is none. */
  public static CudaDevice device() {
    try {
      return Cuda.load().device(0);
    } catch (CudaNotFoundException | CudaException e) {
      return Assumptions.abort("no GPU: " + e.getMessage());
    }
  }
}
