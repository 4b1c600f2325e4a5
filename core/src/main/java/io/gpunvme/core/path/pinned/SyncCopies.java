package io.gpunvme.core.path.pinned;

import io.gpunvme.core.accel.DeviceBuffer;

/** Copies done when they are asked for. */
final class SyncCopies implements Copies {
  @Override
  public void toBuffer(DeviceBuffer buffer, long bufferOffset, Slot slot, long at, long bytes) {
    buffer.copyFromHost(slot.segment().asSlice(at, bytes), bufferOffset);
  }

  @Override
  public void toSlot(Slot slot, long at, long bytes, DeviceBuffer buffer, long bufferOffset) {
    buffer.copyToHost(bufferOffset, slot.segment().asSlice(at, bytes));
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
