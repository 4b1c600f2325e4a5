package io.gpunvme.tools.fleet;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.List;
import java.util.PriorityQueue;

/**
 * A simulation of bytes that flow over shared links. Nothing happens between events: a flow begins,
 * ends or is cancelled, or a time comes. From one event to the next every flow has a constant rate,
 * and rates are max-min fair: none can have more without one that has no more getting less.
 *
 * <p>Many equal flows are one. A {@link Use} says how many of them cross one copy of a link: eight
 * GPUs of each of 1000 machines cross their machine's network card eight at a time and the pool
 * 8000 at a time. So the time that a simulation takes does not depend on the number of machines.
 *
 * <p>For one thread. Seconds and bytes are doubles; a run ends with the last event.
 */
final class FluidSimulation {
  /** Far more than any fleet needs: a plan is refused before it comes near ({@link Fleet}). */
  private static final long MOST_EVENTS = 20_000_000;

  /** What is left of a flow that is over, by its bytes: rounding. */
  private static final double NOTHING = 1e-9;

  /** A link, or whatever else carries a limited number of bytes a second. */
  static final class Link {
    private final int number;
    private final String name;
    private final double capacity;
    private final double copies;
    private double moved;

    private Link(int number, String name, double capacity, double copies) {
      this.number = number;
      this.name = name;
      this.capacity = capacity;
      this.copies = copies;
    }

    String name() {
      return name;
    }

    /** Bytes a second of one copy. */
    double capacity() {
      return capacity;
    }

    /** How many such links there are. */
    double copies() {
      return copies;
    }

    /** Bytes that one copy has carried. */
    double moved() {
      return moved;
    }
  }

  /** A link that a flow crosses, and how many of its equal members share one copy of the link. */
  record Use(Link link, double members) {}

  /** Bytes on their way; {@code bytes} are those of one member. */
  static final class Flow {
    private final List<Use> uses;
    private final double bytes;
    private final Runnable then;
    private double left;
    private double rate;

    private Flow(double bytes, List<Use> uses, Runnable then) {
      this.bytes = bytes;
      this.uses = uses;
      this.then = then;
      left = bytes;
    }

    /** Bytes a second of one member, until the next event. */
    double rate() {
      return rate;
    }
  }

  /** Something that one has at a time; the others wait in their order. */
  final class Lock {
    private final Deque<Runnable> waiting = new ArrayDeque<>();
    private boolean taken;

    private Lock() {}

    /** Runs {@code then} with the lock, now or later. */
    void acquire(Runnable then) {
      if (taken) {
        waiting.add(then);
      } else {
        taken = true;
        then.run();
      }
    }

    void release() {
      Runnable next = waiting.poll();
      if (next == null) {
        taken = false;
      } else {
        next.run();
      }
    }

    /** Holds it for some time, then gives it back and runs {@code then}. */
    void hold(double seconds, Runnable then) {
      acquire(
          () ->
              after(
                  seconds,
                  () -> {
                    release();
                    then.run();
                  }));
    }
  }

  private record Timer(double at, long order, Runnable then) {}

  private final List<Link> links = new ArrayList<>();
  private final List<Flow> flows = new ArrayList<>();
  private final PriorityQueue<Timer> timers =
      new PriorityQueue<>(Comparator.comparingDouble(Timer::at).thenComparingLong(Timer::order));
  private double now;
  private double moving;
  private long order;
  private boolean changed;

  /** A link of so many bytes a second, of which there are {@code copies}. */
  Link link(String name, double capacity, double copies) {
    if (!(capacity > 0) || !Double.isFinite(capacity) || !(copies > 0)) {
      throw new IllegalArgumentException(name + ": " + capacity + " bytes/s, " + copies);
    }
    Link link = new Link(links.size(), name, capacity, copies);
    links.add(link);
    return link;
  }

  /** All links, in the order in which they were made. */
  List<Link> links() {
    return List.copyOf(links);
  }

  Lock lock() {
    return new Lock();
  }

  double now() {
    return now;
  }

  /** Seconds until now in which something flowed. */
  double movingSeconds() {
    return moving;
  }

  /** Runs {@code then} after some seconds; those of one moment in the order of the calls. */
  void after(double seconds, Runnable then) {
    if (!(seconds >= 0) || !Double.isFinite(seconds)) {
      throw new IllegalArgumentException("after " + seconds + " seconds");
    }
    timers.add(new Timer(now + seconds, order++, then));
  }

  /** Begins a flow; {@code then} runs when all of it has arrived. */
  Flow flow(double bytes, List<Use> uses, Runnable then) {
    if (!(bytes >= 0) || !Double.isFinite(bytes) || uses.isEmpty()) {
      throw new IllegalArgumentException("a flow of " + bytes + " bytes over " + uses.size());
    }
    Flow flow = new Flow(bytes, List.copyOf(uses), then);
    if (bytes == 0) {
      after(0, then);
    } else {
      flows.add(flow);
      changed = true;
    }
    return flow;
  }

  /** Ends a flow where it is; what it would have done then is not done. */
  void cancel(Flow flow) {
    changed |= flows.remove(flow);
  }

  /** Runs until nothing is left to happen; returns when that was. */
  double run() {
    for (long events = 0; !timers.isEmpty() || !flows.isEmpty(); events++) {
      if (events == MOST_EVENTS) {
        throw new IllegalStateException("more than " + MOST_EVENTS + " events");
      }
      if (changed) {
        share();
        changed = false;
      }
      step();
    }
    return now;
  }

  private void step() {
    double end = Double.POSITIVE_INFINITY;
    for (Flow flow : flows) {
      end = Math.min(end, flow.left / flow.rate);
    }
    Timer timer = timers.peek();
    if (timer != null && timer.at - now <= end) {
      timers.remove();
      advance(timer.at - now);
      now = timer.at;
      timer.then.run();
      return;
    }
    advance(end);
    List<Flow> over = flows.stream().filter(f -> f.left <= f.bytes * NOTHING).toList();
    flows.removeAll(over);
    changed |= !over.isEmpty();
    over.forEach(flow -> flow.then.run());
  }

  private void advance(double seconds) {
    now += seconds;
    moving += flows.isEmpty() ? 0 : seconds;
    for (Flow flow : flows) {
      double bytes = Math.min(flow.left, flow.rate * seconds);
      flow.left -= bytes;
      for (Use use : flow.uses) {
        use.link.moved += bytes * use.members;
      }
    }
  }

  /**
   * Gives each flow its rate, by progressive filling: all rates grow together until a link is full;
   * those that cross it stay there, the others go on.
   */
  private void share() {
    List<Flow> growing = new ArrayList<>(flows);
    double[] free = links.stream().mapToDouble(Link::capacity).toArray();
    while (!growing.isEmpty()) {
      double[] members = new double[free.length];
      for (Flow flow : growing) {
        flow.uses.forEach(use -> members[use.link.number] += use.members);
      }
      double level = Double.POSITIVE_INFINITY;
      int full = -1;
      for (int i = 0; i < free.length; i++) {
        if (members[i] > 0 && free[i] / members[i] < level) {
          level = free[i] / members[i];
          full = i;
        }
      }
      Link narrow = links.get(full);
      List<Flow> still = new ArrayList<>();
      for (Flow flow : growing) {
        if (flow.uses.stream().anyMatch(use -> use.link == narrow)) {
          flow.rate = level;
          flow.uses.forEach(use -> free[use.link.number] -= flow.rate * use.members);
        } else {
          still.add(flow);
        }
      }
      for (int i = 0; i < free.length; i++) {
        free[i] = Math.max(free[i], 0);
      }
      growing = still;
    }
  }
}
