package io.gpunvme.gpu.model;

import java.util.BitSet;
import java.util.StringJoiner;
import java.util.function.Consumer;

/** Takes the steps that a model offers from one state, one after the other. */
final class Steps {
  private final Model model;
  private final Consumer<long[]> sink;
  private final long[] to;
  private final Enum<?>[] actions = new Enum<?>[64];
  private long[] from = {};
  private int count;
  private int actor;
  private final BitSet seen = new BitSet();

  Steps(Model model, Consumer<long[]> sink) {
    this.model = model;
    this.sink = sink;
    this.to = new long[model.words()];
  }

  void all(long[] state) {
    from = state;
    model.steps(state, this);
  }

  /** Starts a step of an actor: a copy of the state, to be changed. */
  long[] begin(int who) {
    System.arraycopy(from, 0, to, 0, to.length);
    actor = who;
    count = 0;
    return to;
  }

  /** Says what the step does; a step may do several things in a row. */
  void did(Enum<?> action) {
    if (count < actions.length) {
      actions[count++] = action;
    }
    seen.set(action.ordinal());
  }

  /** Ends the step. */
  void end() {
    model.settle(to, actor, this);
    sink.accept(to);
  }

  /** All actions so far, by ordinal number. */
  BitSet seen() {
    return seen;
  }

  /** The current step in words. */
  String describe(long[] before) {
    StringJoiner text = new StringJoiner(", ", model.actor(actor) + ": ", "");
    for (int i = 0; i < count; i++) {
      text.add(actions[i].toString());
    }
    return text + "  [" + model.difference(before, to) + "]";
  }
}
