package io.gpunvme.gpu.model;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Without any one of its rules the page cache breaks, and the checker sees it. */
class PageCacheFlawTest {
  private static final String STUCK = "stuck";
  private static final String LOST = "a store is lost";
  private static final String GIVEN_AWAY = "holds is another page's";
  private static final String MAY_MOVE = "is used although a command of it may move data";
  private static final String NOTHING_READ = "a caller gets the data of page 0";
  private static final String ANOTHERS = "copies from the tier is another page's";
  private static final String TOO_EARLY = "can be read before its data is there";

  /** A cache and callers small enough to show what a flaw leads to. */
  private record Case(CacheConfig config, String harm) {}

  @ParameterizedTest
  @EnumSource(names = "NONE", mode = EnumSource.Mode.EXCLUDE)
  void isCaught(CacheFlaw flaw) {
    Case c = caseOf(flaw);

    Exploration right = Checker.explore(new PageCacheModel(c.config), 1_000_000);
    assertThat(right.wrong()).as("with the rule: %s", right.report()).isNull();

    Exploration wrong = Checker.explore(new PageCacheModel(c.config.flaw(flaw)), 1_000_000);
    assertThat(wrong.wrong()).as("without the rule").isNotNull().contains(c.harm);
    assertThat(wrong.trace()).isNotEmpty().noneMatch(String::isEmpty);
  }

  private static Case caseOf(CacheFlaw flaw) {
    return switch (flaw) {
      case NONE -> throw new AssertionError();
      case TOUCH_WITHOUT_SECOND_LOOK, CHOOSE_WITHOUT_SECOND_LOOK, CLAIM_BY_STORE ->
          new Case(cache("get1 get2 get3", "get1"), GIVEN_AWAY);
      case TOUCH_TAKES_FILLING -> new Case(cache("get1", "get1"), NOTHING_READ);
      case NO_LOCK, NO_LOOK_UNDER_LOCK -> new Case(cache("get1", "get1"), "has two frames");
      case EVICT_WITH_REFERENCES ->
          new Case(cache("pin1 get2 unpin", "get3"), "has pinned is another page's");
      case EVICT_DIRTY -> new Case(cache("store1 get2 get3"), LOST);
      case EVICT_CLEANING -> new Case(cache("store1 clean", "get2 get3"), LOST);
      case LOST_REUSED -> new Case(cache("get1").late(1), MAY_MOVE);
      case STUCK_REUSED -> new Case(cache("store1 clean").late(1), MAY_MOVE);
      case LATE_NOT_SERVED -> new Case(cache("get1 get2 get3").late(2), STUCK);
      case REGAINED_CLEAN -> new Case(cache("store1 clean clean").late(1), LOST);
      case PUBLISH_BEFORE_DATA -> new Case(cache("get1"), TOO_EARLY);
      case PUBLISH_BY_STORE -> new Case(cache("get1", "get1"), "the references of frame 0");
      case FAILED_KEEPS_TAG -> new Case(cache("get1", "get1").failures(1), NOTHING_READ);
      case LOST_KEEPS_TAG -> new Case(cache("get1", "get1").late(1), NOTHING_READ);
      case FAILED_KEEPS_REFERENCE -> new Case(cache("get1").failures(1), "keeps references");
      case WAIT_WITHOUT_END -> new Case(cache("pin1 get2 unpin", "pin3 get2 unpin"), STUCK);
      case JOIN_WITHOUT_END -> new Case(cache("hold1 get2 unpin", "hold2 get1 unpin"), STUCK);
      default -> prefetching(flaw);
    };
  }

  private static Case tiered(CacheFlaw flaw) {
    return switch (flaw) {
      case TIER_WITHOUT_SECOND_LOOK, TIER_WITHOUT_REFERENCE, TIER_EVICTS_HELD ->
          new Case(cache("get1 get2 get3 get1", "get2 get3").tier(), ANOTHERS);
      case TIER_TAKES_FILLING -> new Case(cache("get1 get2 get3", "get1").tier(), ANOTHERS);
      case TIER_CLAIM_BY_STORE ->
          new Case(cache("get1 get2 get3 get1", "get2 get3").tier(), "before its data is there");
      case TIER_VALID_BEFORE_DATA, TIER_COPIES_LATE ->
          new Case(cache("get1 get2 get3").tier(), "before its data is there");
      case TIER_KEEPS_WRITABLE ->
          new Case(cache("get1 get2 get3 store1 clean get2 get3 get1").tier(), "before a store");
      case TIER_ASKED_BEFORE_CLAIM ->
          new Case(
              cache("get1 get2 get3 get1", "open1 store1 clean get2 get3").tier(),
              "before a store");
      case TAKEN_BEFORE_DATA -> new Case(cache("get1 get2 get3 get1").tier(), TOO_EARLY);
      default -> throw new AssertionError("no case for " + flaw);
    };
  }

  private static Case prefetching(CacheFlaw flaw) {
    return switch (flaw) {
      case WAITER_DOES_NOT_TAKE -> new Case(cache("pre1 get1"), STUCK);
      case EVICTOR_DOES_NOT_TAKE -> new Case(cache("pre1 pre2 get3").slots(4), STUCK);
      case TAKE_NOT_ATOMIC -> new Case(cache("pre1 get1", "get1"), "two wait for one command");
      case PREFETCH_LEAVES_FRAME ->
          new Case(cache("pre1 get1", "get2").slots(1).mostParked(1), STUCK);
      case PREFETCH_TAKES_ALL_SLOTS -> new Case(cache("pre1 get2").slots(1), STUCK);
      default -> storing(flaw);
    };
  }

  private static Case storing(CacheFlaw flaw) {
    return switch (flaw) {
      case DIRTY_CLEARED_AFTER -> new Case(cache("store1 clean", "store1"), LOST);
      case FAILED_WRITE_IS_CLEAN -> new Case(cache("store1 clean").failures(1), LOST);
      case MARK_BEFORE_STORE -> new Case(cache("store1", "clean"), LOST);
      case MARK_AFTER_DROP -> new Case(cache("store1", "get2 get3"), LOST);
      case OVERWRITE_VALID_AT_ONCE -> new Case(cache("over1"), TOO_EARLY);
      case WRITTEN_NOT_DIRTY -> new Case(cache("over1"), LOST);
      case CLEAN_SKIPS_CLEANING ->
          new Case(cache("store1 clean", "clean"), "a store from before it is not on the SSD");
      case CLEAN_SKIPS_STUCK ->
          new Case(cache("store1 clean clean").late(1), "a store from before it is not on the SSD");
      case CLEAN_LEAVES_STUCK ->
          new Case(
              cache("store1 clean clean").late(1), "a clean fails for a late write that was over");
      case CLEAN_REGAINS_UNLOCKED ->
          new Case(
              cache("store1 clean", "clean", "get2 get3").late(2), "a frame is taken back twice");
      default -> tiered(flaw);
    };
  }

  private static CacheConfig cache(String... programs) {
    CacheConfig config = new CacheConfig();
    for (String program : programs) {
      config.caller(program);
    }
    return config;
  }
}
