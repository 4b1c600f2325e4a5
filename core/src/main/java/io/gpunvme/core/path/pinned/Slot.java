package io.gpunvme.core.path.pinned;

import io.gpunvme.core.accel.DeviceBuffer;
import io.gpunvme.cuda.CudaEvent;
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
record Slot(DeviceBuffer memory, MemorySegment segment, @Nullable CudaEvent copied) {}
