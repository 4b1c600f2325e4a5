package io.gpunvme.models;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.models.StreamForecast.Limit;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What stays, and how large the ring is. */
class StreamPlanTest {
  private static final long PAGE = 4096;
  private static final List<LayerSize> TEN = Collections.nCopies(10, LayerSize.of(PAGE));

  private static StreamPlan plan(List<LayerSize> layers, long budget) {
    return StreamPlan.of(layers, 0, budget, StreamPlan.ANY_SLOTS);
  }

  /** Ten layers of a page: a ring of n slots takes n + 1 pages, each layer that stays one more. */
  @ParameterizedTest
  @CsvSource({
    "0, 4, 0",
    "3, 2, 0",
    "4, 3, 0",
    "5, 3, 1",
    "6, 3, 2",
    "7, 2, 4",
    "9, 2, 6",
    "10, 0, 10",
    "11, 0, 10"
  })
  void pagesOfABudget(long pages, int slots, int resident) {
    StreamPlan plan = plan(TEN, pages * PAGE);
    assertThat(plan.slots()).isEqualTo(slots);
    assertThat(plan.resident()).hasSize(resident);
    assertThat(plan.slotBytes()).isEqualTo(slots == 0 ? 0 : PAGE);
    assertThat(plan.ringBytes()).isEqualTo(slots == 0 ? 0 : (slots + 1) * PAGE);
    assertThat(plan.residentBytes()).isEqualTo(resident * PAGE);
    assertThat(plan.passBytes()).isEqualTo((10 - resident) * PAGE);
    assertThat(plan.streamed()).isEqualTo(10 - resident);
    assertThat(plan.deviceBytes()).isEqualTo(plan.ringBytes() + plan.residentBytes());
  }

  @Test
  void everythingStaysIfNothingIsSaid() {
    StreamPlan plan = plan(TEN, StreamPlan.EVERYTHING);
    assertThat(plan.resident()).containsExactly(0, 1, 2, 3, 4, 5, 6, 7, 8, 9);
    assertThat(plan.passBytes()).isZero();
    assertThat(plan.readsInFlight()).isZero();
  }

  @Test
  void whatIsInNoLayerCountsFirst() {
    StreamPlan plan = StreamPlan.of(TEN, 100 * PAGE, 106 * PAGE, 4);
    assertThat(plan.resident()).containsExactly(0);
    assertThat(plan.deviceBytes()).isEqualTo(106 * PAGE);
    assertThat(StreamPlan.of(TEN, 100 * PAGE, 110 * PAGE, 2).slots()).isZero();
  }

  @Test
  void aSlotIsGivenUpForALayerWhereThatSavesMore() {
    // Of a hundred layers one less is less than a ring of three slots costs.
    List<LayerSize> many = Collections.nCopies(100, new LayerSize(PAGE, PAGE, 0, 0, 0, 0));
    assertThat(plan(many, 30 * PAGE).slots()).isEqualTo(4);
    assertThat(plan(many, 30 * PAGE).resident()).hasSize(25);
    assertThat(plan(many, 90 * PAGE).slots()).isEqualTo(3);
    assertThat(plan(many, 90 * PAGE).resident()).hasSize(86);
    assertThat(plan(many, 0).slots()).isEqualTo(4);
  }

  @Test
  void thoseThatStayAreSpread() {
    assertThat(StreamPlan.of(TEN, 0, 7 * PAGE, 4).resident()).containsExactly(0, 5);
    assertThat(StreamPlan.of(TEN, 0, 8 * PAGE, 4).resident()).containsExactly(0, 3, 6);
    assertThat(StreamPlan.of(TEN, 0, 8 * PAGE, 2).resident()).containsExactly(0, 2, 4, 6, 8);
  }

  @Test
  void slotsAreAsLongAsTheLongestLayer() {
    List<LayerSize> layers =
        List.of(LayerSize.of(512), LayerSize.of(3 * PAGE + 512), LayerSize.of(PAGE));
    StreamPlan plan = plan(layers, 0);
    assertThat(plan.slotBytes()).isEqualTo(4 * PAGE);
    assertThat(plan.passBytes()).isEqualTo(4 * PAGE + 1024);
    assertThat(plan.ringBytes()).isEqualTo(17 * PAGE);
  }

  @Test
  void layersWithoutBytesStay() {
    List<LayerSize> layers =
        List.of(LayerSize.of(0), LayerSize.of(PAGE), LayerSize.of(0), LayerSize.of(PAGE));
    assertThat(plan(layers, 0).resident()).containsExactly(0, 2);
    assertThat(plan(layers, 0).passBytes()).isEqualTo(2 * PAGE);
    // They are nothing that a budget could be too small for.
    List<LayerSize> none = List.of(LayerSize.of(0), LayerSize.of(0));
    assertThat(plan(none, 0)).isEqualTo(plan(none, 1));
    assertThat(plan(none, 1).resident()).containsExactly(0, 1);
    assertThat(plan(List.of(), 0).layers()).isZero();
  }

  @Test
  void oneLayerIsStreamedOrStays() {
    List<LayerSize> one = List.of(LayerSize.of(PAGE));
    assertThat(plan(one, 0).resident()).isEmpty();
    assertThat(plan(one, 0).readsInFlight()).isEqualTo(1);
    assertThat(plan(one, PAGE).resident()).containsExactly(0);
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(() -> plan(one, PAGE - 1))
        .withMessageContaining("4096 are");
  }

  /** 16 bits that become 32: a layer is converted from its slot to memory of its own. */
  @Test
  void conversionsNeedALayersWorthOfMemory() {
    List<LayerSize> layers = Collections.nCopies(4, new LayerSize(3000, 5000, 2000, 4000));
    StreamPlan plan = StreamPlan.of(layers, 0, 3 * PAGE + 4000, StreamPlan.ANY_SLOTS);
    assertThat(plan.convertedBytes()).isEqualTo(4000);
    assertThat(plan.resident()).isEmpty();
    assertThat(plan.deviceBytes()).isEqualTo(3 * PAGE + 4000);
    // Where all stay, a layer is converted at its loading only, from as many bytes as it has
    // stored.
    StreamPlan all = StreamPlan.of(layers, 0, 22_000, StreamPlan.ANY_SLOTS);
    assertThat(all.slots()).isZero();
    assertThat(all.deviceBytes()).isEqualTo(4 * 5000 + 2000);
    assertThat(StreamPlan.of(layers, 0, 21_999, StreamPlan.ANY_SLOTS).slots()).isPositive();
  }

  /**
   * Four layers of a page and two of experts, one of which is half a page longer, and a dense one:
   * the ring of experts takes seven pages, routers of 512 bytes come on top of each layer.
   */
  private static final List<LayerSize> MIXTURE =
      List.of(
          new LayerSize(PAGE, 3 * PAGE, 0, 0, 2 * PAGE, 512),
          new LayerSize(PAGE, 3 * PAGE, 0, 0, 2 * PAGE, 512),
          LayerSize.of(PAGE),
          new LayerSize(PAGE, 4 * PAGE, 0, 0, 3 * PAGE - 2048, 512));

  @Test
  void expertsGoThroughARingOfTheirOwn() {
    StreamPlan none = plan(MIXTURE, 0);
    assertThat(none.slotBytes()).isEqualTo(PAGE);
    assertThat(none.ringBytes()).isEqualTo(5 * PAGE);
    assertThat(none.passBytes()).isEqualTo(4 * PAGE);
    assertThat(none.expertSlots()).isEqualTo(2);
    assertThat(none.expertSlotBytes()).isEqualTo(3 * PAGE);
    assertThat(none.expertRingBytes()).isEqualTo(7 * PAGE);
    assertThat(none.routerBytes()).isEqualTo(3 * 512);
    assertThat(none.deviceBytes()).isEqualTo(12 * PAGE + 3 * 512);
    StreamPlan all = plan(MIXTURE, StreamPlan.EVERYTHING);
    assertThat(all.deviceBytes()).isEqualTo(11 * PAGE);
    assertThat(all.expertSlots()).isZero();
    assertThat(all.expertRingBytes()).isZero();
    assertThat(all.routerBytes()).isZero();
  }

  @Test
  void aBudgetHoldsBothRingsAndWhatStays() {
    // Eight layers, so that all of them take more than the rings do.
    List<LayerSize> layers =
        Collections.nCopies(8, new LayerSize(PAGE, 3 * PAGE, 0, 0, 2 * PAGE, 512));
    long rings = 5 * PAGE + 5 * PAGE + 8 * 512;
    assertThat(plan(layers, rings).resident()).isEmpty();
    assertThat(plan(layers, rings - 1).slots()).isEqualTo(3);
    // The router of a layer that stays is part of it.
    assertThat(StreamPlan.of(layers, 0, rings + 3 * PAGE - 513, 4).resident()).isEmpty();
    StreamPlan one = StreamPlan.of(layers, 0, rings + 3 * PAGE - 512, 4);
    assertThat(one.resident()).containsExactly(0);
    assertThat(one.routerBytes()).isEqualTo(7 * 512);
    assertThat(one.passBytes()).isEqualTo(7 * PAGE);
    assertThat(one.deviceBytes()).isEqualTo(rings + 3 * PAGE - 512);
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(() -> StreamPlan.of(layers, 100, 1, StreamPlan.ANY_SLOTS))
        .withMessageContaining(
            (3 + 5) * PAGE
                + 8 * 512
                + 100
                + " are, with 100 in no layer, for a ring of 2 slots for the longest layer, and one"
                + " of 2 for experts; 0 means");
  }

  /** It is made in memory: nothing of it is read. */
  @Test
  void aLayerWithoutStoredBytesCounts() {
    List<LayerSize> layers = new ArrayList<>(TEN);
    layers.add(new LayerSize(0, 7 * PAGE, 0, 0));
    StreamPlan plan = StreamPlan.of(layers, 0, 13 * PAGE, 4);
    assertThat(plan.resident()).containsExactly(0, 10);
    assertThat(plan.deviceBytes()).isEqualTo(13 * PAGE);
    assertThat(StreamPlan.leastBudget(layers, 0, 2)).isEqualTo(10 * PAGE);
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(() -> StreamPlan.of(layers, 0, 10 * PAGE - 1, 2));
  }

  /** Where what has experts stays, and only the rest is streamed. */
  @Test
  void withoutExpertsThatAreStreamedThereIsNoSecondRing() {
    List<LayerSize> layers = new ArrayList<>(Collections.nCopies(30, LayerSize.of(PAGE)));
    layers.set(0, new LayerSize(PAGE, 2 * PAGE, 0, 0, PAGE, 512));
    StreamPlan plan = plan(layers, 5 * PAGE + 3 * PAGE + 2 * PAGE);
    assertThat(plan.resident()).containsExactly(0);
    assertThat(plan.expertSlotBytes()).isZero();
    assertThat(plan.routerBytes()).isZero();
    assertThat(plan.deviceBytes()).isEqualTo(5 * PAGE + 2 * PAGE);
  }

  @Test
  void aBudgetThatIsTooSmallSaysWhatIsEnough() {
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(() -> plan(TEN, 3 * PAGE - 1))
        .withMessage(
            "a budget of 12287 bytes is not enough; 12288 are, for a ring of 2 slots for the"
                + " longest layer; 0 means that no layer stays, whatever that takes");
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(() -> StreamPlan.of(TEN, 1000, 6 * PAGE, 5))
        .withMessageContaining("25576 are, with 1000 in no layer, for a ring of 5 slots");
  }

  @ParameterizedTest
  @ValueSource(ints = {-1, 1, 1025, Integer.MIN_VALUE, Integer.MAX_VALUE})
  void ringsHaveSlots(int slots) {
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(() -> StreamPlan.of(TEN, 0, StreamPlan.EVERYTHING, slots))
        .withMessageContaining("not " + slots);
  }

  @Test
  void impossibleNumbersAreRefused() {
    assertThatExceptionOfType(InvalidRequestException.class).isThrownBy(() -> plan(TEN, -1));
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(() -> StreamPlan.of(TEN, -1, 0, 0));
    List<LayerSize> huge = Collections.nCopies(2, LayerSize.of(Long.MAX_VALUE / 2 - PAGE));
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(() -> plan(huge, 0))
        .withMessageContaining("2^63");
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(() -> plan(List.of(LayerSize.of(Long.MAX_VALUE)), 0))
        .withMessageContaining("2^63");
    List<LayerSize> many = Collections.nCopies(10_001, LayerSize.of(1));
    assertThatExceptionOfType(InvalidRequestException.class).isThrownBy(() -> plan(many, 0));
    for (long[] n : new long[][] {{-1, 0, 0, 0}, {1, -1, 0, 0}, {1, 1, -1, 0}, {1, 1, 0, -1}}) {
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> new LayerSize(n[0], n[1], n[2], n[3]));
    }
    // Of a layer of 9 bytes: experts alone, a router without experts, and one that is too long.
    for (long[] n : new long[][] {{0, 1, 0}, {9, -1, 0}, {9, 1, -1}, {9, 0, 1}, {9, 1, 10}}) {
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> new LayerSize(n[0], 9, 0, 0, n[1], n[2]))
          .withMessageContaining("of experts");
    }
    List<LayerSize> wide = List.of(new LayerSize(1, 1, 0, 0, Long.MAX_VALUE - PAGE, 0));
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(() -> plan(wide, 0))
        .withMessageContaining("2^63");
  }

  @Test
  void readsGoOnWhileALayerIsUsed() {
    assertThat(plan(TEN, 0).readsInFlight()).isEqualTo(2);
    assertThat(StreamPlan.of(TEN, 0, 0, 2).readsInFlight()).isEqualTo(1);
    assertThat(StreamPlan.of(TEN, 0, 0, 9).readsInFlight()).isEqualTo(2);
  }

  @Test
  void aPassIsAsLongAsTheLongerOfReadingAndComputing() {
    StreamPlan plan = plan(TEN, 0);
    assertThat(plan.forecast(0, 40_960, 0).seconds()).isEqualTo(1);
    assertThat(plan.forecast(0, 40_960, 0.5).limit()).isEqualTo(Limit.READING);
    assertThat(plan.forecast(0, 40_960, 0.5).seconds()).isEqualTo(1);
    assertThat(plan.forecast(0, 40_960, 3).limit()).isEqualTo(Limit.COMPUTE);
    assertThat(plan.forecast(0, 40_960, 3).seconds()).isEqualTo(3);
    StreamForecast all = plan(TEN, StreamPlan.EVERYTHING).forecast(0, 1, 3);
    assertThat(all.limit()).isEqualTo(Limit.NOTHING_STREAMED);
    assertThat(all.seconds()).isEqualTo(3);
    for (double wrong : new double[] {0, -1, Double.NaN}) {
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> plan.forecast(0, wrong, 0));
    }
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(() -> plan.forecast(0, 1, -1));
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(() -> plan.forecast(-1, 1, 0));
    // Experts that are chosen are read besides.
    assertThat(plan.forecast(20_480, 40_960, 0).seconds()).isEqualTo(1.5);
    assertThat(plan.forecast(Long.MAX_VALUE, 0x1p63, 0).seconds()).isBetween(1.0, 1.1);
  }

  /** Whatever the layers are: all that can be said of a plan without making it again. */
  @Test
  void plansKeepTheirBudget() {
    long seed = Long.getLong("gpunvme.seed", System.nanoTime());
    Random random = new Random(seed);
    for (int round = 0; round < 3000; round++) {
      List<LayerSize> layers = layers(random);
      long fixed = random.nextInt(3) * 5000L;
      int slots = random.nextBoolean() ? StreamPlan.ANY_SLOTS : 2 + random.nextInt(5);
      long least = StreamPlan.leastBudget(layers, fixed, slots);
      long all = StreamPlan.of(layers, fixed, StreamPlan.EVERYTHING, slots).deviceBytes();
      String what = "seed %d, round %d: %s, %d, %d".formatted(seed, round, layers, fixed, slots);
      if (least > 1 && layers.stream().anyMatch(l -> l.stored() > 0)) {
        assertThatExceptionOfType(InvalidRequestException.class)
            .as(what)
            .isThrownBy(() -> StreamPlan.of(layers, fixed, least - 1, slots))
            .withMessageContaining("; " + least + " are");
      }
      long budget = least + random.nextLong(all + 1);
      check(layers, StreamPlan.of(layers, fixed, budget, slots), budget, all, slots, what);
      check(
          layers, StreamPlan.of(layers, fixed, Math.max(1, least), slots), least, all, slots, what);
      StreamPlan none = StreamPlan.of(layers, fixed, 0, slots);
      assertThat(none.resident()).as(what).allMatch(i -> layers.get(i).stored() == 0);
    }
  }

  private static List<LayerSize> layers(Random random) {
    List<LayerSize> layers = new ArrayList<>();
    boolean alike = random.nextBoolean();
    for (int n = 1 + random.nextInt(12); n > 0; n--) {
      long stored = random.nextInt(5) == 0 ? 0 : 512L * (1 + random.nextInt(40));
      long unconverted = random.nextInt(3) == 0 ? stored / 2 : 0;
      long experts = stored > 0 && random.nextInt(3) == 0 ? 512L * (1 + random.nextInt(40)) : 0;
      long router = experts > 0 && random.nextBoolean() ? 512 : 0;
      long made = stored == 0 ? 512L * random.nextInt(40) : 0;
      LayerSize one =
          new LayerSize(
              stored,
              stored + unconverted + experts + made,
              unconverted,
              2 * unconverted,
              experts,
              router);
      layers.add(alike && !layers.isEmpty() ? layers.getFirst() : one);
    }
    return layers;
  }

  private static void check(
      List<LayerSize> layers, StreamPlan plan, long budget, long all, int slots, String what) {
    List<Integer> streamed =
        IntStream.range(0, layers.size())
            .filter(i -> !plan.resident().contains(i))
            .boxed()
            .toList();
    boolean anyBytes = layers.stream().anyMatch(l -> l.stored() > 0);
    assertThat(plan.resident()).as(what).isSorted().doesNotHaveDuplicates();
    assertThat(plan.streamed()).as(what).isEqualTo(streamed.size());
    assertThat(plan.slots() == 0).as(what).isEqualTo(!anyBytes || budget >= all);
    assertThat(streamed.isEmpty()).as(what).isEqualTo(plan.slots() == 0);
    assertThat(plan.passBytes())
        .as(what)
        .isEqualTo(streamed.stream().mapToLong(i -> layers.get(i).stored()).sum());
    assertThat(plan.residentBytes())
        .as(what)
        .isEqualTo(plan.resident().stream().mapToLong(i -> layers.get(i).used()).sum());
    if (anyBytes) {
      assertThat(plan.deviceBytes()).as(what).isLessThanOrEqualTo(budget);
    }
    assertThat(plan.routerBytes())
        .as(what)
        .isEqualTo(streamed.stream().mapToLong(i -> layers.get(i).router()).sum());
    assertThat(plan.expertSlotBytes() > 0)
        .as(what)
        .isEqualTo(streamed.stream().anyMatch(i -> layers.get(i).experts() > 0));
    if (plan.slots() > 0) {
      assertThat(streamed)
          .as(what)
          .allMatch(i -> layers.get(i).experts() <= plan.expertSlotBytes());
      assertThat(plan.slots()).as(what).isBetween(2, slots == 0 ? 4 : slots);
      assertThat(streamed)
          .as(what)
          .allMatch(i -> layers.get(i).stored() <= plan.slotBytes())
          .allMatch(i -> layers.get(i).stored() > 0);
      assertThat(plan.convertedBytes())
          .as(what)
          .isGreaterThanOrEqualTo(layers.stream().mapToLong(LayerSize::converted).max().orElse(0));
    }
  }
}
