package io.gpunvme.gpu.model;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;

/** A small queue, who uses it, and what may go wrong. */
final class QueueConfig {
  /** When a deadline may pass. */
  enum Deadlines {
    /** Never: whatever is stuck stays stuck. */
    NEVER,
    /**
     * For commands whose completion will not come any more, and {@link #early} others; for callers
     * without a slot when all are quarantined.
     */
    WHEN_LOST,
    /** At any time; the host's stop word is the same. */
    ANY
  }

  /** What a holder does that has gone round often enough and was told of more. */
  enum Leaving {
    /** It leaves PENDING behind for the next caller: too weak, see the tests. */
    WITH_PENDING,
    /**
     * It goes on ringing, but hands out no more completions, until nobody has told it of more. The
     * device code does.
     */
    WHEN_ALL_IS_RUNG
  }

  final List<List<Op>> programs = new ArrayList<>();

  /** Callers that leave all service to others. */
  private final BitSet served = new BitSet();

  private final BitSet servers = new BitSet();

  /** What was submitted and is waited for by a caller that comes later. */
  private final List<Op> left = new ArrayList<>();

  final int depth;
  int commands;
  int sqSize;
  int cqSize;
  int generations = 8;
  int wrap;
  int before;
  int rounds = 2;
  int window = 1;
  int drops;
  int duplicates;
  int early;
  int live;
  Deadlines deadlines = Deadlines.NEVER;
  Leaving leaving = Leaving.WHEN_ALL_IS_RUNG;
  boolean readsAnnounce;
  boolean coarse;
  Flaw flaw = Flaw.NONE;

  /** A queue with the shortest rings that the protocol allows. */
  QueueConfig(int depth) {
    this.depth = depth;
    this.sqSize = depth + 1;
    this.cqSize = 2 * depth;
  }

  /**
   * Adds a caller.
   *
   * @param program calls: {@code read}, {@code submit}, {@code wait} (for the oldest submit),
   *     {@code adopt} (for the oldest submit of callers before it that nobody waits for), {@code
   *     serve} and {@code recover}; a digit behind read or submit is the number of lanes
   */
  QueueConfig caller(String program) {
    List<Op> ops = new ArrayList<>();
    List<Op> submitted = new ArrayList<>();
    for (String word : program.split(" ")) {
      int lanes = Character.isDigit(word.charAt(word.length() - 1)) ? lastDigit(word) : 1;
      switch (word.replaceAll("\\d", "")) {
        case "read" -> ops.add(commands(Op.Kind.READ, lanes));
        case "submit" -> {
          submitted.add(commands(Op.Kind.SUBMIT, lanes));
          ops.add(submitted.getLast());
        }
        case "wait" -> {
          Op oldest = submitted.removeFirst();
          ops.add(new Op(Op.Kind.WAIT, oldest.first(), oldest.lanes()));
        }
        case "adopt" -> {
          Op other = left.removeFirst();
          ops.add(new Op(Op.Kind.ADOPT, other.first(), other.lanes()));
        }
        case "serve" -> {
          servers.set(programs.size());
          ops.add(new Op(Op.Kind.SERVE, 0, 0));
        }
        case "recover" -> ops.add(new Op(Op.Kind.RECOVER, 0, 0));
        default -> throw new IllegalArgumentException(word);
      }
    }
    left.addAll(submitted);
    programs.add(ops);
    return this;
  }

  /** Adds a caller that neither announces nor serves. */
  QueueConfig served(String program) {
    served.set(programs.size());
    return caller(program);
  }

  QueueConfig served(int count, String program) {
    for (int i = 0; i < count; i++) {
      served(program);
    }
    return this;
  }

  boolean helps(int t) {
    return !served.get(t);
  }

  boolean serves(int t) {
    return servers.get(t);
  }

  boolean hasServer() {
    return !servers.isEmpty();
  }

  QueueConfig callers(int count, String program) {
    for (int i = 0; i < count; i++) {
      caller(program);
    }
    return this;
  }

  QueueConfig sqSize(int entries) {
    sqSize = entries;
    return this;
  }

  QueueConfig cqSize(int entries) {
    cqSize = entries;
    return this;
  }

  /**
   * Positions wrap, and begin so little before they do. Those of marks and of {@code rung} wrap
   * each so many laps of the SQ, tickets each twice as many, those of CQEs each so many double laps
   * of the CQ. Otherwise they begin at 0 and never wrap.
   *
   * @param laps 2 at least: a mark tells two laps apart
   */
  QueueConfig wrapping(int laps, int positionsBefore) {
    wrap = laps;
    before = positionsBefore;
    return this;
  }

  /** How many values there are of {@code rung}, and of what a mark says. */
  int positions() {
    return wrap == 0 ? commands + 1 : wrap * sqSize;
  }

  /** How many values there are of the ticket. */
  int tickets() {
    return wrap == 0 ? commands + 1 : 2 * positions();
  }

  /** How many values there are of a position in the CQ. */
  int cqPositions() {
    return wrap == 0 ? commands + duplicates + 1 : wrap * 2 * cqSize;
  }

  /** What a mark says of a position; of every position if laps do not matter. */
  int lap(int position) {
    return has(Flaw.MARK_WITHOUT_LAP) ? 1 : position % positions() / sqSize + 1;
  }

  /** How many generations there are before they repeat. */
  QueueConfig generations(int count) {
    generations = count;
    return this;
  }

  /** How often a holder goes round before it wants to leave in any case. */
  QueueConfig rounds(int count) {
    rounds = count;
    return this;
  }

  /** How many CQEs the lanes of a holder hand out side by side; fine steps only. */
  QueueConfig window(int lanes) {
    window = lanes;
    return this;
  }

  QueueConfig drops(int most) {
    drops = most;
    return this;
  }

  QueueConfig duplicates(int most) {
    duplicates = most;
    return this;
  }

  QueueConfig deadlines(Deadlines when) {
    deadlines = when;
    return this;
  }

  /** Deadlines pass for lost commands, and for so many that are only slow. */
  QueueConfig early(int most) {
    early = most;
    return deadlines(Deadlines.WHEN_LOST);
  }

  /** The host recovers so many times at most while callers are at work. Positions wrap then. */
  QueueConfig live(int most) {
    live = most;
    return wrap == 0 ? wrapping(2, 0) : this;
  }

  QueueConfig leaving(Leaving how) {
    leaving = how;
    return this;
  }

  /**
   * Callers that go on to wait announce all the same; else they rely on serving while they wait.
   */
  QueueConfig readsAnnounce() {
    readsAnnounce = true;
    return this;
  }

  /** Steps that nobody can tell from happening at once do happen at once: see {@link Caller}. */
  QueueConfig coarse() {
    coarse = true;
    return this;
  }

  QueueConfig flaw(Flaw rule) {
    flaw = rule;
    return this;
  }

  boolean has(Flaw rule) {
    return flaw == rule;
  }

  /** CQEs that are consumed before they are given back: a quarter of the ring. */
  int cqBatch() {
    return Math.max(1, cqSize / 4);
  }

  /**
   * How often a holder goes round before it leaves in any case. Behind the last completion pass a
   * slot may see two callers announce: the one whose command was rung and completed by others
   * before it was announced, and the next one, whose command nobody completes meanwhile.
   */
  int mostRounds() {
    return leaving == Leaving.WITH_PENDING ? rounds : rounds + 2 * depth;
  }

  private Op commands(Op.Kind kind, int lanes) {
    Op op = new Op(kind, commands, lanes);
    commands += lanes;
    return op;
  }

  private static int lastDigit(String word) {
    return word.charAt(word.length() - 1) - '0';
  }
}
