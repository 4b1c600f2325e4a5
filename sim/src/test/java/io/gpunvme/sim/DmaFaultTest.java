package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.spec.Csts;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.StatusCode;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Memory that is not there, or vanishes. */
class DmaFaultTest {
  private static final int CODE = 0x7FF;
  private static final MemorySegment FLUSH = RawHost.sqe(IoOpcode.FLUSH, 1, 0, 0, 0, 0, 0);

  private static SimConfig config() {
    return SimConfig.builder().workers(0).latencyNanos(0).build();
  }

  @Test
  void dataThatIsNotMappedFailsTheCommand() {
    try (RawHost host = RawHost.start(config())) {
      RawQueue q = host.createQueue(1, 8, 8);
      DmaBuffer data = host.buffer(4096);
      long bus = data.busAddress(0);
      assertThat(host.execute(q, RawHost.io(IoOpcode.READ, 1, 0, 8, bus, 0)).status()).isZero();
      data.range().close();
      int status = host.execute(q, RawHost.io(IoOpcode.READ, 1, 0, 8, bus, 0)).status();
      assertThat(status & CODE).isEqualTo(StatusCode.DATA_TRANSFER_ERROR.status());
      assertThat(host.controller.stats().dmaRefusals()).isEqualTo(1);
      assertThat(host.execute(q, FLUSH).status()).isZero();
    }
  }

  @Test
  void aPointerIsNoBusAddress() {
    try (RawHost host = RawHost.start(config())) {
      RawQueue q = host.createQueue(1, 8, 8);
      DmaBuffer data = host.buffer(4096);
      long pointer = data.memory().address();
      int status = host.execute(q, RawHost.io(IoOpcode.READ, 1, 0, 8, pointer, 0)).status();
      assertThat(status & CODE).isEqualTo(StatusCode.DATA_TRANSFER_ERROR.status());
    }
  }

  @Test
  void anUnmappedSubmissionQueueIsFatalOnceUsed() {
    try (RawHost host = RawHost.start(config())) {
      RawQueue q = host.createQueue(1, 8, 8);
      host.execute(q, FLUSH);
      q.sq.range().close();
      host.adminOk(RawHost.abort(1, 1));
      assertThat(host.csts().isSet(Csts.CFS)).isFalse();
      q.push(FLUSH);
      q.ring();
      host.poll();
      assertThat(host.csts().isSet(Csts.CFS)).isTrue();
      assertThat(host.controller.fatalReason()).contains("submission queue 1");
      host.disable();
      host.enable();
      host.execute(host.createQueue(1, 8, 8), FLUSH);
    }
  }

  @Test
  void anUnmappedCompletionQueueIsFatalOnceUsed() {
    try (RawHost host = RawHost.start(config())) {
      RawQueue q = host.createQueue(1, 8, 8);
      q.cq.range().close();
      q.push(FLUSH);
      q.push(FLUSH);
      q.ring();
      host.poll();
      assertThat(host.csts().isSet(Csts.CFS)).isTrue();
      assertThat(host.controller.fatalReason()).contains("completion queue 1");
      host.disable();
      host.enable();
      host.execute(host.createQueue(1, 8, 8), FLUSH);
    }
  }

  @Test
  void withoutBusMasterNothingCanBeFetched() {
    try (RawHost host = RawHost.attach(config())) {
      host.busMaster(false);
      host.enable();
      assertThat(host.csts().isSet(Csts.CFS)).isFalse();
      host.admin.push(RawHost.abort(1, 1));
      host.admin.ring();
      host.poll();
      assertThat(host.csts().isSet(Csts.CFS)).isTrue();
      host.busMaster(true);
      host.disable();
      host.enable();
      host.adminOk(RawHost.abort(1, 1));
    }
  }

  @Test
  void memoryFreedWithoutUnmappingIsABugOfTheHostAndNoCrash() {
    RawHost host = RawHost.start(config());
    RawQueue q = host.createQueue(1, 8, 8);
    try (java.lang.foreign.Arena arena = java.lang.foreign.Arena.ofShared()) {
      MemorySegment memory = arena.allocate(4096, 4096);
      q.push(RawHost.io(IoOpcode.READ, 1, 0, 8, host.controller.map(memory).busAddress(0), 0));
    }
    q.ring();
    host.poll();
    assertThat(host.csts().isSet(Csts.CFS)).isTrue();
    assertThat(host.controller.internalError()).isInstanceOf(IllegalStateException.class);
    host.disable();
    host.enable();
    assertThat(host.execute(host.createQueue(1, 8, 8), FLUSH).status()).isZero();
    host.controller.close();
    host.buffers.forEach(DmaBuffer::close);
  }

  /** Buffers come and go while reads into them are in flight; freed memory must not be touched. */
  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void unmappingWaitsForTheWorkers(int workers) throws InterruptedException {
    SimConfig config = SimConfig.builder().workers(workers).latencyNanos(0).build();
    AtomicBoolean stop = new AtomicBoolean();
    AtomicReference<Throwable> failure = new AtomicReference<>();
    try (RawHost host = RawHost.start(config)) {
      RawQueue q = host.createQueue(1, 64, 64);
      DmaBuffer[] current = {host.buffer(4096)};
      host.buffers.remove(current[0]);
      Thread remapper =
          new Thread(
              () -> {
                try {
                  while (!stop.get()) {
                    DmaBuffer next = DmaBuffer.allocate(host.mapper(), 4096);
                    DmaBuffer old;
                    synchronized (current) {
                      old = current[0];
                      current[0] = next;
                    }
                    old.close();
                  }
                } catch (RuntimeException e) {
                  failure.set(e);
                }
              });
      remapper.start();
      int failed = 0;
      // Remote memory takes several passes a command.
      int commands = host.remote ? 4_000 : 20_000;
      for (int i = 0; i < commands; i++) {
        long bus;
        synchronized (current) {
          bus = current[0].busAddress(0);
        }
        RawQueue.Completion c = host.execute(q, RawHost.io(IoOpcode.READ, 1, i % 100, 8, bus, 0));
        if (c.status() != 0) {
          assertThat(c.status() & CODE).isEqualTo(StatusCode.DATA_TRANSFER_ERROR.status());
          failed++;
        }
      }
      stop.set(true);
      remapper.join();
      current[0].close();
      assertThat(failure.get()).isNull();
      assertThat(host.controller.stats().failed()).isEqualTo(failed);
    }
  }
}
