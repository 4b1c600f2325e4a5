package io.gpunvme.storage.path.mmap;

import io.gpunvme.base.CloseAll;
import io.gpunvme.gpu.accel.Accelerator;
import java.util.ArrayDeque;
import java.util.Deque;

/** As many {@link MappedWindows} as there are transfers at a time; made when needed. */
final class WindowPool implements AutoCloseable {
  private final Accelerator accelerator;
  private final Deque<MappedWindows> free = new ArrayDeque<>();

  WindowPool(Accelerator accelerator) {
    this.accelerator = accelerator;
  }

  MappedWindows take() {
    synchronized (this) {
      MappedWindows w = free.pollLast();
      if (w != null) {
        return w;
      }
    }
    return new MappedWindows(accelerator);
  }

  /** Takes them back; what a failed transfer left under way is over then. */
  void giveBack(MappedWindows w) {
    try {
      w.finish();
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, w::close);
      throw e;
    }
    synchronized (this) {
      free.addLast(w);
    }
  }

  @Override
  public synchronized void close() {
    CloseAll.each(free, MappedWindows::close);
    free.clear();
  }
}
