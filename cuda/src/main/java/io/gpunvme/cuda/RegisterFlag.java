package io.gpunvme.cuda;

/** The flags for registering host memory ({@code CU_MEMHOSTREGISTER_...}). */
public enum RegisterFlag {
  /** Pinned for every context of the process. */
  PORTABLE(1),
  /** Mapped into the device's address space. */
  DEVICEMAP(2),
  /** The range is a device's registers or memory, such as a BAR of an SSD. */
  IOMEMORY(4),
  /** The device only reads; needed for memory that the CPU may only read. */
  READ_ONLY(8);

  private final int bit;

  RegisterFlag(int bit) {
    this.bit = bit;
  }

  int bit() {
    return bit;
  }
}
