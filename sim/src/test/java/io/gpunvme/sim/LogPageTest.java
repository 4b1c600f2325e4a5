package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.nvme.spec.AdminOpcode;
import io.gpunvme.nvme.spec.AsyncEvent;
import io.gpunvme.nvme.spec.ChangedNamespaceList;
import io.gpunvme.nvme.spec.CommandsEffectsLog;
import io.gpunvme.nvme.spec.ErrorLogEntry;
import io.gpunvme.nvme.spec.FeatureEffectsLog;
import io.gpunvme.nvme.spec.FeatureId;
import io.gpunvme.nvme.spec.FirmwareSlotLog;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.LogId;
import io.gpunvme.nvme.spec.SmartLog;
import io.gpunvme.nvme.spec.Sqe;
import io.gpunvme.nvme.spec.Status;
import io.gpunvme.nvme.spec.StatusCode;
import io.gpunvme.nvme.spec.SupportedLogPages;
import io.gpunvme.nvme.spec.Vs;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;

/** What the log pages say, and the events that point to them. */
class LogPageTest {
  private static final int RAE = 1 << 15;

  private static MemorySegment read(CommandLab lab, int id, int bytes) {
    lab.memory().fill((byte) 0xEE);
    lab.host.adminOk(lab.getLog(id, bytes));
    return lab.memory();
  }

  private static SmartLog smart(CommandLab lab) {
    return new SmartLog(read(lab, LogId.SMART, 512));
  }

  private static MemorySegment failing(long slba) {
    return RawHost.io(IoOpcode.READ, 1, slba, 1, CommandLab.NOWHERE, 0);
  }

  @Test
  void theLatestErrorComesFirst() {
    try (CommandLab lab = new CommandLab(b -> b.elpe(2))) {
      for (int i = 0; i < 5; i++) {
        int status = lab.run(false, failing(100 + i)).status();
        assertThat(status).isEqualTo(StatusCode.DATA_TRANSFER_ERROR.status() | Status.MORE);
      }
      MemorySegment page = read(lab, LogId.ERROR, 4 * 64);
      for (int i = 0; i < 3; i++) {
        ErrorLogEntry entry = ErrorLogEntry.at(page, i);
        assertThat(entry.getLong(ErrorLogEntry.ERROR_COUNT)).isEqualTo(5 - i);
        assertThat(entry.getInt(ErrorLogEntry.SQID)).isEqualTo(1);
        assertThat(entry.getInt(ErrorLogEntry.CID)).isEqualTo(5 - i);
        assertThat(entry.status()).isEqualTo(StatusCode.DATA_TRANSFER_ERROR.status());
        assertThat(entry.getLong(ErrorLogEntry.LBA)).isEqualTo(104 - i);
        assertThat(entry.getInt(ErrorLogEntry.NSID)).isEqualTo(1);
        assertThat(entry.getInt(ErrorLogEntry.PARAMETER_ERROR_LOCATION)).isEqualTo(0xFFFF);
      }
      assertThat(page.get(ValueLayout.JAVA_LONG, 3 * 64)).as("beyond the page: zeros").isZero();
      assertThat(smart(lab).getLong(SmartLog.ERROR_LOG_ENTRIES)).isEqualTo(5);
    }
  }

  @Test
  void theErrorLogSurvivesAReset() {
    try (CommandLab lab = new CommandLab()) {
      lab.run(false, failing(7));
      lab.host.disable();
      lab.host.enable();
      assertThat(ErrorLogEntry.at(read(lab, LogId.ERROR, 64), 0).getLong(ErrorLogEntry.ERROR_COUNT))
          .isEqualTo(1);
    }
  }

  @Test
  void smartCountsUnitsOfThousandBlocksRoundedUp() {
    try (CommandLab lab = new CommandLab()) {
      SmartLog before = smart(lab);
      assertThat(before.getLong(SmartLog.DATA_UNITS_READ)).isZero();
      assertThat(before.getInt(SmartLog.COMPOSITE_TEMPERATURE)).isEqualTo(300);
      assertThat(before.getInt(SmartLog.AVAILABLE_SPARE)).isEqualTo(100);
      assertThat(before.getInt(SmartLog.AVAILABLE_SPARE_THRESHOLD)).isEqualTo(10);
      assertThat(before.getLong(SmartLog.POWER_CYCLES)).isEqualTo(1);
      assertThat(before.getInt(SmartLog.CRITICAL_WARNING)).isZero();

      MemorySegment write = RawHost.io(IoOpcode.WRITE, 1, 0, 8, lab.bus(), 0);
      lab.ioOk(write);
      assertThat(smart(lab).getLong(SmartLog.DATA_UNITS_WRITTEN)).isEqualTo(1);
      for (int i = 0; i < 124; i++) {
        lab.ioOk(write);
      }
      assertThat(smart(lab).getLong(SmartLog.DATA_UNITS_WRITTEN))
          .as("exactly 1000 blocks")
          .isEqualTo(1);
      lab.ioOk(write);
      lab.ioOk(RawHost.io(IoOpcode.READ, 1, 0, 1, lab.bus(), 0));
      lab.memory().fill((byte) 0xEE);
      SmartLog after = smart(lab);
      assertThat(after.getLong(SmartLog.DATA_UNITS_WRITTEN)).isEqualTo(2);
      assertThat(after.getLong(SmartLog.HOST_WRITE_COMMANDS)).isEqualTo(126);
      assertThat(after.getLong(SmartLog.DATA_UNITS_READ)).isEqualTo(1);
      assertThat(after.getLong(SmartLog.HOST_READ_COMMANDS)).isEqualTo(1);
    }
  }

  @Test
  void smartCountsMediaErrors() {
    try (CommandLab lab = new CommandLab()) {
      lab.ioOk(RawHost.io(IoOpcode.WRITE_UNCORRECTABLE, 1, 3, 1, 0, 0));
      lab.run(false, RawHost.io(IoOpcode.READ, 1, 0, 8, lab.bus(), 0));
      lab.run(false, failing(0));
      lab.memory().set(ValueLayout.JAVA_BYTE, 0, (byte) 1);
      lab.run(false, RawHost.io(IoOpcode.COMPARE, 1, 100, 1, lab.bus(), 0));
      SmartLog log = smart(lab);
      assertThat(log.getLong(SmartLog.MEDIA_ERRORS)).isEqualTo(1);
      assertThat(log.getLong(SmartLog.ERROR_LOG_ENTRIES)).isEqualTo(3);
    }
  }

  @Test
  void theFirmwareIsInSlot1() {
    try (CommandLab lab = new CommandLab(b -> b.firmware("7.1"))) {
      FirmwareSlotLog log = new FirmwareSlotLog(read(lab, LogId.FIRMWARE_SLOT, 512));
      assertThat(log.getInt(FirmwareSlotLog.AFI)).isEqualTo(1);
      assertThat(log.getText(FirmwareSlotLog.FRS.get(0))).isEqualTo("7.1");
      assertThat(log.getText(FirmwareSlotLog.FRS.get(1))).isEmpty();
    }
  }

  @Test
  void effectsListExactlyWhatIsImplemented() {
    try (CommandLab lab = new CommandLab()) {
      CommandsEffectsLog log = new CommandsEffectsLog(read(lab, LogId.COMMANDS_EFFECTS, 4096));
      for (int opcode = 0; opcode < 256; opcode++) {
        MemorySegment s = lab.keepAlive();
        Sqe.opcode(s, 0, opcode);
        Sqe.cdw2(s, 0, 1);
        boolean known = lab.status(true, s) != StatusCode.INVALID_OPCODE.dnr();
        assertThat(log.admin(opcode) & 1).as("admin %02X", opcode).isEqualTo(known ? 1 : 0);
        known = lab.status(false, s) != StatusCode.INVALID_OPCODE.dnr();
        assertThat(log.io(opcode) & 1).as("I/O %02X", opcode).isEqualTo(known ? 1 : 0);
      }
      assertThat(log.io(IoOpcode.WRITE)).isEqualTo(3);
      assertThat(log.io(IoOpcode.READ)).isEqualTo(1);
      assertThat(log.admin(AdminOpcode.FORMAT_NVM)).isEqualTo(0x1_0007);
      assertThat(log.admin(AdminOpcode.NS_ATTACHMENT)).isEqualTo(0x2_0009);
    }
  }

  @Test
  void version2ListsItsPagesAndFeatures() {
    try (CommandLab lab = new CommandLab(b -> b.version(Vs.V2_0))) {
      SupportedLogPages pages = new SupportedLogPages(read(lab, LogId.SUPPORTED, 1024));
      for (int id = 0; id < 256; id++) {
        boolean readable = lab.status(true, lab.getLog(id, 4)) == 0;
        assertThat(pages.supports(id)).as("page %02X", id).isEqualTo(readable);
        lab.host.adminOk(lab.getLog(LogId.SUPPORTED, 1024));
      }
      FeatureEffectsLog features = new FeatureEffectsLog(read(lab, LogId.FEATURE_EFFECTS, 1024));
      assertThat(features.supports(FeatureId.ARBITRATION)).isTrue();
      assertThat(features.supports(FeatureId.AUTONOMOUS_POWER)).isFalse();
      assertThat(features.feature(FeatureId.ERROR_RECOVERY)).isEqualTo(1 | 1 << 20);
    }
  }

  @Test
  void aPageMayBeReadInPieces() {
    try (CommandLab lab = new CommandLab(b -> b.firmware("ABCDEFGH"))) {
      MemorySegment s = lab.getLog(LogId.FIRMWARE_SLOT, 8);
      Sqe.cdw12(s, 0, 12);
      lab.host.adminOk(s);
      assertThat(lab.memory().get(ValueLayout.JAVA_INT, 0)).isEqualTo(0x4847_4645);
      Sqe.cdw12(s, 0, 508);
      lab.memory().fill((byte) 0xEE);
      lab.host.adminOk(s);
      assertThat(lab.memory().get(ValueLayout.JAVA_LONG, 0)).as("then zeros").isZero();
      Sqe.cdw12(s, 0, 512);
      lab.host.adminOk(s);
    }
  }

  @Test
  void whatIsTooLongForMdtsMayBeReadWhenThereIsNone() {
    try (CommandLab lab = new CommandLab(b -> b.maxTransfer(0))) {
      MemorySegment s = lab.getLog(LogId.SMART, 512);
      Sqe.cdw10(s, 0, LogId.SMART | 0xFFFF << 16);
      Sqe.cdw11(s, 0, 0x40);
      assertThat(lab.status(true, s)).isEqualTo(StatusCode.INVALID_FIELD.dnr());
    }
  }

  private static RawQueue.Completion event(CommandLab lab) {
    lab.host.settle();
    return lab.host.admin.poll();
  }

  private static void request(CommandLab lab) {
    lab.host.admin.push(lab.asyncEventRequest());
    lab.host.admin.ring();
  }

  @Test
  void aHotControllerTellsTheHostWhoWantsToKnow() {
    try (CommandLab lab = new CommandLab()) {
      request(lab);
      lab.host.controller.logs().health().temperature(344);
      assertThat(event(lab)).as("not configured").isNull();
      lab.host.admin.push(
          lab.setFeature(FeatureId.ASYNC_EVENT_CONFIG, SmartLog.WARNING_TEMPERATURE));
      lab.host.admin.ring();
      lab.host.settle();
      assertThat(lab.host.admin.poll()).isNotNull();
      AsyncEvent event = new AsyncEvent(event(lab).dw0());
      assertThat(event.type()).isEqualTo(AsyncEvent.TYPE_SMART);
      assertThat(event.info()).isEqualTo(AsyncEvent.SMART_TEMPERATURE);
      assertThat(event.logPage()).isEqualTo(LogId.SMART);
      SmartLog log = smart(lab);
      assertThat(log.getInt(SmartLog.CRITICAL_WARNING)).isEqualTo(SmartLog.WARNING_TEMPERATURE);
      assertThat(log.getInt(SmartLog.COMPOSITE_TEMPERATURE)).isEqualTo(344);

      request(lab);
      lab.host.controller.logs().health().temperature(345);
      assertThat(event(lab)).as("still hot is no news").isNull();
      lab.host.controller.logs().health().temperature(300);
      lab.host.controller.logs().health().temperature(343);
      assertThat(event(lab)).isNotNull();
    }
  }

  @Test
  void aFormatThatChangesTheBlockSizeChangesTheNamespace() {
    try (CommandLab lab = new CommandLab()) {
      lab.host.adminOk(lab.setFeature(FeatureId.ASYNC_EVENT_CONFIG, 1 << 8));
      MemorySegment format = lab.format();
      lab.host.adminOk(format);
      assertThat(new ChangedNamespaceList(read(lab, LogId.CHANGED_NAMESPACES, 4096)).count())
          .as("the same format")
          .isZero();
      Sqe.cdw10(format, 0, 1);
      lab.host.adminOk(format);
      request(lab);
      AsyncEvent event = new AsyncEvent(event(lab).dw0());
      assertThat(event.type()).isEqualTo(AsyncEvent.TYPE_NOTICE);
      assertThat(event.info()).isEqualTo(AsyncEvent.NOTICE_NAMESPACE_ATTRIBUTE_CHANGED);
      assertThat(event.logPage()).isEqualTo(LogId.CHANGED_NAMESPACES);

      MemorySegment retain = lab.getLog(LogId.CHANGED_NAMESPACES, 4096);
      Sqe.cdw10(retain, 0, Sqe.cdw10(retain, 0) | RAE);
      for (int i = 0; i < 2; i++) {
        lab.host.adminOk(retain);
        assertThat(new ChangedNamespaceList(lab.memory()).stream().toArray()).containsExactly(1);
      }
      read(lab, LogId.CHANGED_NAMESPACES, 4096);
      assertThat(new ChangedNamespaceList(lab.memory()).stream().toArray()).containsExactly(1);
      read(lab, LogId.CHANGED_NAMESPACES, 4096);
      assertThat(new ChangedNamespaceList(lab.memory()).count()).as("read once").isZero();
    }
  }
}
