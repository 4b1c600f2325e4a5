package io.gpunvme.sim;

import io.gpunvme.nvme.spec.Prp;
import io.gpunvme.nvme.spec.StatusCode;
import org.jspecify.annotations.Nullable;

/**
 * Reads the entries of a PRP list, following chain pointers (Base 2.0, 4.1.1). Reusable; one list
 * at a time, among all that share a window.
 *
 * <p>Reading throws {@link RemoteFailure} if the list is in remote memory that cannot be reached.
 */
final class PrpCursor {
  /** Returned by {@link #next} when {@link #status} says why there is no entry. */
  static final long NO_ENTRY = -1;

  private final DmaSpace dma;
  private final RemoteWindow window;
  private @Nullable DmaRegion region;
  private long at;
  private long pageMask;
  private int status;

  PrpCursor(DmaSpace dma, RemoteWindow window) {
    this.dma = dma;
    this.window = window;
  }

  /**
   * Starts at the first entry of a list.
   *
   * @param pointer where it is; may have an offset into its page, a multiple of 8
   * @param pageBytes CC.MPS in bytes
   * @return a status, 0 if the pointer is well formed
   */
  int start(long pointer, long pageBytes) {
    region = null;
    window.forget();
    at = pointer;
    pageMask = pageBytes - 1;
    status = pointer % Prp.ENTRY == 0 ? 0 : StatusCode.PRP_OFFSET_INVALID.dnr();
    return status;
  }

  /**
   * The next entry: a page-aligned bus address, or {@link #NO_ENTRY}.
   *
   * @param last whether it is the last one needed: only then can the last slot of a page hold it
   */
  long next(boolean last) {
    if (!last && (at & pageMask) == pageMask + 1 - Prp.ENTRY) {
      long chained = read();
      if (chained == NO_ENTRY) {
        return NO_ENTRY;
      }
      at = chained;
    }
    long entry = read();
    at += Prp.ENTRY;
    return entry;
  }

  /** Why {@link #next} returned no entry. */
  int status() {
    return status;
  }

  private long read() {
    DmaRegion r = region;
    if (r == null || !r.contains(at, Prp.ENTRY)) {
      r = dma.find(at, Prp.ENTRY, DmaAccess.READ);
      if (r == null) {
        status = StatusCode.DATA_TRANSFER_ERROR.status();
        return NO_ENTRY;
      }
      region = r;
    }
    long entry = r.isRemote() ? readRemote(r) : Prp.get(r.memory(), r.offset(at));
    if ((entry & pageMask) != 0) {
      status = StatusCode.PRP_OFFSET_INVALID.dnr();
      return NO_ENTRY;
    }
    return entry;
  }

  private long readRemote(DmaRegion r) {
    long found = window.look(r, r.offset(at), Prp.ENTRY);
    return Prp.get(window.memory(), found);
  }
}
