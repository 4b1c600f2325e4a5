package io.gpunvme.nvme.pci.vfio;

import io.gpunvme.nvme.pci.host.IovaSpace;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The kernel's table of an IOMMU: which bus address is which memory. Safe for all threads. */
interface DmaTable extends AutoCloseable {
  /** What it is, in words. */
  String how();

  /** The bus addresses that may be used, ascending. */
  List<IovaSpace.Range> ranges();

  /** The smallest page, bytes. */
  long page();

  /**
   * Pins memory and puts it into the table, for reading and writing.
   *
   * @throws io.gpunvme.ffi.PosixException if the kernel refuses
   */
  void map(long address, long iova, long bytes);

  /**
   * Why the kernel would not put another function's BAR into the table, which has no pages to pin;
   * null where it would.
   */
  default @Nullable String peerProblem() {
    return null;
  }

  /**
   * Undoes one {@link #map}.
   *
   * @throws io.gpunvme.ffi.PosixException if the kernel refuses
   */
  void unmap(long iova, long bytes);

  /** Lets go of the table. Idempotent. */
  @Override
  void close();
}
