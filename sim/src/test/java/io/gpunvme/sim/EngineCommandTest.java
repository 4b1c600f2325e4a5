package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.spec.IoOpcode;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Commands through the whole engine. */
class EngineCommandTest {
  @ParameterizedTest
  @ValueSource(ints = {0, 1, 3})
  void writesAndReadsBack(int workers) {
    SimConfig config =
        SimConfig.builder().workers(workers).latencyNanos(workers == 3 ? 20_000 : 0).build();
    try (RawHost host = RawHost.start(config)) {
      RawQueue q = host.createQueue(2, 8, 8);
      DmaBuffer data = host.buffer(4096);
      for (int i = 0; i < 20; i++) {
        data.memory().fill((byte) (i + 1));
        long slba = i * 8L;
        assertThat(host.execute(q, RawHost.io(IoOpcode.WRITE, 1, slba, 8, data.busAddress(0), 0)))
            .returns(0, RawQueue.Completion::status)
            .returns(q.tail, RawQueue.Completion::sqhd);
        data.memory().fill((byte) 0);
        assertThat(
                host.execute(q, RawHost.io(IoOpcode.READ, 1, slba, 8, data.busAddress(0), 0))
                    .status())
            .isZero();
        assertThat(data.memory().get(ValueLayout.JAVA_BYTE, 4095)).isEqualTo((byte) (i + 1));
      }
      assertThat(host.controller.stats().commandsOn(2)).isEqualTo(40);
      assertThat(host.controller.stats().ioCommands(IoOpcode.READ)).isEqualTo(20);
      host.deleteQueue(q);
    }
  }

  @Test
  void dropsWhatItDoesNotKnow() {
    try (RawHost host = RawHost.start(SimConfig.builder().workers(0).latencyNanos(0).build())) {
      RawQueue q = host.createQueue(1, 8, 8);
      assertThat(host.execute(q, RawHost.sqe(0x7E, 1, 0, 0, 0, 0, 0)).status()).isNotZero();
    }
  }
}
