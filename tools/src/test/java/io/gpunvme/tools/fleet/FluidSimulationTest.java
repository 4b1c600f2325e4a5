package io.gpunvme.tools.fleet;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import io.gpunvme.tools.fleet.FluidSimulation.Flow;
import io.gpunvme.tools.fleet.FluidSimulation.Link;
import io.gpunvme.tools.fleet.FluidSimulation.Lock;
import io.gpunvme.tools.fleet.FluidSimulation.Use;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.assertj.core.data.Offset;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class FluidSimulationTest {
  private static final Offset<Double> EXACT = within(1e-9);

  private final FluidSimulation simulation = new FluidSimulation();
  private final List<String> order = new ArrayList<>();

  private Runnable note(String name) {
    return () -> order.add("%s %.3f".formatted(name, simulation.now()));
  }

  private static List<Use> over(Link... links) {
    return List.of(links).stream().map(link -> new Use(link, 1)).toList();
  }

  @Test
  void oneFlowHasItsNarrowestLink() {
    Link wide = simulation.link("wide", 10, 1);
    Link narrow = simulation.link("narrow", 2, 1);
    simulation.flow(6, over(wide, narrow), note("a"));

    assertThat(simulation.run()).isCloseTo(3, EXACT);
    assertThat(order).containsExactly("a 3.000");
    assertThat(wide.moved()).isCloseTo(6, EXACT);
  }

  /** By hand: 4 over A alone, B at its limit of 1 each; then all of A for who is left. */
  @Test
  void whoCannotUseItsShareLeavesItToOthers() {
    Link a = simulation.link("a", 6, 1);
    Link b = simulation.link("b", 2, 1);
    Flow onA = simulation.flow(8, over(a), note("a"));
    Flow onBoth = simulation.flow(3, over(a, b), note("both"));
    Flow onB = simulation.flow(1, over(b), note("b"));
    simulation.after(
        0.5, () -> order.add("%.3f %.3f %.3f".formatted(onA.rate(), onBoth.rate(), onB.rate())));

    simulation.run();
    // b ends at 1; both has 2 left at 2/s and a 3 left at 4/s; both end after another second.
    assertThat(order).containsExactly("5.000 1.000 1.000", "b 1.000", "a 1.750", "both 2.000");
  }

  @Test
  void aFlowOfManyTakesTheShareOfMany() {
    Link link = simulation.link("pool", 12, 1);
    Flow three = simulation.flow(6, List.of(new Use(link, 3)), note("three"));
    Flow one = simulation.flow(6, List.of(new Use(link, 1)), note("one"));
    simulation.after(1, () -> order.add(three.rate() + " " + one.rate()));

    assertThat(simulation.run()).isCloseTo(2, EXACT);
    assertThat(order.getFirst()).isEqualTo("3.0 3.0");
    assertThat(link.moved()).isCloseTo(24, EXACT);
  }

  @Test
  void whatIsCancelledLeavesItsShareAndDoesNothingMore() {
    Link link = simulation.link("link", 2, 1);
    Flow lost = simulation.flow(10, over(link), note("lost"));
    simulation.flow(4, over(link), note("other"));
    simulation.after(2, () -> simulation.cancel(lost));

    assertThat(simulation.run()).isCloseTo(3, EXACT);
    assertThat(order).containsExactly("other 3.000");
    assertThat(link.moved()).isCloseTo(6, EXACT);
  }

  @Test
  void aLockIsHeldByOneAtATimeInTheirOrder() {
    Lock lock = simulation.lock();
    lock.hold(1, note("first"));
    lock.hold(2, note("second"));
    lock.hold(3, note("third"));

    assertThat(simulation.run()).isEqualTo(6);
    assertThat(order).containsExactly("first 1.000", "second 3.000", "third 6.000");
    assertThat(simulation.movingSeconds()).isZero();
  }

  @Test
  void nothingTakesNoTime() {
    Link link = simulation.link("link", 2, 1);
    simulation.flow(0, over(link), note("nothing"));

    assertThat(simulation.run()).isZero();
    assertThat(order).containsExactly("nothing 0.000");
  }

  /** No link above its limit, each flow at one that is full, and all bytes arrive. */
  @Test
  void randomFlowsAreFairAndLoseNothing() {
    long seed = Long.getLong("gpunvme.seed", System.nanoTime());
    Random random = new Random(seed);
    List<Link> links = new ArrayList<>();
    for (int i = 0; i < 6; i++) {
      // All cross the last one, which is full only when others have stopped growing.
      links.add(simulation.link("l" + i, i < 5 ? 1 + random.nextInt(100) : 5000, 1));
    }
    List<Flow> flows = new ArrayList<>();
    List<List<Use>> uses = new ArrayList<>();
    double bytes = 0;
    for (int i = 0; i < 40; i++) {
      List<Use> some = new ArrayList<>();
      for (Link link : links) {
        if (random.nextInt(3) == 0 || link == links.getLast()) {
          some.add(new Use(link, 1 + random.nextInt(5)));
        }
      }
      double length = 1 + random.nextInt(1000);
      bytes += length * some.getLast().members();
      uses.add(some);
      flows.add(simulation.flow(length, some, note("f")));
    }
    simulation.after(
        1e-6,
        () -> {
          for (int f = 0; f < flows.size(); f++) {
            double most =
                uses.get(f).stream()
                    .mapToDouble(use -> load(use.link(), flows, uses) / use.link().capacity())
                    .max()
                    .orElse(0);
            assertThat(most).as("seed %d", seed).isCloseTo(1, within(1e-9));
          }
        });

    simulation.run();
    assertThat(order).as("seed %d", seed).hasSize(40);
    assertThat(links.getLast().moved()).as("seed %d", seed).isCloseTo(bytes, within(1e-3));
  }

  private static double load(Link link, List<Flow> flows, List<List<Use>> uses) {
    double load = 0;
    for (int f = 0; f < flows.size(); f++) {
      for (Use use : uses.get(f)) {
        load += use.link() == link ? use.members() * flows.get(f).rate() : 0;
      }
    }
    return load;
  }

  @ParameterizedTest
  @ValueSource(doubles = {0, -1, Double.NaN, Double.POSITIVE_INFINITY})
  void aLinkCarriesSomething(double capacity) {
    assertThatThrownBy(() -> simulation.link("l", capacity, 1))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("l: ");
  }

  @ParameterizedTest
  @ValueSource(doubles = {-1, Double.NaN, Double.POSITIVE_INFINITY})
  void flowsAndTimesAreFinite(double amount) {
    Link link = simulation.link("l", 1, 1);
    assertThatThrownBy(() -> simulation.flow(amount, over(link), note("f")))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> simulation.after(amount, note("t")))
        .isInstanceOf(IllegalArgumentException.class);
  }
}
