package io.gpunvme.gpu.queue;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.HostMemoryKind;
import io.gpunvme.gpu.accel.HostWindow;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.spec.Cap;
import io.gpunvme.nvme.spec.Registers;
import java.lang.foreign.MemorySegment;

/** The doorbells of one controller as an accelerator stores to them. Safe for all threads. */
final class Doorbells implements AutoCloseable {
  private final HostWindow window;
  private final boolean inMemory;

  private Doorbells(HostWindow window, boolean inMemory) {
    this.window = window;
    this.inMemory = inMemory;
  }

  /**
   * Makes the doorbells of all queue pairs addressable.
   *
   * @throws io.gpunvme.nvme.DmaMappingException if the accelerator cannot be given them
   * @throws io.gpunvme.base.InvalidRequestException if the controller has them not mapped as memory
   */
  static Doorbells open(NvmeController controller, Accelerator accelerator) {
    controller.requireQueuePairs();
    long stride = 2L * (Integer.BYTES << controller.cap().get(Cap.DSTRD));
    long bytes = (controller.maxQueuePairs() + 1) * stride;
    MemorySegment memory = controller.function().bar(0).peerMemory(Registers.DOORBELLS, bytes);
    accelerator.servePinned(controller.function());
    boolean inMemory = controller.function().polled();
    HostMemoryKind kind = inMemory ? HostMemoryKind.MEMORY : HostMemoryKind.REGISTERS;
    return new Doorbells(accelerator.mapHost(memory, kind), inMemory);
  }

  /** Whether they are ordinary memory, not registers. */
  boolean inMemory() {
    return inMemory;
  }

  /**
   * Where the accelerator finds a doorbell.
   *
   * @param barOffset bytes from the start of BAR0
   */
  long deviceAddress(long barOffset) {
    return window.deviceAddress() + barOffset - Registers.DOORBELLS;
  }

  @Override
  public void close() {
    window.close();
  }
}
