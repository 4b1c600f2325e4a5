package io.gpunvme.sim;

import io.gpunvme.ffi.SharedMemory;
import io.gpunvme.nvme.spec.Cmbloc;
import io.gpunvme.nvme.spec.Cmbmsc;
import io.gpunvme.nvme.spec.Cmbsts;
import io.gpunvme.nvme.spec.Cmbsz;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import org.jspecify.annotations.Nullable;

/**
 * The controller memory buffer (Base 2.0, 8.5): memory in a BAR of its own in which queues, lists
 * and data may lie. The host chooses at which bus address the controller sees it (CMBMSC).
 *
 * <p>Registers are written under the register file's monitor.
 */
final class Cmb implements BarTarget {
  /** The BAR it is. */
  static final int BAR = 2;

  private static final VarHandle INT =
      ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN).varHandle().withInvokeExactBehavior();
  private static final int CBA_SHIFT = 12;

  private final DmaSpace dma;
  private final SharedMemory shared;
  private final MemorySegment memory;
  private final long barBytes;
  private volatile long cmbmsc;
  private volatile boolean addressInvalid;
  private @Nullable DmaRegion placed;

  Cmb(DmaSpace dma, long bytes) {
    this.dma = dma;
    shared = SharedMemory.allocate("gpunvme-cmb", bytes);
    memory = shared.segment().asSlice(0, bytes);
    barBytes = Long.highestOneBit(bytes - 1) << 1;
  }

  /** CMBLOC, 0 until the host enables it. */
  int cmbloc() {
    if (!new Cmbmsc(cmbmsc).isSet(Cmbmsc.CRE)) {
      return 0;
    }
    return new Cmbloc(0)
        .with(Cmbloc.BIR, BAR)
        .with(Cmbloc.CQMMS, true)
        .with(Cmbloc.CQPDS, true)
        .with(Cmbloc.CDPMLS, true)
        .with(Cmbloc.CDPCILS, true)
        .with(Cmbloc.CDMMMS, true)
        .with(Cmbloc.CQDA, true)
        .value();
  }

  /** CMBSZ, 0 until the host enables it. */
  int cmbsz() {
    if (!new Cmbmsc(cmbmsc).isSet(Cmbmsc.CRE)) {
      return 0;
    }
    return new Cmbsz(0)
        .with(Cmbsz.SQS, true)
        .with(Cmbsz.CQS, true)
        .with(Cmbsz.LISTS, true)
        .with(Cmbsz.RDS, true)
        .with(Cmbsz.WDS, true)
        .with(Cmbsz.SZ, memory.byteSize() / DmaSpace.PAGE)
        .value();
  }

  /** CMBMSC as written. */
  long cmbmsc() {
    return cmbmsc;
  }

  /** CMBSTS: whether the address in CMBMSC cannot be used. */
  int cmbsts() {
    return new Cmbsts(0).with(Cmbsts.CBAI, addressInvalid).value();
  }

  /** Writes CMBMSC: the buffer appears at the address given, or disappears. */
  void cmbmsc(long value) {
    Cmbmsc old = new Cmbmsc(cmbmsc);
    Cmbmsc fresh = new Cmbmsc(value);
    cmbmsc = value;
    if (old.isSet(Cmbmsc.CMSE) == fresh.isSet(Cmbmsc.CMSE)
        && (old.getLong(Cmbmsc.CBA) == fresh.getLong(Cmbmsc.CBA) || !fresh.isSet(Cmbmsc.CMSE))) {
      return;
    }
    remove();
    addressInvalid = false;
    if (fresh.isSet(Cmbmsc.CMSE)) {
      DmaRegion region =
          new DmaRegion(fresh.getLong(Cmbmsc.CBA) << CBA_SHIFT, memory.byteSize(), memory, true);
      if (dma.place(region)) {
        placed = region;
      } else {
        addressInvalid = true;
      }
    }
  }

  private void remove() {
    if (placed != null) {
      dma.unmap(placed);
      placed = null;
    }
  }

  /** Power-on state; what was in the memory is lost. */
  void reset() {
    cmbmsc(0);
    memory.fill((byte) 0);
  }

  void close() {
    shared.close();
  }

  @Override
  public long size() {
    return barBytes;
  }

  @Override
  public int read(long offset) {
    return isBehindEnd(offset) ? 0 : (int) INT.getAcquire(memory, offset);
  }

  @Override
  public void write(long offset, int value) {
    if (!isBehindEnd(offset)) {
      // Release: the worker that acquires the doorbell rung afterwards is the other side.
      INT.setRelease(memory, offset, value);
    }
  }

  private boolean isBehindEnd(long offset) {
    return offset >= memory.byteSize();
  }

  @Override
  public MemorySegment mapped() {
    return memory;
  }
}
