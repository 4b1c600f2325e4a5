package io.gpunvme.gpu.accel;

import io.gpunvme.cuda.DeviceMemory;
import io.gpunvme.nvme.memory.RemotePort;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/** CUDA copies between one piece of memory and the host, in a stream that others use too. */
final class CudaRemotePort implements RemotePort {
  private final DeviceMemory memory;
  private final CopyLane lane;
  private final List<MemorySegment> bounces = new ArrayList<>();
  private final CopyStock stock;
  private boolean closed;

  /**
   * @param lane left when this is closed
   */
  CudaRemotePort(DeviceMemory memory, CopyLane lane, CopyStock stock) {
    this.memory = memory;
    this.lane = lane;
    this.stock = stock;
  }

  @Override
  public void read(long offset, MemorySegment to) {
    lane.toHost(to, address(offset, to.byteSize()));
  }

  @Override
  public void write(long offset, MemorySegment from) {
    lane.toDevice(address(offset, from.byteSize()), from);
  }

  @Override
  public long startRead(long offset, MemorySegment to) {
    return lane.startToHost(to, address(offset, to.byteSize()));
  }

  @Override
  public long startWrite(long offset, MemorySegment from) {
    return lane.startToDevice(address(offset, from.byteSize()), from);
  }

  private long address(long offset, long bytes) {
    Objects.checkFromIndexSize(offset, bytes, memory.size());
    return memory.address() + offset;
  }

  @Override
  public boolean isDone(long ticket) {
    return lane.isDone(ticket);
  }

  @Override
  public MemorySegment bounce(long bytes) {
    MemorySegment bounce = stock.take(bytes);
    bounces.add(bounce);
    return bounce;
  }

  @Override
  public void close() {
    if (!closed) {
      closed = true;
      lane.leave();
      bounces.forEach(stock::give);
    }
  }
}
