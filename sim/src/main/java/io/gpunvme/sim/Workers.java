package io.gpunvme.sim;

import java.util.function.IntFunction;

/** A controller's workers, each of which serves some of its queues. */
final class Workers {
  private final Worker[] all;
  private final IdleWatch idleWatch;

  /**
   * @param count &gt; 0; they are made by {@link #make}
   */
  Workers(int count) {
    all = new Worker[count];
    idleWatch = new IdleWatch(all);
  }

  /** Makes them; once, before anything else here. */
  void make(IntFunction<Worker> maker) {
    for (int i = 0; i < all.length; i++) {
      all[i] = maker.apply(i);
    }
  }

  /** Their threads begin. */
  void start() {
    for (Worker w : all) {
      w.start();
    }
  }

  /** Their threads end; returns when they have. */
  void stop() {
    for (Worker w : all) {
      w.stop();
    }
  }

  /** With all locks held, after {@link #stop}. */
  void close() {
    for (Worker w : all) {
      w.close();
    }
  }

  /** Who sleeps, and who wakes them. */
  IdleWatch idleWatch() {
    return idleWatch;
  }

  /** The worker that serves a completion queue; the admin queue's is worker 0. */
  Worker ofQueue(int cqid) {
    return all[cqid % all.length];
  }

  /** Has each serve its queues once, on the caller's thread; how many commands moved on. */
  int poll() {
    int work = 0;
    for (Worker w : all) {
      work += w.pass();
    }
    return work;
  }

  /** Waits for the passes under way; afterwards none runs until {@link #unlock}. */
  void lock() {
    for (Worker w : all) {
      w.lock();
    }
  }

  void unlock() {
    for (int i = all.length - 1; i >= 0; i--) {
      all[i].unlock();
    }
  }

  /** Returns when every pass that was under way has ended, and every copy from and to a region. */
  void quiesce(DmaRegion region) {
    for (Worker w : all) {
      w.lock();
      try {
        w.mover().release(region);
      } finally {
        w.unlock();
      }
    }
  }
}
