package io.gpunvme.gpu.twin;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.gpu.queue.DeviceError;
import io.gpunvme.gpu.queue.DeviceError.Kind;
import io.gpunvme.gpu.queue.DeviceErrors;
import io.gpunvme.gpu.queue.DeviceStatus;
import io.gpunvme.gpu.queue.QueueCounters;
import io.gpunvme.gpu.twin.TwinJob.Outcome;
import io.gpunvme.nvme.driver.QueuePair.State;
import java.time.Duration;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Every fault of the embedded controller under every kind of queue: each caller gets a typed
 * result, nobody hangs, counters and error log say what happened, and the queue works again.
 */
@Timeout(300)
class TwinFaultsTest {
  private static final int DEPTH = 32;
  private static final int CHUNKS = 32;

  /** Long enough not to be mistaken for what a busy machine does to a thread. */
  private static final long PATIENT = 20_000;

  private static final long SHORT = 200;

  /** Nothing here takes as long. */
  private static final Duration LIMIT = Duration.ofSeconds(30);

  /** SCT and SC of a status. */
  private static final int CODE = 0x7FF;

  private static TwinLibrary library;

  private final long seed = Long.getLong("gpunvme.seed", System.nanoTime());

  @BeforeAll
  static void compile() {
    library = TwinLibrary.load();
  }

  private static int threads(TwinDriver driver) {
    return driver.shared() ? 4 : 1;
  }

  private TwinDevice open(TwinDriver driver, long timeoutMillis) {
    return new TwinDevice(library, driver, 1, DEPTH, threads(driver), CHUNKS, timeoutMillis, seed);
  }

  /** As many commands on either kind of queue. */
  private Outcome run(TwinDevice device, TwinDriver driver) {
    return device.run(seed, 400 / threads(driver), true);
  }

  private static void await(String what, BooleanSupplier condition) {
    long end = System.nanoTime() + LIMIT.toNanos();
    while (!condition.getAsBoolean()) {
      assertThat(System.nanoTime()).as(what).isLessThan(end);
      Thread.onSpinWait();
    }
  }

  /** The log has a record for everything that was counted. */
  private DeviceErrors assertTold(TwinDevice device) {
    QueueCounters c = device.queues.counters();
    DeviceErrors errors = device.queues.takeErrors();
    long malformed = c.malformed() == 0 ? 0 : 1; // only a queue's first is told
    assertThat(errors.total())
        .as("seed %d, %s", seed, c)
        .isEqualTo(c.failures() + c.timeouts() + c.late() + c.stale() + c.unknown() + malformed);
    if (errors.total() == errors.records().size()) {
      assertKind(errors, Kind.STATUS, c.failures());
      assertKind(errors, Kind.TIMEOUT, c.timeouts());
      assertKind(errors, Kind.LATE, c.late());
      assertKind(errors, Kind.STALE, c.stale());
      assertKind(errors, Kind.UNKNOWN, c.unknown());
    }
    assertThat(errors.records())
        .allSatisfy(
            e -> {
              assertThat(e.qid()).isEqualTo(device.queue().pair().qid());
              assertThat(e.cid()).isBetween(0, 0xFFFE);
            });
    assertThat(device.queue().quarantined()).isEqualTo((int) (c.timeouts() - c.late()));
    return errors;
  }

  private static void assertKind(DeviceErrors errors, Kind kind, long count) {
    assertThat(errors.records().stream().filter(e -> e.kind() == kind)).hasSize((int) count);
  }

  private void assertUsable(TwinDevice device, TwinDriver driver) {
    device.sim.faults().clear();
    if (device.queue().quarantined() > 0 || device.queue().pair().state() != State.READY) {
      assertThat(device.recover()).isTrue();
    }
    long before = device.queues.counters().submitted();
    // No command is to be late because the machine is busy.
    device.setTimeout(PATIENT);
    Outcome outcome = run(device, driver);
    assertThat(outcome).as("seed %d", seed).isEqualTo(new Outcome(400, 0, 0, 0, 0, 0, 0, 0, 0));
    assertThat(device.queues.counters().submitted() - before).isEqualTo(400);
    assertThat(device.queues.takeErrors().total()).isZero();
    assertThat(device.queue().quarantined()).isZero();
  }

  /** What must not be noticed. */
  @ParameterizedTest
  @CsvSource({
    "reorder=3 on io p=0.3, SHARED",
    "reorder=3 on io p=0.3, WARP",
    "reorder=3 on io p=0.3, BLOCK",
    "reorder=3 on io p=0.3, SERVED",
    "torn=50us on io p=0.3, SHARED",
    "torn=50us on io p=0.3, WARP",
    "torn=50us on io p=0.3, BLOCK",
    "torn=50us on io p=0.3, SERVED",
    "delay=3ms on io p=0.02, SHARED",
    "delay=3ms on io p=0.02, WARP",
    "delay=3ms on io p=0.02, BLOCK",
    "sqhd-bad on io p=0.5, SHARED",
    "sqhd-bad on io p=0.5, WARP",
    "sqhd-bad on io p=0.5, BLOCK",
    "lost-interrupt on io, SHARED",
    "lost-interrupt on io, WARP",
    "lost-interrupt on io, BLOCK",
    "stall=20ms on io every=50, SHARED",
    "stall=20ms on io every=50, WARP",
    "stall=20ms on io every=50, BLOCK",
  })
  void someFaultsMustNotMatter(String fault, TwinDriver driver) {
    try (TwinDevice d = open(driver, PATIENT)) {
      d.sim.faults().add(fault);
      assertThat(run(d, driver))
          .as("seed %d", seed)
          .isEqualTo(new Outcome(400, 0, 0, 0, 0, 0, 0, 0, 0));
      assertThat(d.sim.stats().faults()).isPositive();
      // A half-written entry is told of once, as what it looked like.
      assertThat(assertTold(d).records()).allMatch(e -> e.kind() == Kind.MALFORMED);
      assertUsable(d, driver);
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"SHARED", "SERVED", "WARP", "BLOCK"})
  void aStatusReachesWhoeverAsked(TwinDriver driver) {
    try (TwinDevice d = open(driver, PATIENT)) {
      d.sim.faults().add("status=media/unrecovered-read on read every=10");
      Outcome outcome = run(d, driver);
      int fired = (int) d.sim.stats().faults();
      assertThat(fired).isPositive();
      assertThat(outcome.failed()).isEqualTo(fired);
      assertThat(outcome.succeeded()).isEqualTo(400 - fired);
      assertThat(outcome.wrong()).isZero();
      assertThat(outcome.lastStatus() & CODE).isEqualTo(0x281);
      assertThat(d.queues.counters().failures()).isEqualTo(fired);
      assertThat(assertTold(d).records())
          .allSatisfy(
              e -> {
                assertThat(e.status() & CODE).isEqualTo(0x281);
                assertThat(e.opcode()).isEqualTo(2);
              });
      assertUsable(d, driver);
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"SHARED", "SERVED", "WARP", "BLOCK"})
  void aDoubledCompletionEndsOneCommand(TwinDriver driver) {
    try (TwinDevice d = open(driver, PATIENT)) {
      d.sim.faults().add("duplicate on io every=10");
      assertThat(run(d, driver)).isEqualTo(new Outcome(400, 0, 0, 0, 0, 0, 0, 0, 0));
      // The last one may still lie in the ring.
      assertThat(d.queues.counters().stale()).isBetween(39L, 40L);
      assertThat(assertTold(d).total()).isEqualTo(d.queues.counters().stale());
      d.sim.faults().clear();
      run(d, driver);
      assertThat(d.queues.counters().stale()).isEqualTo(40);
      d.queues.takeErrors();
      assertUsable(d, driver);
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"SHARED", "WARP", "BLOCK"})
  void wrongDataIsFound(TwinDriver driver) {
    try (TwinDevice d = open(driver, PATIENT)) {
      d.sim.faults().add("corrupt=1 on read nth=5");
      Outcome outcome = run(d, driver);
      assertThat(outcome).isEqualTo(new Outcome(400, 0, 0, 0, 0, 0, 1, 0, outcome.wrongAt()));
      assertTold(d);
      assertUsable(d, driver);
    }
  }

  @ParameterizedTest
  @CsvSource({
    "drop on io nth=20, SHARED, false",
    "drop on io nth=20, WARP, false",
    "drop on io nth=20, BLOCK, false",
    "drop on io nth=20, SERVED, false",
    "drop skip on io nth=20, SHARED, false",
    "drop skip on io nth=20, WARP, false",
    "drop skip on io nth=20, BLOCK, false",
    "wrong-cid=0x8000 on io nth=20, SHARED, true",
    "wrong-cid=0x8000 on io nth=20, WARP, true",
    "wrong-cid=0x8000 on io nth=20, BLOCK, true",
  })
  void aLostCompletionIsATimeout(String fault, TwinDriver driver, boolean stale) {
    try (TwinDevice d = open(driver, SHORT)) {
      d.sim.faults().add(fault);
      Outcome outcome = run(d, driver);
      // A busy machine may make more commands late, but these complete.
      assertThat(outcome.timeouts()).isPositive();
      assertThat(outcome.succeeded() + outcome.timeouts()).isEqualTo(400);
      assertThat(outcome.wrong()).isZero();
      assertThat(d.queue().quarantined()).isPositive();
      assertThat(d.queues.counters().timeouts()).isEqualTo(outcome.timeouts());
      DeviceErrors errors = assertTold(d);
      assertThat(errors.records()).extracting(DeviceError::kind).contains(Kind.TIMEOUT);
      assertThat(errors.records().stream().anyMatch(e -> e.kind() == Kind.STALE)).isEqualTo(stale);
      assertUsable(d, driver);
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"SHARED", "SERVED", "WARP", "BLOCK"})
  void aLateCompletionFreesTheSlot(TwinDriver driver) {
    // So late that a busy machine, too, looks at the clock between the deadline and the completion;
    // one that
    // has not gets more time.
    long late = 2500;
    while (!freesTheSlot(driver, late)) {
      assertThat(late).isLessThan(LIMIT.toMillis() / 2);
      late *= 2;
    }
  }

  /** Returns false if no caller gave up before its completion came. */
  private boolean freesTheSlot(TwinDriver driver, long late) {
    try (TwinDevice d = open(driver, SHORT)) {
      d.sim.faults().add("late=" + late + "ms on io nth=20");
      Outcome outcome = run(d, driver);
      assertThat(outcome.succeeded() + outcome.timeouts()).isEqualTo(400);
      if (outcome.timeouts() == 0) {
        return false;
      }
      await(
          "the late completion",
          () -> {
            d.run(seed, 1, true);
            return d.queue().quarantined() == 0;
          });
      assertThat(d.queues.counters().late()).isEqualTo(d.queues.counters().timeouts());
      assertTold(d);
      assertUsable(d, driver);
      return true;
    }
  }

  /** Nothing arrives any more, for the controller's sake or the ring's. */
  @ParameterizedTest
  @CsvSource({
    "stall=100s on io nth=50, SHARED",
    "stall=100s on io nth=50, WARP",
    "stall=100s on io nth=50, BLOCK",
    "stall=100s on io nth=50, SERVED",
    "wrong-phase on io nth=50, SHARED",
    "wrong-phase on io nth=50, WARP",
    "wrong-phase on io nth=50, BLOCK",
    "cfs on io nth=50, SHARED",
    "cfs on io nth=50, WARP",
    "cfs on io nth=50, BLOCK",
  })
  void silenceEndsAndTheQueueIsRecovered(String fault, TwinDriver driver) {
    try (TwinDevice d = open(driver, SHORT)) {
      d.sim.faults().add(fault);
      silence(d, driver);
      assertUsable(d, driver);
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"SHARED", "WARP", "BLOCK"})
  void aDeviceThatIsGoneStaysGone(TwinDriver driver) {
    try (TwinDevice d = open(driver, SHORT)) {
      d.sim.faults().add("gone on io nth=50");
      silence(d, driver);
      assertThat(d.recover()).isFalse();
    }
  }

  private void silence(TwinDevice d, TwinDriver driver) {
    Outcome outcome = d.run(seed, 80 / threads(driver), true);
    assertThat(outcome.timeouts()).isPositive();
    assertThat(outcome.stopped()).isZero();
    assertThat(outcome.wrong() + outcome.refused() + outcome.failed()).isZero();
    assertThat(d.queues.counters().timeouts()).isEqualTo(outcome.timeouts());
    assertTold(d);
  }

  @ParameterizedTest
  @EnumSource(names = {"SHARED", "SERVED", "WARP", "BLOCK"})
  void theHostEndsEveryWait(TwinDriver driver) {
    try (TwinDevice d = open(driver, Duration.ofHours(1).toMillis())) {
      d.sim.faults().add("drop on io nth=50");
      TwinDevice.Running running = d.start(seed, 400 / threads(driver), true);
      await("the fault", () -> d.sim.stats().faults() == 1);
      d.queues.stop(true);
      Outcome outcome = running.end();
      d.queues.stop(false);
      assertThat(outcome.stopped()).isPositive();
      assertThat(outcome.timeouts() + outcome.wrong() + outcome.failed()).isZero();
      assertThat(assertTold(d).records())
          .filteredOn(e -> e.kind() == Kind.TIMEOUT)
          .allSatisfy(e -> assertThat(e.status()).isEqualTo(DeviceStatus.STOPPED));
      assertUsable(d, driver);
    }
  }
}
