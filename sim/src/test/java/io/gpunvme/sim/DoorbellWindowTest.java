package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.spec.AdminOpcode;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.Registers;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The two windows to the doorbells, and who is found to have rung. */
class DoorbellWindowTest {
  private static final MemorySegment FLUSH = RawHost.sqe(IoOpcode.FLUSH, 1, 0, 0, 0, 0, 0);

  private final RawHost host =
      RawHost.start(SimConfig.builder().workers(0).latencyNanos(0).cmbBytes(8192).build());
  private final SimStats stats = host.controller.stats();
  private final MemorySegment peer = host.bar.peerMemory(Registers.DOORBELLS, 4096);
  private final MemorySegment cpu = host.bar.memory(Registers.DOORBELLS, 4096);

  @AfterEach
  void close() {
    host.close();
  }

  private long commands(DoorbellWindow window) {
    return stats.ioCommands(window);
  }

  private long writes(DoorbellWindow window) {
    return stats.doorbellWrites(window);
  }

  @Test
  void theWindowsAreTwoPiecesOfMemoryOfTheSameShape() {
    assertThat(peer.address()).isNotEqualTo(cpu.address());
    assertThat(peer.address() % 4096).as("can be pinned").isZero();
    host.bar.write32(Registers.sqTailDoorbell(30, 0), 5);
    assertThat(cpu.get(ValueLayout.JAVA_INT, 240)).isEqualTo(5);
    assertThat(peer.get(ValueLayout.JAVA_INT, 240)).isZero();
    assertThatThrownBy(() -> host.bar.peerMemory(0, 4)).isInstanceOf(InvalidRequestException.class);
    assertThatThrownBy(() -> host.bar.peerMemory(Registers.DOORBELLS, 1 << 20))
        .isInstanceOf(InvalidRequestException.class);
  }

  @Test
  void otherBarsHaveOneWindow() {
    assertThat(host.controller.bar(Cmb.BAR).peerMemory(4096, 4096).address())
        .isEqualTo(host.controller.bar(Cmb.BAR).memory(4096, 4096).address());
  }

  @Test
  void aPeerDrivesAQueue() {
    RawQueue q = host.createPeerQueue(1, 8, 8);
    host.poll();
    long before = writes(DoorbellWindow.CPU);
    for (int i = 0; i < 20; i++) {
      assertThat(host.execute(q, FLUSH).status()).isZero();
    }
    host.poll();
    assertThat(commands(DoorbellWindow.PEER)).isEqualTo(20);
    assertThat(commands(DoorbellWindow.CPU)).isZero();
    assertThat(writes(DoorbellWindow.PEER)).as("tail and head").isEqualTo(40);
    assertThat(writes(DoorbellWindow.CPU)).isEqualTo(before);
    assertThat(stats.doorbellErrors()).isZero();
  }

  @Test
  void aHeadOfAPeerThatWasWrongIsTakenWhenItIsRight() {
    RawQueue q = host.createPeerQueue(1, 8, 8);
    q.ringHead(1);
    host.poll();
    assertThat(stats.doorbellErrors()).isEqualTo(1);
    host.execute(q, FLUSH);
    for (int i = 0; i < 7; i++) {
      q.push(FLUSH);
    }
    q.ring();
    host.poll();
    for (int i = 0; i < 7; i++) {
      assertThat(q.poll()).as("completion %d", i).isNotNull();
    }
    assertThat(stats.doorbellErrors()).isEqualTo(1);
  }

  @Test
  void adminCommandsAreNoDataCommands() {
    assertThat(host.adminOk(RawHost.abort(1, 1))).isEqualTo(1);
    RawQueue peers = host.asPeer(host.admin);
    peers.tail = host.admin.tail;
    peers.head = host.admin.head;
    assertThat(host.execute(peers, RawHost.abort(1, 1)).status()).isZero();
    host.admin.tail = peers.tail;
    host.admin.head = peers.head;
    host.poll();
    assertThat(writes(DoorbellWindow.PEER)).isEqualTo(2);
    assertThat(commands(DoorbellWindow.PEER)).isZero();
    RawQueue q = host.createQueue(1, 8, 8);
    assertThat(commands(DoorbellWindow.CPU)).isZero();
    host.execute(q, FLUSH);
    assertThat(commands(DoorbellWindow.CPU)).isEqualTo(1);
    assertThat(commands(DoorbellWindow.PEER)).isZero();
  }

  @Test
  void queuesOfBothKindsStandSideBySide() {
    RawQueue mine = host.createQueue(1, 8, 8);
    RawQueue theirs = host.createPeerQueue(2, 8, 8);
    for (int i = 0; i < 12; i++) {
      host.execute(mine, FLUSH);
      host.execute(theirs, FLUSH);
      host.execute(theirs, FLUSH);
    }
    assertThat(commands(DoorbellWindow.CPU)).isEqualTo(12);
    assertThat(commands(DoorbellWindow.PEER)).isEqualTo(24);
    assertThat(stats.toString()).contains("(I/O: CPU 12, peer 24)");
  }

  @Test
  void aCommandBelongsToWhoeverAnnouncedIt() {
    RawQueue q = host.createQueue(1, 16, 16);
    RawQueue peers = host.asPeer(q);
    host.controller.faults().add(FaultRule.of(FaultRule.Action.STALL).onIo().nth(1).build());
    for (int i = 0; i < 3; i++) {
      q.push(FLUSH);
    }
    q.ring();
    host.poll();
    assertThat(commands(DoorbellWindow.CPU)).as("the others are stuck").isEqualTo(1);
    peers.tail = q.tail;
    for (int i = 0; i < 2; i++) {
      peers.push(FLUSH, 100 + i);
    }
    peers.ring();
    host.poll();
    host.controller.faults().clear();
    host.poll();
    host.poll();
    assertThat(commands(DoorbellWindow.CPU)).isEqualTo(3);
    assertThat(commands(DoorbellWindow.PEER)).isEqualTo(2);
    q.tail = peers.tail;
    q.push(FLUSH, 200);
    q.ring();
    host.poll();
    assertThat(commands(DoorbellWindow.CPU)).as("and back").isEqualTo(4);
    assertThat(stats.doorbellErrors()).isZero();
  }

  @Test
  void aNewQueueStartsAtZeroInBothWindows() {
    for (int round = 0; round < 4; round++) {
      RawQueue q = round % 2 == 0 ? host.createPeerQueue(1, 8, 8) : host.createQueue(1, 8, 8);
      for (int i = 0; i < 3; i++) {
        host.execute(q, FLUSH);
      }
      host.deleteQueue(q);
      assertThat(peer.get(ValueLayout.JAVA_LONG, 8)).isZero();
      assertThat(cpu.get(ValueLayout.JAVA_LONG, 8)).isZero();
    }
    RawQueue q = host.createPeerQueue(1, 8, 8);
    host.execute(q, FLUSH);
    host.disable();
    assertThat(peer.get(ValueLayout.JAVA_LONG, 8)).isZero();
    host.settle();
    assertThat(stats.doorbellErrors()).isZero();
  }

  @Test
  void aPeersDoorbellOfNoQueueIsNoticed() {
    peer.set(ValueLayout.JAVA_INT, 8 * 5, 3);
    host.await(() -> stats.doorbellErrors() == 1, "a doorbell error");
    assertThat(peer.get(ValueLayout.JAVA_INT, 8 * 5)).as("taken back").isZero();
  }

  @ParameterizedTest
  @ValueSource(ints = {8, 0xFFFF, -1})
  void aPeersMistakesAreErrorsToo(int tail) {
    RawQueue q = host.createPeerQueue(1, 8, 8);
    q.ringTail(tail);
    host.poll();
    q.ringHead(3);
    host.poll();
    assertThat(stats.doorbellErrors()).isEqualTo(2);
    assertThat(commands(DoorbellWindow.PEER)).isZero();
    host.execute(q, FLUSH);
  }

  @Test
  void shadowDoorbellsAreTheCpusAndLeaveThePeersRegisterAlone() {
    DmaBuffer pages = host.buffer(8192);
    host.adminOk(
        RawHost.sqe(
            AdminOpcode.DOORBELL_BUFFER_CONFIG,
            0,
            pages.busAddress(0),
            pages.busAddress(4096),
            0,
            0,
            0));
    RawQueue theirs = host.createPeerQueue(1, 8, 8);
    host.execute(theirs, FLUSH);
    assertThat(commands(DoorbellWindow.PEER)).isEqualTo(1);
    RawQueue mine = host.createQueue(2, 8, 8);
    mine.push(FLUSH);
    pages.memory().set(ValueLayout.JAVA_INT, 16, mine.tail);
    host.poll();
    assertThat(mine.poll()).isNotNull();
    assertThat(commands(DoorbellWindow.CPU)).isEqualTo(1);
  }
}
