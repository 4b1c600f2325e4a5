package io.gpunvme.cuda;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.function.LongConsumer;

/**
 * The streams of copies that are waited for: in a common one, each would wait for those of other
 * threads too. All are made at once, as making one may wait for kernels. Safe for all threads.
 */
final class TransferStreams {
  private static final int STREAMS = 4;

  private final StreamCalls calls;
  private final Deque<Long> free = new ArrayDeque<>();

  /** Makes them, in the context that is current. */
  TransferStreams(StreamCalls calls, int priority) {
    this.calls = calls;
    try {
      for (int i = 0; i < STREAMS; i++) {
        free.add(calls.create(priority));
      }
    } catch (RuntimeException e) {
      Failures failures = new Failures();
      close(failures);
      throw failures.addTo(e);
    }
  }

  /** Has work enqueued in a stream, and waits for it. The context is current. */
  void run(LongConsumer work) {
    long stream = take();
    try {
      work.accept(stream);
      calls.synchronize(stream);
    } finally {
      give(stream);
    }
  }

  /** Waits for one if all are used: copies end by themselves. */
  private synchronized long take() {
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

  private synchronized void give(long stream) {
    free.push(stream);
    notify();
  }

  /** Nothing runs any more. */
  synchronized void close(Failures failures) {
    free.forEach(stream -> failures.collect(() -> calls.destroy(stream)));
    free.clear();
  }
}
