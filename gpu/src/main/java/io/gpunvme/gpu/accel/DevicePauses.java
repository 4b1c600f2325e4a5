package io.gpunvme.gpu.accel;

import io.gpunvme.cuda.CudaDevice;
import java.util.HashMap;
import java.util.Map;

/**
 * The {@link KernelPauses} of each GPU. Accelerators on the same GPU share them: the driver waits
 * for the kernels of all users of a GPU. Those of other GPUs do not hold it up.
 */
final class DevicePauses {
  private static final class Shared {
    private final KernelPauses pauses = new KernelPauses();
    private int users;
  }

  /** Guarded by itself. */
  private static final Map<CudaDevice, Shared> ALL = new HashMap<>();

  private DevicePauses() {}

  /** Those of a GPU, for one more user. */
  static KernelPauses take(CudaDevice device) {
    synchronized (ALL) {
      Shared there = ALL.computeIfAbsent(device, _ -> new Shared());
      there.users++;
      return there.pauses;
    }
  }

  /** A user is gone. */
  static void giveBack(CudaDevice device) {
    synchronized (ALL) {
      ALL.computeIfPresent(device, (_, there) -> --there.users == 0 ? null : there);
    }
  }
}
