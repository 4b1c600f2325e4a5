package io.gpunvme.gpu.accel;

/** The kind of memory that {@link Accelerator#mapHost} makes addressable. */
public enum HostMemoryKind {
  /** Ordinary memory of this process. */
  MEMORY,
  /** Registers of a PCI function: part of a mapped BAR. */
  REGISTERS
}
