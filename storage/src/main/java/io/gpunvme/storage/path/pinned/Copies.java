package io.gpunvme.storage.path.pinned;

import io.gpunvme.gpu.accel.DeviceBuffer;

/** Copies between slots and buffers of one thread. */
interface Copies {
  /** Copies from {@code at} in a slot into a buffer, now or at the next {@link #seal}. */
  void toBuffer(DeviceBuffer buffer, long bufferOffset, PinnedSlot slot, long at, long bytes);

  /** Copies from a buffer to {@code at} in a slot, now or at the next {@link #seal}. */
  void toSlot(PinnedSlot slot, long at, long bytes, DeviceBuffer buffer, long bufferOffset);

  /** Starts what has not started yet; the slot, which all of it is about, stands for it. */
  void seal(PinnedSlot slot);

  /** Whether the copies that a slot stands for are done. */
  boolean isDone(PinnedSlot slot);

  /** Waits for the copies that a slot stands for. */
  void await(PinnedSlot slot);

  /** After a failure: waits until nothing that was started is at work, and forgets the rest. */
  void abandon();
}
