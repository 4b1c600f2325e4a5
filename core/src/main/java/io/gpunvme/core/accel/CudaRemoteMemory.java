package io.gpunvme.core.accel;

import io.gpunvme.cuda.CudaContext;
import io.gpunvme.cuda.DeviceMemory;
import io.gpunvme.cuda.PinnedMemory;
import io.gpunvme.nvme.memory.RemoteMemory;
import io.gpunvme.nvme.memory.RemotePort;

/** GPU memory as a controller without a bus of its own reaches it: by CUDA copies. */
final class CudaRemoteMemory implements RemoteMemory {
  private final CudaContext context;
  private final DeviceMemory memory;
  private final CopyLanes lanes;
  private final BounceStock<PinnedMemory> bounces;

  /**
   * @param memory a multiple of 4096 bytes
   */
  CudaRemoteMemory(
      CudaContext context,
      DeviceMemory memory,
      CopyLanes lanes,
      BounceStock<PinnedMemory> bounces) {
    this.context = context;
    this.memory = memory;
    this.lanes = lanes;
    this.bounces = bounces;
  }

  @Override
  public String name() {
    return "%s, %d bytes at %Xh".formatted(context.device(), memory.size(), memory.address());
  }

  @Override
  public long size() {
    return memory.size();
  }

  @Override
  public RemotePort openPort(RemotePort.Use use) {
    return new CudaRemotePort(memory, lanes.lane(use), bounces);
  }
}
