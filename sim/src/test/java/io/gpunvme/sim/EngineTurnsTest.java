package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.Prp;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.SplittableRandom;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** One worker serves queues of long commands and of short ones: who waits for whom. */
class EngineTurnsTest {
  private static final int BLOCK = 4096;
  private static final int LONG_BLOCKS = 128;
  private static final int SSD_BLOCKS = 1024;

  private final SplittableRandom random = new SplittableRandom(7);

  private @Nullable Runnable betweenParts;

  /** The worker asks for the time between two parts of a long command: then a test's host acts. */
  private final LongSupplier clock =
      () -> {
        Runnable now = betweenParts;
        betweenParts = null;
        if (now != null) {
          now.run();
        }
        return System.nanoTime();
      };

  private RawHost host;
  private RawQueue longOnes;
  private RawQueue shortOnes;
  private DmaBuffer data;
  private DmaBuffer small;
  private DmaBuffer list;

  @BeforeEach
  void start() {
    SimConfig config =
        SimConfig.builder()
            .namespace(NamespaceConfig.ram((long) SSD_BLOCKS * BLOCK, BLOCK))
            .latencyNanos(0)
            .workers(0)
            .build();
    host = RawHost.attach(SimulatedController.create(config, clock));
    host.enable();
    longOnes = host.createQueue(1, 64, 64);
    shortOnes = host.createQueue(2, 64, 64);
    data = host.hostBuffer((long) LONG_BLOCKS * BLOCK);
    small = host.hostBuffer(64L * BLOCK);
    list = host.hostBuffer(BLOCK);
    for (int i = 1; i < LONG_BLOCKS; i++) {
      list.memory().set(ValueLayout.JAVA_LONG, (i - 1) * (long) Prp.ENTRY, page(data, i));
    }
    MemorySegment medium = host.controller.mediaMemory(1).orElseThrow();
    for (long at = 0; at < medium.byteSize(); at += Long.BYTES) {
      medium.set(ValueLayout.JAVA_LONG, at, random.nextLong());
    }
  }

  @AfterEach
  void close() {
    host.close();
  }

  private static long page(DmaBuffer buffer, int i) {
    return buffer.busAddress((long) i * BLOCK);
  }

  private void pushLong(RawQueue q, int opcode, long slba) {
    q.push(RawHost.io(opcode, 1, slba, LONG_BLOCKS, page(data, 0), list.busAddress(0)));
  }

  private void pushShort(RawQueue q, int opcode, long slba, int page) {
    q.push(RawHost.io(opcode, 1, slba, 1, page(small, page), 0));
  }

  private void assertSame(DmaBuffer buffer, long offset, long slba, long blocks) {
    MemorySegment medium = host.controller.mediaMemory(1).orElseThrow();
    assertThat(
            MemorySegment.mismatch(
                medium,
                slba * BLOCK,
                (slba + blocks) * BLOCK,
                buffer.memory(),
                offset,
                offset + blocks * BLOCK))
        .isEqualTo(-1);
  }

  @Test
  void shortCommandsOfAnotherQueueDoNotWaitForALongOne() {
    for (int opcode : new int[] {IoOpcode.READ, IoOpcode.WRITE}) {
      boolean[] seen = {false};
      data.memory().fill((byte) opcode);
      pushLong(longOnes, opcode, 0);
      longOnes.ring();
      betweenParts =
          () -> // the pass begins
          betweenParts = // after the first part
                  () -> {
                    for (int i = 0; i < 5; i++) {
                      pushShort(shortOnes, IoOpcode.READ, 500 + i, i);
                    }
                    pushShort(shortOnes, IoOpcode.WRITE, 900, 5);
                    shortOnes.ring();
                    betweenParts =
                        () -> {
                          seen[0] = true;
                          for (int i = 0; i < 6; i++) {
                            RawQueue.Completion c = shortOnes.poll();
                            assertThat(c).as("short command %d", i).isNotNull();
                            assertThat(c.status()).isZero();
                          }
                          assertThat(longOnes.peek()).isNull();
                        };
                  };
      host.poll();
      assertThat(seen[0]).isTrue();
      RawQueue.Completion c = longOnes.poll();
      assertThat(c).isNotNull();
      assertThat(c.status()).isZero();
      assertSame(data, 0, 0, LONG_BLOCKS);
      assertSame(small, 0, 500, 5);
      assertSame(small, 5L * BLOCK, 900, 1);
    }
  }

  @Test
  void aQueueKeepsTheOrderOfItsCommands() {
    pushLong(longOnes, IoOpcode.READ, 0);
    longOnes.ring();
    int[] cids = new int[3];
    betweenParts =
        () ->
            betweenParts =
                () -> {
                  cids[0] = shortOnes.nextCid;
                  pushShort(shortOnes, IoOpcode.READ, 500, 0);
                  cids[1] = shortOnes.nextCid;
                  pushLong(shortOnes, IoOpcode.READ, 200);
                  cids[2] = shortOnes.nextCid;
                  pushShort(shortOnes, IoOpcode.READ, 501, 1);
                  shortOnes.ring();
                };
    host.poll();
    assertThat(longOnes.poll()).isNotNull();
    for (int cid : cids) {
      assertThat(host.next(shortOnes).cid()).isEqualTo(cid);
    }
    assertSame(data, 0, 200, LONG_BLOCKS);
    assertSame(small, 0, 500, 2);
  }

  @Test
  void aLongCommandIsNotOvertakenByItsOwnQueue() {
    int first = longOnes.nextCid;
    pushLong(longOnes, IoOpcode.READ, 0);
    longOnes.ring();
    betweenParts =
        () ->
            betweenParts =
                () -> {
                  pushShort(longOnes, IoOpcode.READ, 500, 0);
                  longOnes.ring();
                };
    assertThat(host.next(longOnes).cid()).isEqualTo(first);
    assertThat(host.next(longOnes).cid()).isEqualTo(first + 1);
  }

  @Test
  void queuesOfLongCommandsTakeTurnsByBytes() {
    for (int i = 0; i < 20; i++) {
      pushLong(longOnes, IoOpcode.READ, i);
    }
    longOnes.ring();
    for (int i = 0; i < 3; i++) {
      pushLong(shortOnes, IoOpcode.READ, i);
    }
    shortOnes.ring();
    for (int pass = 1; pass <= 3; pass++) {
      host.poll();
      assertThat(shortOnes.poll()).as("pass %d", pass).isNotNull();
      assertThat(longOnes.poll()).as("pass %d", pass).isNotNull();
      assertThat(longOnes.poll()).as("pass %d", pass).isNull();
    }
  }

  @Test
  void aWrongDoorbellBetweenPartsIsReportedAsAnyOther() {
    pushLong(longOnes, IoOpcode.READ, 0);
    longOnes.ring();
    betweenParts = () -> betweenParts = () -> shortOnes.ringTail(5000);
    host.poll();
    RawQueue.Completion c = longOnes.poll();
    assertThat(c).isNotNull();
    assertThat(c.status()).isZero();
    assertThat(host.controller.stats().doorbellErrors()).isEqualTo(1);
    pushShort(shortOnes, IoOpcode.READ, 500, 0);
    shortOnes.ring();
    assertThat(host.next(shortOnes).status()).isZero();
  }
}
