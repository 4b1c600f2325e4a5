package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.spec.Cap;
import io.gpunvme.nvme.spec.Cmbloc;
import io.gpunvme.nvme.spec.Cmbmsc;
import io.gpunvme.nvme.spec.Cmbsts;
import io.gpunvme.nvme.spec.Cmbsz;
import io.gpunvme.nvme.spec.Cqe;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.Prp;
import io.gpunvme.nvme.spec.Registers;
import io.gpunvme.nvme.spec.StatusCode;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** The controller memory buffer. */
class CmbTest {
  private static final long BYTES = 20 * 4096;
  private static final long BASE = 0x1234_5000_0000L;

  private final RawHost host =
      RawHost.start(SimConfig.builder().workers(0).latencyNanos(0).cmbBytes(BYTES).build());

  @AfterEach
  void close() {
    host.close();
  }

  private void control(Cmbmsc value) {
    host.bar.write64(Registers.CMBMSC, value.value());
  }

  private static Cmbmsc at(long base) {
    return new Cmbmsc(0)
        .with(Cmbmsc.CRE, true)
        .with(Cmbmsc.CMSE, true)
        .with(Cmbmsc.CBA, base >>> 12);
  }

  private boolean invalid() {
    return new Cmbsts(host.bar.read32(Registers.CMBSTS)).isSet(Cmbsts.CBAI);
  }

  @Test
  void registersAppearWhenAskedFor() {
    assertThat(host.cap.isSet(Cap.CMBS)).isTrue();
    assertThat(host.bar.read32(Registers.CMBLOC)).isZero();
    assertThat(host.bar.read32(Registers.CMBSZ)).isZero();
    control(new Cmbmsc(0).with(Cmbmsc.CRE, true));
    assertThat(new Cmbloc(host.bar.read32(Registers.CMBLOC)))
        .returns(2, r -> r.get(Cmbloc.BIR))
        .returns(0, r -> r.get(Cmbloc.OFST))
        .returns(true, r -> r.isSet(Cmbloc.CQMMS));
    assertThat(new Cmbsz(host.bar.read32(Registers.CMBSZ)))
        .returns(BYTES, Cmbsz::bytes)
        .returns(true, r -> r.isSet(Cmbsz.SQS))
        .returns(true, r -> r.isSet(Cmbsz.CQS))
        .returns(true, r -> r.isSet(Cmbsz.LISTS))
        .returns(true, r -> r.isSet(Cmbsz.RDS))
        .returns(true, r -> r.isSet(Cmbsz.WDS));
    assertThat(host.controller.bar(2).size()).isEqualTo(32 * 4096);
  }

  @Test
  void controlKeepsItsBitsAndSurvivesControllerReset() {
    host.bar.write64(Registers.CMBMSC, -1L);
    assertThat(host.bar.read64(Registers.CMBMSC)).isEqualTo(0xFFFF_FFFF_FFFF_F003L);
    assertThat(invalid()).isTrue();
    control(at(BASE));
    host.disable();
    assertThat(host.bar.read64(Registers.CMBMSC)).isEqualTo(at(BASE).value());
    host.controller.reset();
    assertThat(host.bar.read64(Registers.CMBMSC)).isZero();
  }

  @Test
  void halvesMayBeWrittenInEitherOrder() {
    long value = at(BASE).value();
    host.bar.write32(Registers.CMBMSC + 4, (int) (value >>> 32));
    host.bar.write32(Registers.CMBMSC, (int) value);
    assertThat(host.controller.dma().find(BASE, BYTES)).isNotNull();
    assertThat(host.controller.dma().find(BASE + BYTES, 1)).isNull();
  }

  @Test
  void addressesThatAreTakenOrTooHighAreInvalid() {
    DmaBuffer other = host.buffer(4096);
    control(at(other.busAddress(0) - BYTES + 4096));
    assertThat(invalid()).isTrue();
    assertThat(host.controller.dma().find(other.busAddress(0), 4096).internal()).isFalse();
    control(at(-4096L));
    assertThat(invalid()).isTrue();
    control(at(BASE));
    assertThat(invalid()).isFalse();
    control(new Cmbmsc(0).with(Cmbmsc.CRE, true));
    assertThat(invalid()).isFalse();
    assertThat(host.controller.dma().find(BASE, 1)).isNull();
  }

  @Test
  void queuesListsAndDataMayLieInIt() {
    control(at(BASE));
    MemorySegment cmb = host.controller.bar(2).memory(0, BYTES);
    RawQueue q = host.queueMemory(1, 8, 8);
    host.adminOk(RawHost.createCq(1, 8, BASE, 1, 0));
    host.adminOk(RawHost.createSq(1, 8, BASE + 4096, 1, 1));
    long data = BASE + 16 * 4096;
    for (int i = 0; i < 3; i++) {
      Prp.put(cmb, 8192 + i * 8L, data + (i + 1) * 4096L);
    }
    for (int i = 0; i < 20; i++) {
      boolean write = i % 2 == 0;
      cmb.asSlice(16 * 4096).fill((byte) (write ? i + 1 : 0));
      int slot = q.tail;
      int cid =
          q.push(
              RawHost.io(
                  write ? IoOpcode.WRITE : IoOpcode.READ, 1, i / 2 * 32L, 32, data, BASE + 8192));
      MemorySegment.copy(q.sq.memory(), slot * 64L, cmb, 4096 + slot * 64L, 64);
      q.ring();
      host.controller.poll();
      int dw3 = Cqe.dw3Acquire(cmb, q.head * 16L);
      assertThat(Cqe.cid(dw3)).isEqualTo(cid);
      assertThat(Cqe.status(dw3)).isZero();
      q.head = (q.head + 1) % 8;
      q.ringHead(q.head);
      byte last = cmb.get(ValueLayout.JAVA_BYTE, BYTES - 1);
      assertThat(last).isEqualTo((byte) (write ? i + 1 : i));
    }
  }

  @Test
  void switchingItOffTakesItAway() {
    control(at(BASE));
    RawQueue q = host.createQueue(1, 8, 8);
    MemorySegment read = RawHost.io(IoOpcode.READ, 1, 0, 1, BASE, 0);
    assertThat(host.execute(q, read).status()).isZero();
    control(at(BASE + (1 << 20)));
    assertThat(host.execute(q, read).status() & 0x7FF)
        .isEqualTo(StatusCode.DATA_TRANSFER_ERROR.status());
    control(new Cmbmsc(0));
    assertThat(host.controller.dma().find(BASE + (1 << 20), 1)).isNull();
  }

  @Test
  void itIsMemoryAndRegistersAtOnce() {
    MemorySegment cmb = host.controller.bar(2).memory(0, BYTES);
    host.controller.bar(2).write32(8, 0x11223344);
    assertThat(cmb.get(ValueLayout.JAVA_INT, 8)).isEqualTo(0x11223344);
    cmb.set(ValueLayout.JAVA_INT, 12, 0x55667788);
    assertThat(host.controller.bar(2).read64(8)).isEqualTo(0x5566778811223344L);
    host.controller.bar(2).write32(BYTES, 1);
    assertThat(host.controller.bar(2).read32(BYTES)).as("behind the end").isZero();
    assertThatThrownBy(() -> host.controller.bar(2).memory(4096, BYTES))
        .isInstanceOf(InvalidRequestException.class);
  }
}
