package io.gpunvme.cuda;

/** The instruction set of a GPU; compilers write 9.0 as {@code sm_90}. */
public record ComputeCapability(int major, int minor) {
  /** The compiler's name, such as {@code sm_90}. */
  public String sm() {
    return "sm_" + major + minor;
  }

  @Override
  public String toString() {
    return major + "." + minor;
  }
}
