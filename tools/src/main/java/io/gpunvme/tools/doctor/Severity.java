package io.gpunvme.tools.doctor;

import java.util.Locale;

/** How much a finding matters. */
public enum Severity {
  /** As it should be. */
  OK,
  /** Worth knowing: something is not there, or could be faster. */
  NOTE,
  /** Something that is there cannot be used as it is. */
  PROBLEM;

  /** As it is printed. */
  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
