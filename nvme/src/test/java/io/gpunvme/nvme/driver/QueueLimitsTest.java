package io.gpunvme.nvme.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.NvmeStatusException;
import io.gpunvme.nvme.NvmeTimeoutException;
import io.gpunvme.nvme.spec.Cns;
import io.gpunvme.nvme.spec.StatusCode;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The shortest and the longest queues, and what becomes of the commands on them. */
class QueueLimitsTest {
  @Test
  void twoEntriesAreEnoughForIo() {
    try (SimRig rig = new SimRig(c -> c.mqes(1), o -> {})) {
      assertThat(rig.controller.maxDepth()).isEqualTo(1);
      assertThat(rig.controller.admin().queue().sqSize())
          .isEqualTo(rig.controller.options().adminEntries());
      assertThat(rig.controller.identify(Cns.CONTROLLER, 0).byteSize()).isEqualTo(4096);
      QueuePair queue = rig.controller.createQueuePair(1);
      for (int i = 0; i < 5; i++) {
        List<Integer> statuses = new ArrayList<>();
        rig.submitReads(queue, 1);
        SimRig.await("a read", () -> queue.poll((q, slot, s) -> statuses.add(s)) > 0);
        assertThat(statuses).containsExactly(0);
      }
      rig.controller.deleteQueuePair(queue);
      assertThat(rig.roundTrip(rig.blocks(1), 0, 8, 7)).isTrue();
    }
  }

  @Test
  void depthLeavesGenerationBits() {
    try (SimRig rig = new SimRig(c -> c.mqes(65535), o -> {})) {
      assertThat(rig.controller.maxDepth()).isEqualTo(4096);
      QueuePair queue = rig.controller.createQueuePair(4096);
      assertThat(queue.depth()).isEqualTo(4096);
      assertThatThrownBy(() -> rig.controller.createQueuePair(4097))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessage("depth 4097 is outside 1..4096");
    }
  }

  @Test
  void retriesOfWhatTheHostEnded() {
    assertThat(CompletionPolicy.mayRetry(StatusCode.INTERNAL_ERROR.status())).isTrue();
    assertThat(CompletionPolicy.mayRetry(StatusCode.INTERNAL_ERROR.dnr())).isFalse();
    assertThat(CompletionPolicy.mayRetry(StatusCode.ABORTED_SQ_DELETION.dnr())).isTrue();
    assertThat(CompletionPolicy.mayRetry(StatusCode.ABORT_REQUESTED.dnr())).isTrue();
  }

  @Test
  void failuresSayWhoEndedTheCommand() {
    try (SimRig rig = new SimRig()) {
      QueuePair queue = rig.controller.createQueuePair(2);
      rig.submitReads(queue, 1);
      int byHost = StatusCode.ABORTED_BY_HOST.status();
      assertThat(CompletionPolicy.failure(queue, 0, byHost, 3))
          .as("said by the controller: the queue is ready")
          .isInstanceOf(NvmeStatusException.class);
      SimRig.await("a read", () -> queue.poll((q, slot, s) -> {}) > 0);
      rig.submitReads(queue, 1);
      queue.breakQueue();
      List<Exception> failures = new ArrayList<>();
      rig.controller.recover(
          queue, (q, slot, s) -> failures.add(CompletionPolicy.failure(q, slot, byHost, 3)));
      assertThat(failures).hasSize(1);
      assertThat(failures.getFirst())
          .isInstanceOf(NvmeTimeoutException.class)
          .hasMessage(
              "Read at LBA 0 on queue 1 did not complete within 250 ms, 3 times; the queue was"
                  + " recovered");
    }
  }
}
