package io.gpunvme.nvme.driver;

import io.gpunvme.nvme.memory.BusMapper;
import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.spec.Cqe;
import io.gpunvme.nvme.spec.Sqe;
import java.lang.foreign.MemorySegment;

/** The rings of an external queue pair in host memory, as its owner would allocate them. */
final class HostRings implements QueueRings, AutoCloseable {
  private final int sqSize;
  private final int cqSize;
  private final DmaBuffer sqMemory;
  private final DmaBuffer cqMemory;

  /** What {@link #clear} does besides clearing. */
  Runnable onClear = () -> {};

  /** How often the rings were emptied. */
  int clears;

  HostRings(BusMapper mapper, int sqSize, int cqSize) {
    this.sqSize = sqSize;
    this.cqSize = cqSize;
    this.sqMemory = DmaBuffer.allocate(mapper, Math.max(1, (long) sqSize * Sqe.SIZE));
    this.cqMemory = DmaBuffer.allocate(mapper, Math.max(1, (long) cqSize * Cqe.SIZE));
    dirty();
  }

  /** Fills the rings with what an earlier user might have left: entries of the first lap. */
  void dirty() {
    sq().fill((byte) 0xFF);
    cq().fill((byte) 0xFF);
  }

  MemorySegment sq() {
    return sqMemory.memory();
  }

  MemorySegment cq() {
    return cqMemory.memory();
  }

  @Override
  public int sqSize() {
    return sqSize;
  }

  @Override
  public int cqSize() {
    return cqSize;
  }

  @Override
  public long sqBusAddress() {
    return sqMemory.busAddress(0);
  }

  @Override
  public long cqBusAddress() {
    return cqMemory.busAddress(0);
  }

  @Override
  public void clear() {
    clears++;
    onClear.run();
    sq().fill((byte) 0);
    cq().fill((byte) 0);
  }

  @Override
  public void close() {
    sqMemory.close();
    cqMemory.close();
  }
}
