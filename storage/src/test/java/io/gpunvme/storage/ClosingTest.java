package io.gpunvme.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.plan.Ranges;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A storage is closed by whoever wants to, whatever else is under way. */
@Timeout(60)
class ClosingTest {
  private static final String SSD = "sim:size=1MiB,lba=4096,latency=0";
  private static final String SLOW = "sim:size=1MiB,latency=50ms";

  private final CpuAccelerator cpu = CpuAccelerator.open();
  private final DeviceBuffer buffer = cpu.allocate(1 << 20);
  private final GpuStorage storage = GpuStorage.open(SSD, cpu);

  @AfterEach
  void close() {
    storage.close();
    buffer.close();
    cpu.close();
  }

  @Test
  void aBatchOfAClosedStorageRefusesAndCanBeClosed() throws InterruptedException {
    Batch batch = storage.batch();
    batch.read(0, buffer, 0, 4096);
    assertThat(batch.poll(1, Duration.ofSeconds(10))).hasSize(1).allMatch(Batch.Outcome::ok);
    storage.close();
    for (int i = 0; i < 2; i++) {
      assertThatExceptionOfType(StorageClosedException.class)
          .isThrownBy(() -> batch.read(0, buffer, 0, 4096));
    }
    assertThat(batch.outstanding()).isZero();
    batch.close();
  }

  @Test
  void theEndOfATransferMayCloseTheStorage() {
    CompletableFuture<Void> closed =
        storage.readAsync(0, buffer, 0, 1 << 20).thenRun(storage::close);
    closed.join();
    assertThatExceptionOfType(StorageClosedException.class).isThrownBy(storage::size);
  }

  /** All at once; nobody waits for somebody who waits for him. */
  @Test
  void theEndsOfManyTransfersMayCloseIt() throws InterruptedException {
    CountDownLatch go = new CountDownLatch(1);
    List<CompletableFuture<Void>> all = new ArrayList<>();
    for (int i = 0; i < 8; i++) {
      all.add(
          storage
              .readAsync(i * 4096L, buffer, i * 4096L, 4096)
              .handle(
                  (_, _) -> {
                    try {
                      go.await();
                    } catch (InterruptedException e) {
                      throw new AssertionError(e);
                    }
                    storage.close();
                    return null;
                  }));
    }
    go.countDown();
    all.forEach(CompletableFuture::join);
  }

  @Test
  void closingWaitsForTransfersThatAreUnderWay() {
    List<CompletableFuture<TransferResult>> all = new ArrayList<>();
    for (int i = 0; i < 16; i++) {
      all.add(storage.readAsync(0, buffer, 0, 1 << 20));
    }
    storage.close();
    // Told by their own threads, which may be a little later; nothing is at work any more.
    all.forEach(future -> future.handle((_, _) -> null).join());
  }

  /** Whoever asks a transfer's thread to go on closes its buffer: nobody waits for anybody. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        SLOW,
        "stripe:" + SLOW + "," + SLOW + ";unit=4096",
        "replica:" + SLOW + "," + SLOW
      })
  void aBufferThatIsClosedMeanwhileStaysUntilTheTransferIsOver(String address) {
    DeviceBuffer closing = cpu.allocate(64 << 10);
    MemorySegment memory = closing.segment();
    List<Boolean> alive = new ArrayList<>();
    try (GpuStorage slow = GpuStorage.open(address, cpu)) {
      List<Range> ranges =
          List.of(new Range(0, closing, 0, 4096), new Range(8192, closing, 8192, 4096));
      slow.read(
          ranges,
          () -> {
            closing.close();
            alive.add(memory.scope().isAlive());
            return false;
          });
      assertThat(alive).as("whether the memory was there").isNotEmpty().doesNotContain(false);
      assertThat(memory.scope().isAlive()).as("afterwards").isFalse();
      assertThatIllegalStateException().isThrownBy(() -> slow.read(0, closing, 0, 4096));
      assertThatIllegalStateException().isThrownBy(() -> slow.read(ranges));
      assertThatIllegalStateException()
          .isThrownBy(
              () ->
                  slow.read(Ranges.builder().add(0, 4096, 0, 0).build(), List.of(buffer, closing)));
    }
  }
}
