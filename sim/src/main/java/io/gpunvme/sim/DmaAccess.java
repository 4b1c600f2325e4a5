package io.gpunvme.sim;

/** What the controller may do with memory. */
public enum DmaAccess {
  READ,
  WRITE,
  READ_WRITE;

  /** Whether all that is wanted may be done. */
  boolean allows(DmaAccess wanted) {
    return this == READ_WRITE || this == wanted;
  }
}
