package io.gpunvme.storage.path.pinned;

import io.gpunvme.cuda.CudaEvent;
import io.gpunvme.gpu.accel.DeviceBuffer;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * A chunk of pinned memory in which I/O and copies meet. One load uses it at a time.
 *
 * @param memory closed by the pool
 * @param segment of it, one chunk
 * @param copied stands for the last copies from or to it; null where copies are not in the
 *     background
 */
record PinnedSlot(DeviceBuffer memory, MemorySegment segment, @Nullable CudaEvent copied) {}
