package io.gpunvme.nvme.pci;

/** Registers that are not mapped but read and written by calls. Safe for all threads. */
public interface RegisterAccess {
  /**
   * Reads 1, 2 or 4 little-endian bytes, zero-extended; all ones of that width once the device is
   * gone.
   */
  int read(long offset, int bytes);

  /** Writes the low 1, 2 or 4 bytes of a value; nothing happens where {@link #read} gives ones. */
  void write(long offset, int bytes, int value);
}
