package io.gpunvme.cuda;

import java.nio.file.Path;

/** Opens a library that stands in for the driver's; only this package can. */
public final class CudaStandIn {
  private CudaStandIn() {}

  /** Its first device. */
  public static CudaDevice device(Path library) {
    return Cuda.load(library).device(0);
  }
}
