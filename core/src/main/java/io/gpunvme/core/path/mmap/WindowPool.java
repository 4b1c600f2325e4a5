package io.gpunvme.core.path.mmap;

import io.gpunvme.core.accel.Accelerator;
import java.util.ArrayDeque;
import java.util.Deque;

/** As many {@link Windows} as there are transfers at a time; made when needed. */
final class WindowPool implements AutoCloseable {
  private final Accelerator accelerator;
  private final Deque<Windows> free = new ArrayDeque<>();

  WindowPool(Accelerator accelerator) {
    this.accelerator = accelerator;
  }

  Windows take() {
    synchronized (this) {
      Windows w = free.pollLast();
      if (w != null) {
        return w;
      }
    }
    return new Windows(accelerator);
  }

  /** Takes them back; what a failed transfer left under way is over then. */
  void giveBack(Windows w) {
    try {
      w.finish();
    } catch (RuntimeException e) {
      w.close();
      throw e;
    }
    synchronized (this) {
      free.addLast(w);
    }
  }

  @Override
  public synchronized void close() {
    free.forEach(Windows::close);
    free.clear();
  }
}
