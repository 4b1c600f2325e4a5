package io.gpunvme.storage.path.mmap;

import io.gpunvme.base.CloseAll;
import io.gpunvme.ffi.Mapping;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.BufferCopies;
import io.gpunvme.gpu.accel.DeviceBuffer;
import java.lang.foreign.MemorySegment;

/** Two pieces of pinned memory, used in turns: while one is filled, the other is copied. */
final class MappedWindows implements AutoCloseable {
  /** Bytes of each. */
  static final long BYTES = 4 << 20;

  private final Window[] both = new Window[2];
  private int next;

  MappedWindows(Accelerator accelerator) {
    both[0] = new Window(accelerator);
    try {
      both[1] = new Window(accelerator);
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, both[0]::close);
      throw e;
    }
  }

  /** Copies to the accelerator, where the data is after {@link #finish}. */
  void upload(MemorySegment from, long offset, DeviceBuffer to, long target, long bytes) {
    Window w = both[next];
    if (w.used + bytes > BYTES) {
      w.copies.start();
      next ^= 1;
      w = both[next];
      w.copies.await();
      w.used = 0;
    }
    Mapping.copy(from, offset, w.memory.segment(), w.used, bytes);
    w.copies.add(w.memory, w.used, to, target, bytes);
    w.used += bytes;
  }

  /** Copies from the accelerator; the data is there when this returns. */
  void download(DeviceBuffer from, long source, MemorySegment to, long offset, long bytes) {
    Window w = both[next];
    w.copies.add(from, source, w.memory, 0, bytes);
    w.copies.await();
    Mapping.copy(w.memory.segment(), 0, to, offset, bytes);
  }

  /** Waits for all copies. */
  void finish() {
    for (Window w : both) {
      w.copies.await();
      w.used = 0;
    }
  }

  @Override
  public void close() {
    CloseAll.all(both);
  }

  private static final class Window implements AutoCloseable {
    private final DeviceBuffer memory;
    private final BufferCopies copies;
    private long used;

    Window(Accelerator accelerator) {
      memory = accelerator.allocatePinned(BYTES);
      try {
        copies = accelerator.copies();
      } catch (RuntimeException | Error e) {
        CloseAll.after(e, memory::close);
        throw e;
      }
    }

    @Override
    public void close() {
      CloseAll.all(copies, memory);
    }
  }
}
