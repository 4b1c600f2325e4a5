package io.gpunvme.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A storage is closed by whoever wants to, whatever else is under way. */
@Timeout(60)
class ClosingTest {
  private static final String SSD = "sim:size=1MiB,lba=4096,latency=0";

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
}
