package io.gpunvme.nvme.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.pci.Bar;
import io.gpunvme.nvme.spec.Cap;
import io.gpunvme.nvme.spec.Cmbloc;
import io.gpunvme.nvme.spec.Cmbmsc;
import io.gpunvme.nvme.spec.Cmbsts;
import io.gpunvme.nvme.spec.Cmbsz;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.Registers;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Test;

/** Queues and data in the controller's own memory, whatever the controller is made of. */
abstract class CmbContract extends ContractRig {
  /** A bus address that nothing else has: above all memory of the machines that run this. */
  private static final long BASE = 1L << 42;

  private static final int SQ = 0;
  private static final int CQ = 4096;
  private static final int WRITTEN = 16 * 4096;
  private static final int READ = 48 * 4096;
  private static final int ENTRIES = 16;
  private static final int PAGE = 4096;
  private static final int BLOCKS = 8;

  private Cmbsz size;

  /** Switches the memory on; {@link #BASE} is where the controller knows it. */
  private MemorySegment enable() {
    assumeTrue(controller.cap().isSet(Cap.CMBS), "no controller memory buffer");
    Bar bar = controller.function().bar(0);
    bar.write64(Registers.CMBMSC, new Cmbmsc(0).with(Cmbmsc.CRE, true).value());
    Cmbloc place = new Cmbloc(bar.read32(Registers.CMBLOC));
    size = new Cmbsz(bar.read32(Registers.CMBSZ));
    long on =
        new Cmbmsc(0)
            .with(Cmbmsc.CRE, true)
            .with(Cmbmsc.CMSE, true)
            .with(Cmbmsc.CBA, BASE >>> 12)
            .value();
    // The half with the switch last: QEMU takes the address as it is at that moment.
    bar.write32(Registers.CMBMSC + Integer.BYTES, (int) (on >>> 32));
    bar.write32(Registers.CMBMSC, (int) on);
    assertThat(new Cmbsts(bar.read32(Registers.CMBSTS)).isSet(Cmbsts.CBAI)).isFalse();
    assumeTrue(size.isSet(Cmbsz.RDS) && size.isSet(Cmbsz.WDS), "no data in controller memory");
    return controller
        .function()
        .bar(place.get(Cmbloc.BIR))
        .memory(place.get(Cmbloc.OFST) * size.unit(), size.bytes());
  }

  /** Rings in controller memory, as far as the controller allows that. */
  private record Rings(MemorySegment sq, MemorySegment cq, long sqBusAddress, long cqBusAddress)
      implements QueueRings {
    @Override
    public int sqSize() {
      return ENTRIES;
    }

    @Override
    public int cqSize() {
      return ENTRIES;
    }

    @Override
    public void clear() {
      sq.fill((byte) 0);
      cq.fill((byte) 0);
    }
  }

  private Rings rings(MemorySegment cmb) {
    DmaBuffer host = buffer(2L * PAGE);
    MemorySegment sq =
        size.isSet(Cmbsz.SQS) ? cmb.asSlice(SQ, PAGE) : host.memory().asSlice(0, PAGE);
    MemorySegment cq =
        size.isSet(Cmbsz.CQS) ? cmb.asSlice(CQ, PAGE) : host.memory().asSlice(PAGE, PAGE);
    return new Rings(
        sq,
        cq,
        size.isSet(Cmbsz.SQS) ? BASE + SQ : host.busAddress(0),
        size.isSet(Cmbsz.CQS) ? BASE + CQ : host.busAddress(PAGE));
  }

  @Test
  void queuesAndDataMayLieInControllerMemory() {
    MemorySegment cmb = enable();
    assertThat(size.bytes()).isGreaterThanOrEqualTo(READ + 16 * PAGE);
    assertThat(size.isSet(Cmbsz.SQS)).isTrue();
    Rings rings = rings(cmb);
    ExternalQueuePair pair = controller.createExternalQueuePair(rings);
    ForeignDriver driver = new ForeignDriver(controller, pair, rings.sq(), rings.cq());
    int block = first().blockSize();
    for (int round = 0; round < 20; round++) {
      int mark = random.nextInt();
      Blocks.fill(cmb, WRITTEN, 40, BLOCKS, block, mark);
      run(driver, IoOpcode.WRITE, WRITTEN);
      cmb.asSlice(READ, (long) BLOCKS * block).fill((byte) 0x5A);
      run(driver, IoOpcode.READ, READ);
      assertThat(Blocks.mismatch(cmb, READ, 40, BLOCKS, block, mark))
          .as(where("round " + round))
          .isEqualTo(-1);
      assertThat(inHostMemory(mark)).as(where("round " + round)).isEqualTo(-1);
    }
    controller.deleteExternalQueuePair(pair);
  }

  private void run(ForeignDriver driver, int opcode, long offset) {
    int block = first().blockSize();
    for (int i = 0; i < BLOCKS; i++) {
      driver.submit(opcode, first().nsid(), 40 + i, BASE + offset + (long) i * block);
    }
    driver.ring();
    assertThat(driver.await(BLOCKS)).allMatch(d -> d.status() == 0);
  }

  /** The same blocks by the ordinary way. */
  private long inHostMemory(int mark) {
    try (BlockDevice device = device(2)) {
      int block = device.namespace().blockSize();
      DmaBuffer b = buffer((long) BLOCKS * block);
      device.read(40, BLOCKS, b.range(), 0);
      return Blocks.mismatch(b.memory(), 0, 40, BLOCKS, block, mark);
    }
  }
}
