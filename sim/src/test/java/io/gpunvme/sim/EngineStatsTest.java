package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.spec.AdminOpcode;
import io.gpunvme.nvme.spec.Csts;
import io.gpunvme.nvme.spec.FeatureId;
import io.gpunvme.nvme.spec.IoOpcode;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Counters, and what the controller watches by itself. */
class EngineStatsTest {
  @ParameterizedTest
  @ValueSource(ints = {0, 2})
  void countersTellWhatHappened(int workers) {
    SimConfig config = SimConfig.builder().workers(workers).latencyNanos(0).build();
    try (RawHost host = RawHost.start(config)) {
      SimStats stats = host.controller.stats();
      RawQueue one = host.createQueue(1, 8, 8);
      RawQueue two = host.createQueue(2, 8, 8);
      DmaBuffer data = host.buffer(4096);
      for (int i = 0; i < 3; i++) {
        host.execute(one, RawHost.io(IoOpcode.WRITE, 1, i, 2, data.busAddress(0), 0));
        host.execute(two, RawHost.io(IoOpcode.READ, 1, i, 1, data.busAddress(0), 0));
      }
      host.execute(two, RawHost.io(IoOpcode.READ, 1, 0, 1, 0x1000, 0));
      host.await(() -> stats.completions() == 11, "the last count");
      assertThat(stats.commands()).isEqualTo(11);
      assertThat(stats.adminCommands(AdminOpcode.CREATE_IO_CQ)).isEqualTo(2);
      assertThat(stats.adminCommands(AdminOpcode.DELETE_IO_SQ)).isZero();
      assertThat(stats.ioCommands(IoOpcode.READ)).isEqualTo(4);
      assertThat(stats.ioCommands(IoOpcode.WRITE)).isEqualTo(3);
      assertThat(stats.commandsOn(0)).isEqualTo(4);
      assertThat(stats.commandsOn(1)).isEqualTo(3);
      assertThat(stats.commandsOn(2)).isEqualTo(4);
      assertThat(stats.commandsOn(-1) + stats.commandsOn(1 << 20)).isZero();
      assertThat(stats.failed()).isEqualTo(1);
      assertThat(stats.dmaRefusals()).isEqualTo(1);
      assertThat(stats.readBytes()).isEqualTo(3 * 512);
      assertThat(stats.writtenBytes()).isEqualTo(3 * 1024);
      assertThat(stats.doorbellErrors() + stats.duplicateCids() + stats.heldBack()).isZero();
      host.await(() -> stats.doorbellWrites() == 22, "the last doorbell");
      assertThat(stats.interrupts()).isEqualTo(4);
      assertThat(stats.toString())
          .contains(
              "commands 11 (I/O: CPU 7, peer 0), completions 11 (failed 1)",
              "doorbell writes 22 (peer 0, errors 0)");
      host.disable();
      assertThat(stats.commands()).as("resets do not clear it").isEqualTo(11);
    }
  }

  @Test
  void aHostThatDoesNotKeepAliveIsGivenUp() {
    RawClock clock = new RawClock();
    SimConfig config = SimConfig.builder().workers(0).latencyNanos(0).keepAlive(true).build();
    try (RawHost host = RawHost.attach(SimulatedController.create(config, clock))) {
      host.enable();
      int kato = 1000;
      host.adminOk(
          RawHost.sqe(AdminOpcode.SET_FEATURES, 0, 0, 0, FeatureId.KEEP_ALIVE_TIMER, kato, 0));
      for (int i = 0; i < 5; i++) {
        clock.advance(kato * 900_000L);
        host.adminOk(RawHost.sqe(AdminOpcode.KEEP_ALIVE, 0, 0, 0, 0, 0, 0));
        assertThat(host.csts().isSet(Csts.CFS)).isFalse();
      }
      clock.advance(kato * 1_100_000L);
      host.controller.poll();
      assertThat(host.csts().isSet(Csts.CFS)).isTrue();
      assertThat(host.controller.fatalReason()).contains("keep alive");
    }
  }

  @Test
  void saysWhatItIs() {
    SimConfig config = SimConfig.builder().workers(0).serial("ABC").addressBits(40).build();
    try (RawHost host = RawHost.attach(config)) {
      assertThat(host.controller.name()).isEqualTo("sim:ABC");
      assertThat(host.controller.addressBits()).isEqualTo(40);
      assertThat(host.controller.simConfig()).isSameAs(config);
      assertThat(host.buffer(4096).busAddress(0)).isLessThan(1L << 40);
    }
  }

  @Test
  void aPollAlsoHelpsWorkers() {
    SimConfig config = SimConfig.builder().workers(2).latencyNanos(0).build();
    try (RawHost host = RawHost.start(config)) {
      RawQueue q = host.createQueue(1, 64, 64);
      for (int round = 0; round < 100; round++) {
        for (int i = 0; i < 40; i++) {
          q.push(RawHost.sqe(IoOpcode.FLUSH, 1, 0, 0, 0, 0, 0));
        }
        q.ring();
        for (int i = 0; i < 40; i++) {
          host.controller.poll();
          assertThat(host.next(q).status()).isZero();
        }
      }
      assertThat(host.controller.stats().commandsOn(1)).isEqualTo(4000);
    }
  }
}
