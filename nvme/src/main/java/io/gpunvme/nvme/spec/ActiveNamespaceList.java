package io.gpunvme.nvme.spec;

import java.lang.foreign.MemorySegment;

/**
 * Active Namespace ID list: up to 1024 identifiers in increasing order, a zero after the last (Base
 * 2.0, 5.17.2.2).
 */
public final class ActiveNamespaceList extends NamespaceIdList {
  /**
   * Wraps the first 4096 bytes of {@code segment}.
   *
   * @throws IllegalArgumentException if the segment is shorter
   */
  public ActiveNamespaceList(MemorySegment segment) {
    super(segment);
  }
}
