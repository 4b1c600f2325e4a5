package io.gpunvme.nvme.spec;

import java.lang.foreign.MemorySegment;

/**
 * Changed Namespace List log page: up to 1024 identifiers of namespaces whose Identify data changed
 * since the page was last read (Base 2.0, 5.16.1.5).
 */
public final class ChangedNamespaceList extends NamespaceIdList {
  /** The only entry when more than 1024 namespaces changed. */
  public static final int OVERFLOW = 0xFFFF_FFFF;

  /**
   * Wraps the first 4096 bytes of {@code segment}.
   *
   * @throws IllegalArgumentException if the segment is shorter
   */
  public ChangedNamespaceList(MemorySegment segment) {
    super(segment);
  }

  /** Whether too many namespaces changed to list them. */
  public boolean overflowed() {
    return nsid(0) == OVERFLOW;
  }
}
