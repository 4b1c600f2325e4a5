package io.gpunvme.gpu.model;

import io.gpunvme.gpu.model.CacheState.Frame;
import io.gpunvme.gpu.model.CacheState.Why;

/** How a caller has all that is dirty written: {@code clean} of {@code cache.cuh}. */
final class CacheCleaning {
  private final CacheConfig config;
  private final CacheState q;
  private final CacheCalls calls;
  private final CacheTransfer transfer;

  CacheCleaning(CacheConfig config, CacheState q, CacheCalls calls, CacheTransfer transfer) {
    this.config = config;
    this.q = q;
    this.calls = calls;
    this.transfer = transfer;
  }

  boolean mayGoOn(long[] s, int t) {
    return q.pc(s, t) != CachePc.CLEAN_LOAD
        || !q.is(s, q.way[t].get(s), Frame.CLEANING)
        || config.has(CacheFlaw.CLEAN_SKIPS_CLEANING);
  }

  void step(long[] s, int t, Steps steps) {
    switch (q.pc(s, t)) {
      case CLEAN_LOAD -> load(s, t, steps);
      case CLEAN_CAS -> exchange(s, t, steps);
      case CLEAN_LOCK -> lock(s, t, steps);
      case CLEAN_AGAIN -> again(s, t, steps);
      case CLEAN_UNLOCK -> {
        steps.did(CacheAction.UNLOCK);
        q.lock.set(s, 0);
        unlocked(s, t, steps);
      }
      default -> throw new AssertionError(q.pc(s, t));
    }
  }

  private void load(long[] s, int t, Steps steps) {
    int f = q.way[t].get(s);
    Frame state = q.frame(s, f);
    q.wasOver[t].set(s, state == Frame.STUCK && !q.isUnderWay(s, f) ? 1 : 0);
    if (state == Frame.STUCK && config.has(CacheFlaw.CLEAN_LEAVES_STUCK)) {
      stuck(s, t, steps);
      next(s, t, steps);
    } else if (state == Frame.STUCK) {
      steps.did(CacheAction.LOAD);
      q.go(s, t, CachePc.CLEAN_LOCK);
    } else if (state == Frame.VALID && q.dirty[f].get(s) == 1) {
      steps.did(CacheAction.LOAD);
      q.seen[t].set(s, q.word(s, f));
      q.go(s, t, CachePc.CLEAN_CAS);
    } else {
      steps.did(CacheAction.CLEAN_NEXT);
      next(s, t, steps);
    }
  }

  private void exchange(long[] s, int t, Steps steps) {
    int f = q.way[t].get(s);
    boolean same = q.word(s, f) == q.seen[t].get(s);
    steps.did(same ? CacheAction.CLEAN : CacheAction.CHANGED);
    if (same) {
      transfer.beginWrite(s, f);
      q.otherPage[t].set(s, q.tag[f].get(s));
      transfer.move(s, t, Why.CLEAN);
    } else {
      q.go(s, t, CachePc.CLEAN_LOAD);
    }
    q.seen[t].set(s, 0);
  }

  /** Once a frame: it may be stored to again for ever. */
  void cleaned(long[] s, int t, boolean failed, Steps steps) {
    q.failed[t].set(s, failed ? 1 : q.failed[t].get(s));
    q.go(s, t, CachePc.CLEAN_LOAD);
    next(s, t, steps);
  }

  /** Only one who has the lock: else the frame could be written again, and that be late. */
  private void lock(long[] s, int t, Steps steps) {
    boolean unlocked = config.has(CacheFlaw.CLEAN_REGAINS_UNLOCKED);
    if (q.lock.get(s) != 0 && !unlocked) {
      steps.did(CacheAction.LOCKED);
      q.go(s, t, CachePc.CLEAN_LOAD);
      return;
    }
    steps.did(CacheAction.LOCK);
    if (!unlocked) {
      q.lock.set(s, 1);
    }
    q.go(s, t, CachePc.REGAIN_LOAD);
  }

  /** What is over was taken back. */
  private void again(long[] s, int t, Steps steps) {
    boolean stuck = q.is(s, q.way[t].get(s), Frame.STUCK);
    if (stuck) {
      stuck(s, t, steps);
      // To go to the next frame when the lock is left.
      q.turn[t].set(s, 1);
    } else {
      steps.did(CacheAction.CLEAN_UNSTUCK);
    }
    unlock(s, t, steps);
  }

  private void stuck(long[] s, int t, Steps steps) {
    steps.did(CacheAction.CLEAN_STUCK);
    if (q.wasOver[t].get(s) == 1) {
      throw new Violation("a clean fails for a late write that was over");
    }
    q.failed[t].set(s, config.has(CacheFlaw.CLEAN_SKIPS_STUCK) ? q.failed[t].get(s) : 1);
  }

  private void unlock(long[] s, int t, Steps steps) {
    if (config.has(CacheFlaw.CLEAN_REGAINS_UNLOCKED)) {
      unlocked(s, t, steps);
    } else {
      q.go(s, t, CachePc.CLEAN_UNLOCK);
    }
  }

  private void unlocked(long[] s, int t, Steps steps) {
    boolean next = q.turn[t].get(s) == 1;
    q.turn[t].set(s, 0);
    q.go(s, t, CachePc.CLEAN_LOAD);
    if (next) {
      next(s, t, steps);
    }
  }

  private void next(long[] s, int t, Steps steps) {
    q.wasOver[t].set(s, 0);
    if (q.way[t].get(s) + 1 < CacheConfig.WAYS) {
      q.way[t].add(s, 1);
      return;
    }
    if (q.failed[t].get(s) == 0 && (q.before[t].get(s) & ~q.ssd.get(s)) != 0) {
      throw new Violation("a clean has succeeded, and a store from before it is not on the SSD");
    }
    steps.did(CacheAction.CLEANED);
    calls.end(s, t);
  }
}
