package io.gpunvme.gpu.transfer;

/** Who is to issue the commands of a transfer. */
public enum InitiatorKind {
  /** A GPU where there is one, else the CPU. */
  AUTO,
  /** Java threads. */
  CPU,
  /** A kernel; an error where there is no GPU. */
  GPU;

  /** As it is written on a command line: {@code auto}, {@code cpu}, {@code gpu}. */
  @Override
  public String toString() {
    return name().toLowerCase(java.util.Locale.ROOT);
  }
}
