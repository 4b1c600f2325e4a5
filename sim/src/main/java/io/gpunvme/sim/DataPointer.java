package io.gpunvme.sim;

import io.gpunvme.nvme.spec.Prp;
import io.gpunvme.nvme.spec.Sqe;
import io.gpunvme.nvme.spec.StatusCode;
import org.jspecify.annotations.Nullable;

/**
 * Turns a command's data pointer (PRP entries or SGL) into memory (Base 2.0, 4.1).
 *
 * <p>What is wrong with the pointer itself will be wrong next time, so those statuses carry DNR; a
 * bus address that is not mapped right now gives Data Transfer Error without it.
 */
final class DataPointer {
  private final DmaSpace dma;
  private final boolean sgl;
  private long pageBytes = DmaSpace.PAGE;

  /**
   * @param sgl whether SGLs are supported
   */
  DataPointer(DmaSpace dma, boolean sgl) {
    this.dma = dma;
    this.sgl = sgl;
  }

  /** CC.MPS in bytes, latched when the controller is enabled (under all worker locks). */
  void pageBytes(long bytes) {
    pageBytes = bytes;
  }

  /** CC.MPS in bytes. */
  long pageBytes() {
    return pageBytes;
  }

  /**
   * Resolves the data pointer of {@code c} for exactly {@code bytes} into {@code c.data}. The
   * caller has compared {@code bytes} with MDTS. Called within the worker's pass; what is found may
   * be used until the command's execution ends.
   *
   * @return a status, 0 for success; otherwise no data may be moved
   */
  int resolve(SimCommand c, long bytes) {
    c.data.clear();
    if (bytes == 0) {
      return 0;
    }
    int psdt = c.psdt();
    if (psdt == Sqe.PSDT_PRP) {
      return prp(c, bytes);
    }
    if (!sgl || psdt > Sqe.PSDT_SGL_METADATA) {
      return StatusCode.INVALID_FIELD.dnr();
    }
    return c.sgl.walk(c.sqe, bytes, movesToHost(c.opcode));
  }

  /** The direction every opcode names in its two lowest bits (Base 2.0, 3.3.3.1). */
  static boolean movesToHost(int opcode) {
    return (opcode & 3) == 2;
  }

  private int prp(SimCommand c, long bytes) {
    long prp1 = c.prp1();
    if (prp1 % Prp.DATA_ALIGNMENT != 0) {
      return StatusCode.PRP_OFFSET_INVALID.dnr();
    }
    long first = Math.min(bytes, pageBytes - Prp.offset(prp1, pageBytes));
    int generation = dma.generation();
    SubmissionQueue sq = c.queue;
    DmaRegion last = sq == null ? null : sq.lastRegion(generation);
    DmaRegion r = add(c, last, prp1, first);
    if (r == null) {
      return StatusCode.DATA_TRANSFER_ERROR.status();
    }
    if (r != last && sq != null) {
      sq.lastRegion(r, generation);
    }
    long remaining = bytes - first;
    if (remaining == 0) {
      return 0;
    }
    // PRP2 may hold anything as long as it is not needed.
    long prp2 = c.prp2();
    if (remaining > pageBytes) {
      return prpList(c, r, prp2, remaining);
    }
    if (Prp.offset(prp2, pageBytes) != 0) {
      return StatusCode.PRP_OFFSET_INVALID.dnr();
    }
    return add(c, r, prp2, remaining) == null ? StatusCode.DATA_TRANSFER_ERROR.status() : 0;
  }

  private int prpList(SimCommand c, DmaRegion hint, long pointer, long bytes) {
    int status = c.prps.start(pointer, pageBytes);
    if (status != 0) {
      return status;
    }
    DmaRegion r = hint;
    for (long remaining = bytes; remaining > 0; remaining -= pageBytes) {
      long entry = c.prps.next(remaining <= pageBytes);
      if (entry == PrpCursor.NO_ENTRY) {
        return c.prps.status();
      }
      r = add(c, r, entry, Math.min(remaining, pageBytes));
      if (r == null) {
        return StatusCode.DATA_TRANSFER_ERROR.status();
      }
    }
    return 0;
  }

  /** Appends a piece; {@code hint} is the region it probably lies in. */
  private @Nullable DmaRegion add(
      SimCommand c, @Nullable DmaRegion hint, long address, long length) {
    DmaAccess wanted = movesToHost(c.opcode) ? DmaAccess.WRITE : DmaAccess.READ;
    boolean there = hint != null && hint.access().allows(wanted) && hint.contains(address, length);
    DmaRegion r = there ? hint : dma.find(address, length, wanted);
    if (r != null) {
      c.data.add(r, r.offset(address), length);
    }
    return r;
  }
}
