package io.gpunvme.gpu.accel;

/** What {@link Accelerator#mapHost} is to make addressable. */
public enum HostMemoryKind {
  /** Ordinary memory of this process. */
  MEMORY,
  /** Registers of a PCI function: part of a mapped BAR. */
  REGISTERS
}
