package io.gpunvme.core.path.direct;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.core.accel.CpuAccelerator;
import io.gpunvme.core.gpu.Placement;
import io.gpunvme.core.transfer.InitiatorKind;
import io.gpunvme.core.transfer.InitiatorOptions;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.sim.NamespaceConfig;
import io.gpunvme.nvme.sim.SimConfig;
import io.gpunvme.nvme.sim.SimulatedController;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
class DirectLanesTest {
  private final CpuAccelerator cpu = CpuAccelerator.open();
  private final ExecutorService threads = Executors.newCachedThreadPool();
  private final AtomicInteger opened = new AtomicInteger();
  private final NvmeController controller =
      NvmeController.open(
          SimulatedController.create(
              SimConfig.builder().namespace(NamespaceConfig.ram(1 << 20, 512)).build()),
          ControllerOptions.builder().build());
  private final DirectLanes lanes = new DirectLanes(() -> open(2));

  @AfterEach
  void close() {
    lanes.close();
    threads.close();
    controller.close();
    cpu.close();
  }

  private DirectLane open(int queuePairs) {
    InitiatorOptions options =
        InitiatorOptions.defaults().with(InitiatorKind.CPU, Placement.HOST).with(queuePairs, 4, 1);
    DirectLane lane =
        new DirectLane(controller, controller.namespace(1), cpu, options, Placement.HOST);
    opened.incrementAndGet();
    return lane;
  }

  private static void awaitWaiting(Future<?> of) {
    while (Thread.getAllStackTraces().entrySet().stream()
        .filter(e -> e.getKey().getState() == Thread.State.TIMED_WAITING)
        .noneMatch(
            e ->
                java.util.Arrays.stream(e.getValue())
                    .anyMatch(f -> f.getClassName().equals(DirectLanes.class.getName())))) {
      assertThat(of.isDone()).isFalse();
      Thread.onSpinWait();
    }
  }

  @Test
  void theSecondIsOpenedWhenTwoMeet() {
    lanes.give(lanes.take());
    lanes.give(lanes.take());
    assertThat(opened).hasValue(1);
    DirectLane first = lanes.take();
    DirectLane second = lanes.take();
    assertThat(opened).hasValue(2);
    assertThat(second).isNotSameAs(first);
    lanes.give(first);
    assertThat(lanes.take()).isSameAs(first);
    lanes.give(first);
    lanes.give(second);
  }

  @Test
  void aThirdWaits() throws Exception {
    DirectLane first = lanes.take();
    DirectLane second = lanes.take();
    Future<DirectLane> third = threads.submit(lanes::take);
    awaitWaiting(third);
    lanes.give(second);
    assertThat(third.get()).isSameAs(second);
    lanes.give(first);
    lanes.give(second);
    assertThat(opened).hasValue(2);
  }

  @Test
  void whoWantsAllWaitsForTheOthersAndGoesFirst() throws Exception {
    DirectLane first = lanes.take();
    Future<DirectLane> all = threads.submit(lanes::takeAll);
    awaitWaiting(all);
    Future<DirectLane> next = threads.submit(lanes::take);
    lanes.give(first);
    assertThat(all.get()).isSameAs(first);
    awaitWaiting(next);
    assertThat(next.isDone()).isFalse();
    lanes.giveAll();
    lanes.give(next.get());
  }

  @Test
  void withoutQueuePairsForASecondOneTheFirstIsWaitedFor() throws Exception {
    // The other lanes have taken some already.
    try (DirectLanes few = new DirectLanes(() -> open(controller.maxQueuePairs() - 2))) {
      DirectLane first = few.take();
      Future<DirectLane> second = threads.submit(few::take);
      awaitWaiting(second);
      few.give(first);
      assertThat(second.get()).isSameAs(first);
      few.give(first);
      assertThat(few.count()).isEqualTo(1);
    }
  }

  @Test
  void closingWaitsForThoseInUse() throws Exception {
    DirectLane first = lanes.take();
    Future<?> closing = threads.submit(lanes::close);
    awaitWaiting(closing);
    lanes.give(first);
    closing.get();
    assertThatThrownBy(lanes::take).isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(lanes::takeAll).isInstanceOf(IllegalStateException.class);
  }
}
