package io.gpunvme.cuda;

/** A version of CUDA, as in 12.8. */
public record CudaVersion(int major, int minor) implements Comparable<CudaVersion> {
  /** From CUDA's own number: 1000 * major + 10 * minor. */
  static CudaVersion ofNumber(int number) {
    return new CudaVersion(number / 1000, number % 1000 / 10);
  }

  /** Whether this is that version or a newer one. */
  public boolean atLeast(int otherMajor, int otherMinor) {
    return compareTo(new CudaVersion(otherMajor, otherMinor)) >= 0;
  }

  @Override
  public int compareTo(CudaVersion other) {
    return major != other.major
        ? Integer.compare(major, other.major)
        : Integer.compare(minor, other.minor);
  }

  @Override
  public String toString() {
    return major + "." + minor;
  }
}
