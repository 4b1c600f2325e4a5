package io.gpunvme.nvme.spec;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.nvme.spec.Features.Arbitration;
import io.gpunvme.nvme.spec.Features.AsyncEventConfig;
import io.gpunvme.nvme.spec.Features.Capabilities;
import io.gpunvme.nvme.spec.Features.ErrorRecovery;
import io.gpunvme.nvme.spec.Features.HostControlledThermal;
import io.gpunvme.nvme.spec.Features.HostMemoryBuffer;
import io.gpunvme.nvme.spec.Features.InterruptCoalescing;
import io.gpunvme.nvme.spec.Features.InterruptVectorConfig;
import io.gpunvme.nvme.spec.Features.NumberOfQueues;
import io.gpunvme.nvme.spec.Features.PowerManagement;
import io.gpunvme.nvme.spec.Features.TemperatureThreshold;
import io.gpunvme.nvme.spec.Features.VolatileWriteCache;
import java.util.List;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Base 2.0, 5.27.1 and 5.2.1: feature dwords and asynchronous events. */
class FeaturesTest {
  private static final int NOISE = 0x92A5C386;

  @Test
  void arbitration() {
    Arbitration feature = new Arbitration(0x84838282 | 0xF8);
    assertThat(feature.ab()).isEqualTo(2);
    assertThat(feature.lpw()).isEqualTo(0x82);
    assertThat(feature.mpw()).isEqualTo(0x83);
    assertThat(feature.hpw()).isEqualTo(0x84);
    assertThat(Arbitration.of(2, 0x82, 0x83, 0x84).value()).isEqualTo(0x84838202);
    assertThatThrownBy(() -> Arbitration.of(8, 0, 0, 0)).hasMessageContaining("AB");
  }

  @Test
  void powerManagement() {
    assertThat(new PowerManagement(NOISE).ps()).isEqualTo(6);
    assertThat(new PowerManagement(NOISE).wh()).isEqualTo(4);
    assertThat(PowerManagement.of(31, 5).value()).isEqualTo(0xBF);
  }

  @Test
  void temperatureThreshold() {
    TemperatureThreshold feature = new TemperatureThreshold(NOISE);
    assertThat(feature.tmpth()).isEqualTo(0xC386);
    assertThat(feature.tmpsel()).isEqualTo(5);
    assertThat(feature.thsel()).isEqualTo(2);
    assertThat(TemperatureThreshold.of(0x8123, 9, 1).value()).isEqualTo(0x00198123);
  }

  @Test
  void errorRecovery() {
    assertThat(new ErrorRecovery(NOISE).tler()).isEqualTo(0xC386);
    assertThat(new ErrorRecovery(NOISE).dulbe()).isTrue();
    assertThat(new ErrorRecovery(~0x10000).dulbe()).isFalse();
    assertThat(ErrorRecovery.of(0x8123, true).value()).isEqualTo(0x00018123);
    assertThat(ErrorRecovery.of(0, false).value()).isZero();
  }

  @Test
  void volatileWriteCache() {
    assertThat(new VolatileWriteCache(1).wce()).isTrue();
    assertThat(new VolatileWriteCache(~1).wce()).isFalse();
    assertThat(VolatileWriteCache.of(true).value()).isEqualTo(1);
    assertThat(VolatileWriteCache.of(false).value()).isZero();
  }

  @Test
  void numberOfQueues() {
    NumberOfQueues feature = new NumberOfQueues(NOISE);
    assertThat(feature.nsq()).isEqualTo(0xC386);
    assertThat(feature.ncq()).isEqualTo(0x92A5);
    assertThat(NumberOfQueues.of(0xC386, 0x92A5)).isEqualTo(feature);
    assertThatThrownBy(() -> NumberOfQueues.of(0x10000, 0)).hasMessageContaining("NSQ");
    assertThatThrownBy(() -> NumberOfQueues.of(0, -1)).hasMessageContaining("NCQ");
  }

  @Test
  void interrupts() {
    assertThat(new InterruptCoalescing(NOISE).thr()).isEqualTo(0x86);
    assertThat(new InterruptCoalescing(NOISE).time()).isEqualTo(0xC3);
    assertThat(InterruptCoalescing.of(0x86, 0xC3).value()).isEqualTo(0xC386);
    assertThat(new InterruptVectorConfig(NOISE).iv()).isEqualTo(0xC386);
    assertThat(new InterruptVectorConfig(NOISE).cd()).isTrue();
    assertThat(new InterruptVectorConfig(~0x10000).cd()).isFalse();
    assertThat(InterruptVectorConfig.of(0xC386, true).value()).isEqualTo(0x1C386);
  }

  @Test
  void asyncEventConfig() {
    List<Boolean> bits = List.of(true, false, true, true, false, false, true, false);
    for (boolean flip : new boolean[] {false, true}) {
      int flags = 0;
      for (int i = 0; i < bits.size(); i++) {
        flags |= (bits.get(i) ^ flip) ? 0x100 << i : 0;
      }
      AsyncEventConfig feature = new AsyncEventConfig(flags | 0x81);
      assertThat(feature.smart()).isEqualTo(0x81);
      assertThat(
              List.of(
                  feature.nan() ^ flip,
                  feature.fan() ^ flip,
                  feature.tln() ^ flip,
                  feature.anacn() ^ flip,
                  feature.plealcn() ^ flip,
                  feature.lsian() ^ flip,
                  feature.egealcn() ^ flip,
                  feature.nnsshdn() ^ flip))
          .isEqualTo(bits);
      assertThat(AsyncEventConfig.of(0x81, !flip, flip, !flip, !flip, flip, flip, !flip, flip))
          .isEqualTo(feature);
    }
  }

  @Test
  void hostMemoryBuffer() {
    assertThat(new HostMemoryBuffer(1).ehm()).isTrue();
    assertThat(new HostMemoryBuffer(~1).ehm()).isFalse();
    assertThat(new HostMemoryBuffer(2).mr()).isTrue();
    assertThat(new HostMemoryBuffer(~2).mr()).isFalse();
    assertThat(HostMemoryBuffer.of(true, false).value()).isEqualTo(1);
    assertThat(HostMemoryBuffer.of(false, true).value()).isEqualTo(2);
  }

  @Test
  void hostControlledThermal() {
    assertThat(new HostControlledThermal(NOISE).tmt2()).isEqualTo(0xC386);
    assertThat(new HostControlledThermal(NOISE).tmt1()).isEqualTo(0x92A5);
    assertThat(HostControlledThermal.of(0xC386, 0x92A5).value()).isEqualTo(NOISE);
  }

  @Test
  void capabilities() {
    for (int i = 0; i < 8; i++) {
      Capabilities feature = new Capabilities(i | 0xF8);
      assertThat(feature.saveable()).isEqualTo((i & 1) != 0);
      assertThat(feature.namespaceSpecific()).isEqualTo((i & 2) != 0);
      assertThat(feature.changeable()).isEqualTo((i & 4) != 0);
      assertThat(Capabilities.of((i & 1) != 0, (i & 2) != 0, (i & 4) != 0).value()).isEqualTo(i);
    }
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
