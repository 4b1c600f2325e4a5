package io.gpunvme.nvme.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.ffi.Posix;
import io.gpunvme.nvme.ControllerFatalException;
import io.gpunvme.nvme.DeviceGoneException;
import io.gpunvme.nvme.NvmeException;
import io.gpunvme.nvme.NvmeTimeoutException;
import io.gpunvme.nvme.ProtocolException;
import io.gpunvme.nvme.driver.BringUp.State;
import io.gpunvme.nvme.pci.ConfigSpace;
import io.gpunvme.nvme.spec.Aqa;
import io.gpunvme.nvme.spec.Cap;
import io.gpunvme.nvme.spec.Cc;
import io.gpunvme.nvme.spec.Csts;
import io.gpunvme.nvme.spec.Registers;
import io.gpunvme.nvme.spec.Vs;
import java.util.ArrayList;
import java.util.List;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Bring-up against a function whose registers misbehave in every way the state machine names. */
class BringUpTest {
  private static final long UNIT_MILLIS = 500;
  private static final int INTERNAL_ERROR = 6;

  private final FakeFunction function = new FakeFunction();
  private final List<BringUpStep> steps = new ArrayList<>();
  private final BringUp bringUp =
      new BringUp(function, ControllerOptions.defaults(), null, steps::add);

  @AfterEach
  void free() {
    function.close();
    if (bringUp.adminPair() != null) {
      bringUp.adminPair().close();
    }
  }

  private static Cap cap(UnaryOperator<Cap> change) {
    return change.apply(new FakeFunction().cap);
  }

  @Test
  void stepsThroughEveryStateInOrder() {
    List<State> visited = new ArrayList<>(List.of(bringUp.state()));
    while (bringUp.state() != State.READY) {
      visited.add(bringUp.step());
    }
    assertThat(visited)
        .containsExactly(
            State.PROBE,
            State.SETTLE,
            State.WAIT_DISABLED,
            State.ADMIN_QUEUES,
            State.CONFIGURE,
            State.ENABLE,
            State.WAIT_READY,
            State.READY);
    assertThat(steps).hasSize(visited.size() - 1);
    assertThat(steps.getFirst().toString()).startsWith("PROBE").contains("NVMe 1.4.0");
    assertThat(steps.getLast().csts()).isEqualTo(Csts.RDY.mask());
  }

  @Test
  void writesConfigurationFirstAndEnablesLast() {
    bringUp.run();
    Cc last = function.ccWrites.getLast();
    assertThat(last.get(Cc.IOSQES)).isEqualTo(6);
    assertThat(last.get(Cc.IOCQES)).isEqualTo(4);
    assertThat(4096 << last.get(Cc.MPS)).isEqualTo(bringUp.pageSize());
    assertThat(last.get(Cc.CSS)).isEqualTo(Cc.CSS_NVM);
    assertThat(last.isSet(Cc.EN)).isTrue();
    assertThat(function.ccWrites.get(function.ccWrites.size() - 2))
        .isEqualTo(last.with(Cc.EN, false));
  }

  @Test
  void putsAdminQueuesIntoRegistersAndAllowsDma() {
    bringUp.run();
    QueuePair pair = bringUp.adminPair();
    assertThat(new Aqa(function.register(Registers.AQA))).isEqualTo(Aqa.of(31, 31));
    assertThat(function.register(Registers.ASQ)).isEqualTo((int) pair.sqBusAddress());
    assertThat(function.register(Registers.ASQ + 4)).isEqualTo((int) (pair.sqBusAddress() >>> 32));
    assertThat(function.register(Registers.ACQ)).isEqualTo((int) pair.cqBusAddress());
    assertThat(function.config().read(ConfigSpace.COMMAND, 2))
        .isEqualTo(
            ConfigSpace.COMMAND_MEMORY
                | ConfigSpace.COMMAND_BUS_MASTER
                | ConfigSpace.COMMAND_INTX_DISABLE);
  }

  @Test
  void adminQueuesAreNotLimitedByMqes() {
    function.cap = cap(b -> b.with(Cap.MQES, 1));
    bringUp.run();
    assertThat(new Aqa(function.register(Registers.AQA))).isEqualTo(Aqa.of(31, 31));
  }

  @Test
  void memoryPagesAreTheHostsWithinWhatTheControllerHas() {
    assertThat(BringUp.pageSize(cap(b -> b.with(Cap.MPSMAX, 4)), 4096)).isEqualTo(4096);
    assertThat(BringUp.pageSize(cap(b -> b.with(Cap.MPSMAX, 4)), 65536)).isEqualTo(65536);
    assertThat(BringUp.pageSize(cap(b -> b.with(Cap.MPSMAX, 2)), 65536)).isEqualTo(16384);
    assertThat(BringUp.pageSize(cap(b -> b.with(Cap.MPSMAX, 0)), 65536)).isEqualTo(4096);
    assertThat(BringUp.pageSize(cap(b -> b.with(Cap.MPSMAX, 15)), 65536)).isEqualTo(65536);
  }

  @Test
  void memoryPageSizeOfThisHost() {
    function.cap = cap(b -> b.with(Cap.MPSMAX, 15));
    bringUp.run();
    assertThat(bringUp.pageSize()).isEqualTo(Posix.pageSize());
    assertThat(4096 << function.ccWrites.getLast().get(Cc.MPS)).isEqualTo(Posix.pageSize());
  }

  @Test
  void disablesARunningController() {
    function
        .bar(0)
        .write32(Registers.CC, new Cc(0).with(Cc.EN, true).with(Cc.SHN, Cc.SHN_NORMAL).value());
    function.ccWrites.clear();
    bringUp.run();
    assertThat(function.ccWrites.getFirst()).isEqualTo(new Cc(0));
    assertThat(FakeFunction.states(steps)).contains("DISABLE");
  }

  @Test
  void waitsForAnEnableInProgressBeforeDisabling() {
    function.bar(0).write32(Registers.CC, 1);
    function.ccWrites.clear();
    function.status = (normal, reads) -> reads < 20 ? 0 : normal;
    bringUp.runTo(State.DISABLE);
    assertThat(function.ccWrites).isEmpty();
    assertThat(steps.getLast().note()).isEqualTo("EN and RDY agree");
    function.status = (normal, reads) -> normal;
    bringUp.run();
  }

  @Test
  void disablesAnywayWhenAnEnableNeverEnds() {
    function.bar(0).write32(Registers.CC, 1);
    function.status = (normal, reads) -> normal & ~Csts.RDY.mask();
    bringUp.runTo(State.DISABLE);
    assertThat(steps.getLast().note()).contains("never agreed");
    assertThat(steps.getLast().nanos()).isGreaterThanOrEqualTo(UNIT_MILLIS * 1_000_000);
  }

  @Test
  void selectsAllCommandSetsWhereIdentifiersExist() {
    function.cap = cap(b -> b.with(Cap.CSS, Cap.CSS_NVM | Cap.CSS_IO_COMMAND_SETS));
    bringUp.run();
    assertThat(function.ccWrites.getLast().get(Cc.CSS)).isEqualTo(Cc.CSS_ALL);
  }

  @Test
  void selectsAdminOnlyWhereThereIsNothingElse() {
    function.cap = cap(b -> b.with(Cap.CSS, Cap.CSS_ADMIN_ONLY));
    bringUp.run();
    assertThat(function.ccWrites.getLast().get(Cc.CSS)).isEqualTo(Cc.CSS_ADMIN_ONLY);
  }

  @Test
  void readyNeverClearing() {
    function.status = (normal, reads) -> Csts.RDY.mask();
    function.bar(0).write32(Registers.CC, 1);
    assertThatThrownBy(bringUp::run)
        .isInstanceOf(NvmeTimeoutException.class)
        .hasMessageContainingAll(
            "WAIT_DISABLED", "CSTS.RDY is still 1", "CC 00000000h", "CSTS 00000001h", "ms");
    assertThat(bringUp.state()).isEqualTo(State.WAIT_DISABLED);
  }

  @Test
  void readyNeverClearingWithFatalStatus() {
    function.status = (normal, reads) -> Csts.RDY.mask() | Csts.CFS.mask();
    function.bar(0).write32(Registers.CC, 1);
    assertThatThrownBy(bringUp::run)
        .isInstanceOf(ControllerFatalException.class)
        .hasMessageContaining("WAIT_DISABLED");
  }

  @Test
  void readyNeverSetting() {
    function.status = (normal, reads) -> 0;
    long start = System.nanoTime();
    assertThatThrownBy(bringUp::run)
        .isInstanceOf(NvmeTimeoutException.class)
        .hasMessageContainingAll("WAIT_READY", "CSTS.RDY is still 0", "CC 00460001h");
    assertThat((System.nanoTime() - start) / 1_000_000).isBetween(UNIT_MILLIS, 4 * UNIT_MILLIS);
  }

  @Test
  void waitsAsLongAsCrtoSays() {
    function.cap = cap(b -> b.with(Cap.CRMS, Cap.CRMS_WITH_MEDIA));
    function.crto = 3;
    function.status = (normal, reads) -> 0;
    long start = System.nanoTime();
    assertThatThrownBy(bringUp::run).isInstanceOf(NvmeTimeoutException.class);
    assertThat((System.nanoTime() - start) / 1_000_000).isGreaterThanOrEqualTo(3 * UNIT_MILLIS);
    assertThat(function.ccWrites.getLast().isSet(Cc.CRIME)).isFalse();
  }

  @Test
  void independentOfMediaOnlyWhereThereIsNoOtherMode() {
    function.cap = cap(b -> b.with(Cap.CRMS, Cap.CRMS_INDEPENDENT_OF_MEDIA));
    function.crto = 1 << 16;
    bringUp.run();
    assertThat(function.ccWrites.getLast().isSet(Cc.CRIME)).isTrue();
  }

  @Test
  void fatalStatusEndsTheWaitAtOnce() {
    function.cap = cap(b -> b.with(Cap.TO, 60));
    function.status = (normal, reads) -> reads > 3 ? Csts.CFS.mask() : 0;
    long start = System.nanoTime();
    assertThatThrownBy(bringUp::run)
        .isInstanceOf(ControllerFatalException.class)
        .hasMessageContainingAll("WAIT_READY", "CSTS 00000002h");
    assertThat((System.nanoTime() - start) / 1_000_000).isLessThan(5_000);
  }

  static Stream<Arguments> whenGone() {
    return Stream.of(State.SETTLE, State.WAIT_DISABLED, State.CONFIGURE, State.WAIT_READY)
        .map(Arguments::of);
  }

  @ParameterizedTest
  @MethodSource("whenGone")
  void goneInAnyState(State state) {
    function.bar(0).write32(Registers.CC, 1);
    bringUp.runTo(state);
    function.status = (normal, reads) -> -1;
    assertThatThrownBy(bringUp::run)
        .isInstanceOf(DeviceGoneException.class)
        .hasMessageContaining("failed in " + state);
  }

  @Test
  void goneFromTheStart() {
    function.cap = new Cap(-1);
    function.status = (normal, reads) -> -1;
    assertThatThrownBy(bringUp::run)
        .isInstanceOf(DeviceGoneException.class)
        .hasMessageContaining("PROBE");
  }

  /** A bus without a device behind it that reads as zeros. */
  @Test
  void nothingButZeros() {
    function.cap = new Cap(0);
    function.version = new Vs(0);
    function.status = (normal, reads) -> 0;
    assertThatThrownBy(bringUp::run)
        .isInstanceOf(DeviceGoneException.class)
        .hasMessageContainingAll("PROBE", "zeros");
  }

  @Test
  void configurationThatDoesNotStick() {
    function.ccReadMask = ~(0xF << 16);
    assertThatThrownBy(bringUp::run)
        .isInstanceOf(ProtocolException.class)
        .hasMessageContainingAll("CONFIGURE", "CC reads");
  }

  static Stream<Arguments> impossibleCaps() {
    return Stream.of(
        Arguments.of("MQES", cap(b -> b.with(Cap.MQES, 0))),
        Arguments.of("MPSMIN", cap(b -> b.with(Cap.MPSMIN, 5).with(Cap.MPSMAX, 4))),
        Arguments.of("host's pages", cap(b -> b.with(Cap.MPSMIN, 5).with(Cap.MPSMAX, 5))),
        Arguments.of("CSS", cap(b -> b.with(Cap.CSS, 0))),
        Arguments.of("DSTRD", cap(b -> b.with(Cap.DSTRD, 15))));
  }

  @ParameterizedTest
  @MethodSource("impossibleCaps")
  void impossibleCapabilities(String named, Cap cap) {
    function.cap = cap;
    assertThatThrownBy(bringUp::run)
        .isInstanceOf(ProtocolException.class)
        .hasMessageContainingAll("PROBE", named, "CAP ");
  }

  @Test
  void failedOpenGivesEverythingBack() {
    FakeFunction broken = new FakeFunction();
    broken.status = (normal, reads) -> 0;
    assertThatThrownBy(() -> NvmeController.open(broken, ControllerOptions.defaults()))
        .isInstanceOf(NvmeException.class);
    assertThat(broken.closed).isTrue();
    assertThat(broken.busMaster()).isFalse();
    assertThat(broken.mappedRanges()).isZero();
    assertThat(broken.ccWrites.getLast().isSet(Cc.EN)).isFalse();
  }

  /** The controller may still write there. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void failedOpenKeepsTheMemoryIfDmaCouldNotBeStopped(boolean answers) {
    FakeFunction broken = new FakeFunction();
    if (answers) {
      broken.admin().first = (_, _) -> INTERNAL_ERROR;
    } else {
      broken.status = (normal, reads) -> 0;
    }
    Error cause = new OutOfMemoryError("made up");
    broken.onStopDma =
        () -> {
          throw cause;
        };
    assertThatThrownBy(() -> NvmeController.open(broken, ControllerOptions.defaults()))
        .isInstanceOf(NvmeException.class)
        .satisfies(e -> assertThat(e.getSuppressed()).contains(cause));
    assertThat(broken.mappedRanges()).isPositive();
  }
}
