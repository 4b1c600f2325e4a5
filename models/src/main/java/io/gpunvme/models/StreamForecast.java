package io.gpunvme.models;

/**
 * The least time of a pass through the layers of a {@link StreamPlan}: of a token, when one is made
 * at a time. Reading and computing go on at the same time, so the longer of the two decides.
 *
 * @param readSeconds to read the layers that do not stay, and the experts that are chosen; 0 if all
 *     stay
 * @param computeSeconds of a pass with all layers in memory; 0 if that is not known
 */
public record StreamForecast(double readSeconds, double computeSeconds) {
  /** What a pass cannot be faster than. */
  public enum Limit {
    /** The layers are read more slowly than they compute. */
    READING,
    /** They are read faster than they compute. */
    COMPUTE,
    /** Nothing is streamed. */
    NOTHING_STREAMED
  }

  /** The floor of a pass; without a time to compute, of its reading alone. */
  public double seconds() {
    return Math.max(readSeconds, computeSeconds);
  }

  /** The limit. */
  public Limit limit() {
    if (readSeconds == 0) {
      return Limit.NOTHING_STREAMED;
    }
    return readSeconds >= computeSeconds ? Limit.READING : Limit.COMPUTE;
  }
}
