package io.gpunvme.storage.path;

import java.util.Locale;

/** The kinds of paths for bytes. */
public enum PathKind {
  /** NVMe commands of our own, issued by a GPU or the CPU. */
  DIRECT,
  /** NVIDIA's cuFile (GPUDirect Storage). */
  CUFILE,
  /** Reads into pinned host memory, overlapped with copies to the accelerator. */
  PINNED,
  /** The mapped file, copied: the baseline. */
  MMAP;

  /** The name in options, addresses and reports. */
  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
