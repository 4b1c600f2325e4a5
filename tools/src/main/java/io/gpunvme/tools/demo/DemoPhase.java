package io.gpunvme.tools.demo;

/** What the demo is doing. */
public enum DemoPhase {
  /** Making the sample file. */
  SAMPLE,
  /** Putting the file on the SSD by NVMe Write commands. */
  PUT,
  /** Reading it by NVMe Read commands into accelerator memory. */
  GET,
  /** Computing the checksum of what arrived. */
  CHECK,
  /** Reading the same range by the CPU, to compare. */
  COMPARE,
  /** Keeping what is in somebody's blocks. */
  SAVE,
  /** Putting that back. */
  RESTORE
}
