package io.gpunvme.gpu.model;

import io.gpunvme.gpu.model.CacheState.Stage;

/**
 * Carries commands out in any order, each at one moment, and completes them later; may fail or
 * forget them before or behind that moment.
 */
final class CacheController {
  private final CacheState q;
  private final int slots;
  private final int me;

  CacheController(CacheConfig config, CacheState q, int me) {
    this.q = q;
    this.slots = config.slots;
    this.me = me;
  }

  void steps(long[] from, Steps steps) {
    for (int c = 0; c < slots; c++) {
      switch (q.stage(from, c)) {
        case SENT -> {
          move(c, Stage.MOVED, steps);
          trouble(from, c, steps);
        }
        case MOVED -> {
          step(c, Stage.SUCCESS, CacheAction.COMPLETE, steps);
          trouble(from, c, steps);
        }
        case LATE_SENT -> {
          move(c, Stage.LATE_MOVED, steps);
          step(c, Stage.LATE_POSTED, CacheAction.LATE_FAIL, steps);
        }
        case LATE_MOVED -> step(c, Stage.LATE_POSTED, CacheAction.LATE, steps);
        default -> {}
      }
    }
  }

  private void trouble(long[] from, int c, Steps steps) {
    if (q.failures.get(from) > 0) {
      long[] s = steps.begin(me);
      steps.did(CacheAction.FAIL);
      q.failures.add(s, -1);
      q.put(s, c, Stage.FAILURE);
      steps.end();
    }
    if (q.drops.get(from) > 0) {
      long[] s = steps.begin(me);
      steps.did(CacheAction.FORGET);
      q.drops.add(s, -1);
      q.put(s, c, Stage.FORGOTTEN);
      steps.end();
    }
  }

  private void step(int c, Stage to, CacheAction action, Steps steps) {
    long[] s = steps.begin(me);
    steps.did(action);
    q.put(s, c, to);
    steps.end();
  }

  private void move(int c, Stage to, Steps steps) {
    long[] s = steps.begin(me);
    int f = q.frame[c].get(s);
    int page = q.page[c].get(s);
    if (q.write[c].get(s) == 0) {
      steps.did(CacheAction.READ);
      q.dataPage[f].set(s, page);
      q.data[f].set(s, q.ssd.get(s) & q.storesTo(page));
    } else {
      steps.did(CacheAction.WRITE);
      if (q.dataPage[f].get(s) != page) {
        throw new Violation("another page's data is written to page " + page);
      }
      q.ssd.set(s, q.ssd.get(s) & ~q.storesTo(page) | q.data[f].get(s));
    }
    q.put(s, c, to);
    steps.end();
  }
}
