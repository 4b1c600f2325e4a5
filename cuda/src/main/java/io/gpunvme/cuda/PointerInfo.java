package io.gpunvme.cuda;

/**
 * CUDA's information about an address, whoever allocated the memory.
 *
 * @param kind where the memory is
 * @param device ordinal of the device that it belongs to, or that it is pinned for
 * @param start of the allocation, or of the mapping, that it lies in
 * @param size of that, bytes
 * @param id a number that no other allocation of this process has or had
 * @param context handle of the context that it belongs to; 0 if to none, as mapped memory and that
 *     of pools
 * @param mapped whether its user mapped it (cuMemMap): parts of it may be replaced by others under
 *     the same addresses
 */
public record PointerInfo(
    Kind kind, int device, long start, long size, long id, long context, boolean mapped) {
  /** Where memory is. */
  public enum Kind {
    /** Pinned or registered host memory. */
    HOST,
    /** A GPU's. */
    DEVICE,
    /** Managed: where it was used last. */
    MANAGED
  }

  /** This and what follows it without a gap, as one. */
  PointerInfo and(PointerInfo next) {
    return new PointerInfo(kind, device, start, size + next.size, id, context, mapped);
  }

  /** Whether a range lies inside the allocation. */
  public boolean contains(long address, long bytes) {
    long offset = address - start;
    return offset >= 0 && bytes >= 0 && offset <= size && bytes <= size - offset;
  }
}
