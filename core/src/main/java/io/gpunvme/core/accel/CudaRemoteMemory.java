package io.gpunvme.core.accel;

import io.gpunvme.cuda.DeviceMemory;
import io.gpunvme.nvme.memory.RemoteMemory;
import io.gpunvme.nvme.memory.RemotePort;

/** GPU memory as a controller without a bus of its own reaches it: by CUDA copies. */
final class CudaRemoteMemory implements RemoteMemory {
  private final String device;
  private final DeviceMemory memory;
  private final CopyStock stock;

  /**
   * @param device its name in messages
   * @param memory a multiple of 4096 bytes
   */
  CudaRemoteMemory(String device, DeviceMemory memory, CopyStock stock) {
    this.device = device;
    this.memory = memory;
    this.stock = stock;
  }

  @Override
  public String name() {
    return "%s, %d bytes at %Xh".formatted(device, memory.size(), memory.address());
  }

  @Override
  public long size() {
    return memory.size();
  }

  @Override
  public void prepare() {
    stock.fill();
  }

  @Override
  public RemotePort openPort(RemotePort.Use use) {
    return new CudaRemotePort(memory, stock.lanes().lane(use), stock);
  }
}
