package io.gpunvme.sim;

/** The accesses to memory that a controller may make. */
public enum DmaAccess {
  READ,
  WRITE,
  READ_WRITE;

  /** Whether all that is wanted may be done. */
  boolean allows(DmaAccess wanted) {
    return this == READ_WRITE || this == wanted;
  }
}
