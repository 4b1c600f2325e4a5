package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.nvme.spec.FeatureId;
import io.gpunvme.nvme.spec.Features;
import io.gpunvme.nvme.spec.Sqe;
import io.gpunvme.nvme.spec.StatusCode;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Get Features and Set Features where they succeed. */
class FeatureCommandTest {
  private static int get(CommandLab lab, int fid, int select) {
    return lab.host.adminOk(lab.getFeature(fid, select));
  }

  private static void save(CommandLab lab, int fid, int value) {
    MemorySegment s = lab.setFeature(fid, value);
    Sqe.cdw10(s, 0, fid | Features.SV);
    lab.host.adminOk(s);
  }

  @ParameterizedTest
  @CsvSource({
    "0x01, 7, 5",
    "0x02, 0, 4",
    "0x04, 343, 5",
    "0x06, 1, 5",
    "0x07, 0x30003, 4",
    "0x08, 0, 5",
    "0x09, 0, 5",
    "0x0A, 0, 0",
    "0x0B, 0, 4",
    "0x0D, 0, 4",
    "0x0E, 0, 4",
    "0x0F, 0, 4",
    "0x16, 0, 4",
  })
  void everyFeatureHasADefaultAndCapabilities(int fid, int initial, int capabilities) {
    try (CommandLab lab = new CommandLab()) {
      for (int select = 0; select < 3; select++) {
        MemorySegment s = lab.getFeature(fid, select);
        if (fid == FeatureId.TIMESTAMP
            || fid == FeatureId.HOST_BEHAVIOR
            || fid == FeatureId.HOST_MEMORY_BUFFER) {
          Sqe.dptr1(s, 0, lab.bus());
        }
        assertThat(lab.host.adminOk(s)).as("SEL %d", select).isEqualTo(initial);
      }
      assertThat(get(lab, fid, Features.SEL_SUPPORTED)).isEqualTo(capabilities);
    }
  }

  @Test
  void currentSavedAndDefaultAreDifferentThings() {
    try (CommandLab lab = new CommandLab()) {
      int fid = FeatureId.INTERRUPT_COALESCING;
      save(lab, fid, 0x0102);
      lab.host.adminOk(lab.setFeature(fid, 0x0304));

      assertThat(get(lab, fid, Features.SEL_CURRENT)).isEqualTo(0x0304);
      assertThat(get(lab, fid, Features.SEL_SAVED)).isEqualTo(0x0102);
      assertThat(get(lab, fid, Features.SEL_DEFAULT)).isZero();

      lab.host.disable();
      lab.host.enable();
      assertThat(get(lab, fid, Features.SEL_CURRENT)).as("after a reset").isEqualTo(0x0102);
    }
  }

  @Test
  void aResetForgetsWhatIsNotSaved() {
    try (CommandLab lab = new CommandLab()) {
      lab.host.adminOk(lab.setFeature(FeatureId.ARBITRATION, 3));
      lab.host.adminOk(lab.setFeature(FeatureId.ASYNC_EVENT_CONFIG, 0x100));
      lab.host.adminOk(lab.setHmb());
      lab.host.disable();
      lab.host.enable();

      assertThat(get(lab, FeatureId.ARBITRATION, 0)).isEqualTo(7);
      assertThat(get(lab, FeatureId.ASYNC_EVENT_CONFIG, 0)).isZero();
      lab.host.adminOk(lab.setHmb());
    }
  }

  @ParameterizedTest
  @CsvSource({"0, 0, 0x00000", "1, 0, 0x00001", "9, 2, 0x20003", "0xFFFE, 0xFFFE, 0x30003"})
  void numberOfQueuesGrantsAtMostWhatThereIs(int sqs, int cqs, int granted) {
    try (CommandLab lab = new CommandLab()) {
      lab.host.deleteQueue(lab.queue);
      int dw0 = lab.host.adminOk(lab.setFeature(FeatureId.NUMBER_OF_QUEUES, sqs | cqs << 16));
      assertThat(dw0).isEqualTo(granted);
      assertThat(get(lab, FeatureId.NUMBER_OF_QUEUES, 0)).isEqualTo(granted);
    }
  }

  @Test
  void queuesBeyondTheGrantCannotBeCreated() {
    try (CommandLab lab = new CommandLab()) {
      lab.host.deleteQueue(lab.queue);
      lab.host.adminOk(lab.setFeature(FeatureId.NUMBER_OF_QUEUES, 0));
      assertThat(lab.status(true, RawHost.createCq(2, 4, lab.bus(), 1, 0)))
          .isEqualTo(StatusCode.INVALID_QUEUE_IDENTIFIER.dnr());
      lab.host.createQueue(1, 4, 4);
      lab.host.disable();
      lab.host.enable();
      lab.host.createQueue(4, 4, 4);
    }
  }

  @Test
  void temperatureThresholdsAreTwo() {
    try (CommandLab lab = new CommandLab()) {
      int under = 1 << 20;
      lab.host.adminOk(lab.setFeature(FeatureId.TEMPERATURE_THRESHOLD, 350));
      lab.host.adminOk(lab.setFeature(FeatureId.TEMPERATURE_THRESHOLD, 250 | under | 0xF << 16));
      assertThat(get(lab, FeatureId.TEMPERATURE_THRESHOLD, 0)).isEqualTo(350);
      MemorySegment s = lab.getFeature(FeatureId.TEMPERATURE_THRESHOLD, 0);
      Sqe.cdw11(s, 0, under);
      assertThat(lab.host.adminOk(s)).isEqualTo(250);
    }
  }

  @Test
  void vectorsAreConfiguredOneByOne() {
    try (CommandLab lab = new CommandLab()) {
      int disabled = 1 << 16;
      lab.host.adminOk(lab.setFeature(FeatureId.INTERRUPT_VECTOR_CONFIG, 2 | disabled));
      MemorySegment s = lab.getFeature(FeatureId.INTERRUPT_VECTOR_CONFIG, 0);
      Sqe.cdw11(s, 0, 2);
      assertThat(lab.host.adminOk(s)).isEqualTo(2 | disabled);
      Sqe.cdw11(s, 0, 1);
      assertThat(lab.host.adminOk(s)).isEqualTo(1);
      FeatureStore store = lab.host.controller.features();
      assertThat(store.coalescingDisabled(2)).isTrue();
      assertThat(store.coalescingDisabled(1)).isFalse();
    }
  }

  @Test
  void errorRecoveryIsPerNamespace() {
    try (CommandLab lab = new CommandLab()) {
      MemorySegment set = lab.setFeature(FeatureId.ERROR_RECOVERY, 9);
      Sqe.nsid(set, 0, 1);
      lab.host.adminOk(set);
      MemorySegment get = lab.getFeature(FeatureId.ERROR_RECOVERY, 0);
      Sqe.nsid(get, 0, 1);
      assertThat(lab.host.adminOk(get)).isEqualTo(9);
      Sqe.nsid(get, 0, 2);
      assertThat(lab.host.adminOk(get)).isZero();

      Sqe.nsid(set, 0, Sqe.NSID_ALL);
      Sqe.cdw11(set, 0, 4);
      lab.host.adminOk(set);
      assertThat(lab.host.adminOk(get)).isEqualTo(4);
      Sqe.cdw10(get, 0, FeatureId.ERROR_RECOVERY | Features.SEL_SUPPORTED << 8);
      assertThat(lab.host.adminOk(get)).as("saveable, per namespace, changeable").isEqualTo(7);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {0, Sqe.NSID_ALL, 1})
  void aControllerFeatureMayBeReadWithAnyValidNsid(int nsid) {
    try (CommandLab lab = new CommandLab()) {
      MemorySegment s = lab.getFeature(FeatureId.ARBITRATION, 0);
      Sqe.nsid(s, 0, nsid);
      assertThat(lab.host.adminOk(s)).isEqualTo(7);
    }
  }

  @Test
  void theTimestampRunsOn() {
    long base = 0x1234_5678_9ABCL;
    try (CommandLab lab = new CommandLab()) {
      lab.memory().set(ValueLayout.JAVA_LONG, 0, base);
      lab.host.adminOk(lab.setTimestamp());
      lab.memory().fill((byte) 0);
      lab.host.adminOk(lab.getTimestamp());
      long value = lab.memory().get(ValueLayout.JAVA_LONG, 0);
      assertThat(value & 0xFFFF_FFFF_FFFFL).isBetween(base, base + 10_000);
      assertThat(value >>> 48).as("origin: set by the host").isEqualTo(2);
    }
  }

  @Test
  void theHostMemoryBufferIsReported() {
    try (CommandLab lab = new CommandLab()) {
      lab.host.adminOk(lab.setHmb());
      MemorySegment s = lab.getFeature(FeatureId.HOST_MEMORY_BUFFER, 0);
      Sqe.dptr1(s, 0, lab.bus());
      assertThat(lab.host.adminOk(s)).isEqualTo(1);
      assertThat(lab.memory().get(ValueLayout.JAVA_INT, 0)).isEqualTo(4);
      assertThat(lab.memory().get(ValueLayout.JAVA_LONG_UNALIGNED, 4))
          .isEqualTo(lab.list.busAddress(0));
      assertThat(lab.memory().get(ValueLayout.JAVA_INT, 12)).isEqualTo(1);
      MemorySegment off = lab.setFeature(FeatureId.HOST_MEMORY_BUFFER, 0);
      lab.host.adminOk(off);
      assertThat(lab.host.adminOk(s)).isZero();
      lab.host.adminOk(lab.setHmb());
    }
  }

  @Test
  void hostBehaviorIsOneBit() {
    try (CommandLab lab = new CommandLab()) {
      MemorySegment set = lab.setFeature(FeatureId.HOST_BEHAVIOR, 0);
      Sqe.dptr1(set, 0, lab.bus());
      lab.memory().fill((byte) 0).set(ValueLayout.JAVA_BYTE, 0, (byte) 1);
      lab.host.adminOk(set);
      lab.memory().set(ValueLayout.JAVA_BYTE, 0, (byte) 2);
      assertThat(lab.status(true, set)).isEqualTo(StatusCode.INVALID_FIELD.dnr());
      lab.memory().set(ValueLayout.JAVA_BYTE, 0, (byte) 1);
      lab.memory().set(ValueLayout.JAVA_BYTE, 511, (byte) 1);
      assertThat(lab.status(true, set)).isEqualTo(StatusCode.INVALID_FIELD.dnr());

      MemorySegment get = lab.getFeature(FeatureId.HOST_BEHAVIOR, 0);
      Sqe.dptr1(get, 0, lab.bus());
      lab.host.adminOk(get);
      assertThat(lab.memory().get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) 1);
      assertThat(lab.memory().get(ValueLayout.JAVA_BYTE, 511)).isZero();
    }
  }

  @Test
  void aMissedKeepAliveIsFatalOnce() {
    FeatureStore store = new FeatureStore(SimConfig.builder().keepAlive(true).build());
    assertThat(store.keepAliveExpired(Long.MAX_VALUE)).as("off").isFalse();
    store.keepAlive(1_000);
    store.set(FeatureId.KEEP_ALIVE_TIMER, 0, 5);
    assertThat(store.keepAliveExpired(5_001_000)).isFalse();
    assertThat(store.keepAliveExpired(5_001_001)).isTrue();
    store.keepAlive(5_001_001);
    assertThat(store.keepAliveExpired(5_001_002)).isFalse();
  }

  @Test
  void anUnchangeableFeatureMayBeSetToWhatItIs() {
    try (CommandLab lab = new CommandLab()) {
      lab.host.adminOk(lab.setFeature(FeatureId.WRITE_ATOMICITY, 0));
    }
  }

  @Test
  void withoutAWriteCacheNothingIsVolatile() {
    FeatureStore none = new FeatureStore(SimConfig.builder().volatileWriteCache(false).build());
    assertThat(none.writeCacheEnabled()).isFalse();
    assertThat(none.value(FeatureId.VOLATILE_WRITE_CACHE)).isZero();
    FeatureStore store = new FeatureStore(SimConfig.defaults());
    assertThat(store.writeCacheEnabled()).isTrue();
    store.set(FeatureId.VOLATILE_WRITE_CACHE, 0, 0);
    assertThat(store.writeCacheEnabled()).isFalse();
  }

  /** As hosts do that leave the namespace out: all that there are. */
  @Test
  void errorRecoveryWithoutANamespaceIsTakenIfNotStrict() {
    try (CommandLab lab = new CommandLab(b -> b.strict(false))) {
      int fid = FeatureId.ERROR_RECOVERY;
      lab.host.adminOk(lab.setFeature(fid, 9));
      MemorySegment one = lab.getFeature(fid, Features.SEL_CURRENT);
      Sqe.nsid(one, 0, 1);
      assertThat(lab.host.adminOk(one)).isEqualTo(9);
      assertThat(get(lab, fid, Features.SEL_CURRENT)).isEqualTo(9);
      assertThat(get(lab, fid, Features.SEL_DEFAULT)).isZero();
      lab.host.disable();
      lab.host.enable();
      assertThat(get(lab, fid, Features.SEL_CURRENT)).as("after a reset").isZero();
      MemorySegment beyond = lab.getFeature(fid, Features.SEL_CURRENT);
      Sqe.nsid(beyond, 0, CommandLab.NN + 1);
      assertThat(lab.status(true, beyond)).isEqualTo(StatusCode.INVALID_NAMESPACE_OR_FORMAT.dnr());
    }
    try (CommandLab lab = new CommandLab()) {
      assertThat(lab.status(true, lab.getFeature(FeatureId.ERROR_RECOVERY, 0)))
          .isEqualTo(StatusCode.INVALID_NAMESPACE_OR_FORMAT.dnr());
    }
  }
}
