package io.gpunvme.nvme.spec;

import java.lang.foreign.MemorySegment;

/**
 * Supported Log Pages log page: 1024 bytes, a dword for each log page identifier (Base 2.0,
 * 5.16.1.1).
 */
public final class SupportedLogPages extends DwordTable {
  /** Bytes of the structure. */
  public static final int SIZE = 1024;

  /** Log Page Supported. */
  public static final int LSUPP = 1;

  /** Index Offset Supported: an offset may count entries instead of bytes. */
  public static final int IOS = 1 << 1;

  /**
   * Wraps the first 1024 bytes of {@code segment}.
   *
   * @throws IllegalArgumentException if the segment is shorter
   */
  public SupportedLogPages(MemorySegment segment) {
    super(segment, SIZE);
  }

  /** The flags of log page 0..255. */
  public int page(int logId) {
    return entry(0, logId);
  }

  public SupportedLogPages page(int logId, int flags) {
    entry(0, logId, flags);
    return this;
  }

  /** Whether log page 0..255 is supported. */
  public boolean supports(int logId) {
    return (page(logId) & LSUPP) != 0;
  }
}
