package io.gpunvme.nvme.driver;

/** How commands name their data (Base 2.0, 4.1). */
public enum DataPointerMode {
  /** Physical Region Pages: every controller. */
  PRP,
  /** Scatter Gather Lists: controllers whose Identify data says so (SGLS). */
  SGL
}
