package io.gpunvme.storage.path.pinned;

import io.gpunvme.base.CloseAll;
import io.gpunvme.cuda.CudaEvent;
import io.gpunvme.gpu.accel.DeviceBuffer;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * A chunk of pinned memory in which I/O and copies meet. One load uses it at a time.
 *
 * @param memory of the slot alone
 * @param segment of it, one chunk
 * @param copied stands for the last copies from or to it; null where copies are not in the
 *     background
 */
record PinnedSlot(DeviceBuffer memory, MemorySegment segment, @Nullable CudaEvent copied)
    implements AutoCloseable {
  /** Frees the memory; nothing is at work in it. */
  @Override
  public void close() {
    CloseAll.all(copied, memory);
  }
}
