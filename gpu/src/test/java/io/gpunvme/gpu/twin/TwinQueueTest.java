package io.gpunvme.gpu.twin;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.gpu.queue.DeviceStatus;
import io.gpunvme.gpu.queue.QueueCounters;
import io.gpunvme.gpu.twin.TwinJob.Outcome;
import io.gpunvme.sim.DoorbellWindow;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Random;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The queues of the device library against the embedded controller, every byte checked. */
@Timeout(300)
class TwinQueueTest {
  private static final long PATIENT = 20_000;

  /** SCT and SC of a status. */
  private static final int CODE = 0x7FF;

  private static TwinLibrary library;

  private final long seed = Long.getLong("gpunvme.seed", System.nanoTime());

  @BeforeAll
  static void compile() {
    library = TwinLibrary.load();
  }

  private void assertAllWell(TwinDevice device, Outcome outcome, int operations) {
    assertThat(outcome)
        .as("seed %d, %s", seed, device.queues.counters())
        .isEqualTo(new Outcome(outcome.succeeded(), 0, 0, 0, 0, 0, 0, 0, 0));
    assertThat(outcome.succeeded()).isGreaterThanOrEqualTo(operations);
    QueueCounters c = device.queues.counters();
    assertThat(c)
        .isEqualTo(
            new QueueCounters(
                c.submitted(),
                c.submitted(),
                c.sqDoorbells(),
                c.cqDoorbells(),
                c.failures(),
                0,
                0,
                0,
                0,
                c.malformed(),
                0));
    assertThat(device.sim.stats().ioCommands(DoorbellWindow.PEER)).isEqualTo(c.submitted());
    assertThat(device.sim.stats().ioCommands(DoorbellWindow.CPU)).isZero();
    assertThat(device.sim.stats().duplicateCids()).isZero();
    assertThat(device.sim.stats().doorbellErrors()).isZero();
  }

  @ParameterizedTest
  @CsvSource({
    "1,1,32,SHARED",
    "2,1,32,SHARED",
    "8,1,32,SHARED",
    "8,1,64,SHARED",
    "4,2,992,SHARED",
    "8,4,96,SHARED",
    "1,1,32,SERVED",
    "8,1,32,SERVED",
    "4,2,96,SERVED",
  })
  void anyNumberOfThreadsSharesQueues(int threads, int queuePairs, int depth, TwinDriver driver) {
    try (TwinDevice d =
        new TwinDevice(library, driver, queuePairs, depth, threads, 4, PATIENT, seed)) {
      assertAllWell(d, d.run(seed, 500, false), threads * 500);
      // Compares that were to fail did, and nothing else.
      assertThat(d.queues.takeErrors().total()).isEqualTo(d.queues.counters().failures());
    }
  }

  @ParameterizedTest
  @CsvSource({
    "1,2,WARP",
    "1,1,WARP",
    "1,31,WARP",
    "4,32,WARP",
    "2,64,WARP",
    "1,1000,WARP",
    "1,2,BLOCK",
    "1,8,BLOCK_OF_7",
    "1,1,BLOCK",
    "1,31,BLOCK_OF_7",
    "2,32,BLOCK",
    "1,64,BLOCK_OF_1",
    "1,1000,BLOCK",
  })
  void aWarpOrABlockOwnsEachQueue(int queuePairs, int depth, TwinDriver driver) {
    try (TwinDevice d =
        new TwinDevice(library, driver, queuePairs, depth, queuePairs, depth, PATIENT, seed)) {
      assertAllWell(d, d.run(seed, 2000, true), queuePairs * 2000);
      // The next kernel goes on where the last one left.
      assertAllWell(d, d.run(~seed, 2000, true), queuePairs * 2000);
      assertThat(d.queues.takeErrors().total()).isZero();
    }
  }

  @Test
  void warpsAndBlocksTakeTurns() {
    try (TwinDevice d = new TwinDevice(library, TwinDriver.WARP, 1, 31, 1, 31, PATIENT, seed)) {
      int runs = 0;
      for (TwinDriver driver :
          new TwinDriver[] {
            TwinDriver.WARP, TwinDriver.BLOCK, TwinDriver.BLOCK_OF_7, TwinDriver.WARP
          }) {
        assertAllWell(d, d.runBy(driver, seed + runs, 500), 500);
        runs++;
        assertThat(d.queues.counters().submitted()).isEqualTo(runs * 500);
      }
      assertThat(d.queues.takeErrors().total()).isZero();
    }
  }

  /** One kernel's callers help, the next one's are served. */
  @Test
  void callersThatHelpAndCallersThatAreServedTakeTurns() {
    try (TwinDevice d = new TwinDevice(library, TwinDriver.SHARED, 1, 32, 2, 4, PATIENT, seed)) {
      for (int i = 0; i < 4; i++) {
        TwinDriver driver = i % 2 == 0 ? TwinDriver.SHARED : TwinDriver.SERVED;
        assertAllWell(d, d.runBy(driver, seed + i, 200), 2 * 200);
      }
    }
  }

  @Test
  void submittingWithoutWaitingEndsWhenTheSlotsDo() {
    TwinLibrary.Function exhaust =
        library.function("twin_exhaust", int.class, long.class, long.class, long.class, long.class);
    try (TwinDevice d = new TwinDevice(library, TwinDriver.SHARED, 1, 64, 1, 4, 50, seed);
        Arena arena = Arena.ofConfined()) {
      MemorySegment statuses = arena.allocate(ValueLayout.JAVA_INT, 2);
      for (int i = 0; i < 3; i++) {
        int submitted =
            exhaust.callInt(
                d.ns.address(), d.queue().deviceAddress(), d.buffer(), statuses.address());
        assertThat(submitted).isEqualTo(64);
        assertThat(statuses.getAtIndex(ValueLayout.JAVA_INT, 0)).isEqualTo(DeviceStatus.BUSY);
        assertThat(statuses.getAtIndex(ValueLayout.JAVA_INT, 1)).isZero();
      }
      assertThat(d.queues.counters().completed()).isEqualTo(3 * 64);
    }
  }

  @Test
  void rangesEndWithTheirFirstFailure() {
    TwinLibrary.Function read = rangeFunction("twin_read");
    try (TwinDevice d = new TwinDevice(library, TwinDriver.SHARED, 1, 32, 1, 64, PATIENT, seed)) {
      long ns = d.ns.address();
      long q = d.queue().deviceAddress();
      int all = 64 * TwinDevice.CHUNK_BLOCKS;
      assertThat(read.callInt(ns, q, 0L, (long) all, d.buffer(), 0L)).isZero();
      long whole = d.queues.counters().submitted();
      assertThat(whole).isEqualTo(Math.ceilDiv(all, TwinDevice.MAX_BLOCKS));
      assertThat(read.callInt(ns, q, 0L, all + 1L, d.buffer(), 0L))
          .isEqualTo(DeviceStatus.ARGUMENT);
      assertThat(d.queues.counters().submitted()).as("nothing was submitted").isEqualTo(whole);

      d.sim.faults().add("status=media/unrecovered-read on read lba=40");
      assertThat(read.callInt(ns, q, 0L, (long) all, d.buffer(), 0L) & CODE).isEqualTo(0x281);
      // The third of them failed: what was in flight with it was waited for, the rest not begun.
      assertThat(d.queues.counters().submitted() - whole).isBetween(2L, 8L);
      assertThat(d.queues.counters().completed()).isEqualTo(d.queues.counters().submitted());
      assertThat(d.queue().quarantined()).isZero();
    }
  }

  @ParameterizedTest
  @CsvSource({"1,1", "1,64", "3,17", "7,64", "4,3"})
  void aBlockReadsARangeTogether(int warps, int chunks) {
    TwinLibrary.Function read =
        library.function(
            "twin_read_block",
            void.class,
            long.class,
            long.class,
            long.class,
            long.class,
            long.class,
            long.class,
            int.class,
            long.class);
    TwinLibrary.Function readWarp = rangeFunction("twin_read_warp");
    try (TwinDevice d = new TwinDevice(library, TwinDriver.SHARED, 1, 32, 1, 64, PATIENT, seed);
        Arena arena = Arena.ofConfined()) {
      MemorySegment statuses = arena.allocate(ValueLayout.JAVA_INT, warps);
      MemorySegment medium = d.sim.mediaMemory(1).orElseThrow();
      byte[] random = new byte[TwinDevice.BLOCKS * TwinDevice.BLOCK];
      new Random(seed).nextBytes(random);
      MemorySegment.copy(random, 0, medium, ValueLayout.JAVA_BYTE, 0, random.length);
      long ns = d.ns.address();
      long q = d.queue().deviceAddress();
      long blocks = (long) chunks * TwinDevice.CHUNK_BLOCKS - 1;
      MemorySegment memory = d.memory();
      memory.fill((byte) 7);
      read.call(ns, q, 1L, blocks, d.buffer(), 8L, warps, statuses.address());
      assertThat(statuses.toArray(ValueLayout.JAVA_INT)).containsOnly(0);
      long bytes = blocks * TwinDevice.BLOCK;
      assertThat(memory.asSlice(8, bytes).mismatch(medium.asSlice(TwinDevice.BLOCK, bytes)))
          .isEqualTo(-1);
      assertThat(memory.get(ValueLayout.JAVA_BYTE, 7)).isEqualTo((byte) 7);
      assertThat(memory.get(ValueLayout.JAVA_BYTE, 8 + bytes)).isEqualTo((byte) 7);
      assertThat(d.queues.counters().submitted())
          .isEqualTo(Math.ceilDiv(blocks, TwinDevice.MAX_BLOCKS));

      memory.fill((byte) 7);
      assertThat(readWarp.callInt(ns, q, 1L, blocks, d.buffer(), 8L)).isZero();
      assertThat(memory.asSlice(8, bytes).mismatch(medium.asSlice(TwinDevice.BLOCK, bytes)))
          .isEqualTo(-1);

      read.call(ns, q, 1L, 0L, d.buffer(), 0L, warps, statuses.address());
      assertThat(statuses.toArray(ValueLayout.JAVA_INT)).containsOnly(DeviceStatus.ARGUMENT);
      read.call(ns, q, 0L, 1L << 40, d.buffer(), 0L, warps, statuses.address());
      assertThat(statuses.toArray(ValueLayout.JAVA_INT)).containsOnly(DeviceStatus.ARGUMENT);

      d.sim.faults().add("status=media/unrecovered-read on read lba=1");
      read.call(ns, q, 1L, blocks, d.buffer(), 0L, warps, statuses.address());
      assertThat(statuses.toArray(ValueLayout.JAVA_INT))
          .as("everybody is told of the one that failed")
          .containsOnly(statuses.getAtIndex(ValueLayout.JAVA_INT, 0));
      assertThat(statuses.getAtIndex(ValueLayout.JAVA_INT, 0) & CODE).isEqualTo(0x281);
      assertThat(readWarp.callInt(ns, q, 1L, blocks, d.buffer(), 0L) & CODE).isEqualTo(0x281);
    }
  }

  @Test
  void oneCommandIsOneCommand() {
    TwinLibrary.Function read = rangeFunction("twin_read_one");
    try (TwinDevice d = new TwinDevice(library, TwinDriver.SHARED, 1, 32, 1, 64, PATIENT, seed)) {
      long ns = d.ns.address();
      long q = d.queue().deviceAddress();
      assertThat(read.callInt(ns, q, 0L, (long) TwinDevice.MAX_BLOCKS, d.buffer(), 0L)).isZero();
      for (long blocks : new long[] {0, TwinDevice.MAX_BLOCKS + 1, (1L << 32) + 1}) {
        assertThat(read.callInt(ns, q, 0L, blocks, d.buffer(), 0L))
            .isEqualTo(DeviceStatus.ARGUMENT);
      }
      assertThat(d.queues.counters().submitted()).isEqualTo(1);
    }
  }

  /** Of a namespace, a queue, an LBA, a number of blocks, a buffer and an offset there. */
  private static TwinLibrary.Function rangeFunction(String name) {
    return library.function(
        name, int.class, long.class, long.class, long.class, long.class, long.class, long.class);
  }

  @Test
  void zeroesReachTheMediumAndStayInTheNamespace() {
    TwinLibrary.Function zeroes =
        library.function(
            "twin_write_zeroes", int.class, long.class, long.class, long.class, int.class);
    try (TwinDevice d = new TwinDevice(library, TwinDriver.SHARED, 1, 32, 1, 4, PATIENT, seed)) {
      MemorySegment medium = d.sim.mediaMemory(1).orElseThrow();
      medium.fill((byte) 7);
      long ns = d.ns.address();
      long q = d.queue().deviceAddress();
      assertThat(zeroes.callInt(ns, q, 2L, 3)).isZero();
      long size = TwinDevice.BLOCK;
      assertThat(medium.asSlice(2 * size, 3 * size).mismatch(MemorySegment.ofArray(new byte[1536])))
          .isEqualTo(-1);
      assertThat(medium.get(ValueLayout.JAVA_BYTE, 2 * size - 1)).isEqualTo((byte) 7);
      assertThat(medium.get(ValueLayout.JAVA_BYTE, 5 * size)).isEqualTo((byte) 7);
      for (int blocks : new int[] {0, 65537, TwinDevice.BLOCKS + 1}) {
        assertThat(zeroes.callInt(ns, q, 0L, blocks)).isEqualTo(DeviceStatus.ARGUMENT);
      }
      assertThat(zeroes.callInt(ns, q, (long) TwinDevice.BLOCKS, 1))
          .isEqualTo(DeviceStatus.ARGUMENT);
      assertThat(d.queues.counters().submitted()).isEqualTo(1);
    }
  }
}
