package io.gpunvme.gpu.model;

import io.gpunvme.gpu.model.CacheState.Frame;
import io.gpunvme.gpu.model.CacheState.Stage;
import org.jspecify.annotations.Nullable;

/**
 * The page cache with its callers and its controller, and what must hold in every state. What must
 * hold at a step is checked there, by a {@link Violation}.
 */
final class PageCacheModel implements Model {
  private final CacheConfig config;
  private final CacheState q;
  private final int callers;
  private final CacheCalls calls;
  private final CacheController controller;

  PageCacheModel(CacheConfig config) {
    this.config = config;
    this.q = new CacheState(config);
    this.callers = config.programs.size();
    this.calls = new CacheCalls(config, q);
    this.controller = new CacheController(config, q, callers);
  }

  @Override
  public int words() {
    return q.layout.words();
  }

  @Override
  public void start(long[] state) {
    q.drops.set(state, config.drops);
    q.late.set(state, config.late);
    q.failures.set(state, config.failures);
    for (int p = 1; config.tier && p <= CacheConfig.PAGES; p++) {
      q.tiered[p].set(state, config.isTiered(p) ? 1 : 0);
    }
    for (int t = 0; t < callers; t++) {
      calls.start(state, t);
    }
  }

  @Override
  public void steps(long[] from, Steps steps) {
    for (int t = 0; t < callers; t++) {
      calls.steps(from, t, steps);
    }
    controller.steps(from, steps);
  }

  @Override
  public boolean isOver(long[] state) {
    for (int t = 0; t < callers; t++) {
      if (q.pc(state, t) != CachePc.END) {
        return false;
      }
    }
    return true;
  }

  @Override
  public @Nullable String violation(long[] s) {
    String wrong = frames(s);
    wrong = wrong == null ? commands(s) : wrong;
    wrong = wrong == null ? holders(s) : wrong;
    wrong = wrong == null && config.tier ? tier(s) : wrong;
    wrong = wrong == null ? stores(s) : wrong;
    return wrong == null && isOver(s) ? leak(s) : wrong;
  }

  private @Nullable String frames(long[] s) {
    int pages = 0;
    for (int f = 0; f < CacheConfig.WAYS; f++) {
      Frame state = q.frame(s, f);
      int page = q.tag[f].get(s);
      if (state == Frame.FILLING || state.readable()) {
        if ((pages >> page & 1) != 0) {
          return "page " + page + " has two frames";
        }
        pages |= 1 << page;
      }
      if (state.readable() && q.dataPage[f].get(s) != page) {
        return "page " + page + " can be read before its data is there";
      }
    }
    return null;
  }

  private @Nullable String commands(long[] s) {
    for (int c = 0; c < config.slots; c++) {
      Stage stage = q.stage(s, c);
      if (!stage.unfinished()) {
        continue;
      }
      int f = q.frame[c].get(s);
      Frame state = q.frame(s, f);
      boolean its = q.tag[f].get(s) == q.page[c].get(s);
      boolean right =
          q.write[c].get(s) == 0
              ? state == Frame.LOST || (state == Frame.FILLING && its)
              : (state == Frame.CLEANING || state == Frame.STUCK) && its;
      if (!right) {
        return "frame " + f + " is used although a command of it may move data";
      }
    }
    return null;
  }

  private @Nullable String holders(long[] s) {
    int locks = 0;
    for (int t = 0; t < callers; t++) {
      CachePc pc = q.pc(s, t);
      locks += pc.locks() ? 1 : 0;
      if (pc.holds() && q.tag[q.way[t].get(s)].get(s) != calls.page(s, t)) {
        return "a frame that caller " + t + " holds is another page's";
      }
      int pinned = q.pinned[t].get(s);
      if (pinned != 0 && q.tag[pinned - 1].get(s) != calls.pinnedPage(s, t)) {
        return "a frame that caller " + t + " has pinned is another page's";
      }
    }
    boolean locked =
        !config.has(CacheFlaw.NO_LOCK) && !config.has(CacheFlaw.CLEAN_REGAINS_UNLOCKED);
    return locks > 1 && locked ? "two have the set's lock" : null;
  }

  private @Nullable String tier(long[] s) {
    int page = q.tierTag.get(s);
    if (q.tierFrame(s) == Frame.VALID && q.tierDataPage.get(s) != page) {
      return "the tier has page " + page + " before its data is there";
    }
    for (int t = 0; t < callers; t++) {
      if (q.pc(s, t).copies() && (page != calls.page(s, t) || q.tierFrame(s) != Frame.VALID)) {
        return "what caller " + t + " copies from the tier is another page's";
      }
    }
    boolean over = isOver(s);
    if (over && (q.tierReferences.get(s) != 0 || q.tierFrame(s) == Frame.FILLING)) {
      return "the tier's frame stays " + q.tierFrame(s);
    }
    return null;
  }

  /** A store that is over is on the SSD, or in a frame from which it will get there. */
  private @Nullable String stores(long[] s) {
    int safe = q.ssd.get(s);
    for (int f = 0; f < CacheConfig.WAYS; f++) {
      Frame state = q.frame(s, f);
      boolean goes = q.dirty[f].get(s) == 1 || state == Frame.CLEANING || state == Frame.STUCK;
      if (goes && state.readable()) {
        safe |= q.data[f].get(s);
      }
    }
    return (q.over.get(s) & ~safe) != 0 ? "a store is lost" : null;
  }

  private @Nullable String leak(long[] s) {
    int taken = 0;
    for (int f = 0; f < CacheConfig.WAYS; f++) {
      if (q.references[f].get(s) != 0) {
        return "frame " + f + " keeps references";
      }
      int parked = q.parked[f].get(s);
      Frame state = q.frame(s, f);
      if (parked == 0 && (state == Frame.FILLING || state == Frame.CLEANING)) {
        return "frame " + f + " stays " + state;
      }
      taken |= parked == 0 ? 0 : 1 << parked - 1;
    }
    for (int c = 0; c < config.slots; c++) {
      Stage stage = q.stage(s, c);
      if (stage != Stage.NONE && !stage.givenUp() && (taken >> c & 1) == 0) {
        return "slot " + c + " is lost";
      }
    }
    return q.lock.get(s) != 0 ? "the lock is held" : null;
  }

  @Override
  public String actor(int actor) {
    return actor < callers ? "caller " + actor : "controller";
  }

  @Override
  public String difference(long[] from, long[] to) {
    return q.layout.difference(from, to);
  }
}
