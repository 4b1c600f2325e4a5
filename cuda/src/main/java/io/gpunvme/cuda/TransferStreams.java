package io.gpunvme.cuda;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.function.LongConsumer;

/**
 * The streams of copies that are waited for, as many as are under way at a time: in a common one,
 * each would wait for those of other threads too. Safe for all threads.
 */
final class TransferStreams {
  private final StreamCalls calls;
  private final int priority;
  private final Deque<Long> free = new ArrayDeque<>();

  /** Makes the first one, in the context that is current. */
  TransferStreams(StreamCalls calls, int priority) {
    this.calls = calls;
    this.priority = priority;
    free.push(calls.create(priority));
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

  private long take() {
    synchronized (this) {
      // The one used last, so that there are no more than are needed.
      Long there = free.poll();
      if (there != null) {
        return there;
      }
    }
    return calls.create(priority);
  }

  private synchronized void give(long stream) {
    free.push(stream);
  }

  /** Nothing runs any more. */
  synchronized void close(Failures failures) {
    free.forEach(stream -> failures.collect(() -> calls.destroy(stream)));
    free.clear();
  }
}
