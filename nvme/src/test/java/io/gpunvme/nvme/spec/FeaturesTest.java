package io.gpunvme.nvme.spec;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import java.util.function.IntFunction;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Base 2.0, 5.27.1 and 5.2.1: feature dwords and asynchronous events. */
class FeaturesTest {
  private static final int NOISE = 0x92A5C386;

  /** Feature, field, highest and lowest bit. */
  @ParameterizedTest
  @CsvSource({
    "0x01, AB, 2, 0",
    "0x01, LPW, 15, 8",
    "0x01, MPW, 23, 16",
    "0x01, HPW, 31, 24",
    "0x02, PS, 4, 0",
    "0x02, WH, 7, 5",
    "0x04, TMPTH, 15, 0",
    "0x04, TMPSEL, 19, 16",
    "0x04, THSEL, 21, 20",
    "0x05, TLER, 15, 0",
    "0x05, DULBE, 16, 16",
    "0x06, WCE, 0, 0",
    "0x07, NSQ, 15, 0",
    "0x07, NCQ, 31, 16",
    "0x08, THR, 7, 0",
    "0x08, TIME, 15, 8",
    "0x09, IV, 15, 0",
    "0x09, CD, 16, 16",
    "0x0A, DN, 0, 0",
    "0x0B, SMART, 7, 0",
    "0x0B, NAN, 8, 8",
    "0x0B, FAN, 9, 9",
    "0x0B, TLN, 10, 10",
    "0x0B, ANACN, 11, 11",
    "0x0B, PLEALCN, 12, 12",
    "0x0B, LSIAN, 13, 13",
    "0x0B, EGEALCN, 14, 14",
    "0x0B, NNSSHDN, 15, 15",
    "0x0C, APSTE, 0, 0",
    "0x0D, EHM, 0, 0",
    "0x0D, MR, 1, 1",
    "0x0F, KATO, 31, 0",
    "0x10, TMT2, 15, 0",
    "0x10, TMT1, 31, 16"
  })
  void everyBitBelongsToItsField(String feature, String name, int high, int low)
      throws ReflectiveOperationException {
    checkBits(name, high, low, word -> Features.decode(Integer.decode(feature), word));
  }

  @ParameterizedTest
  @CsvSource({"SAVEABLE, 0", "NAMESPACE_SPECIFIC, 1", "CHANGEABLE, 2"})
  void capabilities(String name, int bit) throws ReflectiveOperationException {
    checkBits(name, bit, bit, Features::decodeCapabilities);
    assertThat(Features.decodeCapabilities(NOISE))
        .extracting(FieldValue::name)
        .containsExactly("SAVEABLE", "NAMESPACE_SPECIFIC", "CHANGEABLE");
  }

  private static void checkBits(
      String name, int high, int low, IntFunction<List<FieldValue>> listing)
      throws ReflectiveOperationException {
    BitField field = (BitField) Features.class.getField(name).get(null);
    int mask = high - low == 31 ? -1 : (1 << (high - low + 1)) - 1;
    for (int bit = low; bit <= high; bit++) {
      int one = 1 << bit;
      assertThat(field.get(one)).isEqualTo(one >>> low);
      assertThat(field.get(~one)).isEqualTo(mask & ~(one >>> low));
      assertThat(field.with(0, Integer.toUnsignedLong(one >>> low))).isEqualTo(one);
      assertThat(field.with(-1, Integer.toUnsignedLong(mask & ~(one >>> low)))).isEqualTo(~one);
      assertThat(listing.apply(one))
          .filteredOn(listed -> listed.name().equals(name))
          .extracting(FieldValue::value)
          .containsExactly(Integer.toUnsignedLong(one >>> low));
    }
    assertThat(field.mask()).isEqualTo(mask << low);
    if (high - low < 31) {
      assertThatThrownBy(() -> field.with(0, 1L << (high - low + 1)))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining(name);
    }
    assertThatThrownBy(() -> field.with(0, -1)).hasMessageContaining(name);
  }

  @Test
  void flagsAreSetByBooleansToo() {
    assertThat(Features.EHM.with(0, true)).isEqualTo(1);
    assertThat(Features.EHM.with(3, false)).isEqualTo(2);
    assertThat(Features.MR.isSet(2)).isTrue();
    assertThat(Features.MR.isSet(~2)).isFalse();
  }

  @Test
  void selectAndSave() {
    assertThat(
            List.of(
                Features.SEL_CURRENT,
                Features.SEL_DEFAULT,
                Features.SEL_SAVED,
                Features.SEL_SUPPORTED,
                Features.SV))
        .containsExactly(0, 1, 2, 3, 0x80000000);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          0x01 | AB=6 LPW=195 MPW=165 HPW=146
          0x02 | PS=6 WH=4
          0x04 | TMPTH=50054 TMPSEL=5 THSEL=2
          0x05 | TLER=50054 DULBE=1
          0x06 | WCE=0
          0x07 | NSQ=50054 NCQ=37541
          0x08 | THR=134 TIME=195
          0x09 | IV=50054 CD=1
          0x0A | DN=0
          0x0B | SMART=134 NAN=1 FAN=1 TLN=0 ANACN=0 PLEALCN=0 LSIAN=0 EGEALCN=1 NNSSHDN=1
          0x0C | APSTE=0
          0x0D | EHM=0 MR=1
          0x0F | KATO=2460337030
          0x10 | TMT2=50054 TMT1=37541
          """)
  void decodeListsTheFieldsOfAFeature(String feature, String fields) {
    assertThat(
            Features.decode(Integer.decode(feature), NOISE).stream()
                .map(f -> f.name() + "=" + f.text())
                .collect(Collectors.joining(" ")))
        .isEqualTo(fields);
  }

  @ParameterizedTest
  @CsvSource({"0x00", "0x0E", "0x16", "0x81", "0xC0"})
  void decodeKnowsNothingOfOtherFeatures(String feature) {
    assertThat(Features.decode(Integer.decode(feature), NOISE)).isEmpty();
  }

  @Test
  void asyncEvent() {
    AsyncEvent event = new AsyncEvent(0x84838281);
    assertThat(event.type()).isEqualTo(1);
    assertThat(event.info()).isEqualTo(0x82);
    assertThat(event.logPage()).isEqualTo(0x83);
    assertThat(new AsyncEvent(0x0000_00F8).type()).isZero();
    assertThat(AsyncEvent.of(7, 0x82, 0x83).dw0()).isEqualTo(0x838207);
    assertThat(AsyncEvent.of(8, 0x100, 0x100).dw0()).isZero();
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          0 | 0 | Write to Invalid Doorbell Register
          0 | 1 | Invalid Doorbell Write Value
          0 | 2 | Diagnostic Failure
          0 | 3 | Persistent Internal Error
          0 | 4 | Transient Internal Error
          0 | 5 | Firmware Image Load Error
          0 | 6 | Error event
          1 | 0 | NVM subsystem Reliability
          1 | 1 | Temperature Threshold
          1 | 2 | Spare Below Threshold
          1 | 3 | SMART / Health event
          2 | 0 | Namespace Attribute Changed
          2 | 1 | Firmware Activation Starting
          2 | 2 | Telemetry Log Changed
          2 | 3 | Asymmetric Namespace Access Change
          2 | 4 | Predictable Latency Event Aggregate Log Change
          2 | 5 | LBA Status Information Alert
          2 | 6 | Endurance Group Event Aggregate Log Page Change
          2 | 7 | Normal NVM Subsystem Shutdown
          2 | 8 | Notice
          3 | 0 | Reserved event type
          6 | 0 | I/O Command specific event
          7 | 0 | Vendor specific event
          """)
  void asyncEventNames(int type, int info, String name) {
    assertThat(AsyncEvent.of(type, info, 0xA2).describe())
        .isEqualTo(name + " (type %dh, information %02dh, log page A2h)".formatted(type, info));
  }

  @Test
  void asyncEventConstants() {
    assertThat(
            List.of(
                AsyncEvent.TYPE_ERROR,
                AsyncEvent.TYPE_SMART,
                AsyncEvent.TYPE_NOTICE,
                AsyncEvent.TYPE_IO_COMMAND_SET,
                AsyncEvent.TYPE_VENDOR))
        .containsExactly(0, 1, 2, 6, 7);
    assertThat(
            List.of(
                AsyncEvent.ERROR_INVALID_DOORBELL_REGISTER,
                AsyncEvent.ERROR_INVALID_DOORBELL_VALUE,
                AsyncEvent.ERROR_DIAGNOSTIC_FAILURE,
                AsyncEvent.ERROR_PERSISTENT_INTERNAL,
                AsyncEvent.ERROR_TRANSIENT_INTERNAL,
                AsyncEvent.ERROR_FIRMWARE_IMAGE_LOAD))
        .containsExactly(0, 1, 2, 3, 4, 5);
    assertThat(
            List.of(
                AsyncEvent.SMART_RELIABILITY, AsyncEvent.SMART_TEMPERATURE, AsyncEvent.SMART_SPARE))
        .containsExactly(0, 1, 2);
    assertThat(
            List.of(
                AsyncEvent.NOTICE_NAMESPACE_ATTRIBUTE_CHANGED,
                AsyncEvent.NOTICE_FIRMWARE_ACTIVATION,
                AsyncEvent.NOTICE_TELEMETRY,
                AsyncEvent.NOTICE_ANA))
        .containsExactly(0, 1, 2, 3);
  }
}
