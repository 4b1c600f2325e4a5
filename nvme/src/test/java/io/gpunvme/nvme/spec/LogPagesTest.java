package io.gpunvme.nvme.spec;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.nvme.spec.StructureContract.Row;
import java.lang.foreign.MemorySegment;
import java.math.BigInteger;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Base 2.0, 5.16.1: log pages, and the power state descriptor of 5.17.2.1. */
class LogPagesTest {
  private static final StructureContract SMART = new StructureContract(512, SmartLog::new);
  private static final StructureContract ERROR = new StructureContract(64, ErrorLogEntry::new);
  private static final StructureContract FIRMWARE =
      new StructureContract(512, FirmwareSlotLog::new);
  private static final StructureContract POWER =
      new StructureContract(32, PowerStateDescriptor::new);

  static Stream<Row> smartRows() {
    return Stream.of(
        new Row("CRITICAL_WARNING", 0, 0),
        new Row("COMPOSITE_TEMPERATURE", 1, 2),
        new Row("AVAILABLE_SPARE", 3, 3),
        new Row("AVAILABLE_SPARE_THRESHOLD", 4, 4),
        new Row("PERCENTAGE_USED", 5, 5),
        new Row("ENDURANCE_GROUP_WARNING", 6, 6),
        new Row("DATA_UNITS_READ", 32, 47),
        new Row("DATA_UNITS_WRITTEN", 48, 63),
        new Row("HOST_READ_COMMANDS", 64, 79),
        new Row("HOST_WRITE_COMMANDS", 80, 95),
        new Row("CONTROLLER_BUSY_TIME", 96, 111),
        new Row("POWER_CYCLES", 112, 127),
        new Row("POWER_ON_HOURS", 128, 143),
        new Row("UNSAFE_SHUTDOWNS", 144, 159),
        new Row("MEDIA_ERRORS", 160, 175),
        new Row("ERROR_LOG_ENTRIES", 176, 191),
        new Row("WARNING_TEMPERATURE_TIME", 192, 195),
        new Row("CRITICAL_TEMPERATURE_TIME", 196, 199));
  }

  static Stream<Row> numberedRows() {
    return Stream.of(
            IntStream.rangeClosed(1, 8)
                .mapToObj(i -> new Row("TEMPERATURE_SENSOR_" + i, 198 + 2 * i, 199 + 2 * i)),
            IntStream.rangeClosed(1, 2)
                .mapToObj(i -> new Row("THERMAL_TRANSITIONS_" + i, 212 + 4 * i, 215 + 4 * i)),
            IntStream.rangeClosed(1, 2)
                .mapToObj(i -> new Row("THERMAL_TIME_" + i, 220 + 4 * i, 223 + 4 * i)))
        .flatMap(rows -> rows);
  }

  static Stream<Row> errorRows() {
    return Stream.of(
        new Row("ERROR_COUNT", 0, 7),
        new Row("SQID", 8, 9),
        new Row("CID", 10, 11),
        new Row("STATUS_FIELD", 12, 13),
        new Row("PARAMETER_ERROR_LOCATION", 14, 15),
        new Row("LBA", 16, 23),
        new Row("NSID", 24, 27),
        new Row("VENDOR_SPECIFIC", 28, 28),
        new Row("TRTYPE", 29, 29),
        new Row("COMMAND_SPECIFIC", 32, 39),
        new Row("TRANSPORT_SPECIFIC", 40, 41));
  }

  static Stream<Row> powerRows() {
    return Stream.of(
        new Row("MP", 0, 1),
        new Row("FLAGS", 3, 3),
        new Row("ENLAT", 4, 7),
        new Row("EXLAT", 8, 11),
        new Row("RRT", 12, 12),
        new Row("RRL", 13, 13),
        new Row("RWT", 14, 14),
        new Row("RWL", 15, 15),
        new Row("IDLP", 16, 17),
        new Row("IPS", 18, 18),
        new Row("ACTP", 20, 21),
        new Row("APWS", 22, 22));
  }

  @ParameterizedTest
  @MethodSource("smartRows")
  void smartFields(Row row) {
    SMART.checkRow(row);
  }

  @ParameterizedTest
  @MethodSource("errorRows")
  void errorFields(Row row) {
    ERROR.checkRow(row);
  }

  @ParameterizedTest
  @MethodSource("powerRows")
  void powerStateFields(Row row) {
    POWER.checkRow(row);
  }

  @Test
  void sizes() {
    SMART.checkSize();
    ERROR.checkSize();
    FIRMWARE.checkSize();
    POWER.checkSize();
    assertThat(
            List.of(
                SmartLog.SIZE,
                ErrorLogEntry.SIZE,
                FirmwareSlotLog.SIZE,
                PowerStateDescriptor.SIZE,
                CommandsEffectsLog.SIZE,
                SupportedLogPages.SIZE,
                FeatureEffectsLog.SIZE))
        .containsExactly(512, 64, 512, 32, 4096, 1024, 1024);
  }

  @Test
  void fieldsAreListedInOrder() {
    SMART.checkOrder(Stream.concat(smartRows(), numberedRows()));
    ERROR.checkOrder(errorRows());
    POWER.checkOrder(powerRows());
    FIRMWARE.checkOrder(
        Stream.concat(
            Stream.of(new Row("AFI", 0, 0)),
            IntStream.rangeClosed(1, 7).mapToObj(i -> new Row("FRS" + i, 8 * i, 8 * i + 7))));
  }

  @Test
  void lowHalvesOfTheSmartCountersLeaveTheHighHalves() {
    byte[] page = new byte[512];
    SmartLog log = new SmartLog(MemorySegment.ofArray(page));
    List<Field> counters =
        List.of(
            SmartLog.DATA_UNITS_READ,
            SmartLog.DATA_UNITS_WRITTEN,
            SmartLog.HOST_READ_COMMANDS,
            SmartLog.HOST_WRITE_COMMANDS,
            SmartLog.CONTROLLER_BUSY_TIME,
            SmartLog.POWER_CYCLES,
            SmartLog.POWER_ON_HOURS,
            SmartLog.UNSAFE_SHUTDOWNS,
            SmartLog.MEDIA_ERRORS,
            SmartLog.ERROR_LOG_ENTRIES);
    for (int i = 0; i < counters.size(); i++) {
      MemorySegment.ofArray(page).fill((byte) 0xA5);
      long value = 0x8877_6655_4433_2200L + i;
      assertThat(log.set(counters.get(i), value)).isSameAs(log);
      assertThat(log.getLong(counters.get(i))).isEqualTo(value);
      byte[] expected = new byte[512];
      MemorySegment.ofArray(expected).fill((byte) 0xA5);
      byte[] bytes = {(byte) i, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, (byte) 0x88};
      System.arraycopy(bytes, 0, expected, 32 + 16 * i, 8);
      assertThat(page).as("counter %d", i).containsExactly(expected);
    }
    assertThat(log.getBig(SmartLog.DATA_UNITS_READ))
        .isEqualTo(new BigInteger("a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5", 16));
  }

  @ParameterizedTest
  @MethodSource("numberedRows")
  void smartSensorsAndThermalCounters(Row row) {
    SMART.checkRow(row);
  }

  @Test
  void thereAreEightSensorsAndTwoThermalStates() {
    assertThat(SmartLog.TEMPERATURE_SENSOR).hasSize(8);
    assertThat(SmartLog.THERMAL_TRANSITIONS).hasSize(2);
    assertThat(SmartLog.THERMAL_TIME).hasSize(2);
  }

  @Test
  void smartWarningBits() {
    assertThat(
            new int[] {
              SmartLog.WARNING_SPARE,
              SmartLog.WARNING_TEMPERATURE,
              SmartLog.WARNING_RELIABILITY,
              SmartLog.WARNING_READ_ONLY,
              SmartLog.WARNING_BACKUP,
              SmartLog.WARNING_PERSISTENT_MEMORY
            })
        .containsExactly(1, 2, 4, 8, 16, 32);
    assertThat(PowerStateDescriptor.MXPS).isEqualTo(1);
    assertThat(PowerStateDescriptor.NOPS).isEqualTo(2);
  }

  @Test
  void errorStatusSitsAboveThePhaseTag() {
    ErrorLogEntry entry = new ErrorLogEntry(MemorySegment.ofArray(new byte[64]));
    assertThat(entry.set(ErrorLogEntry.STATUS_FIELD, 1).status(0x7FFF)).isSameAs(entry);
    assertThat(entry.getInt(ErrorLogEntry.STATUS_FIELD)).isEqualTo(0xFFFF);
    assertThat(entry.status()).isEqualTo(0x7FFF);
    entry.status(0x2281);
    assertThat(entry.getInt(ErrorLogEntry.STATUS_FIELD)).isEqualTo(0x4503);
    entry.set(ErrorLogEntry.STATUS_FIELD, 0).status(0x4002);
    assertThat(entry.getInt(ErrorLogEntry.STATUS_FIELD)).isEqualTo(0x8004);
    assertThat(entry.status()).isEqualTo(0x4002);
    assertThat(ErrorLogEntry.LOCATION_NONE).isEqualTo(0xFFFF);
  }

  @Test
  void errorEntriesFollowEachOther() {
    byte[] page = new byte[3 * 64];
    ErrorLogEntry.at(MemorySegment.ofArray(page), 2).set(ErrorLogEntry.ERROR_COUNT, 7);
    assertThat(page[128]).isEqualTo((byte) 7);
    assertThat(ErrorLogEntry.at(MemorySegment.ofArray(page), 2).segment().byteSize()).isEqualTo(64);
    assertThatThrownBy(() -> ErrorLogEntry.at(MemorySegment.ofArray(page), 3))
        .isInstanceOf(IndexOutOfBoundsException.class);
  }

  @Test
  void firmwareSlots() {
    FIRMWARE.checkRow(new Row("AFI", 0, 0));
    byte[] page = new byte[512];
    FirmwareSlotLog log = new FirmwareSlotLog(MemorySegment.ofArray(page));
    for (int slot = 1; slot <= 7; slot++) {
      Field frs = FirmwareSlotLog.FRS.get(slot - 1);
      assertThat(log.getText(frs)).isEmpty();
      assertThat(log.set(frs, "rev" + slot)).isSameAs(log);
      assertThat(log.getText(frs)).isEqualTo("rev" + slot);
      assertThat(page[8 * slot + 3]).isEqualTo((byte) ('0' + slot));
      assertThat(page[8 * slot + 7]).isEqualTo((byte) ' ');
      FIRMWARE.checkRow(new Row("FRS" + slot, 8 * slot, 8 * slot + 7));
    }
    assertThat(page[7]).isZero();
    assertThat(page[64]).isZero();
    assertThat(FirmwareSlotLog.FRS).hasSize(FirmwareSlotLog.SLOTS).hasSize(7);
  }

  @Test
  void commandsEffects() {
    byte[] page = new byte[4096];
    CommandsEffectsLog log = new CommandsEffectsLog(MemorySegment.ofArray(page));
    assertThat(log.admin(0x06, 0x81020304)).isSameAs(log);
    assertThat(log.io(0xFF, 0x85060708)).isSameAs(log);
    assertThat(new byte[] {page[24], page[25], page[26], page[27]}).containsExactly(4, 3, 2, 0x81);
    assertThat(new byte[] {page[2044], page[2045], page[2046], page[2047]})
        .containsExactly(8, 7, 6, 0x85);
    assertThat(log.admin(0x06)).isEqualTo(0x81020304);
    assertThat(log.io(0xFF)).isEqualTo(0x85060708);
    log.io(0, 1);
    assertThat(page[1024]).isEqualTo((byte) 1);
    assertThat(log.segment().byteSize()).isEqualTo(4096);
    assertThatThrownBy(() -> log.admin(256)).isInstanceOf(IndexOutOfBoundsException.class);
    assertThatThrownBy(() -> log.io(-1, 0)).isInstanceOf(IndexOutOfBoundsException.class);
    assertThatThrownBy(() -> new CommandsEffectsLog(MemorySegment.ofArray(new byte[4095])))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("CommandsEffectsLog needs 4096 bytes");
    assertThat(
            new int[] {
              CommandsEffectsLog.CSUPP,
              CommandsEffectsLog.LBCC,
              CommandsEffectsLog.NCC,
              CommandsEffectsLog.NIC,
              CommandsEffectsLog.CCC,
              1 << CommandsEffectsLog.CSE_SHIFT,
              CommandsEffectsLog.UUID_SELECTION
            })
        .containsExactly(1, 2, 4, 8, 16, 0x10000, 0x80000);
  }

  @Test
  void supportedLogPages() {
    byte[] page = new byte[1024];
    SupportedLogPages log = new SupportedLogPages(MemorySegment.ofArray(page));
    assertThat(log.page(2, 0x80000001)).isSameAs(log);
    assertThat(new byte[] {page[8], page[9], page[10], page[11]}).containsExactly(1, 0, 0, 0x80);
    log.page(255, SupportedLogPages.IOS);
    assertThat(page[1020]).isEqualTo((byte) 2);
    assertThat(log.page(2)).isEqualTo(0x80000001);
    assertThat(log.supports(2)).isTrue();
    assertThat(log.supports(255)).isFalse();
    assertThat(SupportedLogPages.LSUPP).isEqualTo(1);
    assertThatThrownBy(() -> new SupportedLogPages(MemorySegment.ofArray(new byte[1023])))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void featureEffects() {
    byte[] page = new byte[1024];
    FeatureEffectsLog log = new FeatureEffectsLog(MemorySegment.ofArray(page));
    assertThat(log.feature(7, 0x80200001)).isSameAs(log);
    assertThat(new byte[] {page[28], page[29], page[30], page[31]})
        .containsExactly(1, 0, 0x20, 0x80);
    log.feature(8, FeatureEffectsLog.CCC);
    assertThat(log.feature(7)).isEqualTo(0x80200001);
    assertThat(log.supports(7)).isTrue();
    assertThat(log.supports(8)).isFalse();
    assertThat(
            new int[] {
              FeatureEffectsLog.FSUPP,
              FeatureEffectsLog.UDCC,
              FeatureEffectsLog.NCC,
              FeatureEffectsLog.NIC,
              FeatureEffectsLog.CCC,
              FeatureEffectsLog.SCOPE_NAMESPACE,
              FeatureEffectsLog.SCOPE_CONTROLLER
            })
        .containsExactly(1, 2, 4, 8, 16, 0x100000, 0x200000);
    assertThatThrownBy(() -> new FeatureEffectsLog(MemorySegment.ofArray(new byte[1023])))
        .isInstanceOf(IllegalArgumentException.class);
  }
}
