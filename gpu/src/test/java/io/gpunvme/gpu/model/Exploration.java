package io.gpunvme.gpu.model;

import java.util.BitSet;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What {@link Checker} found.
 *
 * @param seen actions that happened, by ordinal number
 * @param wrong what is wrong, null if nothing is
 * @param trace the shortest way there, a line a step
 */
record Exploration(
    int states, int transitions, BitSet seen, @Nullable String wrong, List<String> trace) {
  boolean saw(Enum<?> action) {
    return seen.get(action.ordinal());
  }

  /** The result in words, with the trace if there is one. */
  String report() {
    StringBuilder text = new StringBuilder();
    text.append(states).append(" states, ").append(transitions).append(" transitions");
    if (wrong != null) {
      text.append(": ").append(wrong);
      for (int i = 0; i < trace.size(); i++) {
        text.append(String.format("%n%3d %s", i + 1, trace.get(i)));
      }
    }
    return text.toString();
  }
}
