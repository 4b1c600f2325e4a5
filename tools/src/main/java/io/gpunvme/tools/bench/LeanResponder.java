package io.gpunvme.tools.bench;

import io.gpunvme.base.Uninterrupted;
import java.util.ArrayList;
import java.util.List;

/**
 * A {@link Responder} on the CPU, for queues in host memory: some threads, each serving queues t, t
 * + N, t + 2N and so on of N threads. For one thread, whose calls start and end it.
 */
final class LeanResponder implements Responder {
  /** Looks without work before a thread lets others run; about a third of a millisecond. */
  private static final int PATIENCE = 1 << 16;

  private final List<List<LeanQueue>> shares = new ArrayList<>();
  private final List<Thread> threads = new ArrayList<>();
  private volatile boolean over;

  /**
   * Starts answering.
   *
   * @param queues with rings in host memory, on which nothing was submitted
   * @param threads &gt; 0; more than queues are not started
   * @param ordered whether commands of a queue come in the order of their numbers
   */
  LeanResponder(BenchQueues queues, int threads, boolean ordered) {
    int count = Math.min(threads, queues.shape().queues());
    for (int t = 0; t < count; t++) {
      List<LeanQueue> share = new ArrayList<>();
      for (int q = t; q < queues.shape().queues(); q += count) {
        share.add(new LeanQueue(queues, q, ordered));
      }
      shares.add(share);
    }
    for (List<LeanQueue> share : shares) {
      String name = "gpunvme-responder-" + this.threads.size();
      LeanQueue[] own = share.toArray(LeanQueue[]::new);
      this.threads.add(Thread.ofPlatform().name(name).daemon().start(() -> serve(own)));
    }
  }

  private void serve(LeanQueue[] queues) {
    int idle = 0;
    while (!over) {
      boolean any = false;
      for (LeanQueue queue : queues) {
        any |= queue.turn();
      }
      // No spin hint: it would double what a lone command waits for its answer.
      idle = any ? 0 : idle + 1;
      if (idle == PATIENCE) {
        idle = 0;
        Thread.yield();
      }
    }
  }

  @Override
  public ResponderCounts end() {
    over = true;
    threads.forEach(Uninterrupted::join);
    ResponderCounts all = ResponderCounts.NONE;
    for (List<LeanQueue> share : shares) {
      for (LeanQueue queue : share) {
        all = all.plus(queue.counts());
      }
    }
    return all;
  }
}
