package io.gpunvme.gpu.model;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** The protocol of docs/page-cache.md in every state that small caches can reach. */
class PageCacheTest {
  private static final int LIMIT = 4_000_000;

  private static int caches;
  private static long states;

  @AfterAll
  static void sum() {
    System.out.printf("PageCacheTest: %d caches, %,d states%n", caches, states);
  }

  private static Exploration explore(CacheConfig config) {
    Exploration e = Checker.explore(new PageCacheModel(config), LIMIT);
    caches++;
    states += e.states();
    return e;
  }

  private static CacheConfig cache(String... programs) {
    CacheConfig config = new CacheConfig();
    for (String program : programs) {
      config.caller(program);
    }
    return config;
  }

  static Stream<Arguments> withoutFaults() {
    return Stream.of(
        Arguments.of("one page", cache("get1", "get1", "get1")),
        Arguments.of("a frame for each", cache("get1 get2", "get2 get1", "get1")),
        Arguments.of("more pages than frames", cache("get1 get2", "get2 get3", "get3 get1")),
        Arguments.of("a store each", cache("store1", "store1", "store1")),
        Arguments.of("dirty pages", cache("store1", "store2", "store3")),
        Arguments.of("dirty pages, taken over", cache("store1 get2", "store2 get1", "store1 get3")),
        Arguments.of("one that cleans", cache("store1 clean", "get2 get3", "store1")),
        Arguments.of("two that clean", cache("store1 clean", "store2 clean get3", "store1")),
        Arguments.of("overwritten pages", cache("over1 get2", "over1", "store1 get3")),
        Arguments.of("overwritten and cleaned", cache("over1 over2 clean", "get1 over3")),
        Arguments.of("a prefetch that is met", cache("pre1 get1", "pre1", "get1")),
        Arguments.of("prefetches in the way", cache("pre1 pre2 get3", "pre3 get1", "get2")),
        Arguments.of("a slot for two", cache("store1 get2", "get3 get1", "get2").slots(2)),
        Arguments.of("one slot", cache("store1 get2", "get3 get1", "get2").slots(1)));
  }

  /** No deadline passes, no wait reaches its bound. */
  @ParameterizedTest(name = "{0}")
  @MethodSource
  void withoutFaults(String what, CacheConfig config) {
    Exploration e = explore(config);

    assertThat(e.wrong()).as(e.report()).isNull();
    assertThat(e.saw(CacheAction.DEADLINE)).isFalse();
    assertThat(e.saw(CacheAction.GIVE_UP)).isFalse();
  }

  static Stream<Arguments> withPins() {
    return Stream.of(
        Arguments.of("all frames", cache("pin1 get2 unpin", "pin3 get2 unpin", "store2 get1")),
        Arguments.of("a frame is left", cache("pin1 get2 get3 unpin", "get1 store3", "get2")),
        Arguments.of("of one page", cache("pin1 store2 get3 unpin", "pin1 store1 unpin", "get3")),
        Arguments.of("to overwrite", cache("hold1 get2 unpin", "get1 get3", "store2")),
        Arguments.of("two of each other", cache("hold1 get2 unpin", "hold2 get1 unpin", "get1")));
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource
  void withPins(String what, CacheConfig config) {
    Exploration e = explore(config);

    assertThat(e.wrong()).as(e.report()).isNull();
    assertThat(e.saw(CacheAction.DEADLINE)).isFalse();
  }

  static Stream<Arguments> withFaults() {
    return Stream.of(
        Arguments.of("a late read", cache("get1 get2", "get2 get3", "get1").late(1)),
        Arguments.of("late reads", cache("get1 get2", "get2 get3").late(2)),
        Arguments.of("a late write", cache("store1 get2", "store2 get3").late(1)),
        Arguments.of("late writes", cache("store1 clean get2", "store2 clean").late(2)),
        Arguments.of(
            "a late write that others want", cache("store1 clean", "store1", "get1").late(1)),
        Arguments.of("a failure", cache("store1 get2", "store2 get3").failures(1)),
        Arguments.of("failures", cache("store1 clean get2", "get1 clean").failures(2)),
        Arguments.of("a lost command", cache("store1 clean get2", "get1 get3").drops(1)),
        Arguments.of("lost commands", cache("get1 get2", "get3 get1").drops(2)),
        Arguments.of("a prefetch", cache("pre1 get2", "get1").late(1).failures(1).drops(1)),
        Arguments.of("prefetches", cache("pre1 pre2 get3", "get1").slots(4).late(1).failures(1)),
        Arguments.of("overwritten", cache("over1 clean get2", "get1 get3").late(1).drops(1)),
        Arguments.of("pinned", cache("pin1 get2 unpin", "store2 get3").late(1).failures(1)),
        Arguments.of("all slots", cache("store1 clean get2", "get3").slots(2).late(1).drops(1)),
        Arguments.of("one slot", cache("store1 get2", "get1").slots(1).late(1).drops(1)),
        Arguments.of("everything", cache("store1 get2", "get1 clean").late(1).failures(1).drops(1)),
        Arguments.of("three that read", cache("get1", "get1", "get2 get3").late(1).drops(1)),
        Arguments.of("three that store", cache("store1 get2", "store2 get3", "store1").late(1)),
        Arguments.of(
            "three and two cleans", cache("store1 clean", "store2 clean", "get2 get3").late(1)),
        Arguments.of(
            "three and an overwrite", cache("over1 get2", "store1 get3", "get2").late(1).drops(1)),
        Arguments.of("three and a pin", cache("pin1 get2 unpin", "store3 get2", "get1").late(1)),
        Arguments.of(
            "three and a prefetch", cache("pre1 get2", "get1 get3", "store1 clean").late(1)),
        Arguments.of(
            "everything, three callers",
            cache("store1", "get1 get3", "get2").late(1).failures(1).drops(1)));
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource
  void withFaults(String what, CacheConfig config) {
    Exploration e = explore(config);

    assertThat(e.wrong()).as(e.report()).isNull();
    assertThat(e.saw(CacheAction.FORGET)).isEqualTo(config.drops > 0);
    assertThat(e.saw(CacheAction.LATE)).isEqualTo(config.late > 0);
    assertThat(e.saw(CacheAction.FAIL)).isEqualTo(config.failures > 0);
  }

  static Stream<Arguments> withAHostTier() {
    return Stream.of(
        Arguments.of("one that reads", cache("get1 get2 get3 get1 get2 get3").tier()),
        Arguments.of("two that read", cache("get1 get2 get3 get1", "get2 get3").tier()),
        Arguments.of("three that read", cache("get1 get2 get3", "get3 get1", "get1").tier()),
        Arguments.of("a store beside", cache("get1 get2 get1", "store3 get2").tier()),
        Arguments.of("an overwrite beside", cache("get1 get2 get1", "over3 get2").tier()),
        Arguments.of("a prefetch", cache("get1 get2 pre1 get1", "get3 pre2").slots(2).tier()),
        Arguments.of(
            "stores later", cache("get1 get2 get3 get1", "open1 store1 clean get2 get3").tier()),
        Arguments.of("a late read", cache("get1 get2 get3 get1", "get2").late(1).tier()),
        Arguments.of("failures", cache("get1 get2 get3 get1", "get2").failures(1).drops(1).tier()));
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource
  void withAHostTier(String what, CacheConfig config) {
    Exploration e = explore(config);

    assertThat(e.wrong()).as(e.report()).isNull();
    assertThat(e.saw(CacheAction.TIER_COPY_OUT)).isTrue();
    assertThat(e.saw(CacheAction.TIER_COPY_IN)).isTrue();
  }

  /** Frames that were used are left alone as long as there are others. */
  @Test
  void withTheUsedBit() {
    List<CacheConfig> configs =
        List.of(
            cache("get1 get1", "get2 get3", "get1"),
            cache("store1 get2 get3", "get1 get3").late(1).failures(1),
            cache("store1 clean get2", "get1 get3", "get2"),
            cache("store1 store1 get2 get2 get3", "get1 clean"));
    boolean all = false;
    for (CacheConfig config : configs) {
      Exploration e = explore(config.usedBit());

      assertThat(e.wrong()).as(e.report()).isNull();
      assertThat(e.saw(CacheAction.USED)).isTrue();
      all |= e.saw(CacheAction.UNUSE);
    }
    assertThat(all).as("all frames of the set were used").isTrue();
  }

  // ---- what the protocol does not promise

  /** Whoever wants a page that it overwrites itself, or a frame where all are pinned. */
  @Test
  void waitsThatAreInVainEnd() {
    assertThat(explore(cache("hold1 get1 unpin")).saw(CacheAction.GIVE_UP)).isTrue();
    assertThat(explore(cache("pin1 get3 unpin", "pin2 get2 unpin")).saw(CacheAction.GIVE_UP))
        .isTrue();
    assertThat(explore(cache("pin1 get3 unpin", "get2")).saw(CacheAction.GIVE_UP)).isFalse();
  }

  // ---- the model itself

  @Test
  void everythingHappens() {
    List<CacheConfig> configs =
        List.of(
            cache("store1 clean clean", "clean", "pin2 get3 unpin").late(1),
            cache("over1 get2", "get1 get1 get3").usedBit().drops(1).failures(1),
            cache("pre1 pre2 get3 get1", "get1 get2").late(1).drops(1),
            cache("pin1 get3 unpin", "pin2 get3 unpin"),
            cache("get1 get2", "get3").slots(1).drops(1).late(1),
            cache("get1 get2 get3 get1", "open1 store1").tier());
    Set<CacheAction> missing = EnumSet.allOf(CacheAction.class);
    for (CacheConfig config : configs) {
      Exploration e = explore(config);

      assertThat(e.wrong()).as(e.report()).isNull();
      missing.removeIf(e::saw);
    }
    // What only happens without a rule.
    assertThat(missing).containsExactly(CacheAction.UNDIRTY);
  }
}
