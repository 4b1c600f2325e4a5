package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.memory.FakeGpu;
import io.gpunvme.nvme.spec.AdminOpcode;
import io.gpunvme.nvme.spec.Csts;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.StatusCode;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Devices whose copies fail: a status or a fatal controller, never a hang, never a bug of ours. */
class RemoteFailureTest {
  private static final int CODE = 0x7FF;
  private static final int BLOCKS = 8;
  private static final int STEPS = 90;

  @TempDir Path folder;

  private RawHost start() {
    return RawHost.start(
        SimConfig.builder()
            .workers(0)
            .latencyNanos(0)
            .namespace(NamespaceConfig.ram(1 << 20, 512))
            .namespace(NamespaceConfig.file(folder.resolve("disk"), 1 << 20, 512))
            .build());
  }

  private static MemorySegment read(int nsid, DmaBuffer to) {
    return RawHost.io(IoOpcode.READ, nsid, 0, BLOCKS, to.busAddress(0), 0);
  }

  private static int code(RawQueue.Completion c) {
    return c.status() & CODE;
  }

  /** Failing to open a port, to get bounce memory, to start, to ask. */
  @ParameterizedTest
  @ValueSource(ints = {0, 1, 2, 3})
  void aFailingCopyFailsItsCommand(int operations) {
    try (RawHost host = start()) {
      RawQueue q = host.createQueue(1, 8, 8);
      DmaBuffer data = host.remoteBuffer(4096);
      host.gpu.delay(() -> 100);
      host.gpu.breakAfter(operations);
      assertThat(code(host.execute(q, read(2, data))))
          .isEqualTo(StatusCode.DATA_TRANSFER_ERROR.status());
      assertThat(host.controller.remoteFailure()).isInstanceOf(FakeGpu.Broken.class);
      assertThat(host.gpu.openPorts()).isZero();
      assertThat(host.csts().isSet(Csts.CFS)).isFalse();
      host.gpu.heal();
      assertThat(code(host.execute(q, read(2, data))))
          .as("until it is mapped anew")
          .isEqualTo(StatusCode.DATA_TRANSFER_ERROR.status());
      assertThat(host.execute(q, read(2, host.remoteBuffer(4096))).status()).isZero();
    }
  }

  @Test
  void allCommandsOfADeviceThatFailsEnd() {
    try (RawHost host = start()) {
      RawQueue q = host.createQueue(1, 64, 64);
      DmaBuffer data = host.remoteBuffer(32 * 4096);
      DmaBuffer local = host.buffer(4096);
      host.gpu.hold(512);
      for (int i = 0; i < 32; i++) {
        q.push(RawHost.io(IoOpcode.READ, 1 + i % 2, 0, BLOCKS, data.busAddress(i * 4096L), 0));
      }
      int other = q.push(read(1, local));
      q.ring();
      host.controller.poll();
      host.controller.poll();
      host.gpu.breakAfter(0);
      host.gpu.release();
      host.controller.poll();
      int failed = 0;
      for (int i = 0; i < 33; i++) {
        RawQueue.Completion c = host.next(q);
        failed += code(c) == StatusCode.DATA_TRANSFER_ERROR.status() ? 1 : 0;
        assertThat(c.cid() == other).isEqualTo(c.status() == 0);
      }
      assertThat(failed).isEqualTo(32);
    }
  }

  @Test
  void smallThingsThatFailEndTheirCommand() {
    try (RawHost host = start()) {
      DmaBuffer data = host.remoteBuffer(8192);
      RawQueue q = host.createQueue(1, 8, 8);
      MemorySegment[] all = {
        RawHost.sqe(AdminOpcode.IDENTIFY, 0, data.busAddress(0), 0, 1, 0, 0),
        RawHost.sqe(AdminOpcode.SET_FEATURES, 0, data.busAddress(0), 0, 0x0E, 0, 0),
      };
      for (MemorySegment s : all) {
        host.gpu.breakAfter(0);
        assertThat(code(host.admin(s))).isEqualTo(StatusCode.DATA_TRANSFER_ERROR.status());
      }
      MemorySegment list =
          RawHost.io(IoOpcode.READ, 1, 0, 32, host.buffer(4096).busAddress(0), data.busAddress(0));
      assertThat(code(host.execute(q, list))).isEqualTo(StatusCode.DATA_TRANSFER_ERROR.status());
      MemorySegment compare = RawHost.io(IoOpcode.COMPARE, 1, 0, 8, data.busAddress(0), 0);
      assertThat(code(host.execute(q, compare))).isEqualTo(StatusCode.DATA_TRANSFER_ERROR.status());
      assertThat(host.controller.fatalReason()).isNull();
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 2, 3, 4, 5})
  void aQueueThatCannotBeReachedIsFatal(int operations) {
    try (RawHost host = start()) {
      RawQueue q = host.createRemoteQueue(1, 8, 8);
      host.gpu.breakAfter(operations);
      MemorySegment flush = RawHost.sqe(IoOpcode.FLUSH, 1, 0, 0, 0, 0, 0);
      for (int i = 0; i < 8; i++) {
        q.push(flush, i);
        q.ring();
        host.controller.poll();
      }
      assertThat(host.csts().isSet(Csts.CFS)).isTrue();
      assertThat(host.controller.fatalReason())
          .contains("a queue's memory cannot be reached", "fake GPU");
      assertThat(host.controller.remoteFailure()).isInstanceOf(FakeGpu.Broken.class);
      host.gpu.heal();
      host.disable();
      host.enable();
      assertThat(host.execute(host.createRemoteQueue(1, 8, 8), flush).status()).isZero();
    }
  }

  /** The channel that data broke is the one its completion needs. */
  @Test
  void dataThatFailsBesideItsQueueTakesTheQueueWithIt() {
    try (RawHost host = start()) {
      DmaBuffer all = host.remoteBuffer(3 * 4096);
      host.adminOk(RawHost.createCq(1, 8, all.busAddress(0), 1, 0));
      host.adminOk(RawHost.createSq(1, 8, all.busAddress(4096), 1, 1));
      RawQueue q = host.queueMemory(1, 8, 8, false);
      for (int i = 0; i < 2; i++) {
        long data = i == 0 ? host.buffer(4096).busAddress(0) : all.busAddress(8192);
        q.push(RawHost.io(IoOpcode.READ, 1, 0, BLOCKS, data, 0));
        MemorySegment.copy(q.sq.memory(), i * 64L, all.memory(), 4096 + i * 64L, 64);
        q.ring();
        host.controller.poll();
        assertThat(all.memory().get(ValueLayout.JAVA_SHORT, 14))
            .as("the first one")
            .isEqualTo((short) 1);
      }
      host.gpu.breakAfter(0);
      host.controller.poll();
      assertThat(host.csts().isSet(Csts.CFS)).isTrue();
      assertThat(host.controller.fatalReason()).contains("completion queue 1");
      assertThat(host.controller.internalError()).isNull();
    }
  }

  /** Fails after each possible number of operations of a whole session. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void wheneverItFailsAResetHelps(boolean slow) {
    int survived = 0;
    for (int operations = 0; operations < STEPS; operations++) {
      try (RawHost host = start()) {
        host.gpu.delay(() -> slow ? 3 : 0);
        host.gpu.breakAfter(operations);
        survived += session(host) ? 1 : 0;
        assertThat(host.controller.internalError()).as("after " + operations).isNull();
        host.gpu.heal();
        host.controller.reset();
        host.busMaster(true);
        host.disable();
        host.enable();
        host.gpu.delay(() -> 0);
        assertThat(session(host)).as("after " + operations).isTrue();
      }
    }
    assertThat(survived).as("some sessions need fewer operations").isBetween(1, STEPS - 5);
  }

  /** Creates a queue, writes, reads, deletes it; false if not everything went well. */
  private static boolean session(RawHost host) {
    RawQueue q = host.queueMemory(1, 8, 8, true);
    DmaBuffer data = host.remoteBuffer(8192);
    data.memory().fill((byte) 9);
    boolean well = step(host, host.admin, RawHost.createCq(1, 8, q.cq.busAddress(0), 1, 0));
    well = well && step(host, host.admin, RawHost.createSq(1, 8, q.sq.busAddress(0), 1, 1));
    for (int nsid = 1; nsid <= 2 && well; nsid++) {
      well =
          step(
              host,
              q,
              RawHost.io(IoOpcode.WRITE, nsid, 0, 16, data.busAddress(0), data.busAddress(4096)));
      data.memory().fill((byte) 0);
      well =
          well && step(host, q, RawHost.io(IoOpcode.COMPARE, nsid, 16, 8, data.busAddress(0), 0));
      well =
          well
              && step(
                  host,
                  q,
                  RawHost.io(
                      IoOpcode.READ, nsid, 0, 16, data.busAddress(0), data.busAddress(4096)));
      if (well) {
        assertThat(data.memory().get(ValueLayout.JAVA_BYTE, 8191)).isEqualTo((byte) 9);
      }
    }
    if (host.csts().isSet(Csts.CFS)) {
      return false;
    }
    boolean deleted = step(host, host.admin, RawHost.deleteSq(1));
    deleted = deleted && step(host, host.admin, RawHost.deleteCq(1));
    return well && deleted;
  }

  private static boolean step(RawHost host, RawQueue q, MemorySegment sqe) {
    q.push(sqe);
    q.ring();
    RawQueue.Completion c = null;
    for (int i = 0; i < 100 && c == null && !host.csts().isSet(Csts.CFS); i++) {
      host.gpu.tick();
      host.controller.poll();
      c = q.poll();
    }
    assertThat(c != null || host.csts().isSet(Csts.CFS)).as("a hang").isTrue();
    return c != null && c.status() == 0;
  }
}
