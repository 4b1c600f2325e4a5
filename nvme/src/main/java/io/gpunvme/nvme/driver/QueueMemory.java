package io.gpunvme.nvme.driver;

import io.gpunvme.base.CloseAll;
import io.gpunvme.nvme.DmaMappingException;
import io.gpunvme.nvme.memory.BusMapper;
import io.gpunvme.nvme.memory.DataPointerBuilder;
import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.memory.PrpBuilder;
import io.gpunvme.nvme.memory.SglBuilder;
import io.gpunvme.nvme.spec.Cqe;
import io.gpunvme.nvme.spec.Sqe;
import java.lang.foreign.MemorySegment;

/**
 * The memory of one queue pair: both rings and the PRP or SGL lists, which the controller reads and
 * writes.
 */
final class QueueMemory implements AutoCloseable {
  private final DmaBuffer shared;
  private final long cqOffset;
  private final MemorySegment sq;
  private final MemorySegment cq;
  private final DataPointerBuilder dataPointers;

  QueueMemory(QueuePairSpec spec, BusMapper mapper) {
    long page = spec.pageSize();
    long sqBytes = (long) spec.sqSize() * Sqe.SIZE;
    long cqBytes = (long) spec.cqSize() * Cqe.SIZE;
    this.cqOffset = Math.ceilDiv(sqBytes, page) * page;
    long listOffset = cqOffset + Math.ceilDiv(cqBytes, page) * page;
    boolean sgl = spec.dataPointers() == DataPointerMode.SGL;
    long listBytes =
        sgl
            ? SglBuilder.memoryBytes(spec.depth(), spec.pageSize(), spec.maxTransferBytes())
            : PrpBuilder.memoryBytes(spec.depth(), spec.pageSize(), spec.maxTransferBytes());
    this.shared = DmaBuffer.allocate(mapper, listOffset + listBytes);
    try {
      requireContiguous(0, sqBytes);
      requireContiguous(cqOffset, cqBytes);
      this.sq = shared.memory().asSlice(0, sqBytes);
      this.cq = shared.memory().asSlice(cqOffset, cqBytes);
      this.dataPointers =
          sgl
              ? new SglBuilder(
                  shared.range(),
                  listOffset,
                  spec.depth(),
                  spec.pageSize(),
                  spec.maxTransferBytes())
              : new PrpBuilder(
                  shared.range(),
                  listOffset,
                  spec.depth(),
                  spec.pageSize(),
                  spec.maxTransferBytes());
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, shared::close);
      throw e;
    }
  }

  private void requireContiguous(long offset, long bytes) {
    if (shared.range().contiguous(offset, bytes) < bytes) {
      throw new DmaMappingException(
          "a queue of "
              + bytes
              + " bytes is scattered on the bus; use a shorter queue, hugepages or an IOMMU");
    }
  }

  MemorySegment sq() {
    return sq;
  }

  MemorySegment cq() {
    return cq;
  }

  long sqBusAddress() {
    return shared.busAddress(0);
  }

  long cqBusAddress() {
    return shared.busAddress(cqOffset);
  }

  DataPointerBuilder dataPointers() {
    return dataPointers;
  }

  @Override
  public void close() {
    shared.close();
  }
}
