package io.gpunvme.storage.path.pinned;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.cuda.CudaException;
import io.gpunvme.cuda.FakeDriver;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.accel.PolicyAccelerator;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.nvme.pci.NumaHome;
import io.gpunvme.storage.path.Range;
import io.gpunvme.testing.FakeMachine;
import io.gpunvme.testing.MemoryPolicies;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Pinned memory outlives the files that are read through it, and not the accelerator. */
@Timeout(120)
class SlotStockTest {
  private static final int CHUNK = 1 << 20;
  private static final int FILE_BYTES = 6 * CHUNK;

  private final FakeDriver fake = FakeDriver.fresh();

  @TempDir Path folder;

  private String file(String name) throws IOException {
    return Files.write(folder.resolve(name), new byte[FILE_BYTES]).toString();
  }

  private int pinned() {
    return fake.calls("cuMemHostAlloc");
  }

  private static PinnedPath open(String file, GpuAccelerator gpu) {
    return PinnedPath.open(
        file, false, gpu, PinnedOptions.defaults().withMemory(CHUNK, 4L * CHUNK));
  }

  private static void read(PinnedPath path, DeviceBuffer buffer) {
    path.transfer(
        Direction.READ, List.of(new Range(0, buffer, 0, FILE_BYTES)), PinnedFixture.call());
    assertThat(path.chunksInUse()).isZero();
  }

  /** What one file leaves idle works for the next; a slow device keeps no thread of another's. */
  @Test
  void filesOfADeviceShareThreads() {
    try (GpuAccelerator gpu = GpuAccelerator.open(fake.load().device(0))) {
      SlotStock stock = SlotStock.of(gpu);
      CopyWorkers some = stock.takeWorkers("259:1", 3, NumaHome.NONE);
      assertThat(stock.takeWorkers("259:1", 3, NumaHome.NONE)).isSameAs(some);
      assertThat(stock.takeWorkers("259:2", 3, NumaHome.NONE)).isNotSameAs(some);
      assertThat(stock.takeWorkers("259:1", 4, NumaHome.NONE)).isNotSameAs(some);
      NumaHome near = new FakeMachine(folder).home(0);
      assertThat(stock.takeWorkers("259:1", 3, near)).isNotSameAs(some);
    }
  }

  @Test
  void threadsEndWithTheLastFile() throws InterruptedException {
    try (GpuAccelerator gpu = GpuAccelerator.open(fake.load().device(0))) {
      SlotStock stock = SlotStock.of(gpu);
      CopyWorkers some = stock.takeWorkers("259:1", 3, NumaHome.NONE);
      stock.takeWorkers("259:1", 3, NumaHome.NONE);
      Set<Thread> seen = ConcurrentHashMap.newKeySet();
      work(some, seen);
      stock.giveWorkers(some);
      assertThat(seen).hasSize(3).allMatch(Thread::isAlive);
      work(some, seen);
      stock.giveWorkers(some);
      seen.remove(Thread.currentThread());
      assertThat(seen).isNotEmpty();
      for (Thread thread : seen) {
        // They say that they end a moment before.
        assertThat(thread.join(Duration.ofSeconds(5))).as("%s has ended", thread).isTrue();
      }
      assertThat(stock.takeWorkers("259:1", 3, NumaHome.NONE)).isNotSameAs(some);
    }
  }

  /** By three threads, the caller among them. */
  private static void work(CopyWorkers workers, Set<Thread> seen) {
    CyclicBarrier together = new CyclicBarrier(3);
    Runnable task =
        () -> {
          seen.add(Thread.currentThread());
          try {
            together.await(30, TimeUnit.SECONDS);
          } catch (InterruptedException | BrokenBarrierException | TimeoutException e) {
            throw new AssertionError(e);
          }
        };
    workers.run(List.of(task, task, task));
  }

  @Test
  void aFileFindsWhatThoseBeforeAndBesideItTook() throws IOException {
    try (GpuAccelerator gpu = GpuAccelerator.open(fake.load().device(0));
        DeviceBuffer buffer = gpu.allocate(FILE_BYTES);
        PinnedPath beside = open(file("beside"), gpu)) {
      int before = pinned();
      int streams = fake.calls("cuStreamCreateWithPriority");
      try (PinnedPath first = open(file("first"), gpu)) {
        read(first, buffer);
      }
      // How many were in use together is the threads' affair.
      for (int i = 0; i < 20; i++) {
        try (PinnedPath next = open(file("next" + i), gpu)) {
          read(next, buffer);
        }
        read(beside, buffer);
      }
      int slots = pinned() - before;
      assertThat(slots).isBetween(1, 4);
      assertThat(fake.calls("cuMemFreeHost")).isZero();
      // Those that the others had in turn.
      assertThat(fake.calls("cuStreamCreateWithPriority") - streams).isEqualTo(4);
      gpu.freeKept();
      assertThat(fake.calls("cuMemFreeHost")).isEqualTo(slots);
      assertThat(fake.calls("cuStreamDestroy_v2")).isEqualTo(4);
      read(beside, buffer);
    }
    fake.assertClean("the accelerator was closed");
  }

  @Test
  void noMoreIsKeptThanTheMost() {
    try (GpuAccelerator gpu = GpuAccelerator.open(fake.load().device(0));
        SlotStock stock = new SlotStock(gpu, gpu.home(), 3L * CHUNK)) {
      List<PinnedSlot> slots = new ArrayList<>();
      for (int i = 0; i < 5; i++) {
        slots.add(stock.take(CHUNK));
      }
      slots.forEach(stock::give);
      assertThat(fake.calls("cuMemFreeHost")).isEqualTo(2);
      assertThat(stock.take(CHUNK)).isSameAs(slots.get(2));
      stock.give(slots.get(2));
      stock.close();
      assertThat(fake.calls("cuMemFreeHost")).isEqualTo(5);
    }
    fake.assertClean("the stock was closed");
  }

  @Test
  void whatIsKeptMakesRoomForAnotherSize() {
    try (GpuAccelerator gpu = GpuAccelerator.open(fake.load().device(0));
        SlotStock stock = new SlotStock(gpu, gpu.home())) {
      stock.give(stock.take(CHUNK));
      fake.fail("cuMemHostAlloc", pinned() + 1, CudaException.OUT_OF_MEMORY);
      PinnedSlot other = stock.take(2 * CHUNK);
      assertThat(fake.calls("cuMemFreeHost")).isOne();

      // With nothing left to be freed, there is none.
      fake.fail("cuMemHostAlloc", pinned() + 1, CudaException.OUT_OF_MEMORY);
      assertThatThrownBy(() -> stock.take(2 * CHUNK)).isInstanceOf(CudaException.class);
      stock.give(other);
    }
    fake.assertClean("the stock was closed");
  }

  @Test
  void slotsAreOnTheirNode() {
    MemoryPolicies.needNode0();
    try (PolicyAccelerator cpu = new PolicyAccelerator();
        SlotStock stock = new SlotStock(cpu, new FakeMachine(folder).home(0))) {
      stock.give(stock.take(CHUNK));
      assertThat(cpu.placed()).containsExactly(true);
    }
  }

  @Test
  void withoutAGpuAPathHasItsOwn() throws IOException {
    try (CpuAccelerator cpu = CpuAccelerator.open();
        PinnedPath path =
            PinnedPath.open(
                file("own"), false, cpu, PinnedOptions.defaults().withDirect(DirectIo.TRUE));
        DeviceBuffer buffer = cpu.allocate(FILE_BYTES)) {
      long before = cpu.memoryInUse().device();
      path.transfer(
          Direction.READ, List.of(new Range(5, buffer, 0, 100_000)), PinnedFixture.call());
      assertThat(cpu.memoryInUse().device()).isGreaterThan(before);
      path.close();
      assertThat(cpu.memoryInUse().device()).isEqualTo(before);
    }
  }
}
