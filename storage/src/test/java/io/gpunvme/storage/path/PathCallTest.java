package io.gpunvme.storage.path;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class PathCallTest {
  private final PathCounters known = new PathCounters();

  @Test
  void countsForItselfUntilItIsToldWhere() {
    PathCall call = new PathCall("disk");
    PathCounters own = call.counters();
    assertThat(call.counters()).isSameAs(own).isNotSameAs(known);
    call.countIn(known);
    assertThat(call.counters()).isSameAs(known);
  }

  @Test
  void partsCountWhereTheWholeDoes() {
    PathCall call = new PathCall("set");
    PathCall early = call.part("first");
    PathCall other = call.part("second");
    other.countIn(new PathCounters());
    assertThat(early.counters()).isSameAs(call.counters());
    call.countIn(known);
    assertThat(early.counters()).isSameAs(known);
    assertThat(call.part("late").counters()).isSameAs(known);
    assertThat(other.counters()).isNotSameAs(known);
  }

  @Test
  void partsEndWithTheWholeAndByThemselves() {
    PathCall call = new PathCall("set");
    PathCall first = call.part("first");
    PathCall second = call.part("second");
    first.cancel();
    assertThat(call.isCancelled()).isFalse();
    assertThat(second.isCancelled()).isFalse();
    call.cancel();
    assertThat(second.isCancelled()).isTrue();
  }
}
