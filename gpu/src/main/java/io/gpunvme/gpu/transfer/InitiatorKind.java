package io.gpunvme.gpu.transfer;

/** Who issues the commands of a transfer. */
public enum InitiatorKind {
  /** The GPU if there is one, else the CPU. */
  AUTO,
  /** Java threads. */
  CPU,
  /** A kernel; an error if there is no GPU. */
  GPU;

  /** As it is written on a command line: {@code auto}, {@code cpu}, {@code gpu}. */
  @Override
  public String toString() {
    return name().toLowerCase(java.util.Locale.ROOT);
  }
}
