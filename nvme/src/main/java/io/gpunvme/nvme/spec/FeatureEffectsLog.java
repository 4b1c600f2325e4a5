package io.gpunvme.nvme.spec;

import java.lang.foreign.MemorySegment;

/**
 * Feature Identifiers Supported and Effects log page: 1024 bytes, a dword for each feature (Base
 * 2.0, 5.16.1.18).
 */
public final class FeatureEffectsLog extends DwordTable {
  /** Bytes of the structure. */
  public static final int SIZE = 1024;

  /** Feature Supported; without it the dword means nothing. */
  public static final int FSUPP = 1;

  /** User Data Content Change. */
  public static final int UDCC = 1 << 1;

  /** Namespace Capability Change. */
  public static final int NCC = 1 << 2;

  /** Namespace Inventory Change. */
  public static final int NIC = 1 << 3;

  /** Controller Capability Change. */
  public static final int CCC = 1 << 4;

  /** Scope: the feature belongs to a namespace. */
  public static final int SCOPE_NAMESPACE = 1 << 20;

  /** Scope: the feature belongs to the controller. */
  public static final int SCOPE_CONTROLLER = 1 << 21;

  /**
   * Wraps the first 1024 bytes of {@code segment}.
   *
   * @throws IllegalArgumentException if the segment is shorter
   */
  public FeatureEffectsLog(MemorySegment segment) {
    super(segment, SIZE);
  }

  /** The flags of feature 0..255. */
  public int feature(int featureId) {
    return entry(0, featureId);
  }

  public FeatureEffectsLog feature(int featureId, int flags) {
    entry(0, featureId, flags);
    return this;
  }

  /** Whether feature 0..255 is supported. */
  public boolean supports(int featureId) {
    return (feature(featureId) & FSUPP) != 0;
  }
}
