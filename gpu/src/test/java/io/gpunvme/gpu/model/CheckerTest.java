package io.gpunvme.gpu.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** The checker finds what is known to be wrong with programs that are known to be wrong. */
class CheckerTest {
  private enum Act {
    LOAD,
    STORE,
    COUNT,
    LOCK_A,
    LOCK_B
  }

  /** Two actors that do something to shared numbers, an action a step. */
  private abstract static class TwoActors implements Model {
    final Layout layout = new Layout();
    final Field[] at = layout.fields("at", 2, 7);

    abstract void act(long[] from, int actor, Steps steps);

    @Override
    public int words() {
      return layout.words();
    }

    @Override
    public void start(long[] state) {}

    @Override
    public void steps(long[] from, Steps steps) {
      act(from, 0, steps);
      act(from, 1, steps);
    }

    @Override
    public @Nullable String violation(long[] state) {
      return null;
    }

    @Override
    public String actor(int actor) {
      return "actor " + actor;
    }

    @Override
    public String difference(long[] from, long[] to) {
      return layout.difference(from, to);
    }
  }

  /** Both count to {@code end}, each for itself. */
  private static final class Counters extends TwoActors {
    private final int end;

    Counters(int end) {
      this.end = end;
    }

    @Override
    void act(long[] from, int actor, Steps steps) {
      if (at[actor].get(from) < end) {
        long[] s = steps.begin(actor);
        steps.did(Act.COUNT);
        at[actor].add(s, 1);
        steps.end();
      }
    }

    @Override
    public boolean isOver(long[] state) {
      return at[0].get(state) == end && at[1].get(state) == end;
    }
  }

  /** Both add one to a shared number by a load and a store. */
  private static final class LostUpdate extends TwoActors {
    private final Field sum = layout.field("sum", 2);
    private final Field[] register = layout.fields("register", 2, 2);

    @Override
    void act(long[] from, int actor, Steps steps) {
      int step = at[actor].get(from);
      if (step == 2) {
        return;
      }
      long[] s = steps.begin(actor);
      if (step == 0) {
        steps.did(Act.LOAD);
        register[actor].set(s, sum.get(s));
      } else {
        steps.did(Act.STORE);
        sum.set(s, register[actor].get(s) + 1);
      }
      at[actor].add(s, 1);
      steps.end();
    }

    @Override
    public boolean isOver(long[] state) {
      return at[0].get(state) == 2 && at[1].get(state) == 2;
    }

    @Override
    public @Nullable String violation(long[] state) {
      return isOver(state) && sum.get(state) != 2 ? "an update is lost" : null;
    }
  }

  /** Both take two locks, in the same order or in opposite ones. */
  private static final class TwoLocks extends TwoActors {
    private final Field[] lock = layout.fields("lock", 2, 1);
    private final boolean opposite;

    TwoLocks(boolean opposite) {
      this.opposite = opposite;
    }

    @Override
    void act(long[] from, int actor, Steps steps) {
      int step = at[actor].get(from);
      if (step == 3) {
        return;
      }
      int which = opposite && actor == 1 ? 1 - step : step;
      if (step == 2 || lock[which].get(from) == 0) {
        long[] s = steps.begin(actor);
        if (step == 2) {
          lock[0].set(s, 0);
          lock[1].set(s, 0);
        } else {
          steps.did(which == 0 ? Act.LOCK_A : Act.LOCK_B);
          lock[which].set(s, 1);
        }
        at[actor].add(s, 1);
        steps.end();
      }
    }

    @Override
    public boolean isOver(long[] state) {
      return at[0].get(state) == 3 && at[1].get(state) == 3;
    }
  }

  @Test
  void visitsEveryStateOnce() {
    Exploration e = Checker.explore(new Counters(7), 1000);

    assertThat(e.wrong()).isNull();
    assertThat(e.states()).isEqualTo(8 * 8);
    assertThat(e.transitions()).isEqualTo(2 * 7 * 8);
    assertThat(e.saw(Act.COUNT)).isTrue();
    assertThat(e.saw(Act.LOAD)).isFalse();
  }

  @Test
  void refusesMoreStatesThanAllowed() {
    assertThatThrownBy(() -> Checker.explore(new Counters(7), 63)).hasMessageContaining("63");
  }

  @Test
  void findsTheShortestWayToALostUpdate() {
    Exploration e = Checker.explore(new LostUpdate(), 1000);

    assertThat(e.wrong()).isEqualTo("an update is lost");
    assertThat(e.trace()).hasSize(4);
    assertThat(e.trace().getFirst()).isEqualTo("actor 0: LOAD  [at[0] 0>1]");
    assertThat(e.trace().get(1)).isEqualTo("actor 1: LOAD  [at[1] 0>1]");
    assertThat(e.trace().getLast()).startsWith("actor 1: STORE");
  }

  @Test
  void findsADeadlock() {
    Exploration e = Checker.explore(new TwoLocks(true), 1000);

    assertThat(e.wrong()).startsWith("stuck");
    assertThat(e.trace()).hasSize(2);
    assertThat(Checker.explore(new TwoLocks(false), 1000).wrong()).isNull();
  }

  @Test
  void fieldsDoNotTouchEachOther() {
    Layout layout = new Layout();
    Field[] fields = layout.fields("f", 40, 11);
    long[] state = new long[layout.words()];
    for (int i = 0; i < fields.length; i++) {
      fields[i].set(state, i % 12);
    }
    fields[7].set(state, 0);

    assertThat(layout.words()).isEqualTo(3);
    for (int i = 0; i < fields.length; i++) {
      assertThat(fields[i].get(state)).as(fields[i].name()).isEqualTo(i == 7 ? 0 : i % 12);
    }
    assertThatThrownBy(() -> fields[0].set(state, 12)).hasMessageContaining("f[0]");
  }
}
