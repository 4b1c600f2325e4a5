package io.gpunvme.nvme.pci;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/** Registers of a device in mapped memory. */
public final class Mmio {
  private static final VarHandle REGISTER =
      ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN).varHandle().withInvokeExactBehavior();

  private Mmio() {}

  /**
   * Stores 4 bytes to a register, after every earlier load and store of this thread. The device, or
   * what plays one, is the other side.
   *
   * <p>A fence and a plain store, not a release store: until that is compiled the virtual machine
   * carries it out as an exchange, which reads the register first. Doorbells are write-only, and
   * some systems do not survive a read of one.
   */
  public static void store32(MemorySegment registers, long offset, int value) {
    VarHandle.releaseFence();
    REGISTER.set(registers, offset, value);
  }

  /** Loads 4 bytes of a register, before every later load and store of this thread. */
  public static int load32(MemorySegment registers, long offset) {
    return (int) REGISTER.getAcquire(registers, offset);
  }
}
