package io.gpunvme.models;

import io.gpunvme.base.InvalidRequestException;

/**
 * The memory that a layer takes, in bytes, each tensor rounded up to {@link StreamPlan#ALIGNMENT}.
 *
 * @param stored in a slot, where its tensors are as they are stored; without {@code experts}
 * @param used where it stays, with its tensors as they are used
 * @param unconverted of tensors that are used as another type than they are stored as, as they are
 *     stored; more than {@code stored} if some of them go through no slot, such as experts
 * @param converted the most memory that the same tensors take while they are made and used: their
 *     part of {@code used}, and what a step between takes besides
 * @param experts of which only those are read that a router chooses, as they are stored: in a slot
 *     of a ring of their own; 0 if there are none
 * @param router of the parameter that scores them, as it is used: it stays where the layer does
 *     not, to guess by; 0 if there is none
 */
public record LayerSize(
    long stored, long used, long unconverted, long converted, long experts, long router) {
  /**
   * Checks the numbers.
   *
   * @throws InvalidRequestException if one is negative, or there are experts and nothing else, or a
   *     router and no experts, or a router that is longer than the layer
   */
  public LayerSize {
    if (stored < 0 || unconverted < 0 || converted < 0 || used < 0) {
      throw new InvalidRequestException(
          "a layer cannot have %d bytes stored and %d used, of which %d are converted to %d"
              .formatted(stored, used, unconverted, converted));
    }
    if (experts < 0
        || router < 0
        || experts > 0 && stored == 0
        || router > 0 && (experts == 0 || router > used)) {
      throw new InvalidRequestException(
          "a layer of %d bytes stored and %d used cannot have %d of experts, and a router of %d"
              .formatted(stored, used, experts, router));
    }
  }

  /** A layer that is read as a whole. */
  public LayerSize(long stored, long used, long unconverted, long converted) {
    this(stored, used, unconverted, converted, 0, 0);
  }

  /** A layer whose tensors are used as they are stored. */
  public static LayerSize of(long bytes) {
    return new LayerSize(bytes, bytes, 0, 0);
  }
}
