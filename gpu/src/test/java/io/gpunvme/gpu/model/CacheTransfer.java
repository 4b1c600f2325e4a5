package io.gpunvme.gpu.model;

import io.gpunvme.gpu.model.CacheState.Frame;
import io.gpunvme.gpu.model.CacheState.Outcome;
import io.gpunvme.gpu.model.CacheState.Stage;
import io.gpunvme.gpu.model.CacheState.Why;

/**
 * How a page gets into a frame and out of it: {@code move}, {@code publish}, {@code cleaned},
 * {@code take}, {@code is_over} and the end of {@code prefetch} of {@code cache.cuh}.
 */
final class CacheTransfer {
  private final CacheConfig config;
  private final CacheState q;
  private final CacheCalls calls;

  CacheTransfer(CacheConfig config, CacheState q, CacheCalls calls) {
    this.config = config;
    this.q = q;
    this.calls = calls;
  }

  void steps(long[] from, int t, Steps steps) {
    switch (q.pc(from, t)) {
      case AWAIT -> await(from, t, steps);
      case SUBMIT -> {
        if (mayGoOn(from, t)) {
          one(t, steps);
        }
        if (freeSlot(from) < 0) {
          serve(from, t, steps);
        }
      }
      default -> one(t, steps);
    }
  }

  private void one(int t, Steps steps) {
    long[] s = steps.begin(t);
    step(s, t, steps);
    steps.end();
  }

  private void step(long[] s, int t, Steps steps) {
    switch (q.pc(s, t)) {
      case COUNT -> count(s, t, steps);
      case UNCOUNT -> uncount(s, t, steps);
      case SUBMIT -> submit(s, t, steps);
      case PARK -> {
        steps.did(CacheAction.PARK);
        q.parked[q.way[t].get(s)].set(s, q.command[t].get(s));
        calls.end(s, t);
      }
      case PUBLISH -> publish(s, t, steps);
      case REDIRTY -> {
        steps.did(CacheAction.REDIRTY);
        q.dirty[q.way[t].get(s)].set(s, 1);
        q.used[q.way[t].get(s)].set(s, config.usedBit ? 1 : 0);
        q.go(s, t, CachePc.WRITE_OVER);
      }
      case UNDIRTY -> {
        steps.did(CacheAction.UNDIRTY);
        q.dirty[q.way[t].get(s)].set(s, 0);
        q.go(s, t, CachePc.WRITE_OVER);
      }
      case WRITE_OVER -> writeOver(s, t, steps);
      case TAKE -> take(s, t, steps);
      case TAKE_STORE -> {
        steps.did(CacheAction.TAKE);
        q.parked[q.way[t].get(s)].set(s, 0);
        q.go(s, t, CachePc.AWAIT);
      }
      default -> throw new AssertionError(q.pc(s, t));
    }
  }

  void move(long[] s, int t, Why why) {
    q.why[t].set(s, why.ordinal());
    q.go(s, t, CachePc.SUBMIT);
  }

  /** Before a frame is chosen, so that a prefetch that may not go on costs nobody a frame. */
  void beginPrefetch(long[] s, int t, boolean there) {
    if (there) {
      calls.end(s, t);
    } else {
      q.why[t].set(s, Why.PREFETCH.ordinal());
      q.go(s, t, CachePc.COUNT);
    }
  }

  private void count(long[] s, int t, Steps steps) {
    boolean many = q.parkedCount.get(s) >= config.mostParked;
    steps.did(many ? CacheAction.TOO_MANY : CacheAction.COUNT);
    q.parkedCount.add(s, 1);
    boolean stops = many && !config.has(CacheFlaw.PREFETCH_TAKES_ALL_SLOTS);
    q.go(s, t, stops ? CachePc.UNCOUNT : CachePc.FIND);
  }

  /** A prefetch parks nothing after all, or somebody has waited for what it had parked. */
  private void uncount(long[] s, int t, Steps steps) {
    steps.did(CacheAction.UNCOUNT);
    q.parkedCount.add(s, -1);
    if (q.why(s, t) == Why.PREFETCH && q.outcome(s, t) == Outcome.SUCCESS) {
      calls.end(s, t);
    } else {
      published(s, t, q.outcome(s, t));
    }
  }

  /** There is a slot, or there is none and will be none. A prefetch waits for none. */
  private boolean mayGoOn(long[] s, int t) {
    return freeSlot(s) >= 0 || q.why(s, t) == Why.PREFETCH || allSlotsAre(s, true);
  }

  private int freeSlot(long[] s) {
    for (int c = 0; c < config.slots; c++) {
      if (q.stage(s, c) == Stage.NONE) {
        return c;
      }
    }
    return -1;
  }

  boolean allSlotsAre(long[] s, boolean givenUp) {
    for (int c = 0; c < config.slots; c++) {
      Stage stage = q.stage(s, c);
      if (givenUp ? !stage.givenUp() : stage != Stage.LATE_FORGOTTEN) {
        return false;
      }
    }
    return true;
  }

  private void submit(long[] s, int t, Steps steps) {
    int c = freeSlot(s);
    Why why = q.why(s, t);
    boolean writes = why == Why.EVICT || why == Why.CLEAN;
    if (c < 0) {
      steps.did(CacheAction.NO_SLOT);
      moved(s, t, Outcome.BUSY);
      return;
    }
    steps.did(CacheAction.SUBMIT);
    q.put(s, c, Stage.SENT);
    q.write[c].set(s, writes ? 1 : 0);
    q.frame[c].set(s, q.way[t].get(s));
    q.page[c].set(s, writes ? q.otherPage[t].get(s) : calls.page(s, t));
    q.otherPage[t].set(s, 0);
    q.command[t].set(s, c + 1);
    if (why == Why.FILL && config.has(CacheFlaw.PUBLISH_BEFORE_DATA)) {
      q.go(s, t, CachePc.PUBLISH);
    } else {
      q.go(s, t, why == Why.PREFETCH ? CachePc.PARK : CachePc.AWAIT);
    }
    if (config.has(CacheFlaw.TIER_COPIES_LATE) && q.last[t].get(s) != 0) {
      q.go(s, t, CachePc.TIER_COPY_OUT);
    }
  }

  private void await(long[] from, int t, Steps steps) {
    int c = q.command[t].get(from) - 1;
    switch (q.stage(from, c)) {
      case SUCCESS -> awaited(t, c, Stage.NONE, Outcome.SUCCESS, CacheAction.SUCCESS, steps);
      case FAILURE -> awaited(t, c, Stage.NONE, Outcome.FAILURE, CacheAction.FAILURE, steps);
      case SENT, MOVED -> {
        serve(from, t, steps);
        if (q.late.get(from) > 0) {
          boolean sent = q.stage(from, c) == Stage.SENT;
          Stage to = sent ? Stage.LATE_SENT : Stage.LATE_MOVED;
          awaited(t, c, to, Outcome.LOST, CacheAction.DEADLINE, steps);
        }
      }
      case FORGOTTEN -> {
        serve(from, t, steps);
        awaited(t, c, Stage.LATE_FORGOTTEN, Outcome.LOST, CacheAction.DEADLINE, steps);
      }
      default -> {
        steps.begin(t);
        throw new Violation("two wait for one command");
      }
    }
  }

  private void awaited(int t, int c, Stage to, Outcome outcome, CacheAction what, Steps steps) {
    long[] s = steps.begin(t);
    steps.did(what);
    if (to == Stage.LATE_SENT || to == Stage.LATE_MOVED) {
      q.late.add(s, -1);
    }
    q.put(s, c, to);
    q.command[t].set(s, 0);
    moved(s, t, outcome);
    steps.end();
  }

  /** What became of the command. */
  private void moved(long[] s, int t, Outcome outcome) {
    Why why = q.why(s, t);
    q.otherPage[t].set(s, 0);
    q.put(s, t, outcome);
    if (why == Why.EVICT || why == Why.CLEAN) {
      boolean failed = outcome != Outcome.SUCCESS;
      boolean after = config.has(CacheFlaw.DIRTY_CLEARED_AFTER);
      if (failed && !config.has(CacheFlaw.FAILED_WRITE_IS_CLEAN)) {
        q.go(s, t, CachePc.REDIRTY);
      } else {
        q.go(s, t, after ? CachePc.UNDIRTY : CachePc.WRITE_OVER);
      }
    } else if (why == Why.FILL && config.has(CacheFlaw.PUBLISH_BEFORE_DATA)) {
      calls.access(s, t);
    } else if (why == Why.FILL) {
      published(s, t, outcome);
    } else {
      q.go(s, t, CachePc.UNCOUNT);
    }
  }

  /** How it ended is written beside the frame before its word says so. */
  private void published(long[] s, int t, Outcome outcome) {
    if (outcome != Outcome.SUCCESS) {
      q.ended[q.way[t].get(s)].set(s, outcome.ordinal());
    }
    boolean leaves = calls.prefetches(s, t) && config.has(CacheFlaw.PREFETCH_LEAVES_FRAME);
    if (leaves && q.why(s, t) == Why.PREFETCH) {
      calls.end(s, t);
    } else {
      q.go(s, t, CachePc.PUBLISH);
    }
  }

  private void publish(long[] s, int t, Steps steps) {
    int f = q.way[t].get(s);
    if (!q.is(s, f, Frame.FILLING)) {
      throw new Violation("a frame is published that is not FILLING");
    }
    Outcome outcome = q.outcome(s, t);
    Why why = q.why(s, t);
    boolean failed = outcome != Outcome.SUCCESS;
    boolean lost = outcome == Outcome.LOST;
    steps.did(
        !failed
            ? CacheAction.PUBLISH
            : lost ? CacheAction.PUBLISH_LOST : CacheAction.PUBLISH_FAILED);
    boolean keeps =
        config.has(lost ? CacheFlaw.LOST_KEEPS_TAG : CacheFlaw.FAILED_KEEPS_TAG) || !failed;
    lost = lost && !config.has(CacheFlaw.LOST_REUSED);
    q.put(s, f, !failed ? Frame.VALID : lost ? Frame.LOST : Frame.FAILED);
    if (!keeps) {
      q.tag[f].set(s, 0);
    }
    if (config.has(CacheFlaw.PUBLISH_BY_STORE)) {
      q.references[f].set(s, why == Why.FILL ? 1 : 0);
    }
    switch (why) {
      case FILL -> {
        if (q.command[t].get(s) != 0) {
          q.go(s, t, CachePc.AWAIT);
        } else if (failed) {
          q.go(s, t, CachePc.DROP_FAILED);
        } else {
          calls.access(s, t);
        }
      }
      case JOIN -> {
        q.why[t].set(s, 0);
        q.outcome[t].set(s, 0);
        q.go(s, t, CachePc.JOIN);
      }
      case TAKE -> calls.again(s, t);
      default -> calls.end(s, t);
    }
  }

  /** The mark goes before the write begins: a store that comes later sets it again. */
  void beginWrite(long[] s, int f) {
    q.put(s, f, Frame.CLEANING);
    if (!config.has(CacheFlaw.DIRTY_CLEARED_AFTER)) {
      q.dirty[f].set(s, 0);
    }
    if (!config.has(CacheFlaw.EVICT_CLEANING)) {
      q.addReferences(s, f, 1);
    }
  }

  private void writeOver(long[] s, int t, Steps steps) {
    int f = q.way[t].get(s);
    if (!q.is(s, f, Frame.CLEANING)) {
      throw new Violation("a frame that was written is not CLEANING");
    }
    Outcome outcome = q.outcome(s, t);
    boolean stuck = outcome == Outcome.LOST && !config.has(CacheFlaw.STUCK_REUSED);
    steps.did(stuck ? CacheAction.STUCK : CacheAction.WRITE_OVER);
    q.put(s, f, stuck ? Frame.STUCK : Frame.VALID);
    if (!config.has(CacheFlaw.EVICT_CLEANING)) {
      q.addReferences(s, f, -1);
    }
    boolean failed = outcome != Outcome.SUCCESS;
    q.outcome[t].set(s, 0);
    if (q.why(s, t) == Why.CLEAN) {
      q.why[t].set(s, 0);
      calls.cleaned(s, t, failed, steps);
    } else if (outcome == Outcome.BUSY) {
      q.forget(s, t);
      q.go(s, t, CachePc.BUSY);
    } else if (outcome == Outcome.LOST) {
      calls.end(s, t);
    } else {
      // Where the SSD could not write this one there are other frames.
      calls.again(s, t);
    }
  }

  /** Only one of those that see a parked command takes it. */
  void take(long[] s, int t, Steps steps) {
    int f = q.way[t].get(s);
    int parked = q.parked[f].get(s);
    if (parked == 0) {
      steps.did(CacheAction.TAKEN);
      calls.again(s, t);
      return;
    }
    q.command[t].set(s, parked);
    if (config.has(CacheFlaw.TAKE_NOT_ATOMIC)) {
      q.go(s, t, CachePc.TAKE_STORE);
      return;
    }
    steps.did(CacheAction.TAKE);
    q.parked[f].set(s, 0);
    q.go(s, t, CachePc.AWAIT);
  }

  /** One who waits at the queue serves it. */
  private void serve(long[] from, int t, Steps steps) {
    if (q.hasPosted(from)) {
      long[] s = steps.begin(t);
      steps.did(CacheAction.SERVE);
      q.serve(s);
      steps.end();
    }
  }

  /** Serves first, if need be: nobody else may be waiting at the queue. */
  boolean isOver(long[] s, int f, Steps steps) {
    if (!q.isOver(s, f) && !config.has(CacheFlaw.LATE_NOT_SERVED)) {
      q.serve(s);
    }
    boolean over = q.isOver(s, f);
    steps.did(over ? CacheAction.OVER : CacheAction.NOT_OVER);
    return over;
  }

  /** As if the command had failed. */
  void regain(long[] s, int f, Steps steps) {
    steps.did(CacheAction.REGAIN);
    boolean stuck = q.is(s, f, Frame.STUCK);
    if (!stuck && !q.is(s, f, Frame.LOST)) {
      throw new Violation("a frame is taken back twice");
    }
    q.put(s, f, stuck ? Frame.VALID : Frame.FAILED);
    q.forgetWasOver(s, f);
    if (stuck && config.has(CacheFlaw.REGAINED_CLEAN)) {
      q.dirty[f].set(s, 0);
    }
  }
}
