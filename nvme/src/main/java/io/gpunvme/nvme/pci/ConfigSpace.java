package io.gpunvme.nvme.pci;

/** PCI configuration space: little-endian accesses of 1, 2 or 4 bytes, naturally aligned. */
public interface ConfigSpace {
  /** Offset of the Command register (16 bit). */
  int COMMAND = 0x04;

  /** Command: memory space enable. */
  int COMMAND_MEMORY = 1 << 1;

  /** Command: bus master enable; without it the function may not do DMA. */
  int COMMAND_BUS_MASTER = 1 << 2;

  /** Command: INTx disable. */
  int COMMAND_INTX_DISABLE = 1 << 10;

  /** Size in bytes: 256, or 4096 with extended configuration space. */
  int size();

  /** Reads {@code bytes} (1, 2 or 4) at {@code offset}, zero-extended. */
  int read(int offset, int bytes);

  /** Writes the low {@code bytes} (1, 2 or 4) of {@code value} at {@code offset}. */
  void write(int offset, int bytes, int value);
}
