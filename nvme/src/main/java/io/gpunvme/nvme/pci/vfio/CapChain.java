package io.gpunvme.nvme.pci.vfio;

import io.gpunvme.nvme.pci.vfio.VfioAbi.CapHeader;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.jspecify.annotations.Nullable;

/** Capabilities that the kernel appends to a structure, each with the offset of the next. */
final class CapChain {
  private CapChain() {}

  /**
   * The capability with an identifier, from its header to the end of {@code info}, or null.
   *
   * @param first offset of the first capability, 0 for none
   */
  static @Nullable MemorySegment find(MemorySegment info, long first, int id) {
    long at = first;
    long previous = 0;
    // Offsets only grow, so that a broken chain ends too.
    while (at > previous && at <= info.byteSize() - CapHeader.SIZE) {
      if (info.get(ValueLayout.JAVA_SHORT_UNALIGNED, at + CapHeader.ID) == id) {
        return info.asSlice(at);
      }
      previous = at;
      at = Integer.toUnsignedLong(info.get(ValueLayout.JAVA_INT_UNALIGNED, at + CapHeader.NEXT));
    }
    return null;
  }

  /**
   * How many entries of a capability there are, never more than fit.
   *
   * @param countOffset where the capability says it
   */
  static long count(MemorySegment cap, long countOffset, long headerSize, long entrySize) {
    if (cap.byteSize() < headerSize) {
      return 0;
    }
    long said = Integer.toUnsignedLong(cap.get(ValueLayout.JAVA_INT_UNALIGNED, countOffset));
    return Math.min(said, (cap.byteSize() - headerSize) / entrySize);
  }
}
