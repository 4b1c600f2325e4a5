package io.gpunvme.gpu.accel;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.nvme.memory.BusMapper;
import io.gpunvme.nvme.memory.BusRange;
import java.lang.foreign.MemorySegment;
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
}
