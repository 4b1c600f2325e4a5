package io.gpunvme.models;

import io.gpunvme.base.InvalidRequestException;

/**
 * The memory that a layer takes, in bytes, each tensor rounded up to {@link StreamPlan#ALIGNMENT}.
 *
 * @param stored in a slot, where its tensors are as they are stored
 * @param used where it stays, with its tensors as they are used
 * @param unconverted of tensors that are used as another type than they are stored as, as they are
 *     stored; more than {@code stored} if some of them go through no slot, such as experts
 * @param converted the most memory that the same tensors take while they are made and used: their
 *     part of {@code used}, and what a step between takes besides
 */
public record LayerSize(long stored, long used, long unconverted, long converted) {
  /**
   * Checks the numbers.
   *
   * @throws InvalidRequestException if one is negative
   */
  public LayerSize {
    if (stored < 0 || unconverted < 0 || converted < 0 || used < 0) {
      throw new InvalidRequestException(
          "a layer cannot have %d bytes stored and %d used, of which %d are converted to %d"
              .formatted(stored, used, unconverted, converted));
    }
  }

  /** A layer whose tensors are used as they are stored. */
  public static LayerSize of(long bytes) {
    return new LayerSize(bytes, bytes, 0, 0);
  }
}
