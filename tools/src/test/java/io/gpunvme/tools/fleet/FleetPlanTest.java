package io.gpunvme.tools.fleet;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import io.gpunvme.base.InvalidRequestException;
import java.time.Duration;
import java.util.List;
import org.assertj.core.data.Offset;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What can be worked out without a simulation. */
final class FleetPlanTest {
  private static final long MODEL = 140L << 30;
  private static final double BYTES = MODEL;

  /** Nothing but bytes over links, and one file. */
  private static final Parameters BYTES_ONLY = bytesOnly();

  private static Parameters bytesOnly() {
    Parameters some = Parameters.defaults().with(Parameter.ALLOCATE, 1e6).with(Parameter.FILE, 1e6);
    for (Parameter none :
        List.of(Parameter.OPEN, Parameter.PIN, Parameter.START, Parameter.DCP, Parameter.HOP)) {
      some = some.with(none, 0);
    }
    return some;
  }

  private static FleetPlan.ByWay by(Fleet fleet, Way way) {
    return FleetPlan.of(fleet, BYTES_ONLY, way).ways().getFirst();
  }

  private static double seconds(Fleet fleet, Parameters parameters, Way way) {
    return FleetPlan.of(fleet, parameters, way).ways().getFirst().load().seconds();
  }

  private static Offset<Double> closeTo(double value) {
    return within(value * 2e-3);
  }

  private static void takes(Traffic traffic, double seconds, String limit) {
    assertThat(traffic.seconds()).isCloseTo(seconds, closeTo(seconds));
    assertThat(traffic.leastSeconds()).isCloseTo(seconds, closeTo(seconds));
    assertThat(traffic.limit()).isEqualTo(limit);
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 8, 1000, 1_000_000})
  void ownSsdsTakeTheModelByTheirRateHoweverManyMachines(long machines) {
    takes(by(Fleet.of(machines, 8, 8, MODEL), Way.OWN).load(), BYTES / (8 * 7e9), "own SSDs");
  }

  @Test
  void cachedModelsTakeThePinnedPathOrTheMemory() {
    takes(by(Fleet.of(5, 1, 8, MODEL), Way.CACHE).load(), BYTES / 49.64e9, "pinned path");
    takes(by(Fleet.of(5, 8, 8, MODEL), Way.CACHE).load(), BYTES / 200e9, "host memory");
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 8, 9, 1000})
  void aPoolIsSharedByAll(long machines) {
    Traffic load = by(Fleet.of(machines, 8, 8, MODEL), Way.POOL).load();

    // 8 targets of 50 GB/s, and each machine's own card.
    takes(
        load,
        machines <= 8 ? BYTES / 50e9 : machines * BYTES / 400e9,
        machines <= 8 ? "network in" : "pool");
  }

  @Test
  void morePoolHelpsUntilTheCardsAreFull() {
    Fleet fleet = Fleet.of(1000, 8, 8, MODEL);
    takes(by(fleet.withTargets(80), Way.POOL).load(), 1000 * BYTES / 4000e9, "pool");
    takes(by(fleet.withTargets(2000), Way.POOL).load(), BYTES / 50e9, "network in");
  }

  @Test
  void aNarrowFabricLimitsThePool() {
    Traffic load =
        FleetPlan.of(
                Fleet.of(1000, 8, 8, MODEL).withTargets(2000),
                BYTES_ONLY.with(Parameter.OVERSUBSCRIPTION, 4),
                Way.POOL)
            .ways()
            .getFirst()
            .load();
    takes(load, 4 * BYTES / 50e9, "fabric");
  }

  /** The part of a machine is read first, then all parts but one go through each card. */
  @ParameterizedTest
  @ValueSource(longs = {2, 8, 1000})
  void peersTakeTheirPartAndThenTheCard(long machines) {
    Traffic load = by(Fleet.of(machines, 8, 8, MODEL), Way.PEERS).load();
    double read = BYTES / machines / (8 * 7e9);
    double gathered = BYTES * (machines - 1) / machines / 50e9;

    assertThat(load.seconds()).isCloseTo(read + gathered, closeTo(read + gathered));
    assertThat(load.bytes("network in")).isCloseTo(machines * BYTES - BYTES, closeTo(BYTES));
  }

  /** Ten files, of which only the first waits for pinned memory; GPUs of a process take turns. */
  @Test
  void eachGpuPinsOnce() {
    Parameters pinning = BYTES_ONLY.with(Parameter.FILE, BYTES / 10 / 1e9);
    Fleet fleet = Fleet.of(1, 2, 8, MODEL).withPlacement(Placement.ALONE);
    for (boolean together : new boolean[] {false, true}) {
      Fleet some = fleet.withOneProcess(together);
      double without = seconds(some, pinning, Way.CACHE);
      double with = seconds(some, pinning.with(Parameter.PIN, 1000), Way.CACHE);
      assertThat(with - without).isCloseTo(together ? 2 : 1, within(1e-6));
    }
  }

  @Test
  void onePeerIsAlone() {
    Traffic peers = by(Fleet.of(1, 8, 8, MODEL), Way.PEERS).load();

    assertThat(peers).isEqualTo(by(Fleet.of(1, 8, 8, MODEL), Way.OWN).load());
  }

  @Test
  void aRingOfManyWaitsForTheNetwork() {
    Parameters hops = BYTES_ONLY.with(Parameter.HOP, 10);
    Fleet fleet = Fleet.of(1000, 8, 8, MODEL);
    double with = seconds(fleet, hops, Way.PEERS);
    double without = by(fleet, Way.PEERS).load().seconds();

    // 560 buckets of 256 MiB, 999 steps of 10 us in each.
    assertThat(with - without).isCloseTo(560 * 999 * 10e-6, within(1e-6));
    double larger = seconds(fleet, hops.with(Parameter.BUCKET, 8192), Way.PEERS);
    assertThat(larger - without).isCloseTo(18 * 999 * 10e-6, within(1e-6));
  }

  /** Of whichever way, what reaches GPUs is what was to be loaded. */
  @ParameterizedTest
  @EnumSource
  void nothingIsLostOnTheWay(Way way) {
    for (boolean oneProcess : new boolean[] {true, false}) {
      for (Placement placement : Placement.values()) {
        if (way == Way.PEERS && placement == Placement.ALONE) {
          continue;
        }
        Fleet fleet = Fleet.of(6, 4, 3, MODEL).withPlacement(placement).withOneProcess(oneProcess);
        Traffic load = FleetPlan.of(fleet, Parameters.defaults(), way).ways().getFirst().load();
        double kept =
            switch (placement) {
              case MACHINE -> 6 * BYTES;
              case GPU, ALONE -> 24 * BYTES;
              case SHARDED -> BYTES;
            };
        double peers = placement == Placement.GPU ? load.bytes("GPU peers") / 2 : 0;
        // By peers, a machine that shards also reads what others need.
        double passed = way == Way.PEERS && placement == Placement.SHARDED ? BYTES * 5 / 6 : 0;
        assertThat(load.bytes("GPU links") + peers - passed)
            .as("%s %s %s", way, placement, oneProcess)
            .isCloseTo(kept, within(kept * 1e-6));
        assertThat(load.seconds()).isGreaterThanOrEqualTo(load.leastSeconds());
      }
    }
  }

  @Test
  void savesTakeWhatIsWritten() {
    Fleet fleet = Fleet.of(100, 8, 8, MODEL).withCheckpointBytes(10 * MODEL);
    double ofOne = BYTES / 10;
    takes(by(fleet, Way.OWN).save(), ofOne / (8 * 4e9), "own SSDs");
    takes(by(fleet, Way.PEERS).save(), 2 * ofOne / (8 * 4e9), "own SSDs");
    takes(by(fleet, Way.POOL).save(), 10 * BYTES / (8 * 50e9), "pool");
    takes(
        FleetPlan.of(fleet, BYTES_ONLY.with(Parameter.TARGET_SSDS, 2), Way.POOL)
            .ways()
            .getFirst()
            .save(),
        10 * BYTES / (8 * 8e9),
        "pool");
    assertThat(by(fleet, Way.CACHE).save()).isNull();
  }

  // ---- lost machines

  /** A spare begins 15 s after the middle, when the others are done, and its card is its limit. */
  @Test
  void aSpareGetsTheModelFromTheOthers() {
    FleetPlan.ByWay own = by(Fleet.of(10, 8, 8, MODEL), Way.OWN);
    double load = BYTES / (8 * 7e9);

    assertThat(own.loss().seconds())
        .isCloseTo(load / 2 + 15 + BYTES / 50e9, closeTo(load / 2 + 15 + BYTES / 50e9));
    assertThat(own.loss().extraSeconds()).isEqualTo(own.loss().seconds() - own.load().seconds());
    assertThat(own.loss().moreBytes()).isCloseTo(BYTES / 2, closeTo(BYTES));
    assertThat(own.survives()).isFalse();
  }

  @Test
  void aPoolServesTheSpareWithTheRest() {
    FleetPlan.ByWay pool = by(Fleet.of(1000, 8, 8, MODEL).withLost(500), Way.POOL);

    // Half of the machines have half of theirs, and that is read for nothing.
    assertThat(pool.loss().moreBytes()).isCloseTo(250 * BYTES, closeTo(250 * BYTES));
    assertThat(pool.loss().extraSeconds())
        .isCloseTo(250 * BYTES / 400e9, closeTo(250 * BYTES / 400e9));
    assertThat(pool.survives()).isTrue();
  }

  @Test
  void allPeersBeginAgain() {
    FleetPlan.ByWay peers = by(Fleet.of(10, 8, 8, MODEL), Way.PEERS);
    double first = peers.load().seconds() / 2;
    // The machine with the second copy reads two parts; the spare gets ten of them.
    double again = 2 * BYTES / 10 / (8 * 7e9) + BYTES / 50e9;

    assertThat(peers.loss().seconds()).isCloseTo(first + 15 + again, closeTo(first + 15 + again));
    assertThat(peers.loss().moreBytes()).isCloseTo(BYTES, closeTo(BYTES));
  }

  @Test
  void partsWithoutASecondCopyAreGone() {
    FleetPlan.ByWay peers = by(Fleet.of(10, 8, 8, MODEL).withLost(6), Way.PEERS);

    assertThat(peers.loss().seconds()).isNull();
    assertThat(peers.loss().what()).contains("copied there again");
    assertThat(peers.survives()).isFalse();
  }

  @Test
  void withoutLostMachinesNothingIsSaidOfThem() {
    assertThat(by(Fleet.of(10, 8, 8, MODEL).withLost(0), Way.OWN).loss()).isNull();
    assertThat(Fleet.of(1, 8, 8, MODEL).lost()).isZero();
  }

  // ---- limits

  @Test
  void aThousandMachinesTakeNoTimeToPlan() {
    long begin = System.nanoTime();
    for (Placement placement : Placement.values()) {
      FleetPlan.of(Fleet.of(1000, 8, 8, MODEL).withPlacement(placement), Parameters.defaults());
    }
    assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(Duration.ofSeconds(2));
  }

  @Test
  void numbersOutOfRangeAreRefused() {
    assertThatThrownBy(() -> Fleet.of(Long.MAX_VALUE, 1, 1, 1))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessage("9223372036854775807 machines: must be from 1 to 1000000");
    assertThatThrownBy(() -> Fleet.of(2, 1, 1, 1).withLost(-1))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageStartingWith("-1 lost machines of 2");
    assertThatThrownBy(() -> Fleet.of(1, 1, 1, Long.MAX_VALUE))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("bytes of the model");
  }

  /** The largest of everything ends, with finite numbers. */
  @Test
  void theLargestFleetIsPlanned() {
    Fleet fleet = Fleet.of(1_000_000, 64, 1024, 1L << 60);
    FleetPlan plan = FleetPlan.of(fleet, BYTES_ONLY);

    assertThat(plan.ways())
        .hasSize(4)
        .allSatisfy(by -> assertThat(by.load().seconds()).isPositive().isFinite());
    assertThatThrownBy(() -> FleetPlan.of(fleet.withOneProcess(true), BYTES_ONLY))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("1153 files of 1000000GB, read by 64 GPUs");
  }
}
