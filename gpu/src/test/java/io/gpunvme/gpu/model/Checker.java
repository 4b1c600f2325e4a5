package io.gpunvme.gpu.model;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collections;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Visits every state that a model can reach, the nearest first, so that the trace to the first bad
 * one is a shortest one. Then looks whether from each of them everything can still come to its end:
 * if not, there is a deadlock or a livelock.
 */
final class Checker {
  private final Model model;
  private final int limit;
  private final StateSet states;
  private final Graph graph = new Graph();
  private final BitSet over = new BitSet();
  private final Steps steps;

  private int current;
  private int badState = -1;
  private @Nullable String wrong;

  private Checker(Model model, int limit) {
    this.model = model;
    this.limit = limit;
    this.states = new StateSet(model.words());
    this.steps = new Steps(model, this::reached);
  }

  /**
   * Explores the whole model.
   *
   * @param limit states at most; more are an error of the caller, not a result
   */
  static Exploration explore(Model model, int limit) {
    return new Checker(model, limit).run();
  }

  private Exploration run() {
    long[] state = new long[model.words()];
    model.start(state);
    current = -1;
    reached(state);
    while (wrong == null && current + 1 < states.size()) {
      current++;
      graph.open(current);
      states.load(current, state);
      try {
        steps.all(state);
      } catch (Violation v) {
        return result(v.getMessage(), trace(current, steps.describe(state)));
      }
    }
    if (wrong != null) {
      return result(wrong, trace(badState, null));
    }
    BitSet good = graph.leadingTo(over);
    int stuck = good.nextClearBit(0);
    return stuck < states.size()
        ? result("stuck: not everybody can come to an end", trace(graph.trap(stuck), null))
        : result(null, List.of());
  }

  private void reached(long[] to) {
    if (wrong != null) {
      return;
    }
    int known = states.size();
    int id = states.add(to);
    if (current >= 0 && id != current) {
      graph.edge(id);
    }
    if (id < known) {
      return;
    }
    if (known == limit) {
      throw new IllegalStateException("more than " + limit + " states");
    }
    graph.foundBy(id, current);
    if (model.isOver(to)) {
      over.set(id);
    }
    wrong = model.violation(to);
    badState = id;
  }

  private Exploration result(@Nullable String what, List<String> trace) {
    return new Exploration(states.size(), graph.edges(), steps.seen(), what, trace);
  }

  /** The way to a state, by finding again the step that led from each state to the next. */
  private List<String> trace(int last, @Nullable String end) {
    List<String> lines = new ArrayList<>();
    if (end != null) {
      lines.add(end);
    }
    long[] from = new long[model.words()];
    long[] to = new long[model.words()];
    for (int id = last; graph.parent(id) >= 0; id = graph.parent(id)) {
      states.load(graph.parent(id), from);
      states.load(id, to);
      lines.add(step(from, to));
    }
    Collections.reverse(lines);
    return lines;
  }

  private String step(long[] from, long[] to) {
    String[] found = {""};
    Steps[] again = new Steps[1];
    again[0] =
        new Steps(
            model,
            reached -> {
              if (found[0].isEmpty() && Arrays.equals(reached, to)) {
                found[0] = again[0].describe(from);
              }
            });
    try {
      again[0].all(from);
    } catch (Violation v) {
      // another step from this state; the one we look for came before it
    }
    return found[0];
  }
}
