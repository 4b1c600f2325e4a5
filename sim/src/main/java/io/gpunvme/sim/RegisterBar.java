package io.gpunvme.sim;

import io.gpunvme.nvme.spec.Registers;
import java.lang.foreign.MemorySegment;
import java.util.function.BooleanSupplier;

/** BAR0: the registers, which are calls, and behind them the doorbells, which are memory. */
final class RegisterBar implements BarTarget {
  private static final int GONE = -1;

  private final BooleanSupplier fault;
  private final Runnable wake;
  private final RegisterFile registers;
  private final DoorbellArray doorbells;
  private final long bytes;

  RegisterBar(
      RegisterFile registers, DoorbellArray doorbells, BooleanSupplier fault, Runnable wake) {
    this.fault = fault;
    this.wake = wake;
    this.registers = registers;
    this.doorbells = doorbells;
    long used = Registers.DOORBELLS + doorbells.memory().byteSize();
    bytes = Long.highestOneBit(used - 1) << 1;
  }

  @Override
  public long size() {
    return bytes;
  }

  @Override
  public int read(long offset) {
    if (fault.getAsBoolean()) {
      return GONE;
    }
    // Doorbells may not be read; what they return then is up to the controller.
    return offset < Registers.DOORBELLS ? registers.read((int) offset) : 0;
  }

  @Override
  public void write(long offset, int value) {
    if (offset < Registers.DOORBELLS) {
      registers.write((int) offset, value);
    } else if (offset - Registers.DOORBELLS < doorbells.memory().byteSize()) {
      doorbells.write(offset - Registers.DOORBELLS, value);
      wake.run();
    }
  }

  @Override
  public MemorySegment mapped() {
    return doorbells.memory();
  }

  @Override
  public MemorySegment mappedForPeer() {
    return doorbells.peerMemory();
  }

  @Override
  public long mappedAt() {
    return Registers.DOORBELLS;
  }
}
