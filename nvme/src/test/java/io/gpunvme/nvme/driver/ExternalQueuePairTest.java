package io.gpunvme.nvme.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.NvmeStatusException;
import io.gpunvme.nvme.ProtocolException;
import io.gpunvme.nvme.driver.QueuePair.State;
import io.gpunvme.nvme.driver.RecoveryOutcome.Rung;
import io.gpunvme.nvme.spec.AdminOpcode;
import io.gpunvme.nvme.spec.Cap;
import io.gpunvme.nvme.spec.Sqe;
import io.gpunvme.nvme.spec.StatusCode;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What the controller is told of a pair that somebody else drives, and what is refused. */
class ExternalQueuePairTest {
  private final FakeFunction function = new FakeFunction();
  private final FakeAdmin fake = function.admin();
  private final List<HostRings> open = new ArrayList<>();

  /** Queue commands as the controller saw them: opcode, DPTR, CDW10, CDW11. */
  private final List<String> told = new ArrayList<>();

  /** The opcode that is refused, or -1. */
  private int refused = -1;

  private NvmeController controller;

  @BeforeEach
  void start() {
    fake.first =
        (sqe, data) -> {
          int opcode = Sqe.opcode(sqe, 0);
          if (opcode <= AdminOpcode.CREATE_IO_CQ && opcode != AdminOpcode.GET_LOG_PAGE) {
            told.add(
                "%02Xh %X %08X %08X"
                    .formatted(opcode, Sqe.dptr1(sqe, 0), Sqe.cdw10(sqe, 0), Sqe.cdw11(sqe, 0)));
          }
          return opcode == refused ? StatusCode.INTERNAL_ERROR.dnr() : FakeAdmin.NORMAL;
        };
    controller = NvmeController.open(function, ControllerOptions.defaults());
  }

  @AfterEach
  void stop() {
    controller.close();
    open.forEach(HostRings::close);
    assertThat(function.mappedRanges()).isZero();
  }

  private HostRings rings(int sqSize, int cqSize) {
    HostRings r = new HostRings(function, sqSize, cqSize);
    open.add(r);
    return r;
  }

  private static String line(int opcode, long bus, int cdw10, int cdw11) {
    return "%02Xh %X %08X %08X".formatted(opcode, bus, cdw10, cdw11);
  }

  @Test
  void theControllerIsToldSizesAddressesAndNothingElse() {
    controller.createQueuePair(3);
    told.clear();
    HostRings r = rings(9, 33);
    ExternalQueuePair pair = controller.createExternalQueuePair(r);
    assertThat(pair.qid()).isEqualTo(2);
    assertThat(told)
        .containsExactly(
            line(AdminOpcode.CREATE_IO_CQ, r.cqBusAddress(), 32 << 16 | 2, 1),
            line(AdminOpcode.CREATE_IO_SQ, r.sqBusAddress(), 8 << 16 | 2, 2 << 16 | 1));
    told.clear();
    controller.deleteExternalQueuePair(pair);
    controller.deleteExternalQueuePair(pair);
    assertThat(told)
        .containsExactly(
            line(AdminOpcode.DELETE_IO_SQ, 0, 2, 0), line(AdminOpcode.DELETE_IO_CQ, 0, 2, 0));
  }

  @Test
  void ringsAreEmptiedBeforeTheControllerHearsOfThem() {
    HostRings r = rings(8, 8);
    r.onClear = () -> told.add("clear");
    ExternalQueuePair pair = controller.createExternalQueuePair(r);
    assertThat(told).hasSize(3).first().isEqualTo("clear");
    assertThat(Blocks.zero(r.sq(), 0, r.sq().byteSize())).isTrue();
    assertThat(Blocks.zero(r.cq(), 0, r.cq().byteSize())).isTrue();
    r.dirty();
    told.clear();
    assertThat(controller.recover(pair).rung()).isEqualTo(Rung.QUEUE);
    assertThat(told).hasSize(5);
    assertThat(told.get(0)).startsWith("00h");
    assertThat(told.get(1)).startsWith("04h");
    assertThat(told.get(2)).isEqualTo("clear");
    assertThat(told.get(3)).startsWith("05h");
    assertThat(told.get(4)).startsWith("01h");
    assertThat(Blocks.zero(r.cq(), 0, r.cq().byteSize())).isTrue();
  }

  @Test
  void doorbellsAreWhereTheStrideSays() {
    ExternalQueuePair packed = controller.createExternalQueuePair(rings(2, 2));
    assertThat(packed.sqDoorbellOffset()).isEqualTo(0x1008);
    assertThat(packed.cqDoorbellOffset()).isEqualTo(0x100C);
    FakeFunction wide = new FakeFunction();
    wide.cap =
        new Cap(0)
            .with(Cap.MQES, 63)
            .with(Cap.CQR, true)
            .with(Cap.TO, 1)
            .with(Cap.CSS, Cap.CSS_NVM)
            .with(Cap.DSTRD, 2);
    try (NvmeController c = NvmeController.open(wide, ControllerOptions.defaults());
        HostRings r = new HostRings(wide, 2, 2)) {
      c.createQueuePair(1);
      ExternalQueuePair pair = c.createExternalQueuePair(r);
      assertThat(pair.sqDoorbellOffset()).isEqualTo(0x1000 + 4 * 16);
      assertThat(pair.cqDoorbellOffset()).isEqualTo(0x1000 + 5 * 16);
    }
  }

  @ParameterizedTest
  @CsvSource({"1, 8", "0, 8", "-1, 8", "65, 8", "8, 1", "8, 65"})
  void ringsOfImpossibleSizesAreRefused(int sqSize, int cqSize) {
    int wrong = sqSize == 8 ? cqSize : sqSize;
    String queue = sqSize == 8 ? "completion" : "submission";
    HostRings r = rings(sqSize, cqSize);
    assertThat(controller.maxQueueEntries()).isEqualTo(64);
    told.clear();
    assertThatThrownBy(() -> controller.createExternalQueuePair(r))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessage("a %s queue of %d entries is outside 2..64 (CAP.MQES)", queue, wrong);
    assertThat(told).isEmpty();
    assertThat(r.clears).isZero();
  }

  @Test
  void theLongestRingsAreTaken() {
    HostRings r = rings(64, 64);
    ExternalQueuePair pair = controller.createExternalQueuePair(r);
    assertThat(List.of(pair.sqSize(), pair.cqSize())).containsExactly(64, 64);
    assertThat(told).anyMatch(t -> t.endsWith("003F0001 00010001"));
  }

  /** Rings of 8 entries at addresses of the test's choice. */
  private record Placed(long sqBusAddress, long cqBusAddress) implements QueueRings {
    @Override
    public int sqSize() {
      return 8;
    }

    @Override
    public int cqSize() {
      return 8;
    }

    @Override
    public void clear() {
      throw new AssertionError("rings that were refused are left alone");
    }
  }

  @Test
  void ringsMustBeginAtAPage() {
    assertThatThrownBy(() -> controller.createExternalQueuePair(new Placed(0x10040, 0x20000)))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessage(
            "the submission queue's bus address 10040h is not a multiple of the memory page size,"
                + " 4096 bytes");
    assertThatThrownBy(() -> controller.createExternalQueuePair(new Placed(0x10000, 0x20800)))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("completion queue's bus address 20800h");
  }

  @ParameterizedTest
  @CsvSource({"5, 1", "1, 3"})
  void aRefusedPairLeavesNothingBehind(int opcode, int commands) {
    HostRings r = rings(8, 8);
    refused = opcode;
    assertThatThrownBy(() -> controller.createExternalQueuePair(r))
        .isInstanceOf(NvmeStatusException.class);
    assertThat(told).as("a completion queue without the other is deleted").hasSize(commands);
    refused = -1;
    ExternalQueuePair pair = controller.createExternalQueuePair(r);
    assertThat(pair.qid()).as("the identifier is free").isEqualTo(1);
    assertThat(r.clears).isEqualTo(2);
  }

  @Test
  void ringsThatCannotBeEmptiedAreNotUsed() {
    HostRings r = rings(8, 8);
    r.onClear =
        () -> {
          throw new IllegalStateException("the copy failed");
        };
    assertThatThrownBy(() -> controller.createExternalQueuePair(r)).hasMessage("the copy failed");
    assertThat(told).isEmpty();
    r.onClear = () -> {};
    ExternalQueuePair pair = controller.createExternalQueuePair(r);
    r.onClear =
        () -> {
          throw new IllegalStateException("the copy failed");
        };
    assertThatThrownBy(() -> controller.recover(pair)).hasMessage("the copy failed");
    assertThat(pair.state()).isEqualTo(State.BROKEN);
    told.clear();
    r.onClear = () -> {};
    assertThat(controller.recover(pair).recovered()).isTrue();
    assertThat(told).as("created, and not deleted a second time").hasSize(2);
    assertThat(pair.state()).isEqualTo(State.READY);
  }

  @Test
  void nobodyGetsTheIdentifierOfAPairThatMayBeDrivenOn() {
    int free = controller.freeQueuePairs();
    ExternalQueuePair pair = controller.createExternalQueuePair(rings(2, 2));
    controller.retireExternalQueuePair(pair);
    controller.retireExternalQueuePair(pair);
    assertThat(pair.state()).isEqualTo(State.CLOSED);
    assertThat(controller.freeQueuePairs()).isEqualTo(free - 1);
    for (int qid = 2; qid <= free; qid++) {
      assertThat(controller.createExternalQueuePair(rings(2, 2)).qid()).isEqualTo(qid);
    }
    assertThatThrownBy(() -> controller.createQueuePair(2))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("kernels that did not end (1)");
  }

  @Test
  void deletionThatIsRefusedKeepsThePair() {
    ExternalQueuePair pair = controller.createExternalQueuePair(rings(8, 8));
    refused = AdminOpcode.DELETE_IO_SQ;
    assertThatThrownBy(() -> controller.deleteExternalQueuePair(pair))
        .isInstanceOf(NvmeStatusException.class);
    assertThat(pair.state()).isNotEqualTo(State.CLOSED);
    refused = -1;
    controller.deleteExternalQueuePair(pair);
    assertThat(pair.state()).isEqualTo(State.CLOSED);
  }

  @Test
  void closedPairsSaySo() {
    ExternalQueuePair pair = controller.createExternalQueuePair(rings(8, 8));
    assertThat(pair).hasToString("external queue pair 1 (READY, 8 and 8 entries)");
    controller.deleteExternalQueuePair(pair);
    assertThat(pair.qid()).isEqualTo(1);
    assertThatThrownBy(pair::sqDoorbellOffset)
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("queue pair 1 is closed");
    assertThatThrownBy(pair::cqDoorbellOffset).isInstanceOf(IllegalStateException.class);
    RecoveryOutcome outcome = controller.recover(pair);
    assertThat(outcome.failure())
        .isInstanceOf(InvalidRequestException.class)
        .hasMessage("queue pair 1 is closed or not this controller's");
    ExternalQueuePair next = controller.createExternalQueuePair(rings(8, 8));
    assertThat(controller.recover(pair).recovered()).as("another has its number").isFalse();
    controller.deleteExternalQueuePair(pair);
    assertThat(next.state()).isEqualTo(State.READY);
    assertThat(pair.state()).isEqualTo(State.CLOSED);
  }

  @Test
  void pairsOfAnotherControllerAreLeftAlone() {
    ExternalQueuePair ours = controller.createExternalQueuePair(rings(8, 8));
    try (NvmeController other =
        NvmeController.open(new FakeFunction(), ControllerOptions.defaults())) {
      assertThatThrownBy(() -> other.deleteExternalQueuePair(ours))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("not this controller's");
      assertThat(other.recover(ours).failure()).isInstanceOf(InvalidRequestException.class);
      QueuePair theirs = other.createQueuePair(1);
      assertThatThrownBy(() -> controller.deleteQueuePair(theirs))
          .isInstanceOf(InvalidRequestException.class);
      assertThat(theirs.state()).isEqualTo(State.READY);
    }
    assertThat(ours.state()).isEqualTo(State.READY);
  }

  @Test
  void aControllerThatGrantsFewerQueuesAfterAReset() {
    ExternalQueuePair first = controller.createExternalQueuePair(rings(8, 8));
    ExternalQueuePair second = controller.createExternalQueuePair(rings(8, 8));
    fake.queuesGranted = 0;
    controller.reset();
    assertThat(controller.recover(first).recovered()).isTrue();
    assertThat(controller.recover(second).failure())
        .isInstanceOf(InvalidRequestException.class)
        .hasMessage("queue pair 2 is beyond the 1 that the controller grants now; delete it");
    controller.deleteExternalQueuePair(second);
    assertThat(second.state()).isEqualTo(State.CLOSED);
  }

  /** Its initiator tells nobody that it has rung. */
  @Test
  void thePollerStaysAwakeWhileThereIsAPair() {
    ExternalQueuePair pair = controller.createExternalQueuePair(rings(8, 8));
    assertThat(function.poller.silent).isEqualTo(1);
    ExternalQueuePair other = controller.createExternalQueuePair(rings(8, 8));
    assertThat(function.poller.silent).isEqualTo(2);
    assertThat(controller.recover(pair).recovered()).isTrue();
    assertThat(function.poller.silent).isEqualTo(2);
    controller.deleteExternalQueuePair(pair);
    controller.deleteExternalQueuePair(pair);
    assertThat(function.poller.silent).isEqualTo(1);
    refused = AdminOpcode.CREATE_IO_SQ;
    HostRings more = rings(8, 8);
    assertThatThrownBy(() -> controller.createExternalQueuePair(more))
        .isInstanceOf(NvmeStatusException.class);
    assertThat(function.poller.silent).isEqualTo(1);
    controller.close();
    assertThat(function.poller.silent).isZero();
    assertThat(other.state()).isEqualTo(State.CLOSED);
  }

  @Test
  void noQueuesAtAll() {
    controller.close();
    FakeFunction none = new FakeFunction();
    none.admin().first =
        (sqe, data) ->
            Sqe.opcode(sqe, 0) == AdminOpcode.SET_FEATURES
                ? StatusCode.INVALID_FIELD.dnr()
                : FakeAdmin.NORMAL;
    try (NvmeController c = NvmeController.open(none, ControllerOptions.defaults())) {
      assertThatThrownBy(() -> c.createExternalQueuePair(rings(8, 8)))
          .isInstanceOf(ProtocolException.class)
          .hasMessageContaining("granted no I/O queues");
    }
  }

  @Test
  void anybodyMayAskForTroubleWhileTheControllerIsBusy() throws Exception {
    HostRings r = rings(8, 8);
    List<Boolean> answers = new ArrayList<>();
    // Emptying the rings happens with the controller's lock held.
    r.onClear =
        () -> {
          Thread asker = Thread.ofPlatform().start(() -> answers.add(controller.troubled()));
          try {
            asker.join(10_000);
          } catch (InterruptedException e) {
            throw new AssertionError(e);
          }
        };
    controller.createExternalQueuePair(r);
    assertThat(answers).containsExactly(false);
    function.status = (normal, reads) -> normal | 2;
    assertThat(controller.troubled()).as("CSTS.CFS").isTrue();
    function.status = (normal, reads) -> -1;
    assertThat(controller.troubled()).as("gone").isTrue();
  }
}
