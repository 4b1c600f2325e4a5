package io.gpunvme.models.tensor;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;

/** Whether kernels of a GPU reach a buffer. */
final class OwnBuffers {
  private OwnBuffers() {}

  static void require(GpuAccelerator accelerator, DeviceBuffer buffer) {
    boolean own =
        buffer.isHost()
            ? buffer.segment().scope().isAlive()
            : accelerator.deviceMemory(buffer).isPresent();
    if (!own) {
      throw new InvalidRequestException(
          "%d bytes that are not an open buffer of %s"
              .formatted(buffer.size(), accelerator.name()));
    }
  }
}
