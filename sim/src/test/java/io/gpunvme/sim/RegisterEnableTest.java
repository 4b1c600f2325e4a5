package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.nvme.spec.Aqa;
import io.gpunvme.nvme.spec.Cap;
import io.gpunvme.nvme.spec.Cc;
import io.gpunvme.nvme.spec.Csts;
import io.gpunvme.nvme.spec.Registers;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** CC.EN, CC.SHN and resets: what CSTS says and when. */
class RegisterEnableTest {
  private static final int OP_KEEP_ALIVE_LIKE = 0x7F;

  private final RawClock clock = new RawClock();

  private static SimConfigBuilder config() {
    return SimConfig.builder().workers(0).latencyNanos(0);
  }

  private RawHost attach(SimConfigBuilder config) {
    return RawHost.attach(SimulatedController.create(config.build(), clock));
  }

  private static void writeCc(RawHost host, Cc cc) {
    host.bar.write32(Registers.CC, cc.value());
  }

  private static boolean answers(RawHost host) {
    host.admin.push(RawHost.sqe(OP_KEEP_ALIVE_LIKE, 0, 0, 0, 0, 0, 0));
    host.admin.ring();
    host.controller.poll();
    return host.admin.poll() != null;
  }

  @Test
  void readyComesAndGoesWithTheConfiguredDelay() {
    try (RawHost host = attach(config().readyNanos(1_000_000))) {
      host.writeAdminQueues();
      writeCc(host, RawHost.cc().with(Cc.EN, true));
      clock.advance(999_999);
      assertThat(host.csts().value()).isZero();
      assertThat(answers(host)).as("works before it is ready").isFalse();
      clock.advance(1);
      assertThat(host.csts().value()).isEqualTo(Csts.RDY.mask());
      host.controller.poll();
      assertThat(host.admin.poll()).isNotNull();
      writeCc(host, RawHost.cc());
      clock.advance(999_999);
      assertThat(host.csts().value()).isEqualTo(Csts.RDY.mask());
      clock.advance(1);
      assertThat(host.csts().value()).isZero();
    }
  }

  static Stream<Arguments> brokenSetUps() {
    UnaryOperator<Cc> same = c -> c;
    return Stream.of(
        Arguments.of("admin SQ of one entry", 0x000F_0000, 0x1000L, 0x2000L, same),
        Arguments.of("admin CQ of one entry", 0x0000_000F, 0x1000L, 0x2000L, same),
        Arguments.of("no ASQ", 0x000F_000F, 0L, 0x2000L, same),
        Arguments.of("no ACQ", 0x000F_000F, 0x1000L, 0L, same),
        Arguments.of("MPS too large", 0x000F_000F, 0x10000L, 0x20000L, mps(3)),
        Arguments.of("ASQ not aligned", 0x000F_000F, 0x1000L, 0x4000L, mps(2)),
        Arguments.of("ACQ not aligned", 0x000F_000F, 0x4000L, 0x1000L, mps(2)),
        Arguments.of("CSS", 0x000F_000F, 0x1000L, 0x2000L, css(1)),
        Arguments.of("CSS all", 0x000F_000F, 0x1000L, 0x2000L, css(Cc.CSS_ALL)),
        Arguments.of(
            "AMS", 0x000F_000F, 0x1000L, 0x2000L, (UnaryOperator<Cc>) c -> c.with(Cc.AMS, 1)));
  }

  private static UnaryOperator<Cc> mps(int mps) {
    return c -> c.with(Cc.MPS, mps);
  }

  private static UnaryOperator<Cc> css(int css) {
    return c -> c.with(Cc.CSS, css);
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("brokenSetUps")
  void refusesToStart(String what, int aqa, long asq, long acq, UnaryOperator<Cc> change) {
    try (RawHost host = attach(config().mpsMax(2))) {
      host.bar.write32(Registers.AQA, aqa);
      host.bar.write64(Registers.ASQ, asq);
      host.bar.write64(Registers.ACQ, acq);
      writeCc(host, change.apply(RawHost.cc().with(Cc.EN, true)));
      clock.advance(10_000_000_000L);
      assertThat(host.csts().value()).as(what).isEqualTo(Csts.CFS.mask());
      assertThat(host.controller.fatalReason()).isNotEmpty();
      writeCc(host, RawHost.cc());
      assertThat(host.csts().value()).isZero();
      assertThat(host.controller.fatalReason()).isNull();
      host.enable();
      assertThat(answers(host)).isTrue();
    }
  }

  @Test
  void largerPagesAreFineWithinCap() {
    try (RawHost host = attach(config().mpsMax(2))) {
      host.writeAdminQueues();
      // DMA regions start at multiples of 4096 only, so look for one that suits 8 KiB pages.
      while ((host.admin.sq.busAddress(0) | host.admin.cq.busAddress(0)) % 8192 != 0) {
        host.admin = host.queueMemory(0, RawHost.ADMIN_SIZE, RawHost.ADMIN_SIZE);
      }
      host.writeAdminQueues();
      writeCc(host, RawHost.cc().with(Cc.MPS, 1).with(Cc.EN, true));
      assertThat(host.csts().value()).isEqualTo(Csts.RDY.mask());
      assertThat(answers(host)).isTrue();
    }
  }

  @Test
  void enablingBeforeNotReadyIsFatal() {
    try (RawHost host = attach(config().readyNanos(1000))) {
      host.writeAdminQueues();
      writeCc(host, RawHost.cc().with(Cc.EN, true));
      clock.advance(1000);
      writeCc(host, RawHost.cc());
      writeCc(host, RawHost.cc().with(Cc.EN, true));
      clock.advance(1_000_000);
      assertThat(host.csts().isSet(Csts.CFS)).isTrue();
      assertThat(host.csts().isSet(Csts.RDY)).isFalse();
    }
  }

  @Test
  void resetKeepsTheAdminQueueRegistersAndForgetsTheRest() {
    try (RawHost host = attach(config())) {
      host.enable();
      host.createQueue(1, 4, 4);
      host.bar.write32(Registers.INTMS, 1);
      writeCc(host, RawHost.cc());
      assertThat(host.csts().value()).isZero();
      assertThat(host.bar.read32(Registers.AQA)).isEqualTo(Aqa.of(15, 15).value());
      assertThat(host.bar.read64(Registers.ASQ)).isEqualTo(host.admin.sq.busAddress(0));
      assertThat(host.bar.read64(Registers.ACQ)).isEqualTo(host.admin.cq.busAddress(0));
      assertThat(host.bar.read32(Registers.INTMS)).isZero();
      host.resetAdmin();
      writeCc(host, RawHost.cc().with(Cc.EN, true));
      host.createQueue(1, 4, 4);
    }
  }

  @Test
  void shutdownTakesItsTimeAndEndsInReset() {
    try (RawHost host = attach(config().shutdownNanos(5000))) {
      host.enable();
      writeCc(host, RawHost.cc().with(Cc.EN, true).with(Cc.SHN, Cc.SHN_NORMAL));
      assertThat(host.csts().get(Csts.SHST)).isEqualTo(Csts.SHST_OCCURRING);
      clock.advance(4999);
      assertThat(host.csts().get(Csts.SHST)).isEqualTo(Csts.SHST_OCCURRING);
      clock.advance(1);
      assertThat(host.csts().get(Csts.SHST)).isEqualTo(Csts.SHST_COMPLETE);
      assertThat(host.csts().isSet(Csts.RDY)).isTrue();
      assertThat(answers(host)).as("works after shutdown").isFalse();
      writeCc(host, RawHost.cc().with(Cc.EN, true));
      assertThat(answers(host)).as("clearing SHN is not a start").isFalse();
      host.disable();
      assertThat(host.csts().value()).isZero();
      host.enable();
      assertThat(answers(host)).isTrue();
    }
  }

  @Test
  void writingCcAgainChangesNothing() {
    try (RawHost host = attach(config())) {
      host.enable();
      RawQueue q = host.createQueue(1, 4, 4);
      writeCc(host, RawHost.cc().with(Cc.EN, true).with(Cc.IOSQES, 7));
      assertThat(new Cc(host.bar.read32(Registers.CC)).get(Cc.IOSQES)).isEqualTo(7);
      assertThat(host.execute(q, RawHost.sqe(OP_KEEP_ALIVE_LIKE, 1, 0, 0, 0, 0, 0)).cid())
          .isEqualTo(1);
    }
  }

  @Test
  void subsystemResetNeedsTheMagicWord() {
    try (RawHost host = attach(config())) {
      host.enable();
      host.bar.write32(Registers.NSSR, Registers.NSSR_MAGIC + 1);
      assertThat(host.csts().value()).isEqualTo(Csts.RDY.mask());
      host.bar.write32(Registers.NSSR, Registers.NSSR_MAGIC);
      assertThat(host.csts().value()).isEqualTo(Csts.NSSRO.mask());
      assertThat(host.bar.read32(Registers.CC)).isZero();
      assertThat(host.bar.read32(Registers.AQA)).isZero();
      host.bar.write32(Registers.CSTS, Csts.RDY.mask() | Csts.CFS.mask());
      assertThat(host.csts().isSet(Csts.NSSRO)).isTrue();
      host.bar.write32(Registers.CSTS, Csts.NSSRO.mask());
      assertThat(host.csts().value()).isZero();
      host.resetAdmin();
      host.enable();
      assertThat(answers(host)).isTrue();
    }
  }

  @Test
  void subsystemResetMayBeAbsent() {
    try (RawHost host = attach(config().subsystemReset(false))) {
      host.enable();
      assertThat(host.cap.isSet(Cap.NSSRS)).isFalse();
      host.bar.write32(Registers.NSSR, Registers.NSSR_MAGIC);
      assertThat(host.csts().value()).isEqualTo(Csts.RDY.mask());
    }
  }

  @Test
  void functionLevelResetIsPowerOn() {
    try (RawHost host = attach(config())) {
      host.enable();
      host.bar.write32(Registers.INTMS, 1);
      host.controller.reset();
      assertThat(host.csts().value()).isZero();
      assertThat(host.bar.read32(Registers.CC)).isZero();
      assertThat(host.bar.read64(Registers.ASQ)).isZero();
      assertThat(host.bar.read32(Registers.INTMS)).isZero();
      host.busMaster(true);
      host.resetAdmin();
      host.enable();
      assertThat(answers(host)).isTrue();
    }
  }

  @Test
  void readyCanBeStuck() {
    FaultRule enable =
        FaultRule.of(FaultRule.Action.READY_STUCK).on(FaultRule.Trigger.ENABLE).nth(1).build();
    FaultRule disable =
        FaultRule.of(FaultRule.Action.READY_STUCK).on(FaultRule.Trigger.DISABLE).nth(2).build();
    try (RawHost host = attach(config().fault(enable).fault(disable))) {
      host.writeAdminQueues();
      writeCc(host, RawHost.cc().with(Cc.EN, true));
      clock.advance(100_000_000_000L);
      assertThat(host.csts().value()).isZero();
      assertThat(answers(host)).isFalse();
      host.disable();
      host.enable();
      writeCc(host, RawHost.cc());
      clock.advance(100_000_000_000L);
      assertThat(host.csts().value()).isEqualTo(Csts.RDY.mask());
      host.controller.reset();
      assertThat(host.csts().value()).isZero();
    }
  }

  @Test
  void registerReadsCanMakeTheDeviceVanish() {
    FaultRule gone =
        FaultRule.of(FaultRule.Action.GONE)
            .on(FaultRule.Trigger.REGISTER)
            .after(5)
            .count(1)
            .build();
    try (RawHost host = attach(config())) {
      host.enable();
      host.controller.faults().add(gone);
      for (int i = 0; i < 5; i++) {
        assertThat(host.csts().value()).isEqualTo(Csts.RDY.mask());
      }
      assertThat(host.csts().gone()).isTrue();
      assertThat(host.csts().gone()).isTrue();
      assertThat(host.controller.config().read(0, 4)).isEqualTo(-1);
      assertThat(answers(host)).isFalse();
      host.controller.reset();
      host.busMaster(true);
      host.resetAdmin();
      host.enable();
      assertThat(answers(host)).isTrue();
    }
  }

  @Test
  void shutdownCanFail() {
    FaultRule cfs = FaultRule.of(FaultRule.Action.CFS).on(FaultRule.Trigger.SHUTDOWN).build();
    try (RawHost host = attach(config().fault(cfs))) {
      host.enable();
      writeCc(host, RawHost.cc().with(Cc.EN, true).with(Cc.SHN, Cc.SHN_ABRUPT));
      assertThat(host.csts().isSet(Csts.CFS)).isTrue();
    }
  }
}
