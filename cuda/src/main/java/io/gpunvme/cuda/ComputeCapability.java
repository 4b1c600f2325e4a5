package io.gpunvme.cuda;

/** Which instructions a GPU has; 9.0 is written {@code sm_90} to compilers. */
public record ComputeCapability(int major, int minor) {
  /** The compiler's name of it, as in {@code sm_90}. */
  public String sm() {
    return "sm_" + major + minor;
  }

  @Override
  public String toString() {
    return major + "." + minor;
  }
}
