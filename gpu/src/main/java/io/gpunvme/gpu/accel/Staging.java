package io.gpunvme.gpu.accel;

import io.gpunvme.cuda.CudaContext;
import io.gpunvme.cuda.DeviceMemory;
import io.gpunvme.cuda.PinnedMemory;
import java.lang.foreign.MemorySegment;

/**
 * Copies between GPU memory and any host memory. Java arrays, which CUDA cannot be given, go
 * through a piece of pinned memory. Safe for all threads.
 */
final class Staging {
  private static final long BYTES = 1 << 20;

  private final PinnedMemory pinned;

  /** The context frees the pinned memory at its close. */
  Staging(CudaContext context) {
    pinned = context.allocatePinned(BYTES);
  }

  void read(DeviceMemory memory, long offset, MemorySegment target) {
    if (target.byteSize() == 0) {
      return;
    }
    if (target.isNative()) {
      memory.copyTo(offset, target);
      return;
    }
    synchronized (this) {
      for (long done = 0; done < target.byteSize(); done += BYTES) {
        long part = Math.min(BYTES, target.byteSize() - done);
        memory.copyTo(offset + done, pinned.segment().asSlice(0, part));
        MemorySegment.copy(pinned.segment(), 0, target, done, part);
      }
    }
  }

  void write(MemorySegment source, DeviceMemory memory, long offset) {
    if (source.byteSize() == 0) {
      return;
    }
    if (source.isNative()) {
      memory.copyFrom(source, offset);
      return;
    }
    synchronized (this) {
      for (long done = 0; done < source.byteSize(); done += BYTES) {
        long part = Math.min(BYTES, source.byteSize() - done);
        MemorySegment.copy(source, done, pinned.segment(), 0, part);
        memory.copyFrom(pinned.segment().asSlice(0, part), offset + done);
      }
    }
  }
}
