package io.gpunvme.storage.plan;

import java.util.Locale;

/** The order in which a plan lists its I/Os. */
public enum IoOrder {
  /** By the first byte's offset in the source; stripe members take turns. */
  OFFSET,
  /** By the first range that an I/O serves, in the order in which the ranges were given. */
  GIVEN;

  /** The name in options and reports. */
  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
