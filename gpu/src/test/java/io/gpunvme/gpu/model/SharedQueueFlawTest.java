package io.gpunvme.gpu.model;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.gpu.model.QueueConfig.Deadlines;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Without any one of its rules the protocol breaks, and the checker sees it. */
class SharedQueueFlawTest {
  private static final String STUCK = "stuck";
  private static final String UNRUNG = "nobody rings for command";
  private static final String UNWRITTEN = "the doorbell announces an SQE that is not written";

  /** A queue small enough to show what a flaw leads to. */
  private record Case(QueueConfig config, String harm) {}

  @ParameterizedTest
  @EnumSource(names = "NONE", mode = EnumSource.Mode.EXCLUDE)
  void isCaught(Flaw flaw) {
    Case c = caseOf(flaw);

    Exploration right = Checker.explore(new SharedQueueModel(c.config), 1_000_000);
    assertThat(right.wrong()).as("with the rule: %s", right.report()).isNull();

    Exploration wrong = Checker.explore(new SharedQueueModel(c.config.flaw(flaw)), 1_000_000);
    assertThat(wrong.wrong()).as("without the rule").isNotNull().contains(c.harm);
    assertThat(wrong.trace()).isNotEmpty().noneMatch(String::isEmpty);
  }

  private static Case caseOf(Flaw flaw) {
    return switch (flaw) {
      case NONE -> throw new AssertionError();
      case TAKE_NOT_ATOMIC -> new Case(reads(1), "while another has it");
      case NO_GENERATION, DELIVER_TO_ANY_GENERATION ->
          new Case(new QueueConfig(1).caller("read read").duplicates(1), "goes to another");
      case TICKET_BEFORE_SLOT -> new Case(reads(1), STUCK);
      case EXIT_BEFORE_MARK -> new Case(reads(2), STUCK);
      case MARK_BEFORE_SQE, NO_MARKS -> new Case(reads(2), UNWRITTEN);
      case MARK_WITHOUT_LAP -> new Case(oneByOne(), "without a ticket");
      case GROUP_TAKES_ALL_FIRST, GROUP_SUBMITS_ALL_FIRST ->
          new Case(new QueueConfig(2).callers(2, "read2"), STUCK);
      case ANNOUNCE_BEFORE_MARK,
          ANNOUNCE_WITHOUT_PENDING,
          CLEAR_AFTER_SCAN,
          LEAVE_BY_STORE,
          LEAVE_WITHOUT_LOOKING,
          LEAVE_BEFORE_DOORBELL,
          RING_LIMIT ->
          announcing(flaw);
      case CID_BEFORE_PHASE, PHASE_NOT_FLIPPED ->
          new Case(oneByOne(), "consumed that is not there");
      case CQ_DOORBELL_BEFORE_READ ->
          new Case(
              new QueueConfig(2).caller("read2").window(2).duplicates(3),
              "overwritten before it was read");
      case RUNG_NOT_WRAPPED ->
          new Case(oneByOne().wrapping(2, 1), "looks again although every ticket is marked");
      case CQ_DOORBELL_FORGOTTEN -> new Case(oneByOne(), "the completion queue is full");
      default -> ending(flaw);
    };
  }

  private static Case announcing(Flaw flaw) {
    return switch (flaw) {
      case RING_LIMIT -> new Case(new QueueConfig(2).caller("submit2 wait").caller("read"), UNRUNG);
      case LEAVE_WITHOUT_LOOKING -> new Case(submits(), "PENDING is left behind");
      case LEAVE_BEFORE_DOORBELL ->
          new Case(submits(), "the controller fetches an SQE that is not there");
      default -> new Case(submits(), UNRUNG);
    };
  }

  private static Case ending(Flaw flaw) {
    return switch (flaw) {
      case DELIVER_BY_STORE, QUARANTINE_FAILURE_IGNORED ->
          new Case(new QueueConfig(2).callers(2, "read").early(1), "is lost");
      case LATE_SLOT_KEPT, QUARANTINE_BY_STORE -> new Case(late(), "stays quarantined although");
      case LATE_BY_STORE, LATE_BIT_BEFORE_WORD ->
          new Case(
              new QueueConfig(1).callers(2, "read").cqSize(4).window(2).duplicates(1).early(1),
              "is freed twice");
      case WAITER_DOES_NOT_SERVE -> new Case(reads(2), STUCK);
      case TAKER_DOES_NOT_SERVE -> new Case(late(), STUCK);
      case SERVER_LEAVES_EARLY ->
          new Case(new QueueConfig(1).caller("serve").served(2, "read"), STUCK);
      case NO_LAST_TURN ->
          new Case(
              new QueueConfig(1).caller("serve recover serve").served("submit recover wait"),
              "nobody rings for what is left");
      case LAST_TURN_WITHOUT_PENDING ->
          new Case(
              new QueueConfig(2)
                  .caller("serve recover serve")
                  .served("submit recover wait")
                  .caller("read recover"),
              "nobody rings for what is left");
      case LEFT_BEFORE_MARK ->
          new Case(
              new QueueConfig(1).caller("serve recover serve").served("submit recover wait"),
              "nobody rings for what is left");
      case BIT_BEFORE_STATUS -> new Case(reads(1), "a result that is not its own");
      case QUARANTINE_REUSED -> new Case(late(), "is taken for a double");
      case WAIT_FOR_ANY_GENERATION, RECOVERY_RESETS_GENERATIONS ->
          new Case(recovery("recover read"), "a result that is not its own");
      case QUARANTINE_FAILURE_MEANS_DONE ->
          new Case(recovery("recover").deadlines(Deadlines.ANY), "a result that is not its own");
      case RECOVERY_KEEPS_RESULTS -> new Case(recovery("recover"), "is freed twice");
      case RECOVERY_KEEPS_MARKS -> new Case(recovery("recover read"), "without a ticket");
      default -> live(flaw);
    };
  }

  private static Case live(Flaw flaw) {
    QueueConfig reads = new QueueConfig(1).callers(2, "read").live(1);
    QueueConfig submits = new QueueConfig(2).callers(2, "submit wait").live(1);
    return switch (flaw) {
      case LIVE_WITHOUT_PAUSE, LIVE_UNLOCKED, LIVE_TWO_AT_ONCE ->
          new Case(reads, "there are two holders");
      case LIVE_GATE_OPEN, LIVE_MARKS_NOT_AWAITED ->
          new Case(reads, "is ended while the controller may carry it out");
      case LIVE_REFUSED_KEEPS_SLOT, LIVE_ABORT_BY_STORE -> new Case(reads.early(1), STUCK);
      case LIVE_KEEPS_MARKS ->
          new Case(new QueueConfig(2).callers(2, "read").live(1), "without a ticket");
      case LIVE_UNRUNG, LIVE_GATE_FIRST -> new Case(submits, UNRUNG);
      default -> throw new AssertionError("no case for " + flaw);
    };
  }

  private static QueueConfig reads(int depth) {
    return new QueueConfig(depth).callers(2, "read");
  }

  private static QueueConfig submits() {
    return new QueueConfig(2).callers(2, "submit wait");
  }

  /** Long enough for both rings to begin another lap. */
  private static QueueConfig oneByOne() {
    return new QueueConfig(1).caller("read read read");
  }

  /** A command that is completed behind its deadline, or just at it. */
  private static QueueConfig late() {
    return new QueueConfig(1).callers(2, "read").early(1);
  }

  /** A command that was submitted before a recovery and is waited for behind it. */
  private static QueueConfig recovery(String other) {
    return new QueueConfig(1).caller("submit recover wait").caller(other);
  }
}
