package io.gpunvme.sim.serve;

import io.gpunvme.ffi.Futex;
import io.gpunvme.ffi.SharedMemory;
import io.gpunvme.nvme.vfiouser.SleepRegion;
import io.gpunvme.sim.SharedSleep;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;

/**
 * The workers' sleep that a client sees and ends: see {@link SleepRegion}. What the client writes
 * there decides when this server sleeps while it serves that client, and nothing else.
 */
final class ClientSleep implements SharedSleep, AutoCloseable {
  private static final VarHandle INT = ValueLayout.JAVA_INT.varHandle().withInvokeExactBehavior();

  private final SharedMemory page = SharedMemory.allocate("gpunvme-sleep", SleepRegion.BYTES);
  private final MemorySegment words = page.segment();
  private final MemorySegment asleep = words.asSlice(SleepRegion.ASLEEP, Integer.BYTES);
  private int sleeps;

  ClientSleep() {
    // Wakes nobody: what the first wake-up needs takes the virtual machine milliseconds to link.
    Futex.wake(asleep);
    // Until the client says otherwise.
    INT.setOpaque(words, (long) SleepRegion.SILENT, 1);
  }

  /** The region's memory. */
  int fd() {
    return page.fd();
  }

  @Override
  public boolean lieDown() {
    // Acquire: the queues that such an initiator has been given are younger than its mark.
    if ((int) INT.getAcquire(words, (long) SleepRegion.SILENT) != 0) {
      return false;
    }
    sleeps = sleeps == -1 ? 1 : sleeps + 1;
    INT.setOpaque(asleep, 0L, sleeps);
    // The client is the other side: it stores to a doorbell, and then reads this word after a fence
    // of its own. Either it sees that the workers sleep, or they see the doorbell after this.
    VarHandle.fullFence();
    return true;
  }

  @Override
  public boolean await(long nanos) {
    return Futex.await(asleep, sleeps, nanos);
  }

  @Override
  public void wake() {
    INT.setOpaque(asleep, 0L, 0);
    Futex.wake(asleep);
  }

  @Override
  public void getUp() {
    INT.setOpaque(asleep, 0L, 0);
    // Who saw the workers asleep and was not the one to wake them does nothing more: what it stored
    // before is seen by the pass after this.
    VarHandle.fullFence();
  }

  @Override
  public void close() {
    page.close();
  }
}
