package io.gpunvme.storage.path.set;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.storage.path.DataPath;
import io.gpunvme.storage.path.PathCall;
import io.gpunvme.storage.path.PathKind;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.RequestShape;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Members that fail, are slow, or do not fit. */
@Timeout(300)
class SetFailuresTest {
  private static final int SIZE = 256 << 20;
  private static final int UNIT = 1 << 20;

  private final Accelerator accelerator = CpuAccelerator.open();

  @AfterEach
  void close() {
    accelerator.close();
  }

  /** Fills with its number; fails or dawdles on demand. */
  private static final class Scripted implements DataPath {
    private final byte number;
    private final AtomicInteger calls = new AtomicInteger();
    private int failAt = Integer.MAX_VALUE;
    private Kind kind = Kind.IO;
    private long napMillis;
    private @Nullable CountDownLatch waitFor;
    private boolean sawCancel;
    private boolean closed;

    Scripted(int number) {
      this.number = (byte) number;
    }

    @Override
    public PathKind kind() {
      return PathKind.DIRECT;
    }

    @Override
    public String mode() {
      return "scripted";
    }

    @Override
    public long size() {
      return SIZE;
    }

    @Override
    public int alignment() {
      return 4096;
    }

    @Override
    public double expected(RequestShape shape) {
      return 1;
    }

    @Override
    public void transfer(Direction direction, List<Range> ranges, PathCall call) {
      if (calls.getAndIncrement() >= failAt) {
        Range r = ranges.getFirst();
        throw new StorageException(kind, call.source(), r.offset(), r.length(), "broken", null);
      }
      try {
        CountDownLatch latch = waitFor;
        if (latch != null) {
          latch.await();
          while (!call.isCancelled()) {
            Thread.sleep(1);
          }
          sawCancel = true;
          call.throwIfCancelled(0, 1);
        }
        Thread.sleep(napMillis);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
      for (Range r : ranges) {
        byte[] fill = new byte[(int) r.length()];
        Arrays.fill(fill, number);
        r.buffer().copyFromHost(MemorySegment.ofArray(fill), r.bufferOffset());
      }
      call.counters().moved(direction, ranges.stream().mapToLong(Range::length).sum());
    }

    @Override
    public void close() {
      closed = true;
    }
  }

  private static Member member(String name, Scripted path) {
    return new Member(name, path);
  }

  @Test
  void aStripedMemberThatFailsIsNamedAndEndsTheOthers() {
    Scripted good = new Scripted(1);
    Scripted bad = new Scripted(2);
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
    Scripted bad = new Scripted(7);
    Scripted good = new Scripted(7);
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
    Scripted one = new Scripted(1);
    one.failAt = 0;
    one.kind = Kind.ACCELERATOR_MEMORY;
    try (ReplicatedPath set =
            new ReplicatedPath(List.of(member("one", one), member("two", new Scripted(1))));
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
  void aSlowMemberIsNamedAndTakesLess() {
    Scripted slow = new Scripted(1);
    slow.napMillis = 400;
    Scripted fast = new Scripted(1);
    try (ReplicatedPath set =
            new ReplicatedPath(List.of(member("slow-one", slow), member("fast-one", fast)));
        DeviceBuffer buffer = accelerator.allocate(SIZE)) {
      List<Range> all = List.of(new Range(0, buffer, 0, SIZE));
      for (int i = 0; i < 3; i++) {
        set.transfer(Direction.READ, all, new PathCall("set"));
      }
      assertThat(set.mode()).contains("slow: slow-one").doesNotContain("slow: fast-one");
      assertThat(set.members().getFirst().bytes()).isLessThan(set.members().getLast().bytes());
    }
  }

  @Test
  void copiesAreWrittenAllAndCountOnce() {
    Scripted one = new Scripted(1);
    Scripted two = new Scripted(2);
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
    List<Member> members = List.of(member("one", new Scripted(1)), member("two", new Scripted(2)));
    for (long unit : new long[] {0, 1, 512, 5000, -4096, 2L * SIZE}) {
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> new StripedPath(members, unit));
    }
  }
}
