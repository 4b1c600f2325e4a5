package io.gpunvme.tools.bench;

import java.util.Locale;

/** How the lanes of a warp come to a shared queue; the constants' order is the kernel's. */
public enum Arrival {
  /** All at once. */
  TOGETHER,
  /** A quarter of them from another place of the program, and later. */
  TWO_PLACES,
  /** Each at a time of its own. */
  OWN_TIMES;

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT).replace('_', '-');
  }
}
