package io.gpunvme.gpu.model;

/** The words of the cache, of its callers and of the controller, as fields of a state. */
final class CacheState {
  /** What a frame's word says. */
  enum Frame {
    FREE,
    FILLING,
    VALID,
    CLEANING,
    STUCK,
    FAILED,
    LOST;

    private static final Frame[] ALL = values();

    boolean readable() {
      return this == VALID || this == CLEANING || this == STUCK;
    }
  }

  /** How far a command is; its slot is taken unless it is NONE. */
  enum Stage {
    NONE,
    SENT,
    /** Its data has moved, and its completion is to come. */
    MOVED,
    SUCCESS,
    FAILURE,
    /** Neither data nor a completion will come. */
    FORGOTTEN,
    // Given up by whoever waited for it
    LATE_SENT,
    LATE_MOVED,
    /** Its completion is there, and whoever serves next takes it. */
    LATE_POSTED,
    LATE_FORGOTTEN;

    private static final Stage[] ALL = values();

    boolean givenUp() {
      return compareTo(LATE_SENT) >= 0;
    }

    /** Whether the controller may still move its data, as far as anybody knows. */
    boolean unfinished() {
      return this != NONE && this != SUCCESS && this != FAILURE;
    }
  }

  /** What became of a page's command. */
  enum Outcome {
    SUCCESS,
    FAILURE,
    /** There was no slot. */
    BUSY,
    LOST
  }

  /** For what a caller moves a page, and so where it goes on. */
  enum Why {
    FILL,
    JOIN,
    TAKE,
    PREFETCH,
    EVICT,
    CLEAN
  }

  /** What a caller has found under the lock. */
  enum Claim {
    NOTHING,
    AGAIN,
    FILL,
    CLEAN,
    TAKE
  }

  private static final CachePc[] PCS = CachePc.values();
  private static final int MOST_REFERENCES = 7;
  private static final int WORDS = 1 << 10;

  final Layout layout = new Layout();

  // ---- a frame's word
  final Field[] tag;
  final Field[] state;
  final Field[] used;
  final Field[] dirty;
  final Field[] references;

  // ---- beside it
  /** The command + 1. */
  final Field[] parked;

  final Field[] ended;

  // ---- what is in its memory: of which page, and with which stores
  final Field[] dataPage;
  final Field[] data;

  // ---- the host tier's frame, and by page which may be there
  final Field tierTag;
  final Field tierState;
  final Field tierReferences;
  final Field tierDataPage;
  final Field tierData;
  final Field[] tiered;

  final Field lock;
  final Field hand;

  /** Commands that prefetches may have submitted and nobody has waited for. */
  final Field parkedCount;

  /** The stores that are on the SSD; each is of one page. */
  final Field ssd;

  /** The stores whose call is over. */
  final Field over;

  // ---- commands
  final Field[] stage;
  final Field[] write;
  final Field[] frame;
  final Field[] page;

  // ---- what may still go wrong
  final Field drops;
  final Field late;
  final Field failures;

  // ---- callers: where they are and what they hold in registers
  final Field[] op;
  final Field[] pc;
  final Field[] way;

  /** A frame's whole word, for a compare-and-swap. */
  final Field[] seen;

  /** Which of the frames is next. */
  final Field[] turn;

  /** The frame + 1 that is the best so far. */
  final Field[] best;

  /** Whether a frame has the page, whether frames are lost or stuck, and were looked after. */
  final Field[] matched;

  final Field[] lost;
  final Field[] regained;
  final Field[] claim;
  final Field[] otherPage;

  /** The page that was in the frame before. */
  final Field[] last;

  /** The word of the tier's frame, for a compare-and-swap. */
  final Field[] tierSeen;

  /** Too early: see {@link CacheFlaw#TIER_ASKED_BEFORE_CLAIM}. */
  final Field[] mayTake;

  /** The command + 1. */
  final Field[] command;

  final Field[] why;
  final Field[] outcome;

  /** The frame + 1 that is kept from one call to the next, and whether it has no contents yet. */
  final Field[] pinned;

  final Field[] fresh;

  /**
   * Of a clean: whether something could not be written, what was over before it, and whether the
   * late write of the frame was over when it came to it.
   */
  final Field[] failed;

  final Field[] before;
  final Field[] wasOver;

  private final int[] storesTo = new int[CacheConfig.PAGES + 1];

  CacheState(CacheConfig c) {
    int ways = CacheConfig.WAYS;
    int callers = c.programs.size();
    int stores = (1 << c.stores) - 1;
    tag = layout.fields("tag", ways, CacheConfig.PAGES);
    state = layout.fields("state", ways, Frame.values());
    used = layout.fields("used", ways, 1);
    dirty = layout.fields("dirty", ways, 1);
    references = layout.fields("references", ways, MOST_REFERENCES);
    parked = layout.fields("parked", ways, c.slots);
    ended = layout.fields("end", ways, Outcome.values());
    dataPage = layout.fields("data page", ways, CacheConfig.PAGES);
    data = layout.fields("data", ways, stores);
    Layout tiers = c.tier ? layout : new Layout();
    tierTag = tiers.field("tier tag", CacheConfig.PAGES);
    tierState = tiers.field("tier state", Frame.values());
    tierReferences = tiers.field("tier references", MOST_REFERENCES);
    tierDataPage = tiers.field("tier data page", CacheConfig.PAGES);
    tierData = tiers.field("tier data", stores);
    tiered = tiers.fields("tiered", CacheConfig.PAGES + 1, 1);
    last = tiers.fields("last page", callers, CacheConfig.PAGES);
    tierSeen = tiers.fields("tier seen", callers, WORDS - 1);
    mayTake = tiers.fields("may take", callers, 1);
    lock = layout.field("lock", 1);
    hand = layout.field("hand", ways - 1);
    parkedCount = layout.field("all parked", c.slots + callers);
    ssd = layout.field("ssd", stores);
    over = layout.field("over", stores);
    stage = layout.fields("command", c.slots, Stage.values());
    write = layout.fields("write", c.slots, 1);
    frame = layout.fields("its frame", c.slots, ways - 1);
    page = layout.fields("its page", c.slots, CacheConfig.PAGES);
    drops = layout.field("drops left", c.drops);
    late = layout.field("late ones left", c.late);
    failures = layout.field("failures left", c.failures);
    int most = c.programs.stream().mapToInt(p -> p.size()).max().orElseThrow();
    op = layout.fields("op", callers, most);
    pc = layout.fields("pc", callers, PCS);
    way = layout.fields("way", callers, ways - 1);
    seen = layout.fields("seen", callers, WORDS - 1);
    turn = layout.fields("turn", callers, ways);
    best = layout.fields("best", callers, ways);
    matched = layout.fields("matched", callers, 1);
    lost = layout.fields("lost", callers, 1);
    regained = layout.fields("regained", callers, 1);
    claim = layout.fields("claim", callers, Claim.values());
    otherPage = layout.fields("other page", callers, CacheConfig.PAGES);
    command = layout.fields("its command", callers, c.slots);
    why = layout.fields("why", callers, Why.values());
    outcome = layout.fields("outcome", callers, Outcome.values());
    pinned = layout.fields("pinned", callers, ways);
    fresh = layout.fields("fresh", callers, 1);
    failed = layout.fields("failed", callers, 1);
    before = layout.fields("before", callers, stores);
    wasOver = layout.fields("was over", callers, 1);
    for (int p = 1; p <= CacheConfig.PAGES; p++) {
      storesTo[p] = c.storesTo(p);
    }
  }

  // ---- frames

  Frame frame(long[] s, int f) {
    return Frame.ALL[state[f].get(s)];
  }

  boolean is(long[] s, int f, Frame what) {
    return state[f].get(s) == what.ordinal();
  }

  void put(long[] s, int f, Frame what) {
    state[f].set(s, what.ordinal());
  }

  void addReferences(long[] s, int f, int change) {
    int now = references[f].get(s) + change;
    if (now < 0 || now > MOST_REFERENCES) {
      throw new Violation("the references of frame " + f + " become " + now);
    }
    references[f].set(s, now);
  }

  /** The frame that has a page, -1 if none has. */
  int find(long[] s, int wanted) {
    for (int f = 0; f < CacheConfig.WAYS; f++) {
      if (tag[f].get(s) == wanted) {
        return f;
      }
    }
    return -1;
  }

  /** All of a frame's word. */
  int word(long[] s, int f) {
    return tag[f].get(s)
        | state[f].get(s) << 2
        | used[f].get(s) << 5
        | dirty[f].get(s) << 6
        | references[f].get(s) << 7;
  }

  static int tagOf(int word) {
    return word & 3;
  }

  static Frame stateOf(int word) {
    return Frame.ALL[word >> 2 & 7];
  }

  static boolean isUsed(int word) {
    return (word & 32) != 0;
  }

  static boolean isDirty(int word) {
    return (word & 64) != 0;
  }

  static boolean isHeld(int word) {
    return word >> 7 != 0;
  }

  // ---- the tier

  Frame tierFrame(long[] s) {
    return Frame.ALL[tierState.get(s)];
  }

  void addTierReferences(long[] s, int change) {
    int now = tierReferences.get(s) + change;
    if (now < 0 || now > MOST_REFERENCES) {
      throw new Violation("the references of the tier's frame become " + now);
    }
    tierReferences.set(s, now);
  }

  int tierWord(long[] s) {
    return tierTag.get(s) | tierState.get(s) << 2 | tierReferences.get(s) << 5;
  }

  // ---- data

  int storesTo(int wanted) {
    return storesTo[wanted];
  }

  /** The stores to a page whose call is over. */
  int overOf(long[] s, int wanted) {
    return over.get(s) & storesTo[wanted];
  }

  // ---- commands

  Stage stage(long[] s, int c) {
    return Stage.ALL[stage[c].get(s)];
  }

  void put(long[] s, int c, Stage what) {
    stage[c].set(s, what.ordinal());
    if (what == Stage.NONE) {
      write[c].set(s, 0);
      frame[c].set(s, 0);
      page[c].set(s, 0);
    }
  }

  /** Whether the command of a frame that was given up moves no more data. */
  boolean isOver(long[] s, int f) {
    for (int c = 0; c < stage.length; c++) {
      if (stage(s, c).givenUp() && frame[c].get(s) == f) {
        return false;
      }
    }
    return true;
  }

  /** Whether a command of the frame that was given up has no completion yet. */
  boolean isUnderWay(long[] s, int f) {
    for (int c = 0; c < stage.length; c++) {
      Stage stage = stage(s, c);
      if (stage.givenUp() && stage != Stage.LATE_POSTED && frame[c].get(s) == f) {
        return true;
      }
    }
    return false;
  }

  boolean hasPosted(long[] s) {
    for (int c = 0; c < stage.length; c++) {
      if (stage(s, c) == Stage.LATE_POSTED) {
        return true;
      }
    }
    return false;
  }

  /** Late completions are taken by whoever serves the queue. */
  void serve(long[] s) {
    for (int c = 0; c < stage.length; c++) {
      if (stage(s, c) == Stage.LATE_POSTED) {
        put(s, c, Stage.NONE);
      }
    }
  }

  // ---- callers

  CachePc pc(long[] s, int t) {
    return CachePc.of(pc[t].get(s));
  }

  void go(long[] s, int t, CachePc to) {
    pc[t].set(s, to.ordinal());
  }

  Why why(long[] s, int t) {
    return Why.values()[why[t].get(s)];
  }

  Outcome outcome(long[] s, int t) {
    return Outcome.values()[outcome[t].get(s)];
  }

  void put(long[] s, int t, Outcome what) {
    outcome[t].set(s, what.ordinal());
  }

  /** The next call's registers do not depend on those of the last one. */
  void forget(long[] s, int t) {
    way[t].set(s, 0);
    forgetChoice(s, t);
    command[t].set(s, 0);
    why[t].set(s, 0);
    outcome[t].set(s, 0);
    failed[t].set(s, 0);
    before[t].set(s, 0);
    wasOver[t].set(s, 0);
  }

  /** The frame's next write is another one. */
  void forgetWasOver(long[] s, int f) {
    for (int t = 0; t < wasOver.length; t++) {
      if (way[t].get(s) == f) {
        wasOver[t].set(s, 0);
      }
    }
  }

  void forgetChoice(long[] s, int t) {
    seen[t].set(s, 0);
    turn[t].set(s, 0);
    best[t].set(s, 0);
    matched[t].set(s, 0);
    lost[t].set(s, 0);
    regained[t].set(s, 0);
    claim[t].set(s, 0);
    otherPage[t].set(s, 0);
  }
}
