package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.spec.AdminOpcode;
import io.gpunvme.nvme.spec.Csts;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.StatusCode;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Doorbell Buffer Config: doorbells in the host's memory. */
class QueueShadowTest {
  private static final int CODE = 0x7FF;
  private static final MemorySegment FLUSH = RawHost.sqe(IoOpcode.FLUSH, 1, 0, 0, 0, 0, 0);

  private final RawHost host =
      RawHost.start(SimConfig.builder().workers(0).latencyNanos(0).dstrd(1).build());
  private final DmaBuffer values = host.buffer(4096);
  private final DmaBuffer events = host.buffer(4096);

  @AfterEach
  void close() {
    host.close();
  }

  private MemorySegment config(long prp1, long prp2) {
    return RawHost.sqe(AdminOpcode.DOORBELL_BUFFER_CONFIG, 0, prp1, prp2, 0, 0, 0);
  }

  private void configure() {
    host.adminOk(config(values.busAddress(0), events.busAddress(0)));
  }

  private static long tailAt(int qid) {
    return 2L * qid * 8;
  }

  /** Writes the shadow tail; true if the host would now have to write the register. */
  private boolean announce(RawQueue q, int old) {
    values.memory().set(ValueLayout.JAVA_INT, tailAt(q.qid), q.tail);
    int event = events.memory().get(ValueLayout.JAVA_INT, tailAt(q.qid));
    return (q.tail - event - 1 & 0xFFFF) < (q.tail - old & 0xFFFF);
  }

  private RawQueue.Completion run(RawQueue q) {
    int old = q.tail;
    q.push(FLUSH);
    assertThat(announce(q, old)).as("the register need not be written").isFalse();
    host.controller.poll();
    RawQueue.Completion c = q.take();
    values.memory().set(ValueLayout.JAVA_INT, tailAt(q.qid) + 8, q.head);
    return c;
  }

  @Test
  void existingAndNewQueuesFollowTheBuffer() {
    RawQueue old = host.createQueue(1, 8, 8);
    host.execute(old, FLUSH);
    values.memory().set(ValueLayout.JAVA_INT, tailAt(1), old.tail);
    values.memory().set(ValueLayout.JAVA_INT, tailAt(1) + 8, old.head);
    configure();
    RawQueue fresh = host.createQueue(2, 4, 4);
    for (int i = 0; i < 50; i++) {
      assertThat(run(old)).as("round " + i).isNotNull();
      assertThat(run(fresh)).as("round " + i).isNotNull();
    }
    old.push(FLUSH);
    old.ring();
    host.controller.poll();
    assertThat(old.peek()).as("the register counts no more").isNull();
    assertThat(host.controller.stats().doorbellErrors()).isZero();
    host.adminOk(RawHost.deleteSq(2));
  }

  @Test
  void theAdminQueueKeepsItsRegister() {
    configure();
    host.adminOk(RawHost.abort(1, 1));
  }

  @Test
  void resetReturnsToTheRegisters() {
    configure();
    host.disable();
    host.enable();
    RawQueue q = host.createQueue(1, 8, 8);
    values.memory().set(ValueLayout.JAVA_INT, tailAt(1), 3);
    assertThat(host.execute(q, FLUSH).status()).isZero();
  }

  @Test
  void wrongValuesAreErrorsToo() {
    configure();
    RawQueue q = host.createQueue(1, 8, 8);
    values.memory().set(ValueLayout.JAVA_INT, tailAt(1), 8);
    host.controller.poll();
    assertThat(host.controller.stats().doorbellErrors()).isEqualTo(1);
    assertThat(run(q)).isNotNull();
  }

  @Test
  void unmappingTheBufferStopsItsQueuesOnly() {
    configure();
    RawQueue q = host.createQueue(1, 8, 8);
    values.range().close();
    q.push(FLUSH);
    host.controller.poll();
    assertThat(q.peek()).isNull();
    assertThat(host.csts().isSet(Csts.CFS)).isFalse();
    host.adminOk(RawHost.deleteSq(1));
    events.range().close();
  }

  @Test
  void theBufferIsChecked() {
    long v = values.busAddress(0);
    long e = events.busAddress(0);
    assertThat(host.admin(config(v + 8, e)).status() & CODE)
        .isEqualTo(StatusCode.INVALID_FIELD.status());
    assertThat(host.admin(config(v, e + 4)).status() & CODE)
        .isEqualTo(StatusCode.INVALID_FIELD.status());
    assertThat(host.admin(config(v, v)).status() & CODE)
        .isEqualTo(StatusCode.INVALID_FIELD.status());
    assertThat(host.admin(config(v, 0x5000)).status() & CODE)
        .isEqualTo(StatusCode.DATA_TRANSFER_ERROR.status());
  }
}
