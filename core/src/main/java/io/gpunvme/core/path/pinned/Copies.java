package io.gpunvme.core.path.pinned;

import io.gpunvme.core.accel.DeviceBuffer;
import java.lang.foreign.MemorySegment;

/** Copies between slots and buffers of one thread. */
interface Copies {
  /** Copies from a slot into a buffer, now or at the next {@link #seal}. */
  void toBuffer(DeviceBuffer buffer, long bufferOffset, MemorySegment from);

  /** Copies from a buffer into a slot, now or at the next {@link #seal}. */
  void toSlot(MemorySegment to, DeviceBuffer buffer, long bufferOffset);

  /** Starts what has not started yet; the slot stands for all copies since the last call. */
  void seal(Slot slot);

  /** Whether the copies that a slot stands for are done. */
  boolean isDone(Slot slot);

  /** Waits for the copies that a slot stands for. */
  void await(Slot slot);

  /** After a failure: waits until nothing that was started is at work, and forgets the rest. */
  void abandon();
}
