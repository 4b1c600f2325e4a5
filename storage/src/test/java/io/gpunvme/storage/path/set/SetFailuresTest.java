package io.gpunvme.storage.path.set;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.nvme.pci.NumaHome;
import io.gpunvme.storage.path.PathCall;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Members that fail or do not fit. */
@Timeout(300)
class SetFailuresTest {
  private static final int SIZE = ScriptedPath.SIZE;
  private static final int UNIT = 1 << 20;

  private final Accelerator accelerator = CpuAccelerator.open();

  @AfterEach
  void close() {
    accelerator.close();
  }

  private static Member member(String name, ScriptedPath path) {
    return new Member(name, path, NumaHome.NONE);
  }

  @Test
  void aStripedMemberThatFailsIsNamedAndEndsTheOthers() {
    ScriptedPath good = new ScriptedPath(1);
    ScriptedPath bad = new ScriptedPath(2);
    CountDownLatch failing = new CountDownLatch(1);
    good.waitFor = failing;
    bad.failAt = 0;
    failing.countDown();
    try (StripedPath set = new StripedPath(List.of(member("one", good), member("two", bad)), UNIT);
        DeviceBuffer buffer = accelerator.allocate(4 * UNIT)) {
      assertThatExceptionOfType(StorageException.class)
          .isThrownBy(
              () ->
                  set.transfer(
                      Direction.READ,
                      List.of(new Range(0, buffer, 0, 4 * UNIT)),
                      new PathCall("set")))
          .satisfies(
              e -> {
                assertThat(e.source()).isEqualTo("two");
                assertThat(e.kind()).isEqualTo(Kind.IO);
                assertThat(e.offset()).isZero();
              });
      assertThat(good.sawCancel).isTrue();
    }
    assertThat(good.closed && bad.closed).isTrue();
  }

  @Test
  void copiesGoOnWithoutOneThatFails() {
    ScriptedPath bad = new ScriptedPath(7);
    ScriptedPath good = new ScriptedPath(7);
    bad.failAt = 1;
    PathCall call = new PathCall("set");
    try (ReplicatedPath set = new ReplicatedPath(List.of(member("one", bad), member("two", good)));
        DeviceBuffer buffer = accelerator.allocate(SIZE)) {
      List<Range> all = List.of(new Range(0, buffer, 0, SIZE));
      for (int i = 0; i < 4; i++) {
        set.transfer(Direction.READ, all, call);
      }
      byte[] seen = new byte[SIZE];
      buffer.copyToHost(0, MemorySegment.ofArray(seen));
      int wrong = 0;
      for (byte b : seen) {
        wrong += b == 7 ? 0 : 1;
      }
      assertThat(wrong).isZero();
      assertThat(set.mode()).contains("out of use: one, ").contains("broken");
      assertThat(set.members().getFirst().failure()).contains("broken");
      assertThat(call.counters().snapshot().retries()).isEqualTo(1);
      assertThat(call.counters().snapshot().readBytes()).isEqualTo(4L * SIZE);
      assertThat(bad.calls.get()).isLessThan(4);

      assertThatExceptionOfType(StorageException.class)
          .isThrownBy(() -> set.transfer(Direction.WRITE, all, call))
          .withMessageContaining("would differ");
      good.failAt = 0;
      assertThatExceptionOfType(StorageException.class)
          .isThrownBy(() -> set.transfer(Direction.READ, all, call))
          .withMessageContaining("every copy has failed")
          .satisfies(e -> assertThat(e.source()).isEqualTo("two"));
    }
  }

  @Test
  void whatIsNoMembersFaultEndsTheTransfer() {
    ScriptedPath one = new ScriptedPath(1);
    one.failAt = 0;
    one.kind = Kind.ACCELERATOR_MEMORY;
    try (ReplicatedPath set =
            new ReplicatedPath(List.of(member("one", one), member("two", new ScriptedPath(1))));
        DeviceBuffer buffer = accelerator.allocate(SIZE)) {
      assertThatExceptionOfType(StorageException.class)
          .isThrownBy(
              () ->
                  set.transfer(
                      Direction.READ, List.of(new Range(0, buffer, 0, SIZE)), new PathCall("set")))
          .satisfies(e -> assertThat(e.kind()).isEqualTo(Kind.ACCELERATOR_MEMORY));
      assertThat(set.members().getFirst().failure()).isEmpty();
    }
  }

  @Test
  void copiesAreWrittenAllAndCountOnce() {
    ScriptedPath one = new ScriptedPath(1);
    ScriptedPath two = new ScriptedPath(2);
    PathCall call = new PathCall("set");
    try (ReplicatedPath set = new ReplicatedPath(List.of(member("one", one), member("two", two)));
        DeviceBuffer buffer = accelerator.allocate(UNIT)) {
      set.transfer(Direction.WRITE, List.of(new Range(0, buffer, 0, UNIT)), call);
    }
    assertThat(one.calls.get() + two.calls.get()).isEqualTo(2);
    assertThat(call.counters().snapshot().writtenBytes()).isEqualTo(UNIT);
  }

  @Test
  void unitsThatDoNotFitAreRefused() {
    List<Member> members =
        List.of(member("one", new ScriptedPath(1)), member("two", new ScriptedPath(2)));
    for (long unit : new long[] {0, 1, 512, 5000, -4096, 2L * SIZE}) {
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> new StripedPath(members, unit));
    }
  }
}
