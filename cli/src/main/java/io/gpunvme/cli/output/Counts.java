package io.gpunvme.cli.output;

/** Numbers of things as text for people. */
public final class Counts {
  private Counts() {}

  /** {@code 1 tensor}, {@code 2 tensors}; {@code thing} is the singular of a regular noun. */
  public static String of(long count, String thing) {
    return count + " " + thing + (count == 1 ? "" : "s");
  }
}
