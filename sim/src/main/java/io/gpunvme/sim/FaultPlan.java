package io.gpunvme.sim;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.jspecify.annotations.Nullable;

/**
 * The fault rules in force and how often each has matched.
 *
 * <p>Every rule counts every event it matches; the first rule that is due decides what happens, the
 * others do not fire on that event. Safe for all threads: rules may be added and removed while
 * commands run. Without rules, asking costs one volatile read.
 */
public final class FaultPlan {
  private static final Entry[] NONE = {};

  private final SplittableRandom random;
  private volatile Entry[] entries = NONE;

  /** A plan with these rules; {@code seed} decides what {@code p=} does. */
  public FaultPlan(List<FaultRule> rules, long seed) {
    random = new SplittableRandom(seed);
    rules.forEach(this::add);
  }

  /** Adds a rule after the others. */
  public synchronized void add(FaultRule rule) {
    List<Entry> next = new ArrayList<>(List.of(entries));
    next.add(new Entry(rule));
    entries = next.toArray(NONE);
  }

  /**
   * Adds rules in the syntax of {@link FaultSyntax}.
   *
   * @throws io.gpunvme.base.InvalidRequestException naming the line that is wrong
   */
  public void add(String text) {
    FaultSyntax.parse(text).forEach(this::add);
  }

  /** Removes a rule; a queue it stalled goes on. */
  public synchronized void remove(FaultRule rule) {
    List<Entry> next = new ArrayList<>(List.of(entries));
    next.removeIf(e -> e.rule == rule);
    entries = next.toArray(NONE);
  }

  /** Removes all rules. */
  public synchronized void clear() {
    entries = NONE;
  }

  /** The rules in force. */
  public List<FaultRule> rules() {
    List<FaultRule> rules = new ArrayList<>();
    for (Entry e : entries) {
      rules.add(e.rule);
    }
    return rules;
  }

  /** Whether the rule is still in the plan. */
  public boolean active(FaultRule rule) {
    return entry(rule) != null;
  }

  /** How often the rule has fired; 0 if it is not in the plan. */
  public synchronized long fired(FaultRule rule) {
    Entry e = entry(rule);
    return e == null ? 0 : e.fired;
  }

  /** The rule that applies to a command just fetched from queue {@code sqid}, if any. */
  @Nullable FaultRule onCommand(int sqid, MemorySegment sqe) {
    Entry[] all = entries;
    return all.length == 0 ? null : onCommand(all, sqid, sqe);
  }

  private synchronized @Nullable FaultRule onCommand(Entry[] all, int sqid, MemorySegment sqe) {
    FaultRule winner = null;
    for (Entry e : all) {
      FaultRule rule = e.rule;
      if (rule.trigger() == FaultRule.Trigger.COMMAND && rule.match().matches(sqid, sqe)) {
        winner = e.consider(winner, random);
      }
    }
    return winner;
  }

  /** The rule that applies to a register event, if any. */
  @Nullable FaultRule onEvent(FaultRule.Trigger event) {
    Entry[] all = entries;
    return all.length == 0 ? null : onEvent(all, event);
  }

  private synchronized @Nullable FaultRule onEvent(Entry[] all, FaultRule.Trigger event) {
    FaultRule winner = null;
    for (Entry e : all) {
      if (e.rule.trigger() == event) {
        winner = e.consider(winner, random);
      }
    }
    return winner;
  }

  /** A random number below {@code bound}, from the plan's seed. */
  synchronized long random(long bound) {
    return random.nextLong(bound);
  }

  private @Nullable Entry entry(FaultRule rule) {
    for (Entry e : entries) {
      if (e.rule == rule) {
        return e;
      }
    }
    return null;
  }

  /** A rule and its counters; guarded by the plan. */
  private static final class Entry {
    private final FaultRule rule;
    private long seen;
    private long fired;

    Entry(FaultRule rule) {
      this.rule = rule;
    }

    @Nullable FaultRule consider(@Nullable FaultRule winner, SplittableRandom random) {
      seen++;
      if (winner != null || !due(random)) {
        return winner;
      }
      fired++;
      return rule;
    }

    private boolean due(SplittableRandom random) {
      return seen > rule.after()
          && fired < rule.count()
          && (seen - rule.after()) % rule.every() == 0
          && (rule.probability() >= 1 || random.nextDouble() < rule.probability());
    }
  }
}
