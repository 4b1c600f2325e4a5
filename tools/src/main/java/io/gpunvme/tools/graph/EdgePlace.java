package io.gpunvme.tools.graph;

import java.util.Locale;

/** Where kernels find edges and weights. */
public enum EdgePlace {
  /** On the SSD, through a page cache. */
  SSD,
  /** All of them in GPU memory: what no other place is faster than. */
  VRAM,
  /** All of them in pinned host memory, which kernels load from over PCIe. */
  HOST;

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
