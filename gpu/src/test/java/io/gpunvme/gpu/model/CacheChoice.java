package io.gpunvme.gpu.model;

import io.gpunvme.gpu.model.CacheState.Claim;
import io.gpunvme.gpu.model.CacheState.Frame;
import io.gpunvme.gpu.model.CacheState.Why;

/**
 * How a caller gets a reference to its page, or a frame for it: {@code touch}, {@code try_claim},
 * {@code evict} and {@code regain} of {@code cache.cuh}.
 */
final class CacheChoice {
  private static final int EMPTY = 0;
  private static final int COLD = 1;
  private static final int HOT = 3;

  /** Used and dirty, or on its way without anybody who waits for it. */
  private static final int LAST = 4;

  private static final int NONE = 5;

  private final CacheConfig config;
  private final CacheState q;
  private final CacheCalls calls;
  private final CacheTransfer transfer;

  CacheChoice(CacheConfig config, CacheState q, CacheCalls calls, CacheTransfer transfer) {
    this.config = config;
    this.q = q;
    this.calls = calls;
    this.transfer = transfer;
  }

  void step(long[] s, int t, Steps steps) {
    switch (q.pc(s, t)) {
      case TOUCH_FIND -> touchFind(s, t, steps);
      case TOUCH_ADD -> touchAdd(s, t, steps);
      case TOUCH_USED -> {
        steps.did(CacheAction.USED);
        q.used[q.way[t].get(s)].set(s, 1);
        calls.access(s, t);
      }
      case FIND -> find(s, t, steps);
      case ADD -> add(s, t, steps);
      case TOUCH_BACK, BACK -> {
        steps.did(CacheAction.GIVE_BACK);
        q.addReferences(s, q.way[t].get(s), -1);
        q.way[t].set(s, 0);
        q.go(s, t, CachePc.FIND);
      }
      case LOCK -> lock(s, t, steps);
      case LOOK -> look(s, t, steps);
      case REGAIN_LOAD -> regainLoad(s, t, steps);
      case OVER -> {
        boolean over = transfer.isOver(s, q.turn[t].get(s), steps);
        q.go(s, t, over ? CachePc.REGAIN : CachePc.REGAIN_LOAD);
        if (!over) {
          regainNext(s, t);
        }
      }
      case REGAIN -> {
        transfer.regain(s, q.turn[t].get(s), steps);
        regainNext(s, t);
      }
      case PARKED -> parked(s, t, steps);
      case CLAIM -> claim(s, t, steps);
      case UNUSE -> {
        steps.did(CacheAction.UNUSE);
        q.used[q.turn[t].get(s)].set(s, 0);
        q.turn[t].add(s, 1);
        if (q.turn[t].get(s) == CacheConfig.WAYS) {
          unlock(s, t, claim(s, t));
        }
      }
      case UNLOCK -> {
        steps.did(CacheAction.UNLOCK);
        q.lock.set(s, 0);
        Claim claim = claim(s, t);
        int page = q.otherPage[t].get(s);
        q.forgetChoice(s, t);
        calls.claimed(s, t, claim, page);
      }
      default -> throw new AssertionError(q.pc(s, t));
    }
  }

  private void touchFind(long[] s, int t, Steps steps) {
    int f = q.find(s, calls.page(s, t));
    steps.did(f >= 0 ? CacheAction.FIND : CacheAction.ABSENT);
    q.way[t].set(s, Math.max(f, 0));
    q.go(s, t, f >= 0 ? CachePc.TOUCH_ADD : CachePc.FIND);
  }

  /** What the addition returned is looked at: the page may have gone since it was found. */
  private void touchAdd(long[] s, int t, Steps steps) {
    int f = q.way[t].get(s);
    q.addReferences(s, f, 1);
    boolean its =
        config.has(CacheFlaw.TOUCH_WITHOUT_SECOND_LOOK) || q.tag[f].get(s) == calls.page(s, t);
    boolean there = config.has(CacheFlaw.TOUCH_TAKES_FILLING) || q.frame(s, f).readable();
    if (!its || !there) {
      steps.did(CacheAction.MISTAKEN);
      q.go(s, t, CachePc.TOUCH_BACK);
    } else {
      steps.did(CacheAction.HIT);
      if (config.usedBit && q.used[f].get(s) == 0) {
        q.go(s, t, CachePc.TOUCH_USED);
      } else {
        calls.access(s, t);
      }
    }
  }

  /**
   * The survey without the lock, whose results are looked at again. A prefetch looks once before,
   * and takes no reference to a page that is there.
   */
  private void find(long[] s, int t, Steps steps) {
    int f = q.find(s, calls.page(s, t));
    if (config.has(CacheFlaw.TIER_ASKED_BEFORE_CLAIM)) {
      q.mayTake[t].set(s, q.tiered[calls.page(s, t)].get(s));
    }
    steps.did(f >= 0 ? CacheAction.FIND : CacheAction.ABSENT);
    if (calls.prefetches(s, t) && q.why(s, t) != Why.PREFETCH) {
      transfer.beginPrefetch(s, t, f >= 0);
    } else if (calls.prefetches(s, t) && f >= 0) {
      calls.claimed(s, t, Claim.AGAIN, 0);
    } else if (f >= 0) {
      q.way[t].set(s, f);
      q.go(s, t, CachePc.ADD);
    } else if (mayHaveFrame(s)) {
      q.go(s, t, CachePc.LOCK);
    } else {
      calls.claimed(s, t, Claim.NOTHING, 0);
    }
  }

  private boolean mayHaveFrame(long[] s) {
    for (int f = 0; f < CacheConfig.WAYS; f++) {
      if (isLost(q.frame(s, f)) || choice(q.word(s, f)) != NONE) {
        return true;
      }
    }
    return false;
  }

  private static boolean isLost(Frame state) {
    return state == Frame.STUCK || state == Frame.LOST;
  }

  private void add(long[] s, int t, Steps steps) {
    int f = q.way[t].get(s);
    q.addReferences(s, f, 1);
    if (!config.has(CacheFlaw.CHOOSE_WITHOUT_SECOND_LOOK) && q.tag[f].get(s) != calls.page(s, t)) {
      steps.did(CacheAction.MISTAKEN);
      q.go(s, t, CachePc.BACK);
    } else if (q.frame(s, f).readable()) {
      steps.did(CacheAction.HIT);
      calls.access(s, t);
    } else {
      steps.did(CacheAction.JOIN);
      q.go(s, t, CachePc.JOIN);
    }
  }

  private void lock(long[] s, int t, Steps steps) {
    boolean flawed = config.has(CacheFlaw.NO_LOCK);
    if (q.lock.get(s) != 0 && !flawed) {
      steps.did(CacheAction.LOCKED);
      calls.claimed(s, t, Claim.AGAIN, 0);
      return;
    }
    steps.did(CacheAction.LOCK);
    q.lock.set(s, flawed ? 0 : 1);
    q.go(s, t, CachePc.LOOK);
  }

  /** How gladly a frame is taken for another page, the lowest first. */
  private int choice(int word) {
    Frame state = CacheState.stateOf(word);
    boolean held = CacheState.isHeld(word);
    return switch (state) {
      case FREE, FAILED -> held ? NONE : EMPTY;
      case FILLING -> held ? NONE : LAST;
      case VALID -> held && !config.has(CacheFlaw.EVICT_WITH_REFERENCES) ? NONE : valid(word);
      case CLEANING -> held || !config.has(CacheFlaw.EVICT_CLEANING) ? NONE : valid(word);
      case STUCK, LOST -> NONE;
    };
  }

  private int valid(int word) {
    return COLD + (CacheState.isUsed(word) ? 2 : 0) + (isDirty(word) ? 1 : 0);
  }

  private boolean isDirty(int word) {
    return CacheState.isDirty(word) && !config.has(CacheFlaw.EVICT_DIRTY);
  }

  /** The survey under the lock: a word a step. */
  private void look(long[] s, int t, Steps steps) {
    steps.did(CacheAction.LOAD);
    int f = q.turn[t].get(s);
    int word = q.word(s, f);
    if (CacheState.tagOf(word) == calls.page(s, t) && !config.has(CacheFlaw.NO_LOOK_UNDER_LOCK)) {
      q.matched[t].set(s, 1);
    }
    if (isLost(CacheState.stateOf(word)) && q.regained[t].get(s) == 0) {
      q.lost[t].set(s, 1);
    }
    if (choice(word) != NONE
        && (q.best[t].get(s) == 0 || rank(s, f, word) < rank(s, best(s, t), q.seen[t].get(s)))) {
      q.best[t].set(s, f + 1);
      q.seen[t].set(s, word);
    }
    q.turn[t].add(s, 1);
    if (q.turn[t].get(s) == CacheConfig.WAYS) {
      q.turn[t].set(s, 0);
      looked(s, t);
    }
  }

  private int best(long[] s, int t) {
    return q.best[t].get(s) - 1;
  }

  /** Of equal ones the one that the hand comes to first. */
  private int rank(long[] s, int f, int word) {
    int distance = (f - q.hand.get(s) + CacheConfig.WAYS) % CacheConfig.WAYS;
    return choice(word) * CacheConfig.WAYS + distance;
  }

  private void looked(long[] s, int t) {
    if (q.lost[t].get(s) == 1) {
      q.lost[t].set(s, 0);
      q.matched[t].set(s, 0);
      q.best[t].set(s, 0);
      q.seen[t].set(s, 0);
      q.regained[t].set(s, 1);
      q.go(s, t, CachePc.REGAIN_LOAD);
    } else if (q.matched[t].get(s) == 1) {
      unlock(s, t, Claim.AGAIN);
    } else if (q.best[t].get(s) == 0) {
      unlock(s, t, Claim.NOTHING);
    } else {
      // If nothing comes of it, the next look begins behind it.
      q.hand.set(s, q.best[t].get(s) % CacheConfig.WAYS);
      decide(s, t);
    }
  }

  private void decide(long[] s, int t) {
    if (CacheState.stateOf(q.seen[t].get(s)) == Frame.FILLING) {
      q.go(s, t, CachePc.PARKED);
    } else if (isDirty(q.seen[t].get(s)) && calls.prefetches(s, t)) {
      unlock(s, t, Claim.NOTHING);
    } else {
      q.go(s, t, CachePc.CLAIM);
    }
  }

  private void regainLoad(long[] s, int t, Steps steps) {
    steps.did(CacheAction.LOAD);
    if (isLost(q.frame(s, q.turn[t].get(s)))) {
      q.go(s, t, CachePc.OVER);
    } else {
      regainNext(s, t);
    }
  }

  private void regainNext(long[] s, int t) {
    q.turn[t].add(s, 1);
    q.go(s, t, CachePc.REGAIN_LOAD);
    if (q.turn[t].get(s) == CacheConfig.WAYS) {
      q.turn[t].set(s, 0);
      q.go(s, t, calls.cleans(s, t) ? CachePc.CLEAN_AGAIN : CachePc.LOOK);
    }
  }

  private void parked(long[] s, int t, Steps steps) {
    int f = best(s, t);
    boolean idle = q.parked[f].get(s) != 0;
    steps.did(idle ? CacheAction.PARKED : CacheAction.NOT_PARKED);
    boolean takes = idle && !calls.prefetches(s, t) && !config.has(CacheFlaw.EVICTOR_DOES_NOT_TAKE);
    q.way[t].set(s, f);
    unlock(s, t, takes ? Claim.TAKE : Claim.NOTHING);
  }

  /** Only if the frame is as it was seen. */
  private void claim(long[] s, int t, Steps steps) {
    int f = best(s, t);
    int word = q.seen[t].get(s);
    if (q.word(s, f) != word && !config.has(CacheFlaw.CLAIM_BY_STORE)) {
      steps.did(CacheAction.CHANGED);
      unlock(s, t, Claim.AGAIN);
      return;
    }
    boolean dirty = isDirty(word);
    steps.did(dirty ? CacheAction.CLAIM_CLEANING : CacheAction.CLAIM);
    q.used[f].set(s, 0);
    q.way[t].set(s, f);
    if (dirty) {
      transfer.beginWrite(s, f);
      q.otherPage[t].set(s, q.tag[f].get(s));
    } else {
      boolean early = config.has(CacheFlaw.OVERWRITE_VALID_AT_ONCE) && calls.overwrites(s, t);
      if (config.tier) {
        q.last[t].set(s, q.tag[f].get(s));
      }
      q.tag[f].set(s, calls.page(s, t));
      q.put(s, f, early ? Frame.VALID : Frame.FILLING);
      q.dirty[f].set(s, 0);
      // Nobody reads it before it is written again.
      q.ended[f].set(s, 0);
      q.references[f].set(s, calls.prefetches(s, t) ? 0 : 1);
    }
    Claim claim = dirty ? Claim.CLEAN : Claim.FILL;
    int choice = choice(word);
    if (choice == HOT || choice == LAST) {
      q.claim[t].set(s, claim.ordinal());
      q.go(s, t, CachePc.UNUSE);
    } else {
      unlock(s, t, claim);
    }
  }

  private Claim claim(long[] s, int t) {
    return Claim.values()[q.claim[t].get(s)];
  }

  private void unlock(long[] s, int t, Claim claim) {
    int page = q.otherPage[t].get(s);
    q.forgetChoice(s, t);
    q.claim[t].set(s, claim.ordinal());
    q.otherPage[t].set(s, page);
    if (claim == Claim.NOTHING || claim == Claim.AGAIN) {
      q.way[t].set(s, 0);
    }
    q.go(s, t, CachePc.UNLOCK);
  }
}
