package io.gpunvme.storage.path.set;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.nvme.pci.NumaHome;
import io.gpunvme.storage.path.MemberStats;
import io.gpunvme.storage.path.PathCall;
import io.gpunvme.storage.path.Range;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Members that become slow, and well again; time is made up. */
@Timeout(120)
class SlowSetsTest {
  private static final int SHORT = 4096;
  private static final int LONG = 96 << 20;
  private static final int UNIT = 64 << 10;
  private static final long MILLI = 1_000_000;

  private final Accelerator accelerator = CpuAccelerator.open();
  private final List<ScriptedPath> paths = new ArrayList<>();
  private final PathCall call = new PathCall("set");

  @AfterEach
  void close() {
    accelerator.close();
  }

  private List<Member> members(int count) {
    return IntStream.range(0, count)
        .mapToObj(
            m -> {
              ScriptedPath path = new ScriptedPath(7);
              path.nanos = 100_000;
              paths.add(path);
              return new Member("ssd" + m, path, NumaHome.NONE);
            })
        .toList();
  }

  private static void reads(SetPath set, int count, DeviceBuffer buffer, long length, PathCall in) {
    for (int i = 0; i < count; i++) {
      set.transfer(Direction.READ, 0, buffer, 0, length, in);
    }
  }

  private static long bytes(SetPath set, int member) {
    return set.members().get(member).bytes();
  }

  @ParameterizedTest
  @ValueSource(ints = {SHORT, 1 << 20})
  void aSlowCopyIsReadAroundUntilItIsWellAgain(int length) {
    try (ReplicatedPath set = new ReplicatedPath(members(3), ScriptedPath::clock, 0);
        DeviceBuffer buffer = accelerator.allocate(length)) {
      reads(set, 90, buffer, length, call);
      long each = bytes(set, 1);
      assertThat(each).isBetween(20L * length, 40L * length);
      assertThat(set.mode()).doesNotContain("slow");

      paths.get(1).nanos = 20 * MILLI;
      while (set.members().get(1).slow().isEmpty()) {
        reads(set, 1, buffer, length, call);
      }
      assertThat(set.mode()).contains("slow: ssd1, ").doesNotContain("slow: ssd0");
      long before = bytes(set, 1);
      reads(set, 480, buffer, length, call);
      long around = bytes(set, 1) - before;
      assertThat(around).as("of a third of 480 reads").isBetween(5L * length, 32L * length);
      MemberStats slow = set.members().get(1);
      assertThat(slow.avoided()).isGreaterThanOrEqualTo(440);
      assertThat(MemberStats.slowest(set.members())).contains(slow);

      paths.get(1).nanos = 100_000;
      reads(set, 600, buffer, length, call);
      assertThat(set.mode()).doesNotContain("slow");
      before = bytes(set, 1);
      reads(set, 90, buffer, length, call);
      assertThat(bytes(set, 1) - before).isBetween(20L * length, 40L * length);
      byte[] seen = new byte[length];
      buffer.copyToHost(0, MemorySegment.ofArray(seen));
      assertThat(seen).containsOnly(7);
    }
  }

  @Test
  void longReadsLeaveASlowCopyOut() {
    try (ReplicatedPath set = new ReplicatedPath(members(3), ScriptedPath::clock, 0);
        DeviceBuffer buffer = accelerator.allocate(LONG)) {
      paths.forEach(p -> p.nanosPerByte = 0.1);
      paths.forEach(p -> p.fills = false);
      paths.get(2).nanosPerByte = 10;
      reads(set, 2 * ReplicaChoice.PROBE, buffer, LONG, call);
      while (set.members().get(2).slow().isEmpty()) {
        reads(set, 1, buffer, LONG, call);
      }
      long before = bytes(set, 2);
      reads(set, 3 * ReplicaChoice.PROBE, buffer, LONG, call);
      long around = bytes(set, 2) - before;
      assertThat(around).isBetween(1L, 3L * ReplicaChoice.PROBE * LONG / 3 / 5);
      paths.forEach(p -> p.fills = true);
      reads(set, ReplicaChoice.PROBE, buffer, LONG, call);
      byte[] seen = new byte[LONG];
      buffer.copyToHost(0, MemorySegment.ofArray(seen));
      int wrong = 0;
      for (byte b : seen) {
        wrong += b == 7 ? 0 : 1;
      }
      assertThat(wrong).isZero();
    }
  }

  @Test
  void copiesTakeAsMuchAsTheyAreFast() {
    try (ReplicatedPath set = new ReplicatedPath(members(2), ScriptedPath::clock, 0);
        DeviceBuffer buffer = accelerator.allocate(SHORT)) {
      // Not slow enough to be told.
      paths.get(1).nanos = 250_000;
      reads(set, 200, buffer, SHORT, call);
      assertThat(set.mode()).doesNotContain("slow");
      assertThat(bytes(set, 0)).isGreaterThan(4 * bytes(set, 1));
    }
  }

  @Test
  void aShortReadThatFailsIsAnotherCopys() {
    try (ReplicatedPath set = new ReplicatedPath(members(3), ScriptedPath::clock, 0);
        DeviceBuffer buffer = accelerator.allocate(SHORT)) {
      paths.get(0).failAt = 5;
      reads(set, 60, buffer, SHORT, call);
      MemberStats failed = set.members().getFirst();
      assertThat(failed.failure()).contains("broken");
      assertThat(failed.failures()).isEqualTo(1);
      assertThat(failed.avoided()).isPositive();
      assertThat(set.mode()).contains("out of use: ssd0");
      assertThat(call.counters().snapshot().readBytes()).isEqualTo(60L * SHORT);
      assertThat(call.counters().snapshot().retries()).isEqualTo(1);
    }
  }

  @Test
  void aSlowMemberOfAStripeIsNamed() {
    try (StripedPath set = new StripedPath(members(4), UNIT, ScriptedPath::clock, 0);
        DeviceBuffer buffer = accelerator.allocate(16 * UNIT)) {
      reads(set, 10, buffer, 16 * UNIT, call);
      assertThat(set.mode()).doesNotContain("slow");
      paths.get(3).nanos = 3 * MILLI;
      reads(set, 20, buffer, 16 * UNIT, call);
      assertThat(set.mode()).contains("slow: ssd3, ").contains(" us, not 100)");
      assertThat(MemberStats.slowest(set.members()).orElseThrow().name()).isEqualTo("ssd3");
      assertThat(set.members()).extracting(MemberStats::bytes).containsOnly(30L * 4 * UNIT);
      assertThat(set.members()).extracting(MemberStats::requests).containsOnly(30L);
      assertThat(set.members()).extracting(MemberStats::operations).containsOnly(30L);
    }
  }

  /** Each waits for all others: this ends only if all are at work at the same time. */
  @Test
  void allEightMembersWorkAtTheSameTime() {
    CyclicBarrier together = new CyclicBarrier(8);
    try (StripedPath set = new StripedPath(members(8), UNIT, ScriptedPath::clock, 0);
        DeviceBuffer buffer = accelerator.allocate(16 * UNIT)) {
      paths.forEach(p -> p.meanwhile = () -> await(together));
      reads(set, 3, buffer, 16 * UNIT, call);
      assertThat(set.members()).extracting(MemberStats::bytes).containsOnly(3L * 2 * UNIT);
    }
  }

  private static void await(CyclicBarrier together) {
    try {
      together.await(60, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } catch (BrokenBarrierException | TimeoutException e) {
      throw new IllegalStateException("not all members were at work", e);
    }
  }

  /** A short read needs no other thread and asks one member only. */
  @Test
  void aShortReadOfEightIsOneMembersAndTheCallersThread() {
    try (StripedPath set = new StripedPath(members(8), UNIT, ScriptedPath::clock, 0);
        DeviceBuffer buffer = accelerator.allocate(UNIT)) {
      Thread own = Thread.currentThread();
      paths.forEach(p -> p.meanwhile = () -> assertThat(Thread.currentThread()).isSameAs(own));
      for (int m = 0; m < 8; m++) {
        set.transfer(Direction.READ, List.of(new Range((long) m * UNIT, buffer, 0, 512)), call);
        set.transfer(Direction.READ, (long) m * UNIT + UNIT - 512, buffer, 0, 512, call);
      }
      assertThat(set.members()).extracting(MemberStats::requests).containsOnly(2L);
    }
  }
}
