package io.gpunvme.nvme.spec;

/**
 * LBA Format: 4 bytes, inside Identify Namespace (NVM 1.0, 4.1.5.1).
 *
 * @param ms Metadata Size, bytes per logical block, 0..65535
 * @param lbads LBA Data Size as a power of two, 9 or more; 0 means that the format is not available
 * @param rp Relative Performance: 0 best, 3 degraded
 */
public record LbaFormat(int ms, int lbads, int rp) {
  private static final BitField MS = new BitField("MS", 0, 16, "Metadata Size in bytes");
  private static final BitField LBADS = new BitField("LBADS", 16, 8, "LBA Data Size, power of two");
  private static final BitField RP = new BitField("RP", 24, 2, "Relative Performance");

  /** Returns the format encoded in {@code dword}. */
  public static LbaFormat of(int dword) {
    return new LbaFormat(MS.get(dword), LBADS.get(dword), RP.get(dword));
  }

  /**
   * Returns the format as the structure holds it.
   *
   * @throws IllegalArgumentException if a component does not fit its field
   */
  public int dword() {
    return MS.with(LBADS.with(RP.with(0, rp), lbads), ms);
  }
}
