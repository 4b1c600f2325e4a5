package io.gpunvme.gpu.model;

import io.gpunvme.gpu.model.CacheState.Frame;
import io.gpunvme.gpu.model.CacheState.Outcome;
import io.gpunvme.gpu.model.CacheState.Why;

/**
 * What a miss does before it turns to the SSD: {@code keep_in_tier} and {@code take_from_tier} of
 * {@code cache.cuh}, with {@code tier.cuh}. Here the host tier has one frame. Which pages are kept
 * is left to chance.
 */
final class CacheTier {
  private final CacheConfig config;
  private final CacheState q;
  private final CacheCalls calls;

  CacheTier(CacheConfig config, CacheState q, CacheCalls calls) {
    this.config = config;
    this.q = q;
    this.calls = calls;
  }

  /** A caller has a frame for its page. */
  void begin(long[] s, int t) {
    q.go(s, t, q.last[t].get(s) != 0 ? CachePc.TIER_MAY_KEEP : CachePc.TIER_MAY_TAKE);
  }

  void steps(long[] from, int t, Steps steps) {
    if (q.pc(from, t) == CachePc.TIER_KEEP && mayHave(from)) {
      long[] s = steps.begin(t);
      steps.did(CacheAction.TIER_CHOOSE);
      q.tierSeen[t].set(s, q.tierWord(s));
      q.go(s, t, CachePc.TIER_CLAIM);
      steps.end();
    }
    long[] s = steps.begin(t);
    step(s, t, steps);
    steps.end();
  }

  private boolean mayHave(long[] s) {
    boolean held = q.tierReferences.get(s) != 0 && !config.has(CacheFlaw.TIER_EVICTS_HELD);
    return !held && q.tierFrame(s) != Frame.FILLING;
  }

  private void step(long[] s, int t, Steps steps) {
    switch (q.pc(s, t)) {
      case TIER_MAY_KEEP -> mayKeep(s, t, steps);
      case TIER_KEEP -> {
        steps.did(CacheAction.TIER_REFUSE);
        kept(s, t);
      }
      case TIER_CLAIM -> claim(s, t, steps);
      case TIER_COPY_OUT -> copyOut(s, t, steps);
      case TIER_PUBLISH -> publish(s, t, steps);
      case TIER_MAY_TAKE -> mayTake(s, t, steps);
      case TIER_FIND -> find(s, t, steps);
      case TIER_ADD -> add(s, t, steps);
      case TIER_BACK -> {
        steps.did(CacheAction.GIVE_BACK);
        q.addTierReferences(s, -1);
        calls.filled(s, t);
      }
      case TIER_COPY_IN -> copyIn(s, t, steps);
      case TIER_DROP -> {
        steps.did(CacheAction.DROP);
        q.addTierReferences(s, -1);
        q.go(s, t, early() ? CachePc.TIER_MAY_TAKE : CachePc.TIER_VALID);
        if (early()) {
          taken(s, t);
        }
      }
      case TIER_VALID -> valid(s, t, steps);
      default -> throw new AssertionError(q.pc(s, t));
    }
  }

  // ---- the page that was in the frame

  private void mayKeep(long[] s, int t, Steps steps) {
    boolean may = q.tiered[q.last[t].get(s)].get(s) == 1;
    steps.did(may ? CacheAction.TIERED : CacheAction.NOT_TIERED);
    if (may) {
      q.go(s, t, CachePc.TIER_KEEP);
    } else {
      kept(s, t);
    }
  }

  private void kept(long[] s, int t) {
    q.last[t].set(s, 0);
    q.go(s, t, CachePc.TIER_MAY_TAKE);
  }

  private void claim(long[] s, int t, Steps steps) {
    int seen = q.tierSeen[t].get(s);
    q.tierSeen[t].set(s, 0);
    if (q.tierWord(s) != seen && !config.has(CacheFlaw.TIER_CLAIM_BY_STORE)) {
      steps.did(CacheAction.CHANGED);
      kept(s, t);
      return;
    }
    steps.did(CacheAction.TIER_CLAIM);
    q.tierTag.set(s, q.last[t].get(s));
    q.tierState.set(s, Frame.FILLING.ordinal());
    q.tierReferences.set(s, 1);
    boolean late = config.has(CacheFlaw.TIER_COPIES_LATE);
    boolean publishes = config.has(CacheFlaw.TIER_VALID_BEFORE_DATA);
    q.go(s, t, publishes ? CachePc.TIER_PUBLISH : CachePc.TIER_COPY_OUT);
    if (late) {
      q.go(s, t, CachePc.TIER_MAY_TAKE);
    }
  }

  private void copyOut(long[] s, int t, Steps steps) {
    steps.did(CacheAction.TIER_COPY_OUT);
    int f = q.way[t].get(s);
    q.tierDataPage.set(s, q.dataPage[f].get(s));
    q.tierData.set(s, q.data[f].get(s));
    if (config.has(CacheFlaw.TIER_VALID_BEFORE_DATA)) {
      kept(s, t);
    } else {
      q.go(s, t, CachePc.TIER_PUBLISH);
    }
  }

  private void publish(long[] s, int t, Steps steps) {
    steps.did(CacheAction.TIER_PUBLISH);
    q.tierState.set(s, Frame.VALID.ordinal());
    q.addTierReferences(s, -1);
    if (config.has(CacheFlaw.TIER_VALID_BEFORE_DATA)) {
      q.go(s, t, CachePc.TIER_COPY_OUT);
    } else if (config.has(CacheFlaw.TIER_COPIES_LATE)) {
      q.last[t].set(s, 0);
      q.go(s, t, CachePc.AWAIT);
    } else {
      kept(s, t);
    }
  }

  // ---- the page that is wanted

  /** After the frame was claimed: nobody can have stored to the page since then. */
  private void mayTake(long[] s, int t, Steps steps) {
    boolean before = config.has(CacheFlaw.TIER_ASKED_BEFORE_CLAIM);
    boolean may = before ? q.mayTake[t].get(s) == 1 : isTiered(s, calls.page(s, t));
    steps.did(may ? CacheAction.TIERED : CacheAction.NOT_TIERED);
    if (may) {
      q.go(s, t, CachePc.TIER_FIND);
    } else {
      calls.filled(s, t);
    }
  }

  boolean isTiered(long[] s, int page) {
    return q.tiered[page].get(s) == 1;
  }

  private void find(long[] s, int t, Steps steps) {
    boolean there = q.tierTag.get(s) == calls.page(s, t);
    steps.did(there ? CacheAction.FIND : CacheAction.ABSENT);
    if (!there) {
      calls.filled(s, t);
    } else if (config.has(CacheFlaw.TIER_WITHOUT_REFERENCE)) {
      q.go(s, t, CachePc.TIER_COPY_IN);
    } else {
      q.go(s, t, CachePc.TIER_ADD);
    }
  }

  private void add(long[] s, int t, Steps steps) {
    q.addTierReferences(s, 1);
    boolean its =
        config.has(CacheFlaw.TIER_WITHOUT_SECOND_LOOK) || q.tierTag.get(s) == calls.page(s, t);
    boolean there = config.has(CacheFlaw.TIER_TAKES_FILLING) || q.tierFrame(s) == Frame.VALID;
    steps.did(its && there ? CacheAction.TIER_HIT : CacheAction.MISTAKEN);
    if (!its || !there) {
      q.go(s, t, CachePc.TIER_BACK);
    } else {
      q.go(s, t, early() ? CachePc.TIER_VALID : CachePc.TIER_COPY_IN);
    }
  }

  private boolean early() {
    return config.has(CacheFlaw.TAKEN_BEFORE_DATA);
  }

  private void copyIn(long[] s, int t, Steps steps) {
    steps.did(CacheAction.TIER_COPY_IN);
    int f = q.way[t].get(s);
    q.dataPage[f].set(s, q.tierDataPage.get(s));
    q.data[f].set(s, q.tierData.get(s));
    boolean without = config.has(CacheFlaw.TIER_WITHOUT_REFERENCE);
    q.go(s, t, without ? CachePc.TIER_VALID : CachePc.TIER_DROP);
  }

  private void valid(long[] s, int t, Steps steps) {
    steps.did(CacheAction.PUBLISH);
    q.put(s, q.way[t].get(s), Frame.VALID);
    if (early()) {
      q.go(s, t, CachePc.TIER_COPY_IN);
    } else {
      taken(s, t);
    }
  }

  private void taken(long[] s, int t) {
    if (q.why(s, t) == Why.PREFETCH) {
      q.put(s, t, Outcome.SUCCESS);
      q.go(s, t, CachePc.UNCOUNT);
    } else {
      calls.access(s, t);
    }
  }
}
