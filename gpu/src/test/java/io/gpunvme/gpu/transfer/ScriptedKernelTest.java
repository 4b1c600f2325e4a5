package io.gpunvme.gpu.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.queue.DeviceStatus;
import io.gpunvme.gpu.queue.FakeGpu;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.nvme.CommandAbortedException;
import io.gpunvme.nvme.NvmeStatusException;
import io.gpunvme.nvme.NvmeTimeoutException;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.spec.StatusCode;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import java.util.List;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.IntUnaryOperator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What the host makes of the statuses that a kernel leaves: a script plays the kernel. */
@Timeout(300)
class ScriptedKernelTest {
  private static final int COMMANDS = 10;
  private static final int RETRYABLE = StatusCode.NAMESPACE_NOT_READY.status();
  private static final int FINAL = RETRYABLE | 1 << 14;

  private final SimulatedController device =
      SimulatedController.create(SimConfig.builder().workers(1).build());
  private final NvmeController controller =
      NvmeController.open(device, ControllerOptions.defaults());
  private final FakeGpu gpu = new FakeGpu();
  private final ScriptedKernel script = new ScriptedKernel(COMMANDS);
  private final GpuInitiator initiator =
      new GpuInitiator(controller, gpu, script, Placement.HOST, 1, 4, 2);
  private final DeviceBuffer buffer = gpu.allocatePinned(COMMANDS * 4096);

  @AfterEach
  void close() {
    initiator.close();
    controller.close();
    gpu.close();
  }

  private TransferReport run(TransferListener listener) {
    TransferPlan plan =
        TransferPlan.of(
            Direction.READ,
            controller.namespace(1),
            4096,
            List.of(new Extent(0, COMMANDS * 8L, 0)));
    return initiator.run(plan, buffer, listener);
  }

  private static IntUnaryOperator only(int command, int status) {
    return c -> c == command ? status : 0;
  }

  @Test
  void oneLaunchIsEnoughIfAllIsWell() {
    script.add(c -> 0);
    LongAdder moved = new LongAdder();
    TransferReport report = run(moved::add);
    assertThat(script.given()).containsExactly(List.of(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
    assertThat(moved.sum()).isEqualTo(COMMANDS * 4096);
    assertThat(report.bytes()).isEqualTo(COMMANDS * 4096);
    assertThat(report.commands()).isEqualTo(COMMANDS);
    assertThat(report.latency().getMinValue()).isEqualTo(1000);
    assertThat(report.latency().getTotalCount()).isEqualTo(COMMANDS);
  }

  @Test
  void onlyWhatMayBeRepeatedIsLaunchedAgain() {
    script.add(c -> c % 4 == 1 ? RETRYABLE : 0);
    script.add(only(5, RETRYABLE));
    script.add(c -> 0);
    LongAdder moved = new LongAdder();
    TransferReport report = run(moved::add);
    assertThat(script.given().subList(1, 3)).containsExactly(List.of(1, 5, 9), List.of(5));
    assertThat(moved.sum()).isEqualTo(COMMANDS * 4096);
    assertThat(report.retries()).isEqualTo(4);
    assertThat(report.commands()).isEqualTo(COMMANDS + 4);
    assertThat(report.bytes()).isEqualTo(COMMANDS * 4096);
  }

  @Test
  void whatWasNeverSubmittedCostsNoAttempt() {
    for (int i = 0; i < 5; i++) {
      script.add(only(7, DeviceStatus.PENDING));
    }
    script.add(c -> 0);
    TransferReport report = run(TransferListener.NONE);
    assertThat(script.given()).hasSize(6);
    assertThat(report.retries()).isZero();
    assertThat(report.commands()).isEqualTo(COMMANDS);
  }

  @Test
  void whatWasNotTakenIsLaunchedAgainWhateverItsStatusWasBefore() {
    script.add(c -> 0);
    run(TransferListener.NONE);
    script.takeAtMost(4);
    for (int i = 0; i < 3; i++) {
      script.add(c -> 0);
    }
    LongAdder moved = new LongAdder();
    TransferReport report = run(moved::add);
    assertThat(script.given().subList(2, 4))
        .containsExactly(List.of(4, 5, 6, 7, 8, 9), List.of(8, 9));
    assertThat(report.commands()).isEqualTo(COMMANDS);
    assertThat(moved.sum()).isEqualTo(COMMANDS * 4096);
  }

  @Test
  void longPlansAreReadInTheAcceleratorsMemory() {
    for (int commands : new int[] {1024, 1025}) {
      script.add(c -> 0);
      TransferPlan plan =
          TransferPlan.of(
              Direction.READ, controller.namespace(1), 512, List.of(new Extent(0, commands, 0)));
      try (DeviceBuffer target = gpu.allocatePinned(commands * 512L)) {
        assertThat(initiator.run(plan, target, TransferListener.NONE).commands())
            .isEqualTo(commands);
      }
    }
  }

  @Test
  void aKernelThatNeverGetsToWorkIsNotLaunchedForEver() {
    for (int i = 0; i < 1000; i++) {
      script.add(c -> DeviceStatus.PENDING);
    }
    assertThatThrownBy(() -> run(TransferListener.NONE))
        .isInstanceOf(CommandAbortedException.class)
        .hasMessageContaining("101 times");
  }

  @Test
  void attemptsAreCountedForEachCommand() {
    script.add(only(3, RETRYABLE));
    script.add(only(3, RETRYABLE));
    script.add(only(3, RETRYABLE));
    assertThatThrownBy(() -> run(TransferListener.NONE))
        .isInstanceOfSatisfying(
            NvmeStatusException.class, e -> assertThat(e.slba()).isEqualTo(3 * 8));
    assertThat(script.given()).hasSize(3);
  }

  @Test
  void aFinalStatusEndsTheTransferAtOnce() {
    script.add(c -> c == 2 ? FINAL : c == 4 ? RETRYABLE : 0);
    assertThatThrownBy(() -> run(TransferListener.NONE))
        .isInstanceOfSatisfying(
            NvmeStatusException.class, e -> assertThat(e.retryable()).isFalse());
    assertThat(script.given()).hasSize(1);
  }

  @Test
  void timeoutsAreRepeatedAndThenTimeouts() {
    script.add(only(3, DeviceStatus.TIMEOUT));
    script.add(only(3, DeviceStatus.STOPPED));
    script.add(c -> 0);
    assertThat(run(TransferListener.NONE).retries()).isEqualTo(2);

    for (int i = 0; i < 3; i++) {
      script.add(only(3, DeviceStatus.TIMEOUT));
    }
    assertThatThrownBy(() -> run(TransferListener.NONE))
        .isInstanceOf(NvmeTimeoutException.class)
        .hasMessageContaining("Read at LBA 24")
        .hasMessageContaining("3 times");
  }

  @Test
  void whatTheKernelRefusesIsTheCallersError() {
    script.add(only(3, DeviceStatus.ARGUMENT));
    assertThatThrownBy(() -> run(TransferListener.NONE))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("LBA 24");
  }

  @Test
  void aKernelThatFailsLeavesNothingOutstandingAndAnInitiatorThatSaysSo() {
    script.add(
        c -> {
          throw new IllegalStateException("illegal address");
        });
    assertThatThrownBy(() -> run(TransferListener.NONE)).hasMessage("illegal address");
    assertThatThrownBy(() -> run(TransferListener.NONE))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("open another");
    initiator.close();
    assertThat(script.isClosed()).isTrue();
    controller.createQueuePair(4);
  }
}
