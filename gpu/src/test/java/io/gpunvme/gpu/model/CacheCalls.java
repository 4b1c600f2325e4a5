package io.gpunvme.gpu.model;

import io.gpunvme.gpu.model.CacheState.Claim;
import io.gpunvme.gpu.model.CacheState.Frame;
import io.gpunvme.gpu.model.CacheState.Outcome;
import io.gpunvme.gpu.model.CacheState.Stage;
import io.gpunvme.gpu.model.CacheState.Why;
import java.util.List;

/**
 * A group of lanes that goes through its program, one operation on shared words a step: the calls
 * of {@code array.cuh}, and {@code lead} and {@code join} of {@code cache.cuh}. No step is joined
 * to another, but for loads and stores of what nobody else reads at that moment.
 */
final class CacheCalls {
  private final CacheConfig config;
  private final CacheState q;
  private final CacheChoice choice;
  private final CacheTransfer transfer;
  private final CacheCleaning cleaning;
  private final CacheTier tier;

  CacheCalls(CacheConfig config, CacheState q) {
    this.config = config;
    this.q = q;
    this.transfer = new CacheTransfer(config, q, this);
    this.choice = new CacheChoice(config, q, this, transfer);
    this.cleaning = new CacheCleaning(config, q, this, transfer);
    this.tier = new CacheTier(config, q, this);
  }

  void start(long[] s, int t) {
    begin(s, t, 0);
  }

  void steps(long[] from, int t, Steps steps) {
    CachePc pc = q.pc(from, t);
    if (pc.transfers()) {
      transfer.steps(from, t, steps);
    } else if (pc.tiers()) {
      tier.steps(from, t, steps);
    } else if (pc == CachePc.JOIN) {
      join(from, t, steps);
    } else if (pc == CachePc.BUSY) {
      busy(from, t, steps);
    } else if (pc != CachePc.END && (!pc.cleans() || cleaning.mayGoOn(from, t))) {
      long[] s = steps.begin(t);
      step(s, t, steps);
      steps.end();
    }
  }

  private void step(long[] s, int t, Steps steps) {
    switch (q.pc(s, t)) {
      case DROP_FAILED -> dropFailed(s, t, steps);
      case LOAD_DATA, STORE_DATA, OVERWRITE_DATA -> data(s, t, steps);
      case MARK -> mark(s, t, steps);
      case DROP -> drop(s, t, steps);
      case WRITTEN -> written(s, t, steps);
      case OPEN -> {
        steps.did(CacheAction.OPEN);
        q.tiered[page(s, t)].set(s, 0);
        end(s, t);
      }
      default -> {
        if (q.pc(s, t).cleans()) {
          cleaning.step(s, t, steps);
        } else {
          choice.step(s, t, steps);
        }
      }
    }
  }

  // ---- the program

  CacheOp op(long[] s, int t) {
    return config.programs.get(t).get(q.op[t].get(s));
  }

  int page(long[] s, int t) {
    return op(s, t).page();
  }

  /** The page of what a caller keeps. */
  int pinnedPage(long[] s, int t) {
    List<CacheOp> before = config.programs.get(t).subList(0, q.op[t].get(s));
    for (CacheOp op : before.reversed()) {
      if (op.pins()) {
        return op.page();
      }
    }
    throw new AssertionError(before);
  }

  boolean prefetches(long[] s, int t) {
    return op(s, t).kind() == CacheOp.Kind.PREFETCH;
  }

  boolean cleans(long[] s, int t) {
    return op(s, t).kind() == CacheOp.Kind.CLEAN;
  }

  boolean overwrites(long[] s, int t) {
    return op(s, t).kind() == CacheOp.Kind.PIN_TO_OVERWRITE;
  }

  void end(long[] s, int t) {
    begin(s, t, q.op[t].get(s) + 1);
  }

  private void begin(long[] s, int t, int number) {
    q.forget(s, t);
    q.op[t].set(s, number);
    if (number == config.programs.get(t).size()) {
      q.go(s, t, CachePc.END);
      return;
    }
    switch (op(s, t).kind()) {
      case UNPIN, UNPIN_OVERWRITTEN -> unpin(s, t);
      case PREFETCH -> q.go(s, t, CachePc.FIND);
      case OPEN -> q.go(s, t, CachePc.OPEN);
      case CLEAN -> {
        q.before[t].set(s, q.over.get(s));
        q.go(s, t, CachePc.CLEAN_LOAD);
      }
      default -> q.go(s, t, CachePc.TOUCH_FIND);
    }
  }

  private void unpin(long[] s, int t) {
    if (q.pinned[t].get(s) == 0) {
      end(s, t);
      return;
    }
    q.way[t].set(s, q.pinned[t].get(s) - 1);
    boolean fresh = q.fresh[t].get(s) == 1;
    q.pinned[t].set(s, 0);
    q.fresh[t].set(s, 0);
    if (fresh) {
      q.go(s, t, CachePc.OVERWRITE_DATA);
    } else {
      withReference(s, t);
    }
  }

  /** There is a reference to the page, and its data. */
  void access(long[] s, int t) {
    q.outcome[t].set(s, 0);
    q.why[t].set(s, 0);
    if (op(s, t).pins()) {
      q.pinned[t].set(s, q.way[t].get(s) + 1);
      end(s, t);
    } else {
      withReference(s, t);
    }
  }

  private void withReference(long[] s, int t) {
    boolean stores = op(s, t).stores();
    boolean first = config.has(CacheFlaw.MARK_BEFORE_STORE);
    q.go(s, t, !stores ? CachePc.LOAD_DATA : first ? CachePc.MARK : CachePc.STORE_DATA);
  }

  /** What was chosen under the lock. */
  void claimed(long[] s, int t, Claim claim, int page) {
    switch (claim) {
      case AGAIN, NOTHING -> {
        // A prefetch tries once.
        if (prefetches(s, t)) {
          q.go(s, t, CachePc.UNCOUNT);
        } else {
          q.go(s, t, claim == Claim.AGAIN ? CachePc.FIND : CachePc.BUSY);
        }
      }
      case FILL -> {
        if (config.tier) {
          tier.begin(s, t);
        } else {
          filled(s, t);
        }
      }
      case CLEAN -> {
        q.otherPage[t].set(s, page);
        transfer.move(s, t, Why.EVICT);
      }
      case TAKE -> {
        q.why[t].set(s, Why.TAKE.ordinal());
        q.go(s, t, CachePc.TAKE);
      }
    }
  }

  /** A frame is the page's, and has not got its data elsewhere. */
  void filled(long[] s, int t) {
    if (overwrites(s, t)) {
      q.fresh[t].set(s, 1);
      access(s, t);
    } else {
      transfer.move(s, t, prefetches(s, t) ? Why.PREFETCH : Why.FILL);
    }
  }

  /** A frame was written by one who cleans. */
  void cleaned(long[] s, int t, boolean failed, Steps steps) {
    cleaning.cleaned(s, t, failed, steps);
  }

  // ---- the data

  private void data(long[] s, int t, Steps steps) {
    int f = q.way[t].get(s);
    int page = page(s, t);
    CachePc pc = q.pc(s, t);
    boolean fresh = pc == CachePc.OVERWRITE_DATA;
    if (!fresh) {
      check(s, f, page);
    }
    if (pc == CachePc.LOAD_DATA) {
      steps.did(CacheAction.LOAD_DATA);
      q.go(s, t, CachePc.DROP);
      return;
    }
    steps.did(fresh ? CacheAction.OVERWRITE : CacheAction.STORE_DATA);
    int others = fresh ? q.overOf(s, page) : q.data[f].get(s);
    q.dataPage[f].set(s, page);
    q.data[f].set(s, others | 1 << op(s, t).store());
    boolean marked = config.has(CacheFlaw.MARK_BEFORE_STORE);
    boolean late = config.has(CacheFlaw.MARK_AFTER_DROP);
    q.go(s, t, fresh ? CachePc.WRITTEN : marked || late ? CachePc.DROP : CachePc.MARK);
  }

  private void check(long[] s, int f, int page) {
    if (q.dataPage[f].get(s) != page) {
      throw new Violation("a caller gets the data of page " + q.dataPage[f].get(s));
    }
    if ((q.overOf(s, page) & ~q.data[f].get(s)) != 0) {
      throw new Violation("a caller gets data from before a store that was over");
    }
  }

  private void mark(long[] s, int t, Steps steps) {
    steps.did(CacheAction.MARK);
    int f = q.way[t].get(s);
    q.dirty[f].set(s, 1);
    if (config.usedBit) {
      q.used[f].set(s, 1);
    }
    if (config.has(CacheFlaw.MARK_AFTER_DROP)) {
      stored(s, t);
      end(s, t);
    } else {
      boolean first = config.has(CacheFlaw.MARK_BEFORE_STORE);
      q.go(s, t, first ? CachePc.STORE_DATA : CachePc.DROP);
    }
  }

  private void drop(long[] s, int t, Steps steps) {
    steps.did(CacheAction.DROP);
    q.addReferences(s, q.way[t].get(s), -1);
    if (op(s, t).stores() && config.has(CacheFlaw.MARK_AFTER_DROP)) {
      q.go(s, t, CachePc.MARK);
      return;
    }
    stored(s, t);
    end(s, t);
  }

  private void stored(long[] s, int t) {
    if (op(s, t).stores()) {
      q.over.set(s, q.over.get(s) | 1 << op(s, t).store());
    }
  }

  private void written(long[] s, int t, Steps steps) {
    steps.did(CacheAction.WRITTEN);
    int f = q.way[t].get(s);
    if (!q.is(s, f, Frame.FILLING) && !config.has(CacheFlaw.OVERWRITE_VALID_AT_ONCE)) {
      throw new Violation("a frame that is overwritten is not FILLING");
    }
    q.put(s, f, Frame.VALID);
    q.dirty[f].set(s, config.has(CacheFlaw.WRITTEN_NOT_DIRTY) ? 0 : 1);
    q.addReferences(s, f, -1);
    stored(s, t);
    end(s, t);
  }

  /** To the choice of a frame. */
  void again(long[] s, int t) {
    q.forget(s, t);
    q.go(s, t, CachePc.FIND);
  }

  // ---- waiting for others

  private void join(long[] from, int t, Steps steps) {
    int f = q.way[t].get(from);
    if (q.is(from, f, Frame.FILLING)) {
      if (q.parked[f].get(from) != 0 && !config.has(CacheFlaw.WAITER_DOES_NOT_TAKE)) {
        long[] s = steps.begin(t);
        q.why[t].set(s, Why.JOIN.ordinal());
        transfer.take(s, t, steps);
        steps.end();
      } else if (isKept(from, f) && !config.has(CacheFlaw.JOIN_WITHOUT_END)) {
        long[] s = steps.begin(t);
        steps.did(CacheAction.GIVE_UP);
        q.put(s, t, Outcome.BUSY);
        q.go(s, t, CachePc.DROP_FAILED);
        steps.end();
      }
      return;
    }
    long[] s = steps.begin(t);
    boolean there = q.tag[f].get(s) == page(s, t);
    steps.did(there ? CacheAction.JOINED : CacheAction.JOINED_FAILED);
    if (there) {
      access(s, t);
    } else {
      q.outcome[t].set(s, q.ended[f].get(s));
      q.go(s, t, CachePc.DROP_FAILED);
    }
    steps.end();
  }

  /** Whether somebody keeps a frame over another call. */
  private boolean isKept(long[] s, int f) {
    for (Field pinned : q.pinned) {
      if (pinned.get(s) == f + 1) {
        return true;
      }
    }
    return false;
  }

  private void dropFailed(long[] s, int t, Steps steps) {
    steps.did(CacheAction.DROP);
    if (!config.has(CacheFlaw.FAILED_KEEPS_REFERENCE)) {
      q.addReferences(s, q.way[t].get(s), -1);
    }
    if (q.outcome(s, t) == Outcome.BUSY) {
      q.forget(s, t);
      q.go(s, t, CachePc.BUSY);
    } else {
      end(s, t);
    }
  }

  /** Tries again, or gives up if that may be in vain: the wait for a frame has a bound. */
  private void busy(long[] from, int t, Steps steps) {
    long[] s = steps.begin(t);
    steps.did(CacheAction.AGAIN);
    again(s, t);
    steps.end();
    if (isInVain(from, t) && !config.has(CacheFlaw.WAIT_WITHOUT_END)) {
      s = steps.begin(t);
      steps.did(CacheAction.GIVE_UP);
      end(s, t);
      steps.end();
    }
  }

  /**
   * Every frame is kept over a call or is gone for good, or every slot is; or the page is being
   * overwritten over a call.
   */
  private boolean isInVain(long[] s, int t) {
    boolean all = true;
    for (int f = 0; f < CacheConfig.WAYS; f++) {
      Frame state = q.frame(s, f);
      boolean gone = (state == Frame.LOST || state == Frame.STUCK) && isForgotten(s, f);
      all &= gone || isKept(s, f);
    }
    int own = q.find(s, page(s, t));
    boolean overwritten = own >= 0 && q.is(s, own, Frame.FILLING) && isKept(s, own);
    return all || overwritten || transfer.allSlotsAre(s, false);
  }

  private boolean isForgotten(long[] s, int f) {
    for (int c = 0; c < config.slots; c++) {
      if (q.stage(s, c) == Stage.LATE_FORGOTTEN && q.frame[c].get(s) == f) {
        return true;
      }
    }
    return false;
  }
}
