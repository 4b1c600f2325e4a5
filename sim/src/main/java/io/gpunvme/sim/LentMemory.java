package io.gpunvme.sim;

import io.gpunvme.nvme.spec.HostMemoryBufferEntry;
import io.gpunvme.nvme.spec.Sqe;
import io.gpunvme.nvme.spec.StatusCode;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/**
 * The memory the host lends the controller (Base 2.0, 5.27.1.10 and 8.9). Worker 0 only.
 *
 * <p>It is checked as strictly as if it were used: the descriptor list and every buffer must be
 * mapped. Nothing is kept in it.
 */
final class LentMemory {
  /** HMMAXD: most descriptors in a list. */
  static final int MAX_DESCRIPTORS = 1024;

  /** CDW11: enable. */
  static final int ENABLE = 1;

  private static final int LIST_ALIGNMENT = 15;

  private static final ValueLayout.OfInt INT =
      ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN);

  private final Workers workers;
  private final DataPointer dataPointer;
  private final SimConfig config;
  private final DmaSpace dma;
  private boolean enabled;
  private int size;
  private long list;
  private int descriptors;

  LentMemory(SimConfig config, DmaSpace dma, DataPointer dataPointer, Workers workers) {
    this.workers = workers;
    this.dataPointer = dataPointer;
    this.config = config;
    this.dma = dma;
  }

  /** Set Features; the status. */
  int set(SimCommand c) {
    if ((Sqe.cdw11(c.sqe, 0) & ENABLE) == 0) {
      reset();
      return 0;
    }
    if (enabled) {
      return StatusCode.COMMAND_SEQUENCE_ERROR.dnr();
    }
    long address = Integer.toUnsignedLong(Sqe.cdw13(c.sqe, 0)) | (long) Sqe.cdw14(c.sqe, 0) << 32;
    int status = check(Sqe.cdw12(c.sqe, 0), address, Sqe.cdw15(c.sqe, 0));
    if (status == 0) {
      enabled = true;
      size = Sqe.cdw12(c.sqe, 0);
      list = address;
      descriptors = Sqe.cdw15(c.sqe, 0);
    }
    return status;
  }

  private int check(int pages, long address, int count) {
    long page = dataPointer.pageBytes();
    long wanted = Integer.toUnsignedLong(pages) * page;
    long least = (long) SimConfig.PAGE * config.hmbMinimum();
    if ((address & LIST_ALIGNMENT) != 0
        || count <= 0
        || count > MAX_DESCRIPTORS
        || wanted == 0
        || wanted < least) {
      return StatusCode.INVALID_FIELD.dnr();
    }
    long listBytes = (long) count * HostMemoryBufferEntry.SIZE;
    DmaRegion region = dma.find(address, listBytes, DmaAccess.READ);
    if (region == null) {
      return StatusCode.DATA_TRANSFER_ERROR.status();
    }
    RemoteWindow window = workers.ofQueue(0).channels().window();
    window.forget();
    long sum = 0;
    for (int i = 0; i < count; i++) {
      long at = region.offset(address) + (long) i * HostMemoryBufferEntry.SIZE;
      MemorySegment list = region.memory();
      if (region.isRemote()) {
        at = window.look(region, at, HostMemoryBufferEntry.SIZE);
        list = window.memory();
      }
      long buffer = HostMemoryBufferEntry.badd(list, at);
      long bytes = HostMemoryBufferEntry.bsize(list, at) * page;
      if (buffer % page != 0 || bytes == 0) {
        return StatusCode.INVALID_FIELD.dnr();
      }
      if (dma.find(buffer, bytes) == null) {
        return StatusCode.DATA_TRANSFER_ERROR.status();
      }
      sum += bytes;
    }
    return sum < wanted ? StatusCode.INVALID_FIELD.dnr() : 0;
  }

  /** Writes the Host Memory Buffer Attributes structure, 16 bytes, to zeroed memory. */
  void attributes(MemorySegment to) {
    to.set(INT, 0, size);
    to.set(INT, 4, (int) list);
    to.set(INT, 8, (int) (list >>> 32));
    to.set(INT, 12, descriptors);
  }

  /** Gives the memory back: the host may reuse it. */
  void reset() {
    enabled = false;
    size = 0;
    list = 0;
    descriptors = 0;
  }
}
