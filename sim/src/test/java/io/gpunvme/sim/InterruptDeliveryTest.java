package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.nvme.pci.Bar;
import io.gpunvme.nvme.pci.ConfigSpace;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.Registers;
import io.gpunvme.nvme.spec.StatusCode;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** MSI-X and INTx. */
class InterruptDeliveryTest {
  private static final MemorySegment FLUSH = RawHost.sqe(IoOpcode.FLUSH, 1, 0, 0, 0, 0, 0);
  private static final int MSIX_CONTROL = 0x52;
  private static final int ENABLE = 1 << 15;
  private static final int MASK_ALL = 1 << 14;
  private static final int PC_IEN = 3;

  private final RawHost host =
      RawHost.start(SimConfig.builder().workers(0).latencyNanos(0).vectors(40).build());
  private final ConfigSpace config = host.controller.config();
  private final Bar table = host.controller.bar(4);
  private final List<String> seen = new ArrayList<>();

  InterruptDeliveryTest() {
    host.controller.interruptSink(
        new InterruptSink() {
          @Override
          public void message(int vector, long address, int data) {
            seen.add("vector %d %X %X".formatted(vector, address, data));
          }

          @Override
          public void level(boolean asserted) {
            seen.add(asserted ? "up" : "down");
          }
        });
  }

  @AfterEach
  void close() {
    host.close();
  }

  private void enableMsix(int... vectors) {
    config.write(MSIX_CONTROL, 2, ENABLE);
    for (int v : vectors) {
      table.write32(v * 16L, 0x1000 * (v + 1));
      table.write32(v * 16L + 4, 0xFEE);
      table.write32(v * 16L + 8, 0xD0 + v);
      table.write32(v * 16L + 12, 0);
    }
  }

  private RawQueue queue(int qid, int flags, int vector) {
    RawQueue q = host.queueMemory(qid, 8, 8);
    host.adminOk(RawHost.createCq(qid, 8, q.cq.busAddress(0), flags, vector));
    host.adminOk(RawHost.createSq(qid, 8, q.sq.busAddress(0), 1, qid));
    return q;
  }

  private void submit(RawQueue q) {
    q.push(FLUSH);
    q.ring();
    host.controller.poll();
  }

  private int pendingBits() {
    return table.read32(4096);
  }

  @Test
  void messagesCarryWhatTheTableSays() {
    enableMsix(0, 5);
    RawQueue q = queue(1, PC_IEN, 5);
    assertThat(seen).containsOnly("vector 0 FEE00001000 D0").hasSize(2);
    seen.clear();
    submit(q);
    assertThat(seen).containsExactly("vector 5 FEE00006000 D5");
    host.controller.poll();
    assertThat(seen).as("once").hasSize(1);
  }

  @Test
  void severalCompletionsAtOnceAreOneMessage() {
    enableMsix(5);
    RawQueue q = queue(1, PC_IEN, 5);
    for (int i = 0; i < 6; i++) {
      q.push(FLUSH);
    }
    q.ring();
    host.controller.poll();
    assertThat(seen).hasSize(1);
    assertThat(q.peek()).isNotNull();
  }

  @Test
  void polledQueuesAreSilent() {
    enableMsix(0, 5);
    RawQueue q = queue(1, 1, 5);
    seen.clear();
    submit(q);
    assertThat(q.peek()).isNotNull();
    assertThat(seen).isEmpty();
  }

  @Test
  void maskedVectorsArePending() {
    enableMsix(5);
    RawQueue q = queue(1, PC_IEN, 5);
    table.write32(5 * 16 + 12, 1);
    submit(q);
    submit(q);
    assertThat(seen).isEmpty();
    assertThat(pendingBits()).isEqualTo(1 << 5 | 1);
    table.write32(5 * 16 + 12, 0);
    assertThat(seen).containsExactly("vector 5 FEE00006000 D5");
    assertThat(pendingBits()).isEqualTo(1);
    table.write32(4096, 0);
    assertThat(pendingBits()).as("read only").isEqualTo(1);
  }

  @Test
  void theWholeFunctionCanBeMasked() {
    enableMsix(0, 5, 35);
    RawQueue q = queue(1, PC_IEN, 5);
    RawQueue r = queue(2, PC_IEN, 35);
    seen.clear();
    config.write(MSIX_CONTROL, 2, ENABLE | MASK_ALL);
    submit(q);
    submit(r);
    assertThat(seen).isEmpty();
    assertThat(table.read32(4096 + 4)).isEqualTo(1 << 3);
    config.write(MSIX_CONTROL, 2, ENABLE);
    assertThat(seen).containsExactly("vector 5 FEE00006000 D5", "vector 35 FEE00024000 F3");
  }

  @Test
  void resetForgetsWhatIsPending() {
    enableMsix(5);
    RawQueue q = queue(1, PC_IEN, 5);
    table.write32(5 * 16 + 12, 1);
    submit(q);
    host.disable();
    assertThat(pendingBits()).isZero();
    assertThat(table.read32(5 * 16)).as("the table stays").isEqualTo(0x6000);
    host.controller.reset();
    assertThat(table.read32(5 * 16)).isZero();
    assertThat(table.read32(5 * 16 + 12)).isEqualTo(1);
    assertThat(config.read(MSIX_CONTROL, 2) & ENABLE).isZero();
  }

  @Test
  void theLineFollowsWhatIsNotConsumed() {
    submit(host.admin);
    assertThat(seen).containsExactly("up");
    submit(host.admin);
    assertThat(seen).hasSize(1);
    assertThat(config.read(6, 2) & 1 << 3).isNotZero();
    host.admin.poll();
    host.controller.poll();
    assertThat(seen).as("one is left").hasSize(1);
    host.admin.poll();
    host.controller.poll();
    assertThat(seen).containsExactly("up", "down");
    assertThat(config.read(6, 2) & 1 << 3).isZero();
  }

  @Test
  void theLineCanBeMaskedByVector() {
    submit(host.admin);
    host.bar.write32(Registers.INTMS, 1);
    assertThat(seen).containsExactly("up", "down");
    host.bar.write32(Registers.INTMC, 2);
    assertThat(seen).containsExactly("up", "down");
    host.bar.write32(Registers.INTMC, 1);
    assertThat(seen).containsExactly("up", "down", "up");
    host.admin.poll();
    host.controller.poll();
    assertThat(seen).hasSize(4).endsWith("down");
  }

  @Test
  void eachVectorHasItsMaskBit() {
    enableMsix();
    RawQueue q = queue(1, PC_IEN, 5);
    while (host.admin.poll() != null) {
      host.controller.poll();
    }
    config.write(MSIX_CONTROL, 2, 0);
    host.controller.poll();
    seen.clear();
    submit(q);
    assertThat(seen).containsExactly("up");
    host.bar.write32(Registers.INTMS, ~(1 << 5));
    assertThat(seen).hasSize(1);
    host.bar.write32(Registers.INTMS, 1 << 5);
    assertThat(seen).containsExactly("up", "down");
  }

  @Test
  void theLineCanBeDisabled() {
    submit(host.admin);
    int command = config.read(ConfigSpace.COMMAND, 2);
    config.write(ConfigSpace.COMMAND, 2, command | ConfigSpace.COMMAND_INTX_DISABLE);
    assertThat(seen).containsExactly("up", "down");
    assertThat(config.read(6, 2) & 1 << 3).as("still pending").isNotZero();
    config.write(ConfigSpace.COMMAND, 2, command);
    assertThat(seen).containsExactly("up", "down", "up");
    config.write(MSIX_CONTROL, 2, ENABLE);
    assertThat(seen).as("MSI-X replaces the line").hasSize(4).endsWith("down");
  }

  @Test
  void theLineDropsWithItsQueue() {
    RawQueue q = queue(1, PC_IEN, 0);
    while (host.admin.poll() != null) {
      host.controller.poll();
    }
    host.controller.poll();
    seen.clear();
    submit(q);
    assertThat(seen).containsExactly("up");
    host.adminOk(RawHost.deleteSq(1));
    host.adminOk(RawHost.deleteCq(1));
    host.controller.poll();
    assertThat(seen).containsExactly("up", "down");
    submit(host.admin);
    host.disable();
    assertThat(seen).containsExactly("up", "down", "up", "down");
  }

  @Test
  void aFaultCanLoseAnInterrupt() {
    enableMsix(5);
    RawQueue q = queue(1, PC_IEN, 5);
    host.controller
        .faults()
        .add(FaultRule.of(FaultRule.Action.LOST_INTERRUPT).onIo().nth(1).build());
    submit(q);
    assertThat(q.poll()).isNotNull();
    assertThat(seen).isEmpty();
    submit(q);
    assertThat(seen).hasSize(1);
  }

  @Test
  void vectorsAreCheckedAgainstTheTable() {
    enableMsix(0);
    RawQueue q = host.queueMemory(1, 8, 8);
    int status = host.admin(RawHost.createCq(1, 8, q.cq.busAddress(0), PC_IEN, 40)).status();
    assertThat(status & 0x7FF).isEqualTo(StatusCode.INVALID_INTERRUPT_VECTOR.status());
    host.adminOk(RawHost.createCq(1, 8, q.cq.busAddress(0), PC_IEN, 39));
  }
}
