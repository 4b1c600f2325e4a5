package io.gpunvme.gpu.model;

import io.gpunvme.gpu.model.QueueState.Stage;

/**
 * Fetches SQEs in order, posts CQEs in any order and at any time; may forget commands and post CQEs
 * again.
 */
final class Controller {
  private final QueueConfig config;
  private final QueueState q;
  private final int me;

  Controller(QueueConfig config, QueueState q, int me) {
    this.config = config;
    this.q = q;
    this.me = me;
  }

  void steps(long[] from, Steps steps) {
    if (q.fetched.get(from) % config.sqSize != q.doorbell.get(from)) {
      fetch(steps);
    }
    for (int c = 0; c < config.commands; c++) {
      if (q.is(from, c, Stage.FETCHED)) {
        post(from, c, steps);
        if (q.drops.get(from) > 0) {
          drop(c, steps);
        }
      } else if (q.is(from, c, Stage.POSTED) && q.duplicates.get(from) > 0) {
        duplicate(from, c, steps);
      }
    }
  }

  private void fetch(Steps steps) {
    long[] s = steps.begin(me);
    steps.did(Action.FETCH);
    Field entry = q.sq[q.fetched.get(s) % config.sqSize];
    if (entry.get(s) == 0) {
      throw new Violation("the controller fetches an SQE that is not there");
    }
    q.put(s, entry.get(s) - 1, Stage.FETCHED);
    entry.set(s, 0);
    q.fetched.advance(s, 1);
    steps.end();
  }

  private void post(long[] from, int c, Steps steps) {
    if (isFull(from)) {
      // Completions that the controller invents may fill the queue; it waits with them then.
      if (config.duplicates == 0) {
        steps.begin(me);
        throw new Violation("the completion queue is full");
      }
      return;
    }
    long[] s = steps.begin(me);
    steps.did(Action.POST);
    q.put(s, c, Stage.POSTED);
    write(s, c);
    steps.end();
  }

  private void duplicate(long[] from, int c, Steps steps) {
    if (!isFull(from)) {
      long[] s = steps.begin(me);
      steps.did(Action.DUPLICATE);
      q.duplicates.add(s, -1);
      write(s, c);
      steps.end();
    }
  }

  private void drop(int c, Steps steps) {
    long[] s = steps.begin(me);
    steps.did(Action.DROP);
    q.drops.add(s, -1);
    q.put(s, c, Stage.GONE);
    steps.end();
  }

  /** One entry always stays empty (Base 2.0, 3.3.1.5). */
  private boolean isFull(long[] s) {
    return q.cqes(s, q.cqDoorbell, q.posted) == config.cqSize - 1;
  }

  private void write(long[] s, int c) {
    int position = q.posted.get(s);
    Field entry = q.cq[position % config.cqSize];
    if (entry.get(s) != 0) {
      throw new Violation("a CQE is overwritten before it was read");
    }
    entry.set(s, c + 1);
    q.cqPhase[position % config.cqSize].set(s, ~(position / config.cqSize) & 1);
    q.posted.advance(s, 1);
  }
}
