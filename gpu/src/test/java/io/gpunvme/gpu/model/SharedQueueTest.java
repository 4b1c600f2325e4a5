package io.gpunvme.gpu.model;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.gpu.model.QueueConfig.Deadlines;
import io.gpunvme.gpu.model.QueueConfig.Leaving;
import io.gpunvme.gpu.model.QueueState.Outcome;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The protocol of docs/shared-queue.md in every state that small queues can reach. */
class SharedQueueTest {
  private static final int LIMIT = 4_000_000;

  private static int queues;
  private static long states;

  @AfterAll
  static void sum() {
    System.out.printf("SharedQueueTest: %d queues, %,d states%n", queues, states);
  }

  private static Exploration explore(QueueConfig config) {
    Exploration e = Checker.explore(new SharedQueueModel(config), LIMIT);
    queues++;
    states += e.states();
    return e;
  }

  private static QueueConfig depth(int slots) {
    return new QueueConfig(slots).coarse();
  }

  static Stream<Arguments> withoutFaults() {
    return Stream.of(
        Arguments.of("one slot, many laps", depth(1).callers(3, "read read")),
        Arguments.of("fewer slots than callers", depth(2).callers(3, "read read")),
        Arguments.of("a slot for everybody", depth(3).callers(3, "read")),
        Arguments.of("four callers", depth(2).callers(4, "read")),
        Arguments.of("slots used again", depth(2).callers(2, "read read read")),
        Arguments.of("groups that want more than there is", depth(1).callers(3, "read2 read")),
        Arguments.of("groups that get a part", depth(2).callers(2, "read2 read")),
        Arguments.of("groups that may get all", depth(3).callers(2, "read2 read")),
        Arguments.of("a larger SQ", depth(2).sqSize(4).callers(2, "read read")),
        Arguments.of("two in flight each", depth(3).callers(2, "submit submit wait wait")),
        Arguments.of("three that submit", depth(2).callers(3, "submit wait")),
        Arguments.of("three that find room", depth(3).callers(3, "submit wait")),
        Arguments.of("groups that submit", depth(3).callers(2, "submit2 wait")),
        Arguments.of("three groups that wait", depth(2).callers(3, "read2")),
        Arguments.of("both kinds", depth(2).caller("submit2 wait").callers(2, "read")));
  }

  /** No deadline passes, so everybody comes to an end because their commands were completed. */
  @ParameterizedTest(name = "{0}")
  @MethodSource
  void withoutFaults(String what, QueueConfig config) {
    Exploration e = explore(config);

    assertThat(e.wrong()).as(e.report()).isNull();
    assertThat(e.saw(Action.NO_SLOT)).isFalse();
    assertThat(e.saw(Action.QUARANTINE)).isFalse();
    assertThat(e.saw(Action.STALE)).isFalse();
  }

  static Stream<Arguments> waysToLeave() {
    return Stream.of(Leaving.values())
        .flatMap(how -> Stream.of(1, 2).map(rounds -> Arguments.of(how, rounds)));
  }

  @ParameterizedTest
  @MethodSource("waysToLeave")
  void howeverTheHolderLeaves(Leaving how, int rounds) {
    List<QueueConfig> configs =
        List.of(
            depth(1).callers(3, "submit wait"),
            depth(2).callers(2, "read2").readsAnnounce(),
            depth(2).callers(2, "read read").readsAnnounce(),
            depth(2).callers(2, "submit wait submit wait"),
            depth(3).callers(2, "submit submit wait wait"));
    for (QueueConfig config : configs) {
      Exploration e = explore(config.leaving(how).rounds(rounds));

      assertThat(e.wrong()).as(e.report()).isNull();
      assertThat(e.saw(Action.AGAIN)).isEqualTo(rounds > 1 || how == Leaving.WHEN_ALL_IS_RUNG);
    }
  }

  static Stream<Arguments> withFaults() {
    return Stream.of(
        Arguments.of("a lost completion", depth(2).callers(2, "read read").drops(1).early(0)),
        Arguments.of("all slots lost", depth(2).callers(3, "read").drops(2).early(0)),
        Arguments.of("doubled completions", depth(1).callers(2, "read read").duplicates(2)),
        Arguments.of("a doubled completion", depth(2).callers(2, "read read").duplicates(1)),
        Arguments.of("late completions", depth(1).callers(2, "read read").early(2)),
        Arguments.of("a late completion", depth(2).callers(3, "read").early(1)),
        Arguments.of("a late one of a group", depth(2).callers(2, "read2").early(1)),
        Arguments.of("a late one, submitted", depth(2).callers(2, "submit wait read").early(1)),
        Arguments.of(
            "everything, one slot", depth(1).callers(3, "read").drops(1).duplicates(1).early(1)),
        Arguments.of(
            "everything, three callers",
            depth(2).callers(3, "read").drops(1).duplicates(1).early(1)),
        Arguments.of(
            "everything, groups", depth(2).callers(2, "read2").drops(1).duplicates(1).early(1)),
        Arguments.of(
            "everything, submitted",
            depth(2).callers(2, "submit wait read").drops(1).duplicates(1).early(1)),
        Arguments.of(
            "everything, announced",
            depth(2).callers(2, "read read").readsAnnounce().drops(1).duplicates(1).early(1)),
        Arguments.of(
            "everything, two slots",
            depth(2).callers(2, "read read").drops(1).duplicates(1).early(1)));
  }

  /** Deadlines pass where they must; nobody depends on them otherwise. */
  @ParameterizedTest(name = "{0}")
  @MethodSource
  void withFaults(String what, QueueConfig config) {
    Exploration e = explore(config);

    assertThat(e.wrong()).as(e.report()).isNull();
    assertThat(e.saw(Action.DROP)).isEqualTo(config.drops > 0);
    assertThat(e.saw(Action.STALE)).isEqualTo(config.duplicates > 0);
    assertThat(e.saw(Action.LATE)).isEqualTo(config.early > 0);
  }

  /** Or the host says stop. */
  @Test
  void whenAnyDeadlinePassesAtAnyTime() {
    List<QueueConfig> configs =
        List.of(
            depth(1).callers(2, "read2").drops(1).duplicates(1),
            depth(2).callers(2, "read read"),
            depth(2).callers(2, "submit wait").readsAnnounce().duplicates(1));
    for (QueueConfig config : configs) {
      Exploration e = explore(config.deadlines(Deadlines.ANY));

      assertThat(e.wrong()).as(e.report()).isNull();
    }
  }

  /** One operation a step, no step joined to another. */
  @Test
  void inFineSteps() {
    List<QueueConfig> configs =
        List.of(
            new QueueConfig(1).callers(3, "read read"),
            new QueueConfig(2).callers(3, "read"),
            new QueueConfig(2).callers(2, "read2 read"),
            new QueueConfig(2).callers(2, "submit wait read"),
            new QueueConfig(2).callers(2, "read").drops(1).duplicates(1).early(1));
    for (QueueConfig config : configs) {
      Exploration e = explore(config);

      assertThat(e.wrong()).as(e.report()).isNull();
    }
  }

  @Test
  void lanesOfAHolderHandOutSideBySide() {
    List<QueueConfig> configs =
        List.of(
            new QueueConfig(2).callers(2, "read").window(2).duplicates(1).early(1),
            new QueueConfig(1).callers(2, "read").cqSize(4).window(2).duplicates(1).early(1));
    for (QueueConfig config : configs) {
      Exploration e = explore(config);

      assertThat(e.wrong()).as(e.report()).isNull();
      assertThat(e.saw(Action.LATE_BIT)).isTrue();
    }
  }

  /** The ticket, {@code rung} and the CQ's positions wrap at different times, and begin anew. */
  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3})
  void whenPositionsWrap(int before) {
    List<QueueConfig> configs =
        List.of(
            depth(1).callers(3, "read read"),
            depth(2).callers(2, "read2 read"),
            depth(2).callers(2, "submit wait submit wait"),
            depth(1).caller("read read read read read read read"),
            depth(2).callers(2, "read read").drops(1).duplicates(1).early(1));
    for (QueueConfig config : configs) {
      Exploration e = explore(config.wrapping(2, before));

      assertThat(e.wrong()).as(e.report()).isNull();
    }
  }

  static Stream<Arguments> recoveries() {
    return Stream.of(
        Arguments.of("its slot back", depth(1).callers(2, "read recover read").drops(1).early(0)),
        Arguments.of("a command in flight", depth(2).callers(2, "submit recover wait read")),
        Arguments.of("all slots back", depth(2).caller("read2 recover read2").drops(2).early(0)),
        Arguments.of("both", depth(3).caller("read submit recover wait").caller("recover read2")));
  }

  /** After a recovery every slot is free, and commands from before it are known to be lost. */
  @ParameterizedTest(name = "{0}")
  @MethodSource
  void recoveries(String what, QueueConfig config) {
    Exploration e = explore(config);

    assertThat(e.wrong()).as(e.report()).isNull();
    assertThat(e.saw(Action.RECOVER)).isTrue();
  }

  static Stream<Arguments> callersThatDoNotServe() {
    return Stream.of(
        Arguments.of("one server", depth(1).caller("serve").served(2, "read read")),
        Arguments.of("two slots", depth(2).caller("serve").served(2, "read read")),
        Arguments.of("three callers", depth(2).caller("serve").served(3, "read")),
        Arguments.of("groups", depth(2).caller("serve").served("read2").served("read read")),
        Arguments.of("two servers", depth(1).callers(2, "serve").served(2, "read")),
        Arguments.of("submitters", depth(2).caller("serve").served(2, "submit wait")),
        Arguments.of("one that helps", depth(2).caller("serve").caller("read").served("read read")),
        Arguments.of(
            "one that helps and goes on",
            depth(2).caller("serve").caller("submit wait").served("read")),
        Arguments.of(
            "when positions wrap", depth(1).caller("serve").served(2, "read read").wrapping(2, 2)));
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource
  void callersThatDoNotServe(String what, QueueConfig config) {
    Exploration e = explore(config);

    assertThat(e.wrong()).as(e.report()).isNull();
    assertThat(e.saw(Action.NO_SLOT)).isFalse();
    assertThat(e.saw(Action.QUARANTINE)).isFalse();
    assertThat(e.saw(Action.LAST)).isTrue();
  }

  @Test
  void callersThatDoNotServeAmongFaults() {
    List<QueueConfig> configs =
        List.of(
            depth(2).caller("serve").served(2, "read").drops(1).duplicates(1).early(1),
            depth(1).caller("serve").served(2, "read read").early(2),
            depth(1).callers(2, "serve").served(2, "read").drops(1).early(1),
            depth(1).caller("serve").served(2, "read2").deadlines(Deadlines.ANY),
            depth(2).caller("serve").served("read").caller("read").duplicates(1).early(1),
            depth(2).caller("serve recover serve").served("submit recover wait").served("read"),
            depth(1).callers(2, "serve recover serve").served("submit recover wait"),
            depth(2).callers(2, "serve recover serve").served(2, "submit recover wait"),
            depth(2)
                .caller("serve recover serve")
                .served("submit recover wait")
                .caller("read recover read"),
            depth(1)
                .caller("serve recover serve")
                .served(2, "read recover read")
                .drops(1)
                .early(0));
    for (QueueConfig config : configs) {
      Exploration e = explore(config);

      assertThat(e.wrong()).as(e.report()).isNull();
    }
  }

  /** A command that one caller submits and another waits for, whether they serve or not. */
  @Test
  void commandsAreAdopted() {
    List<QueueConfig> configs =
        List.of(
            depth(1).caller("submit").caller("adopt read"),
            depth(2).caller("submit submit").caller("adopt").caller("adopt read"),
            depth(2).caller("submit2 read").caller("adopt read"),
            depth(2).caller("submit").caller("read adopt").early(1).drops(1),
            depth(2).caller("submit").caller("adopt read").duplicates(1).early(1),
            depth(2).caller("submit recover").caller("recover adopt read"),
            depth(1).served("submit read").served("adopt").caller("serve"));
    for (QueueConfig config : configs) {
      Exploration e = explore(config);

      assertThat(e.wrong()).as(e.report()).isNull();
      assertThat(e.saw(Action.ADOPT)).isTrue();
    }
  }

  static Stream<Arguments> recoveriesWhileCallersAreAtWork() {
    return Stream.of(
        Arguments.of("one caller", depth(1).caller("read read").live(1)),
        Arguments.of("two recoveries", depth(1).caller("read read").live(2)),
        Arguments.of("two callers", depth(2).callers(2, "read").live(1)),
        Arguments.of("fewer slots", depth(1).callers(2, "read read").live(1)),
        Arguments.of("three callers", depth(1).callers(3, "read").live(1)),
        Arguments.of("groups", depth(2).caller("read2 read").caller("read").live(1)),
        Arguments.of("submitters", depth(2).callers(2, "submit wait").live(1)),
        Arguments.of("those who go", depth(2).caller("submit").caller("adopt read").live(1)),
        Arguments.of("servers", depth(1).caller("serve").served(2, "read").live(1)),
        Arguments.of("both", depth(2).caller("serve").served("read").caller("read").live(1)),
        Arguments.of("fine steps", new QueueConfig(1).callers(2, "read").live(1)),
        Arguments.of("two slots in fine steps", new QueueConfig(2).callers(2, "read").live(1)));
  }

  /** Nobody depends on a deadline: what is in flight is ended by the recovery. */
  @ParameterizedTest(name = "{0}")
  @MethodSource
  void recoveriesWhileCallersAreAtWork(String what, QueueConfig config) {
    for (int before : new int[] {0, 1, config.sqSize}) {
      Exploration e = explore(config.wrapping(2, before));

      assertThat(e.wrong()).as(e.report()).isNull();
      for (Action each : List.of(Action.MAKE_ANEW, Action.KEEP, Action.ABORT, Action.REFUSED)) {
        assertThat(e.saw(each)).as("%s", each).isTrue();
      }
      assertThat(e.saw(Action.QUARANTINE)).isFalse();
    }
  }

  /** Lost and late commands, whose slots come back; and when the kernel ends during the pause. */
  @Test
  void recoveriesAmongFaultsWhileCallersAreAtWork() {
    List<QueueConfig> configs =
        List.of(
            depth(1).callers(2, "read read").drops(1).early(0).live(1),
            depth(2).callers(2, "read").drops(1).duplicates(1).early(1).live(1),
            depth(1).caller("read read read").drops(1).early(1).live(2),
            depth(1).callers(2, "read").deadlines(Deadlines.ANY).live(1),
            depth(2).callers(2, "submit wait").deadlines(Deadlines.ANY).live(1),
            depth(1).caller("serve").served("read read").drops(1).early(1).live(1),
            depth(2).caller("submit recover wait").caller("read recover read").live(1),
            depth(1).caller("read recover read").live(1).deadlines(Deadlines.ANY));
    boolean back = false;
    for (QueueConfig config : configs) {
      Exploration e = explore(config);

      assertThat(e.wrong()).as(e.report()).isNull();
      back |= e.saw(Action.BACK);
    }
    assertThat(back).isTrue();
  }

  // ---- what the protocol does not promise

  /** A holder that leaves PENDING behind: then nobody rings until the next call. */
  @Test
  void submittersThatGoAwayWouldLeaveACommandUnannounced() {
    QueueConfig config = depth(2).callers(2, "submit recover wait").rounds(1);
    assertThat(explore(config).wrong()).as("as the code is").isNull();

    Exploration e = explore(config.leaving(Leaving.WITH_PENDING));
    assertThat(e.wrong()).contains("nobody rings");
    assertThat(e.trace().getLast()).contains("leaves with PENDING set");
  }

  /** With one slot less than that, each holds one too few. */
  @Test
  void submittersNeedASlotForEachOfThemAndOneForAll() {
    assertThat(explore(depth(2).callers(2, "submit submit wait wait")).wrong()).contains("stuck");
    assertThat(explore(depth(3).callers(2, "submit submit wait wait")).wrong()).isNull();
    assertThat(explore(depth(2).callers(2, "submit2 wait")).wrong()).contains("stuck");
    assertThat(explore(depth(1).callers(2, "submit submit wait wait").deadlines(Deadlines.ANY)))
        .satisfies(e -> assertThat(e.wrong()).as(e.report()).isNull())
        .satisfies(e -> assertThat(e.saw(Action.NO_SLOT)).isTrue());
  }

  /** A double that comes when its slot has been used that often again is taken for the original. */
  @Test
  void generationsTellDoublesForAsLongAsTheyDoNotRepeat() {
    QueueConfig twice = depth(1).caller("read read read").duplicates(1);

    assertThat(explore(twice.generations(3)).wrong()).isNull();
    assertThat(explore(twice.generations(2)).wrong()).contains("goes to another");
  }

  @Test
  void ringsAreAsLongAsTheyMustBe() {
    assertThat(explore(depth(2).callers(2, "read read").sqSize(2)).wrong()).isNotNull();
    // A mark must tell two laps apart.
    assertThat(explore(depth(1).caller("read read").wrapping(1, 1)).wrong())
        .contains("without a ticket");
    assertThat(explore(depth(2).callers(2, "read read").cqSize(2)).wrong())
        .contains("the completion queue is full");
  }

  // ---- the model itself

  @Test
  void everythingHappens() {
    List<QueueConfig> configs =
        List.of(
            new QueueConfig(1).callers(2, "submit wait").drops(1).duplicates(1).early(1),
            new QueueConfig(1).caller("submit recover wait").caller("recover read"),
            new QueueConfig(1).served("submit").caller("adopt").caller("serve"),
            new QueueConfig(1).callers(2, "submit wait").drops(1).early(1).live(1),
            new QueueConfig(2).callers(2, "submit wait").rounds(1).leaving(Leaving.WITH_PENDING));
    Set<Action> missing = EnumSet.allOf(Action.class);
    for (QueueConfig config : configs) {
      Exploration e = explore(config);
      missing.removeIf(e::saw);
    }
    // What only happens without a rule.
    assertThat(missing).containsExactlyInAnyOrder(Action.CLEAR, Action.EXIT);
  }

  /** Fewer steps, the same ends. */
  @Test
  void coarseStepsLoseNothing() {
    for (String program : List.of("read", "read read", "submit wait", "read2")) {
      for (int depth = 1; depth <= 2; depth++) {
        QueueConfig config = new QueueConfig(depth).callers(2, program).drops(1).early(1);
        Exploration fine = Checker.explore(new SharedQueueModel(config), LIMIT);
        Set<List<Outcome>> ends = ends(config);
        Exploration coarse = Checker.explore(new SharedQueueModel(config.coarse()), LIMIT);

        assertThat(fine.wrong()).as(fine.report()).isNull();
        assertThat(coarse.states()).isLessThan(fine.states());
        assertThat(ends(config)).as(program).isEqualTo(ends).hasSizeGreaterThan(1);
        assertThat(coarse.seen()).isEqualTo(fine.seen());
      }
    }
  }

  private static Set<List<Outcome>> ends(QueueConfig config) {
    Set<List<Outcome>> ends = new HashSet<>();
    SharedQueueModel model =
        new SharedQueueModel(config) {
          @Override
          public boolean isOver(long[] state) {
            boolean over = super.isOver(state);
            if (over) {
              ends.add(outcomes(state));
            }
            return over;
          }
        };
    Checker.explore(model, LIMIT);
    return ends;
  }
}
