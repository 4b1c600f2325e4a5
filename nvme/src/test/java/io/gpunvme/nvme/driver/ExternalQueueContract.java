package io.gpunvme.nvme.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.driver.QueuePair.State;
import io.gpunvme.nvme.driver.RecoveryOutcome.Rung;
import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.spec.Cap;
import io.gpunvme.nvme.spec.IoOpcode;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** The part of the contract that is about queue pairs driven by somebody else. */
abstract class ExternalQueueContract extends ContractRig {
  private final List<HostRings> rings = new ArrayList<>();

  /** After the controller is closed: it may use the rings until then. */
  @AfterEach
  void freeRings() {
    controller.close();
    rings.forEach(HostRings::close);
  }

  private HostRings rings(int sqSize, int cqSize) {
    HostRings r = new HostRings(controller.function(), sqSize, cqSize);
    rings.add(r);
    return r;
  }

  /** A pair together with whoever drives it. */
  private record Driven(ExternalQueuePair pair, HostRings rings, ForeignDriver driver) {}

  private Driven driven(int sqSize, int cqSize) {
    HostRings r = rings(sqSize, cqSize);
    ExternalQueuePair pair = controller.createExternalQueuePair(r);
    return new Driven(pair, r, new ForeignDriver(controller, pair, r));
  }

  private void runWrapped(Driven d, int commands) {
    DmaBuffer b = buffer(first().blockSize());
    int depth = Math.min(d.rings().sqSize(), d.rings().cqSize()) - 1;
    d.driver().run(commands, depth, first().nsid(), b.busAddress(0));
  }

  @Test
  void somebodyElseWritesAndReadsBlocks() {
    Driven d = driven(8, 16);
    assertThat(d.pair().state()).isEqualTo(State.READY);
    int size = first().blockSize();
    int blocks = 7;
    DmaBuffer b = buffer((long) blocks * size);
    int mark = random.nextInt();
    Blocks.fill(b.memory(), 0, 100, blocks, size, mark);
    for (int opcode : new int[] {IoOpcode.WRITE, IoOpcode.READ}) {
      Set<Integer> cids = new HashSet<>();
      for (int i = 0; i < blocks; i++) {
        cids.add(d.driver().submit(opcode, first().nsid(), 100 + i, b.busAddress((long) i * size)));
      }
      d.driver().ring();
      for (ForeignDriver.Done done : d.driver().await(blocks)) {
        assertThat(done.status()).as(where("status")).isZero();
        assertThat(cids.remove(done.cid())).as(where("CID " + done.cid())).isTrue();
      }
      if (opcode == IoOpcode.WRITE) {
        b.memory().fill((byte) 0);
      }
    }
    assertThat(Blocks.mismatch(b.memory(), 0, 100, blocks, size, mark))
        .as(where("data"))
        .isEqualTo(-1);
    controller.deleteExternalQueuePair(d.pair());
    assertThat(d.pair().state()).isEqualTo(State.CLOSED);
  }

  @Test
  void externalRingsOfOddSizesWork() {
    int most = controller.maxQueueEntries();
    assertThat(most).isEqualTo(controller.cap().get(Cap.MQES) + 1);
    int[][] sizes = {{2, 2}, {2, 19}, {19, 2}, {3, 5}, {17, 16}, {most, most}};
    for (int[] size : sizes) {
      Driven d = driven(Math.min(size[0], most), Math.min(size[1], most));
      runWrapped(d, 3 * Math.max(size[0], size[1]) + 1);
      controller.deleteExternalQueuePair(d.pair());
    }
  }

  @Test
  void bothKindsShareTheIdentifiers() {
    int most = controller.maxQueuePairs();
    for (int round = 0; round < 2; round++) {
      List<QueuePair> own = new ArrayList<>();
      List<Driven> foreign = new ArrayList<>();
      for (int i = 0; i < most; i++) {
        if ((i + round) % 2 == 0) {
          own.add(controller.createQueuePair(2));
        } else {
          foreign.add(driven(3, 3));
        }
      }
      Set<Integer> qids = new HashSet<>();
      own.forEach(q -> qids.add(q.qid()));
      foreign.forEach(d -> qids.add(d.pair().qid()));
      assertThat(qids).hasSize(most).allMatch(qid -> qid >= 1 && qid <= most);
      HostRings oneMore = rings(3, 3);
      assertThatThrownBy(() -> controller.createExternalQueuePair(oneMore))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("in use");
      own.forEach(q -> runWrapped(q, 7));
      foreign.forEach(d -> runWrapped(d, 7));
      own.forEach(controller::deleteQueuePair);
      foreign.forEach(d -> controller.deleteExternalQueuePair(d.pair()));
    }
  }

  @Test
  void bothKindsWorkAtTheSameTime() throws Exception {
    Driven d = driven(9, 17);
    AtomicBoolean stop = new AtomicBoolean();
    try (ExecutorService pool = Executors.newSingleThreadExecutor()) {
      Future<Integer> rounds = pool.submit(() -> hammer(1, 2000, stop, 200));
      runWrapped(d, 2000);
      stop.set(true);
      rounds.get(30, TimeUnit.SECONDS);
    } finally {
      stop.set(true);
    }
    runWrapped(d, 20);
  }

  @Test
  void externalPairsAreCreatedAnewWhateverTheirState() {
    Driven d = driven(5, 8);
    runWrapped(d, 13);
    DmaBuffer b = buffer(4L * first().blockSize());
    // Outstanding or completed and not looked at: its owner does not care any more.
    d.driver().read(4, first().nsid(), first().blockSize(), b.busAddress(0));
    RecoveryOutcome outcome = controller.recover(d.pair());
    assertThat(outcome.rung()).as(outcome.toString()).isEqualTo(Rung.QUEUE);
    assertThat(outcome.ended()).isZero();
    assertThat(d.pair().state()).isEqualTo(State.READY);
    assertThat(d.rings().clears).isEqualTo(2);
    d.driver().restart();
    assertThat(d.driver().poll()).as("the rings are empty").isEmpty();
    runWrapped(d, 23);
    assertThat(controller.resets()).isZero();
  }

  @Test
  void deletionDoesNotWaitForTheOwner() {
    // More completions than the queue takes: what does not fit is lost with the pair.
    Driven d = driven(9, 3);
    int size = first().blockSize();
    DmaBuffer b = buffer(8L * size);
    d.driver().read(8, first().nsid(), size, b.busAddress(0));
    controller.deleteExternalQueuePair(d.pair());
    controller.deleteExternalQueuePair(d.pair());
    assertThat(d.pair().state()).isEqualTo(State.CLOSED);
    assertThat(controller.resets()).isZero();
    Driven next = driven(5, 5);
    assertThat(next.pair().qid()).isEqualTo(d.pair().qid());
    runWrapped(next, 11);
  }

  @Test
  void resetBreaksExternalPairsUntilTheyAreRecovered() {
    Driven a = driven(5, 5);
    Driven b = driven(7, 4);
    QueuePair own = controller.createQueuePair(3);
    runWrapped(a, 11);
    controller.reset();
    assertThat(List.of(a.pair().state(), b.pair().state(), own.state())).containsOnly(State.BROKEN);
    for (Driven d : List.of(b, a)) {
      RecoveryOutcome outcome = controller.recover(d.pair());
      assertThat(outcome.rung()).as(outcome.toString()).isEqualTo(Rung.RESET);
      assertThat(d.pair().state()).isEqualTo(State.READY);
      d.driver().restart();
      runWrapped(d, 11);
    }
    assertThat(controller.resets()).isEqualTo(1);
    assertThat(own.state()).isEqualTo(State.BROKEN);
    assertThat(controller.recover(own, (q, slot, status) -> {}).recovered()).isTrue();
    runWrapped(own, 7);
  }

  @Test
  void closingTheControllerClosesExternalPairs() {
    Driven d = driven(5, 5);
    Driven broken = driven(5, 5);
    runWrapped(d, 11);
    broken.pair().breakQueue();
    controller.close();
    assertThat(d.pair().state()).isEqualTo(State.CLOSED);
    assertThat(broken.pair().state()).isEqualTo(State.CLOSED);
    d.rings().dirty();
    assertThatThrownBy(d.pair()::sqDoorbellOffset).isInstanceOf(IllegalStateException.class);
    assertThat(controller.recover(d.pair()).rung()).isEqualTo(Rung.FAILED);
    assertThat(d.pair().state()).isEqualTo(State.CLOSED);
    controller.deleteExternalQueuePair(d.pair());
  }

  @Test
  void shutdownBreaksExternalPairsUntilAReset() {
    Driven d = driven(5, 5);
    runWrapped(d, 3);
    controller.shutdown();
    assertThat(d.pair().state()).isEqualTo(State.BROKEN);
    RecoveryOutcome outcome = controller.recover(d.pair());
    assertThat(outcome.rung()).isEqualTo(Rung.FAILED);
    assertThat(outcome.failure()).isInstanceOf(InvalidRequestException.class);
    assertThat(d.pair().state()).isEqualTo(State.BROKEN);
    controller.reset();
    assertThat(controller.recover(d.pair()).rung()).isEqualTo(Rung.RESET);
    d.driver().restart();
    runWrapped(d, 11);
  }
}
