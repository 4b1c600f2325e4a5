package io.gpunvme.cuda.cufile;

/** A version of libcufile, as in 1.15. */
public record CuFileVersion(int major, int minor) implements Comparable<CuFileVersion> {
  /** {@code cuFileGetVersion} gives 1000 times the major and 10 times the minor part. */
  static CuFileVersion of(int number) {
    return new CuFileVersion(number / 1000, number % 1000 / 10);
  }

  /** Whether it is this one or a newer one. */
  public boolean atLeast(int otherMajor, int otherMinor) {
    return compareTo(new CuFileVersion(otherMajor, otherMinor)) >= 0;
  }

  @Override
  public int compareTo(CuFileVersion o) {
    return major != o.major ? Integer.compare(major, o.major) : Integer.compare(minor, o.minor);
  }

  @Override
  public String toString() {
    return major + "." + minor;
  }
}
