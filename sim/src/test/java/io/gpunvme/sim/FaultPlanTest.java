package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.nvme.spec.AdminOpcode;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.Sqe;
import io.gpunvme.nvme.spec.StatusCode;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Which commands a rule applies to, and how often. */
class FaultPlanTest {
  private final MemorySegment sqe = MemorySegment.ofArray(new long[Sqe.SIZE / Long.BYTES]);

  private static FaultPlan plan(String text) {
    FaultPlan plan = new FaultPlan(List.of(), 1);
    plan.add(text);
    return plan;
  }

  private MemorySegment command(int opcode, int nsid, long slba, int nlb) {
    Sqe.put(
        sqe,
        0,
        Sqe.cdw0(opcode, 0, 5),
        nsid,
        0,
        0,
        0,
        (int) slba,
        (int) (slba >>> 32),
        nlb,
        0,
        0,
        0);
    return sqe;
  }

  private boolean hits(FaultPlan plan, int qid, int opcode) {
    return plan.onCommand(qid, command(opcode, 1, 0, 0)) != null;
  }

  private List<Integer> hitsOf(FaultPlan plan, int commands) {
    List<Integer> hits = new ArrayList<>();
    for (int i = 1; i <= commands; i++) {
      if (hits(plan, 1, IoOpcode.READ)) {
        hits.add(i);
      }
    }
    return hits;
  }

  @Test
  void anEmptyPlanDoesNothing() {
    FaultPlan plan = new FaultPlan(List.of(), 1);
    assertThat(hits(plan, 1, IoOpcode.READ)).isFalse();
    assertThat(plan.onEvent(FaultRule.Trigger.ENABLE)).isNull();
  }

  @Test
  void adminAndIoOpcodesAreDifferentThings() {
    FaultPlan plan = plan("drop on read|delete-sq");
    assertThat(hits(plan, 1, IoOpcode.READ)).isTrue();
    assertThat(hits(plan, 0, AdminOpcode.GET_LOG_PAGE)).isFalse();
    assertThat(hits(plan, 0, AdminOpcode.DELETE_IO_SQ)).isTrue();
    assertThat(hits(plan, 1, IoOpcode.FLUSH)).isFalse();
  }

  @Test
  void queueAndNamespace() {
    FaultPlan plan = plan("drop qid=2 nsid=1");
    assertThat(hits(plan, 1, IoOpcode.READ)).isFalse();
    assertThat(hits(plan, 2, IoOpcode.READ)).isTrue();
    assertThat(plan.onCommand(2, command(IoOpcode.READ, 2, 0, 0))).isNull();
  }

  @Test
  void anLbaRangeIsTouchedByItsLastBlock() {
    FaultPlan plan = plan("drop lba=100..200");
    assertThat(plan.onCommand(1, command(IoOpcode.READ, 1, 98, 1))).isNull();
    assertThat(plan.onCommand(1, command(IoOpcode.READ, 1, 98, 2))).isNotNull();
    assertThat(plan.onCommand(1, command(IoOpcode.WRITE, 1, 200, 0))).isNotNull();
    assertThat(plan.onCommand(1, command(IoOpcode.WRITE, 1, 201, 0))).isNull();
    assertThat(plan.onCommand(1, command(IoOpcode.FLUSH, 1, 150, 0))).isNull();
    assertThat(plan.onCommand(0, command(AdminOpcode.CREATE_IO_SQ, 1, 150, 0))).isNull();
  }

  @Test
  void aPatternUnderAMask() {
    FaultPlan plan = plan("drop dw12=0x40000000/0x40000000");
    assertThat(plan.onCommand(1, command(IoOpcode.WRITE, 1, 0, 7))).isNull();
    assertThat(plan.onCommand(1, command(IoOpcode.WRITE, 1, 0, 1 << 30 | 7))).isNotNull();
  }

  @Test
  void frequencies() {
    assertThat(hitsOf(plan("drop nth=3"), 9)).containsExactly(3);
    assertThat(hitsOf(plan("drop after=3"), 6)).containsExactly(4, 5, 6);
    assertThat(hitsOf(plan("drop every=3"), 9)).containsExactly(3, 6, 9);
    assertThat(hitsOf(plan("drop count=2"), 9)).containsExactly(1, 2);
    assertThat(hitsOf(plan("drop after=2 every=2 count=2"), 20)).containsExactly(4, 6);
    assertThat(hitsOf(plan("drop p=0"), 50)).isEmpty();
    assertThat(hitsOf(plan("drop p=1"), 3)).containsExactly(1, 2, 3);
  }

  @Test
  void probabilityFollowsTheSeed() {
    List<Integer> first = hitsOf(plan("drop p=0.1"), 2000);
    assertThat(first).hasSizeBetween(120, 280);
    assertThat(hitsOf(plan("drop p=0.1"), 2000)).isEqualTo(first);
    FaultPlan other = new FaultPlan(FaultSyntax.parse("drop p=0.1"), 2);
    assertThat(hitsOf(other, 2000)).isNotEqualTo(first);
  }

  @Test
  void theFirstRuleThatIsDueActsAndAllRulesCount() {
    FaultPlan plan = plan("drop nth=2\nduplicate count=2");
    FaultRule drop = plan.rules().get(0);
    FaultRule duplicate = plan.rules().get(1);
    MemorySegment read = command(IoOpcode.READ, 1, 0, 0);

    assertThat(plan.onCommand(1, read)).isSameAs(duplicate);
    assertThat(plan.onCommand(1, read)).isSameAs(drop);
    assertThat(plan.onCommand(1, read)).isSameAs(duplicate);
    assertThat(plan.onCommand(1, read)).isNull();
    assertThat(plan.fired(drop)).isEqualTo(1);
    assertThat(plan.fired(duplicate)).isEqualTo(2);
  }

  @Test
  void rulesComeAndGo() {
    FaultPlan plan = plan("stall");
    FaultRule stall = plan.rules().getFirst();
    FaultRule status = FaultRule.status(StatusCode.WRITE_FAULT).onIo(IoOpcode.WRITE).build();
    plan.add(status);
    assertThat(plan.active(stall)).isTrue();
    plan.remove(stall);
    assertThat(plan.active(stall)).isFalse();
    assertThat(plan.fired(stall)).isZero();
    assertThat(plan.rules()).containsExactly(status);
    plan.clear();
    assertThat(plan.rules()).isEmpty();
  }

  @Test
  void eventsAreNotCommands() {
    FaultPlan plan = plan("cfs on enable nth=2");
    assertThat(hits(plan, 0, AdminOpcode.IDENTIFY)).isFalse();
    assertThat(plan.onEvent(FaultRule.Trigger.ENABLE)).isNull();
    assertThat(plan.onEvent(FaultRule.Trigger.DISABLE)).isNull();
    assertThat(plan.onEvent(FaultRule.Trigger.ENABLE)).isSameAs(plan.rules().getFirst());
  }
}
