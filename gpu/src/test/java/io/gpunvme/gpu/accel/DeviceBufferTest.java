package io.gpunvme.gpu.accel;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.nvme.memory.BusMapper;
import io.gpunvme.nvme.memory.BusRange;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** When memory is freed. */
@Timeout(60)
class DeviceBufferTest {
  private final AtomicInteger freed = new AtomicInteger();
  private final DeviceBuffer buffer = new Counted();

  private final class Counted extends DeviceBuffer {
    @Override
    public long size() {
      return 4096;
    }

    @Override
    public boolean isHost() {
      return true;
    }

    @Override
    public MemorySegment segment() {
      return MemorySegment.NULL;
    }

    @Override
    public long deviceAddress() {
      return 0;
    }

    @Override
    protected BusRange map(BusMapper controller) {
      throw new UnsupportedOperationException();
    }

    @Override
    protected void free() {
      freed.incrementAndGet();
    }

    @Override
    public void copyToHost(long offset, MemorySegment target) {}

    @Override
    public void copyFromHost(MemorySegment source, long offset) {}
  }

  @Test
  void aSecondCloseFreesNothingWhileSomebodyHasYetToLetGo() throws InterruptedException {
    CountDownLatch asked = new CountDownLatch(1);
    CountDownLatch letGo = new CountDownLatch(1);
    buffer.beforeFree(
        () -> {
          asked.countDown();
          try {
            letGo.await();
          } catch (InterruptedException e) {
            throw new AssertionError(e);
          }
        });
    Thread first = Thread.ofPlatform().start(buffer::close);
    asked.await();
    buffer.close();
    assertThat(freed.get()).as("while one still uses it").isZero();
    letGo.countDown();
    first.join();
    assertThat(freed.get()).isEqualTo(1);
    buffer.close();
    assertThat(freed.get()).isEqualTo(1);
  }

  @Test
  void whoLetsGoMayCloseItToo() {
    AtomicInteger after = new AtomicInteger();
    buffer.beforeFree(buffer::close);
    buffer.beforeFree(
        () -> {
          after.incrementAndGet();
          assertThat(freed.get()).isZero();
        });
    buffer.close();
    assertThat(after.get()).isEqualTo(1);
    assertThat(freed.get()).isEqualTo(1);
  }

  @Test
  void oneThatFailsToLetGoKeepsNeitherTheOthersNorTheMemory() {
    AtomicInteger after = new AtomicInteger();
    buffer.beforeFree(
        () -> {
          throw new LinkageError("one");
        });
    buffer.beforeFree(after::incrementAndGet);
    assertThatThrownBy(buffer::close).hasMessage("one");
    assertThat(after.get()).isEqualTo(1);
    assertThat(freed.get()).isEqualTo(1);
  }

  @Test
  void nobodyBeginsToUseWhatIsBeingClosed() {
    buffer.beforeFree(
        () ->
            assertThatThrownBy(() -> buffer.beforeFree(() -> {}))
                .isInstanceOf(IllegalStateException.class));
    buffer.close();
    assertThat(freed.get()).isEqualTo(1);
  }

  // ---- leases

  @Test
  void whoeverGivesBackTheLastLeaseFreesIt() {
    AtomicInteger letGo = new AtomicInteger();
    buffer.beforeFree(letGo::incrementAndGet);
    buffer.lease();
    buffer.lease();
    buffer.close();
    buffer.release();
    buffer.close();
    assertThat(letGo.get()).as("told while it is in use").isZero();
    assertThat(freed.get()).as("freed while it is in use").isZero();
    buffer.release();
    assertThat(letGo.get()).isEqualTo(1);
    assertThat(freed.get()).isEqualTo(1);
  }

  @Test
  void whatIsClosedIsNotLeased() {
    buffer.lease();
    buffer.close();
    assertThatThrownBy(buffer::lease).isInstanceOf(IllegalStateException.class);
    AtomicInteger letGo = new AtomicInteger();
    buffer.beforeFree(letGo::incrementAndGet);
    buffer.release();
    assertThat(letGo.get()).as("who came with the lease").isEqualTo(1);
    assertThatThrownBy(() -> buffer.beforeFree(() -> {})).isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(buffer::lease).isInstanceOf(IllegalStateException.class);
    assertThat(freed.get()).isEqualTo(1);
  }

  @Test
  void allAreLeasedOrNone() {
    DeviceBuffer closed = new Counted();
    closed.close();
    assertThatThrownBy(() -> DeviceBuffer.leaseAll(List.of(buffer, buffer, closed)))
        .isInstanceOf(IllegalStateException.class);
    buffer.close();
    assertThat(freed.get()).as("both").isEqualTo(2);
  }

  @Test
  void theLastUserHearsNothingOfWhatFailsThen() {
    buffer.beforeFree(
        () -> {
          throw new IllegalStateException("one");
        });
    buffer.lease();
    buffer.close();
    buffer.release();
    assertThat(freed.get()).isEqualTo(1);
  }

  @Test
  void anAcceleratorIsNotClosedUnderWhoUsesIt() {
    buffer.lease();
    DeviceBuffer other = new Counted();
    assertThatThrownBy(() -> DeviceBuffer.closeAll(List.of(buffer, other)))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageStartingWith("1 buffers are in use");
    assertThat(freed.get()).as("the other").isEqualTo(1);
    buffer.release();
    DeviceBuffer.closeAll(List.of(buffer, other));
    assertThat(freed.get()).isEqualTo(2);
  }

  @Test
  void nobodyUsesWhatAnotherThreadFrees() throws InterruptedException {
    for (int round = 0; round < 200; round++) {
      freed.set(0);
      DeviceBuffer shared = new Counted();
      AtomicInteger wrong = new AtomicInteger();
      List<Thread> users = new ArrayList<>();
      for (int i = 0; i < 3; i++) {
        users.add(Thread.ofPlatform().start(() -> useWhileOpen(shared, wrong)));
      }
      Thread.onSpinWait();
      shared.close();
      for (Thread user : users) {
        user.join();
      }
      assertThat(wrong.get()).as("uses of freed memory").isZero();
      assertThat(freed.get()).isEqualTo(1);
    }
  }

  private void useWhileOpen(DeviceBuffer shared, AtomicInteger wrong) {
    try {
      while (true) {
        shared.lease();
        if (freed.get() != 0) {
          wrong.incrementAndGet();
        }
        shared.release();
      }
    } catch (IllegalStateException e) {
      // It is closed.
    }
  }
}
