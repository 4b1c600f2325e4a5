package io.gpunvme.gpu.model;

import org.jspecify.annotations.Nullable;

/** Something with states and atomic steps that {@link Checker} can explore. */
interface Model {
  /** Length of a state. */
  int words();

  /** Fills in the first state; the array holds zeros. */
  void start(long[] state);

  /** Offers every step that some actor can do next. */
  void steps(long[] from, Steps steps);

  /**
   * Called for each offered step before its result is stored: a model may let the actor go on here
   * with steps that nobody else can tell from happening at once.
   */
  default void settle(long[] to, int actor, Steps steps) {}

  /** What is wrong with this state, null if nothing is. */
  @Nullable String violation(long[] state);

  /**
   * True if everybody has got what they came for; such a state must stay reachable from every
   * other.
   */
  boolean isOver(long[] state);

  /** For traces. */
  String actor(int actor);

  /** For traces: what a step changed. */
  String difference(long[] from, long[] to);
}
