package io.gpunvme.core.path.pinned;

import io.gpunvme.core.accel.DeviceBuffer;
import java.lang.foreign.MemorySegment;

/** Copies done when they are asked for. */
final class SyncCopies implements Copies {
  @Override
  public void toBuffer(DeviceBuffer buffer, long bufferOffset, MemorySegment from) {
    buffer.copyFromHost(from, bufferOffset);
  }

  @Override
  public void toSlot(MemorySegment to, DeviceBuffer buffer, long bufferOffset) {
    buffer.copyToHost(bufferOffset, to);
  }

  @Override
  public void seal(Slot slot) {}

  @Override
  public boolean isDone(Slot slot) {
    return true;
  }

  @Override
  public void await(Slot slot) {}

  @Override
  public void abandon() {}
}
