package io.gpunvme.gpu.queue;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.WorkScope;
import io.gpunvme.nvme.NvmeTimeoutException;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.spec.AdminOpcode;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
class KernelWaitTest {
  private static final long GRACE = TimeUnit.MILLISECONDS.toNanos(20);

  private final SimulatedController device =
      SimulatedController.create(SimConfig.builder().workers(1).build());
  private final NvmeController controller =
      NvmeController.open(device, ControllerOptions.defaults());
  private final FakeGpu gpu = new FakeGpu();
  private final DeviceQueues queues =
      new DeviceQueues(controller, gpu, DeviceQueueOptions.exclusive(Placement.HOST, 1, 4));
  private final KernelWait wait =
      new KernelWait(List.of(queues), List.of(queues.stopWord()), GRACE);

  @AfterEach
  void close() {
    queues.close();
    controller.close();
    gpu.close();
  }

  /** The word that a kernel looks at. */
  private boolean stopped() {
    long struct = queues.deviceAddress() + DeviceLayout.Queue.STOP;
    long word = DeviceLayout.getLong(at(struct, 8), 0);
    return DeviceLayout.getInt(at(word, 4), 0) != 0;
  }

  private static MemorySegment at(long address, long bytes) {
    return MemorySegment.ofAddress(address).reinterpret(bytes);
  }

  /**
   * Memory that is freed when a kernel is over would be waited for, for ever. The kernel is kept
   * from every SSD, also when one of them does not let go.
   */
  @Test
  void aKernelThatHangsIsNotOverForTheAccelerator() {
    SimulatedController refusing = SimulatedController.create(SimConfig.builder().build());
    try (NvmeController first = NvmeController.open(refusing, ControllerOptions.defaults())) {
      KernelStorageOptions options = KernelStorageOptions.in(Placement.HOST).with(1, 32);
      KernelStorage storage = KernelStorage.over(List.of(first, controller), gpu, options);
      assertThat(storage.await(() -> true, Duration.ofSeconds(1))).isTrue();
      assertThat(gpu.kernels()).isZero();
      refusing.faults().add("status=generic/internal dnr on delete-sq");
      assertThatThrownBy(() -> storage.await(() -> false, Duration.ZERO))
          .isInstanceOf(NvmeTimeoutException.class);
      assertThat(gpu.kernels()).isEqualTo(1);
      assertThat(refusing.stats().adminCommands(AdminOpcode.DELETE_IO_SQ)).isPositive();
      assertThat(device.stats().adminCommands(AdminOpcode.DELETE_IO_SQ)).isPositive();
      storage.close();
      refusing.faults().clear();
      assertThat(qidOfAnother(controller)).as("1 is this test's, 2 the kernel's").isEqualTo(3);
      assertThat(qidOfAnother(first)).as("1 is the kernel's").isEqualTo(2);
      controller.reset();
      assertThat(qidOfAnother(controller)).as("the kernel may still ring").isEqualTo(3);
    }
  }

  private int qidOfAnother(NvmeController of) {
    DeviceQueueOptions one = DeviceQueueOptions.exclusive(Placement.HOST, 1, 4);
    try (DeviceQueues another = new DeviceQueues(of, gpu, one)) {
      return another.queues().getFirst().pair().qid();
    }
  }

  @Test
  void aStorageIsNotRecoveredUnderAKernel() {
    KernelStorageOptions options = KernelStorageOptions.in(Placement.HOST).with(1, 32);
    try (KernelStorage storage = KernelStorage.over(List.of(controller), gpu, options)) {
      RunningKernel kernel =
          () -> {
            assertThatThrownBy(storage::recover)
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("1 kernels");
            return true;
          };
      assertThat(storage.await(kernel, Duration.ofSeconds(1))).isTrue();
      assertThat(storage.recover()).isEmpty();
    }
  }

  /** Registering a buffer, for one, may wait for the very kernel that is to be stopped. */
  @Test
  void stoppingAStorageWaitsForNobody() throws Exception {
    KernelStorageOptions options = KernelStorageOptions.in(Placement.HOST).with(1, 32);
    try (KernelStorage storage = KernelStorage.over(List.of(controller), gpu, options)) {
      KernelHandle handle = storage.handle();
      synchronized (storage) {
        Thread stops = Thread.ofPlatform().daemon().start(() -> storage.stop(true));
        assertThat(stops.join(Duration.ofSeconds(20))).isTrue();
      }
      handle.close();
      handle.stop(true);
      storage.stop(false);
    }
  }

  /** 10 s: the time that a kernel has to stop. */
  @Test
  void aStorageWhoseKernelHungWaitsForNoOther() {
    KernelStorageOptions options = KernelStorageOptions.in(Placement.HOST).with(1, 32);
    try (KernelStorage storage = KernelStorage.over(List.of(controller), gpu, options)) {
      KernelHandle handle = storage.handle();
      assertThatThrownBy(() -> storage.await(() -> false, Duration.ZERO))
          .isInstanceOf(NvmeTimeoutException.class);
      // It may have gone on since then, and would see the word taken back.
      assertThatThrownBy(() -> storage.stop(false)).isInstanceOf(KernelHungException.class);
      assertThatThrownBy(() -> handle.stop(false)).isInstanceOf(KernelHungException.class);
      assertThatThrownBy(() -> storage.await(() -> true, Duration.ofSeconds(1)))
          .isInstanceOf(KernelHungException.class);
      assertThatThrownBy(storage::recover).isInstanceOf(KernelHungException.class);
    }
  }

  @Test
  void aKernelThatStopsWhenToldIsNotHung() {
    wait.await(this::stopped, () -> true);
    assertThat(wait.hung()).isFalse();
    assertThat(wait.told()).isTrue();
    wait.await(() -> true, () -> true);
    assertThat(wait.told()).as("of the last one").isFalse();
    assertThat(stopped()).as("taken back").isFalse();
  }

  @Test
  void aKernelOnALostQueueIsToldToStop() {
    controller.reset();
    wait.await(this::stopped, () -> false);
    assertThat(wait.hung()).isFalse();
  }

  @Test
  void aKernelOnAControllerThatIsGoneIsToldToStop() {
    device.faults().add("gone on register");
    wait.await(this::stopped, () -> false);
    assertThat(wait.hung()).isFalse();
  }

  @Test
  void aKernelThatDoesNotStopIsGivenUp() {
    assertThatThrownBy(() -> wait.await(() -> false, () -> true))
        .isInstanceOf(NvmeTimeoutException.class)
        .hasMessageContaining("20 ms after it was told to stop");
    assertThat(wait.hung()).isTrue();
  }

  @Test
  void whoeverFailsToSayWhetherToStopHearsOfItWhenTheKernelIsOver() {
    for (Throwable how : List.of(new IllegalStateException("asked"), new LinkageError("asked"))) {
      boolean[] over = {false};
      assertThatThrownBy(
              () ->
                  wait.await(
                      () -> over[0] = stopped(),
                      () -> {
                        WorkScope.rethrow(List.of(how));
                        return false;
                      }))
          .isSameAs(how);
      assertThat(over[0]).isTrue();
      assertThat(wait.hung()).isFalse();
      assertThat(stopped()).as("taken back").isFalse();
    }
  }

  /** The end of one kernel is not the end of another's stop. */
  @Test
  void kernelsThatShareAWordAreStoppedUntilAllAreOver() throws Exception {
    CountDownLatch told = new CountDownLatch(1);
    AtomicBoolean over = new AtomicBoolean();
    RunningKernel slow =
        () -> {
          if (stopped()) {
            told.countDown();
          }
          return over.get();
        };
    Thread waits =
        Thread.ofPlatform().start(() -> new KernelWait(List.of(queues)).await(slow, () -> true));
    told.await();
    try {
      wait.await(() -> true, () -> false);
      assertThat(stopped()).as("the other kernel has not ended yet").isTrue();
    } finally {
      over.set(true);
      waits.join();
    }
    assertThat(stopped()).as("taken back").isFalse();
  }

  @Test
  void theStopOfAKernelThatFailsIsTakenBack() {
    IllegalStateException failure = new IllegalStateException("of the GPU");
    RunningKernel failing =
        () -> {
          if (stopped()) {
            throw failure;
          }
          return false;
        };
    assertThatThrownBy(() -> wait.await(failing, () -> true)).isSameAs(failure);
    assertThat(wait.hung()).isFalse();
    assertThat(stopped()).isFalse();
    wait.await(this::stopped, () -> true);
    assertThat(stopped()).as("of the next one, too").isFalse();
  }

  /** A word that another thread has set is taken back, too. */
  @Test
  void stoppingIsTakenBackWhoeverAskedForIt() {
    queues.stop(true);
    assertThat(stopped()).isTrue();
    wait.await(this::stopped, () -> false);
    assertThat(stopped()).isFalse();
    queues.stop(false);
    assertThat(stopped()).isFalse();
  }
}
