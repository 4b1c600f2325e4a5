package io.gpunvme.storage.path.pinned;

import io.gpunvme.gpu.accel.DeviceBuffer;

/** Copies done when they are asked for. */
final class SyncCopies implements Copies {
  @Override
  public void toBuffer(
      DeviceBuffer buffer, long bufferOffset, PinnedSlot slot, long at, long bytes) {
    buffer.copyFromHost(slot.segment().asSlice(at, bytes), bufferOffset);
  }

  @Override
  public void toSlot(PinnedSlot slot, long at, long bytes, DeviceBuffer buffer, long bufferOffset) {
    buffer.copyToHost(bufferOffset, slot.segment().asSlice(at, bytes));
  }

  @Override
  public void seal(PinnedSlot slot) {}

  @Override
  public boolean isDone(PinnedSlot slot) {
    return true;
  }

  @Override
  public void await(PinnedSlot slot) {}

  @Override
  public void abandon() {}
}
