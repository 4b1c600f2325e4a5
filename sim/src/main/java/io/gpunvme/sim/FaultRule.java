package io.gpunvme.sim;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.spec.StatusCode;
import java.util.BitSet;

/**
 * A rule for one fault: the fault, the commands or the register event that it hits, and how often.
 *
 * <p>Immutable; the {@link FaultPlan} counts the matches. {@link #toString} is the text that {@link
 * FaultSyntax} reads.
 */
public final class FaultRule {
  /** The fault. */
  public enum Action {
    /** The command ends with {@link #status}. */
    STATUS,
    /** The completion is never posted. */
    DROP,
    /** The command executes, and completes, {@link #nanos} later than usual. */
    DELAY,
    /** The command executes as usual; its completion is posted {@link #nanos} later. */
    LATE,
    /** The completion is posted, and says success; {@link #nanos} later the command executes. */
    EARLY,
    /** The completion is posted twice. */
    DUPLICATE,
    /** The completion carries the command identifier XOR {@link #amount}. */
    WRONG_CID,
    /**
     * The completion is written with the phase of the round before, so the host does not see it.
     */
    WRONG_PHASE,
    /** Dword 3 with the phase is written {@link #nanos} before the other three dwords. */
    TORN,
    /** The completion is posted after {@link #amount} later ones of its queue (or 1 ms). */
    REORDER,
    /** {@link #amount} bits of the data moved are flipped: in the buffer, or on the medium. */
    CORRUPT,
    /** The submission queue is no longer fetched, for {@link #nanos} (0: until the rule goes). */
    STALL,
    /** CSTS.CFS becomes 1 and the controller stops. */
    CFS,
    /** The device is gone: registers read all ones, nothing is fetched or posted. */
    GONE,
    /** CSTS.RDY does not follow CC.EN. */
    READY_STUCK,
    /** The completion is posted and its interrupt is not sent. */
    LOST_INTERRUPT,
    /** The completion's SQHD is {@link #amount}. */
    SQHD_BAD
  }

  /** When a rule is considered. */
  public enum Trigger {
    /** A command is fetched. */
    COMMAND,
    /** CC.EN goes from 0 to 1. */
    ENABLE,
    /** CC.EN goes from 1 to 0. */
    DISABLE,
    /** CC.SHN becomes non-zero. */
    SHUTDOWN,
    /** A register is read. */
    REGISTER
  }

  private final Action action;
  private final Trigger trigger;
  private final int status;
  private final long nanos;
  private final int amount;
  private final boolean executes;
  private final long after;
  private final long every;
  private final long count;
  private final double probability;
  private final FaultMatch match;

  private FaultRule(Builder b) {
    action = b.action;
    trigger = b.trigger;
    status = b.status | b.flags;
    nanos = b.nanos;
    amount = b.amount;
    executes = b.executes;
    after = b.after;
    every = b.every;
    count = b.count;
    probability = b.probability;
    match = new FaultMatch(b);
  }

  /** The fault. */
  public Action action() {
    return action;
  }

  /** When the rule is considered. */
  public Trigger trigger() {
    return trigger;
  }

  /** The 15-bit status field of {@link Action#STATUS}. */
  public int status() {
    return status;
  }

  /** The duration that goes with the action, ns. */
  public long nanos() {
    return nanos;
  }

  /** The number that goes with the action. */
  public int amount() {
    return amount;
  }

  /** Whether the command takes effect (data moves) although it completes wrongly or not at all. */
  public boolean executes() {
    return executes;
  }

  /** The number of matches that pass before the rule starts. */
  public long after() {
    return after;
  }

  /** The rule fires on each {@code every}-th match from then on; 1: on all. */
  public long every() {
    return every;
  }

  /** The most times that it fires. */
  public long count() {
    return count;
  }

  /** The chance that it fires when it could, 0..1. */
  public double probability() {
    return probability;
  }

  /** The commands it is about. */
  FaultMatch match() {
    return match;
  }

  @Override
  public String toString() {
    return FaultSyntax.print(this);
  }

  /** Starts a rule about every command. */
  public static Builder of(Action action) {
    return new Builder(action);
  }

  /** Starts a rule that ends commands with {@code code}. */
  public static Builder status(StatusCode code) {
    return new Builder(Action.STATUS).status(code.status());
  }

  /** Builds a rule. Not safe for several threads. */
  public static final class Builder {
    static final int DWORDS = 16;
    static final int OPCODES = 256;

    final BitSet admin = new BitSet(OPCODES);
    final BitSet io = new BitSet(OPCODES);
    final int[] pattern = new int[DWORDS];
    final int[] mask = new int[DWORDS];
    int queue = FaultMatch.ANY_QUEUE;
    int nsid = FaultMatch.ANY_NAMESPACE;
    boolean lbaGiven;
    long firstLba;
    long lastLba;

    private final Action action;
    private Trigger trigger;
    private int status = StatusCode.INTERNAL_ERROR.status();
    private int flags;
    private long nanos;
    private int amount;
    private boolean executes;
    private long after;
    private long every = 1;
    private long count = Long.MAX_VALUE;
    private double probability = 1;

    private Builder(Action action) {
      this.action = action;
      trigger = action == Action.READY_STUCK ? Trigger.ENABLE : Trigger.COMMAND;
      executes = action != Action.STATUS;
      nanos = action == Action.TORN ? 1_000 : 0;
      amount = action == Action.SQHD_BAD ? 0xFFFF : 1;
    }

    /** Considers the rule on another event than a command; for CFS, GONE and READY_STUCK. */
    public Builder on(Trigger event) {
      trigger = event;
      return this;
    }

    /** The 15-bit status field. */
    public Builder status(int field) {
      status = field;
      return this;
    }

    /** Sets a bit of the status field: DNR or M. */
    Builder statusFlag(int bit) {
      flags |= bit;
      return this;
    }

    /** The duration, ns, ≥ 0. */
    public Builder nanos(long duration) {
      nanos = duration;
      return this;
    }

    /** The number, 0..65535. */
    public Builder amount(int number) {
      amount = number;
      return this;
    }

    /** Whether the command takes effect nevertheless. */
    public Builder executes(boolean takesEffect) {
      executes = takesEffect;
      return this;
    }

    /** About this admin opcode (too). */
    public Builder onAdmin(int opcode) {
      admin.set(opcode);
      return this;
    }

    /** About this I/O opcode (too). */
    public Builder onIo(int opcode) {
      io.set(opcode);
      return this;
    }

    /** About all admin commands (too). */
    public Builder onAdmin() {
      admin.set(0, OPCODES);
      return this;
    }

    /** About all I/O commands (too). */
    public Builder onIo() {
      io.set(0, OPCODES);
      return this;
    }

    /** Only on this submission queue, 0..65535. */
    public Builder queue(int qid) {
      queue = qid;
      return this;
    }

    /** Only with this namespace identifier, ≥ 1. */
    public Builder nsid(int namespace) {
      nsid = namespace;
      return this;
    }

    /** Only I/O commands that touch a block from {@code first} to {@code last}, both included. */
    public Builder lba(long first, long last) {
      lbaGiven = true;
      firstLba = first;
      lastLba = last;
      return this;
    }

    /** Only commands whose dword {@code index} (0..15) equals {@code value} under {@code bits}. */
    public Builder dword(int index, int value, int bits) {
      pattern[index] = value & bits;
      mask[index] = bits;
      return this;
    }

    /** Fires once, on the n-th match, n ≥ 1. */
    public Builder nth(long n) {
      after = n - 1;
      count = 1;
      return this;
    }

    /** Lets the first {@code matches} pass. */
    public Builder after(long matches) {
      after = matches;
      return this;
    }

    /** Fires on each n-th match only, n ≥ 1. */
    public Builder every(long n) {
      every = n;
      return this;
    }

    /** Fires at most so often, ≥ 1. */
    public Builder count(long times) {
      count = times;
      return this;
    }

    /** Fires with this chance, 0..1. */
    public Builder probability(double chance) {
      probability = chance;
      return this;
    }

    /** Checks and builds. */
    public FaultRule build() {
      if (admin.isEmpty() && io.isEmpty()) {
        onAdmin().onIo();
      }
      check(nanos >= 0, "a duration below zero");
      check(amount >= 0 && amount <= 0xFFFF, "amount " + amount + " is outside 0..65535");
      check(after >= 0 && every >= 1 && count >= 1, "nth, every and count start at 1, after at 0");
      check(probability >= 0 && probability <= 1, "p=" + probability + " is outside 0..1");
      check(Long.compareUnsigned(firstLba, lastLba) <= 0, "the LBA range is backwards");
      check(trigger == Trigger.COMMAND || isController(), action + " happens to commands only");
      check(
          action != Action.READY_STUCK || trigger == Trigger.ENABLE || trigger == Trigger.DISABLE,
          "READY_STUCK happens on enable or disable only");
      return new FaultRule(this);
    }

    private boolean isController() {
      return action == Action.CFS || action == Action.GONE || action == Action.READY_STUCK;
    }

    private static void check(boolean fine, String problem) {
      if (!fine) {
        throw new InvalidRequestException("fault rule: " + problem);
      }
    }
  }
}
