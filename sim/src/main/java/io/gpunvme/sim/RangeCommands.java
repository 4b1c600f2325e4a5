package io.gpunvme.sim;

import io.gpunvme.nvme.spec.DsmRange;
import io.gpunvme.nvme.spec.Sqe;
import io.gpunvme.nvme.spec.StatusCode;
import io.gpunvme.sim.media.Media;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/** Dataset Management and Copy: I/O commands whose data is a list of block ranges. All workers. */
final class RangeCommands {
  // Source Range Entry, Descriptor Format 0 (NVM 1.0, 3.2.2).
  private static final int COPY_ENTRY = 32;
  private static final int COPY_SLBA = 8;
  private static final int COPY_NLB = 16;

  private static final ValueLayout.OfLong LONG =
      ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfShort SHORT =
      ValueLayout.JAVA_SHORT.withOrder(ByteOrder.LITTLE_ENDIAN);

  private final DataPointer pointer;

  RangeCommands(DataPointer pointer) {
    this.pointer = pointer;
  }

  /** Copies the range list of a command to the start of {@code to}. */
  private int copyIn(SimCommand c, MemorySegment to, long bytes) {
    int status = pointer.resolve(c, bytes);
    if (status == 0) {
      c.data.copyIn(to, 0, bytes);
    }
    return status;
  }

  /** Dataset Management; nothing is deallocated unless all ranges are valid. */
  int datasetManagement(SimCommand c, Worker w, SimNamespace ns) throws IOException {
    int count = (Sqe.cdw10(c.sqe, 0) & 0xFF) + 1;
    boolean deallocate = (Sqe.cdw11(c.sqe, 0) & DsmRange.AD) != 0;
    if (deallocate && ns.readOnly()) {
      return StatusCode.NAMESPACE_WRITE_PROTECTED.dnr();
    }
    MemorySegment list = w.scratch((long) DsmRange.MAX_RANGES * DsmRange.SIZE);
    int shift = ns.shift();
    int status = copyIn(c, list, (long) count * DsmRange.SIZE);
    for (int i = 0; i < count && status == 0; i++) {
      long at = (long) i * DsmRange.SIZE;
      if (DsmRange.blocks(list, at) != 0) {
        status = ns.checkRange(DsmRange.slba(list, at), DsmRange.blocks(list, at), shift);
      }
    }
    if (status != 0 || !deallocate) {
      return status;
    }
    for (int i = 0; i < count; i++) {
      long slba = DsmRange.slba(list, (long) i * DsmRange.SIZE);
      long blocks = DsmRange.blocks(list, (long) i * DsmRange.SIZE);
      // An empty range may start anywhere.
      if (blocks != 0) {
        ns.media().trim(slba << shift, blocks << shift);
        ns.uncorrectable().remove(slba, blocks);
      }
    }
    return 0;
  }

  /**
   * Copy (NVM 1.0, 3.2.2); nothing is copied unless all ranges are valid. Dword 0 is the number of
   * the source range that failed.
   */
  int copy(SimCommand c, Worker w, SimNamespace ns) throws IOException {
    int cdw12 = Sqe.cdw12(c.sqe, 0);
    int count = (cdw12 & 0xFF) + 1;
    if ((cdw12 >>> 8 & 0xF) != 0) {
      return StatusCode.INVALID_FIELD.dnr();
    }
    if (count - 1 > IdentifyData.COPY_RANGES) {
      return StatusCode.COMMAND_SIZE_LIMIT_EXCEEDED.dnr();
    }
    if (ns.readOnly()) {
      return StatusCode.NAMESPACE_WRITE_PROTECTED.dnr();
    }
    long listBytes = (long) count * COPY_ENTRY;
    MemorySegment scratch = w.scratch(IoCommands.CHUNK + listBytes);
    int shift = ns.shift();
    int status = copyIn(c, scratch, listBytes);
    if (status == 0) {
      status = checkCopy(c, ns, shift, scratch, count);
    }
    return status != 0 ? status : copyRanges(c, ns, shift, scratch, count);
  }

  private static int checkCopy(
      SimCommand c, SimNamespace ns, int shift, MemorySegment list, int count) {
    long total = 0;
    for (int i = 0; i < count; i++) {
      long blocks = sourceBlocks(list, i);
      if (blocks > IdentifyData.COPY_RANGE_BLOCKS) {
        return StatusCode.COMMAND_SIZE_LIMIT_EXCEEDED.dnr();
      }
      int status = ns.checkRange(sourceLba(list, i), blocks, shift);
      if (status != 0) {
        c.dw0 = i;
        return status;
      }
      total += blocks;
    }
    return total > IdentifyData.COPY_BLOCKS
        ? StatusCode.COMMAND_SIZE_LIMIT_EXCEEDED.dnr()
        : ns.checkRange(Sqe.slba(c.sqe, 0), total, shift);
  }

  private static int copyRanges(
      SimCommand c, SimNamespace ns, int shift, MemorySegment scratch, int count)
      throws IOException {
    long buffer = (long) count * COPY_ENTRY;
    long to = Sqe.slba(c.sqe, 0);
    for (int i = 0; i < count; i++) {
      long from = sourceLba(scratch, i);
      long blocks = sourceBlocks(scratch, i);
      if (ns.uncorrectable().intersects(from, blocks)) {
        c.dw0 = i;
        return StatusCode.UNRECOVERED_READ_ERROR.status();
      }
      copyBytes(ns.media(), from << shift, to << shift, blocks << shift, scratch, buffer);
      ns.uncorrectable().remove(to, blocks);
      to += blocks;
    }
    return 0;
  }

  private static void copyBytes(
      Media media, long from, long to, long bytes, MemorySegment scratch, long buffer)
      throws IOException {
    for (long done = 0; done < bytes; done += IoCommands.CHUNK) {
      long n = Math.min(IoCommands.CHUNK, bytes - done);
      media.read(from + done, scratch, buffer, n);
      media.write(to + done, scratch, buffer, n);
    }
  }

  private static long sourceLba(MemorySegment list, int i) {
    return list.get(LONG, (long) i * COPY_ENTRY + COPY_SLBA);
  }

  private static long sourceBlocks(MemorySegment list, int i) {
    return (list.get(SHORT, (long) i * COPY_ENTRY + COPY_NLB) & 0xFFFFL) + 1;
  }
}
