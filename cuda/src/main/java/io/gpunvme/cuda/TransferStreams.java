package io.gpunvme.cuda;

import io.gpunvme.base.CloseAll;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.function.LongConsumer;

/**
 * The streams of copies that are waited for: in a common one, each would wait for those of other
 * threads too. All are made at once, as making one may wait for kernels. Short copies have streams
 * of their own: a word that stops a kernel must not wait for long copies, nor for a fill that waits
 * for that kernel. Safe for all threads.
 */
final class TransferStreams {
  /** Up to this length, in bytes, a copy is short. */
  static final long SHORT = 64 << 10;

  private static final int STREAMS = 2;

  private final StreamCalls calls;
  private final List<Long> all = new ArrayList<>();
  private final Deque<Long> forShort = new ArrayDeque<>();
  private final Deque<Long> forLong = new ArrayDeque<>();

  /** Makes them, in the context that is current. */
  TransferStreams(StreamCalls calls, int priority) {
    this.calls = calls;
    try {
      for (int i = 0; i < STREAMS; i++) {
        forShort.add(make(priority));
        forLong.add(make(priority));
      }
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, all, calls::destroy);
      throw e;
    }
  }

  private long make(int priority) {
    long stream = calls.create(priority);
    all.add(stream);
    return stream;
  }

  /** Has a copy of so many bytes enqueued in a stream, and waits for it. The context is current. */
  void copy(long bytes, LongConsumer copy) {
    run(bytes <= SHORT ? forShort : forLong, copy);
  }

  /** The same for what may run as a kernel. */
  void fill(LongConsumer fill) {
    run(forLong, fill);
  }

  private void run(Deque<Long> free, LongConsumer work) {
    long stream = take(free);
    try {
      work.accept(stream);
      calls.synchronize(stream);
    } finally {
      give(free, stream);
    }
  }

  private synchronized long take(Deque<Long> free) {
    boolean interrupted = false;
    while (free.isEmpty()) {
      try {
        wait();
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    return free.pop();
  }

  private synchronized void give(Deque<Long> free, long stream) {
    free.push(stream);
    notifyAll();
  }

  /** Nothing runs any more. */
  void close(CloseAll steps) {
    all.forEach(stream -> steps.run(() -> calls.destroy(stream)));
  }
}
