package io.gpunvme.nvme.driver;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.nvme.driver.QueueTraffic.Counts;
import io.gpunvme.nvme.driver.QueueTraffic.Kind;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** What queue pairs say they did, compared with what was done. */
class QueueTrafficTest {
  private static final int BLOCK = SimRig.BLOCK;

  private final SimRig rig = new SimRig();
  private final ControllerTraffic traffic = rig.controller.traffic();

  @AfterEach
  void close() {
    rig.close();
  }

  private Counts only() {
    assertThat(traffic.queues()).hasSize(1);
    return traffic.queues().getFirst().counts();
  }

  @Test
  void bytesAndCommandsAreThoseThatWereMoved() {
    BlockDevice device = rig.blocks(4);
    device.write(0, 64, rig.buffer.range(), 0);
    device.read(0, 48, rig.buffer.range(), 0);
    device.flush();
    device.writeZeroes(0, 8, false);

    Counts counts = only();
    assertThat(counts.writtenBytes()).isEqualTo(64 * BLOCK);
    assertThat(counts.readBytes()).isEqualTo(48 * BLOCK);
    assertThat(counts.submitted()).isEqualTo(device.queue().submitted()).isEqualTo(4);
    assertThat(counts.completed()).isEqualTo(4);
    assertThat(counts.latencies()).isEqualTo(4);
    assertThat(counts.latencyNanos()).isPositive();
    assertThat(counts.outstanding()).isZero();
    assertThat(counts.retries()).isZero();
    assertThat(traffic.recoveries()).isZero();
    assertThat(traffic.queues().getFirst().kind()).isEqualTo(Kind.CPU);
    assertThat(traffic.queues().getFirst().queues()).isEqualTo("1");
  }

  @Test
  void commandsAreOutstandingFromTheDoorbellToTheirCompletion() {
    QueuePair queue = rig.controller.createQueuePair(8);
    rig.submitReads(queue, 5);
    assertThat(only().outstanding()).isEqualTo(5);
    assertThat(only().submitted()).isEqualTo(5);
    SimRig.await(
        "five completions",
        () -> {
          queue.poll((q, slot, status) -> {});
          return only().completed() == 5;
        });
    assertThat(only().outstanding()).isZero();
    assertThat(only().readBytes()).isEqualTo(5 * BLOCK);
  }

  @Test
  void whatFailedAndWasRepeatedMovedNothing() {
    BlockDevice device = rig.blocks(4);
    rig.faults("status=generic/namespace-not-ready on read count=2");
    device.read(0, 4, rig.buffer.range(), 0);

    assertThat(only().retries()).isEqualTo(2).isEqualTo(device.retried());
    assertThat(only().completed()).isEqualTo(3);
    assertThat(only().readBytes()).isEqualTo(4 * BLOCK);
  }

  @Test
  void aRecoveryIsCountedAndLeavesNothingOutstanding() {
    BlockDevice device = rig.blocks(4);
    rig.faults("drop on read nth=1");
    device.read(0, 4, rig.buffer.range(), 0);

    assertThat(traffic.recoveries()).isEqualTo(1);
    assertThat(only().outstanding()).isZero();
    assertThat(only().submitted()).isEqualTo(2);
    assertThat(only().completed()).isEqualTo(1);
  }

  @Test
  void theNextQueuePairWithTheSameIdentifierGoesOn() {
    QueueTraffic first;
    try (BlockDevice device = BlockDevice.open(rig.controller, rig.controller.namespace(1), 2)) {
      device.read(0, 1, rig.buffer.range(), 0);
      first = traffic.queues().getFirst();
      assertThat(first.isClosed()).isFalse();
    }
    assertThat(first.isClosed()).isTrue();
    BlockDevice device = rig.blocks(2);
    assertThat(only().completed()).isEqualTo(1);
    device.read(0, 2, rig.buffer.range(), 0);
    assertThat(only().completed()).isEqualTo(2);
    assertThat(only().readBytes()).isEqualTo(3 * BLOCK);
    assertThat(traffic.queues().getFirst().isClosed()).isFalse();
  }

  @Test
  void setsOfQueuePairsAreNamedByTheirIdentifiers() {
    rig.blocks(1);
    List<HostRings> rings =
        Stream.generate(() -> new HostRings(rig.device, 4, 4)).limit(3).toList();
    // 2, 3, 4: 1 is the driver's.
    List<ExternalQueuePair> pairs =
        rings.stream().map(rig.controller::createExternalQueuePair).toList();
    assertThat(traffic.ofKernels(pairs, Kind.TRANSFERS).queues()).isEqualTo("2-4");
    assertThat(traffic.ofKernels(List.of(pairs.get(2), pairs.get(0)), Kind.KERNELS).queues())
        .isEqualTo("2,4");
    assertThat(traffic.queues()).hasSize(3);
    pairs.forEach(rig.controller::deleteExternalQueuePair);
    rings.forEach(HostRings::close);
  }

  @Test
  void numbersThatBelongTogetherAreReadTogether() {
    QueueTraffic shared = new QueueTraffic("1", Kind.CPU);
    CompletableFuture<Void> writer =
        CompletableFuture.runAsync(
            () -> {
              for (int i = 1; i <= 2_000_000; i++) {
                shared.completed(1, 7, i);
                shared.moved(512, 1024);
              }
            });
    long looks = 0;
    while (!writer.isDone()) {
      long start = System.nanoTime();
      Counts counts = shared.counts();
      if (System.nanoTime() - start >= QueueTraffic.PATIENCE_NANOS) {
        continue; // a busy machine has stopped the writer in the middle, and nobody waits longer
      }
      assertThat(counts.latencyNanos()).isEqualTo(7 * counts.latencies());
      assertThat(counts.outstanding()).isEqualTo(counts.completed());
      assertThat(counts.writtenBytes()).isEqualTo(2 * counts.readBytes());
      looks++;
    }
    writer.join();
    assertThat(looks).isPositive();
    assertThat(shared.counts().completed()).isEqualTo(2_000_000);
  }
}
