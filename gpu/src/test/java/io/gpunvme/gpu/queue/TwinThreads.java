package io.gpunvme.gpu.queue;

import java.util.ArrayList;
import java.util.List;

/** A kernel of the CPU twin: a thread for each of its threads. */
final class TwinThreads {
  private TwinThreads() {}

  /** What one thread does. */
  interface Body {
    void run(int thread) throws Throwable;
  }

  static RunningKernel start(int count, Body body) {
    List<Thread> running = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      int index = i;
      running.add(
          Thread.ofPlatform()
              .daemon()
              .start(
                  () -> {
                    try {
                      body.run(index);
                    } catch (Throwable e) {
                      throw new AssertionError(e);
                    }
                  }));
    }
    return () -> running.stream().noneMatch(Thread::isAlive);
  }
}
