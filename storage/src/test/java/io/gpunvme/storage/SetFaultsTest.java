package io.gpunvme.storage;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.storage.path.MemberStats;
import io.gpunvme.storage.path.PathKind;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.function.BooleanSupplier;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Sets of embedded SSDs of which one has faults. Counts are compared, never times. */
@Timeout(120)
class SetFaultsTest {
  private static final int BYTES = 2 << 20;
  private static final int SHORT = 4096;
  private static final StorageOptions WRITING = StorageOptions.defaults().withWrite(true);

  /** Far more than a busy machine needs for a read, so that only the faulty one is slow. */
  private static final String DELAY = "delay=40ms on read after=40";

  private final Accelerator accelerator = CpuAccelerator.open();
  private final Random random = new Random(7);
  private byte[] data = {};

  @AfterEach
  void close() {
    accelerator.close();
  }

  private GpuStorage open(String kind, int count, int faulty, String faults) {
    List<String> members =
        IntStream.range(0, count)
            .mapToObj(
                m -> "sim:size=2MiB,lba=4096,latency=0" + (m == faulty ? ",faults=" + faults : ""))
            .toList();
    String unit = kind.equals("stripe") ? ";unit=64KiB" : "";
    GpuStorage set =
        GpuStorage.open(
            StorageAddress.parse(kind + ":" + String.join(",", members) + unit),
            accelerator,
            WRITING);
    data = new byte[(int) set.size()];
    random.nextBytes(data);
    try (DeviceBuffer buffer = accelerator.allocate(data.length)) {
      buffer.copyFromHost(MemorySegment.ofArray(data), 0);
      set.write(0, buffer, 0, data.length);
    }
    return set;
  }

  private void read(GpuStorage set, DeviceBuffer buffer, int length) {
    int offset = random.nextInt((data.length - length) / SHORT + 1) * SHORT;
    set.read(offset, buffer, 0, length);
    byte[] seen = new byte[length];
    buffer.copyToHost(0, MemorySegment.ofArray(seen));
    assertThat(Arrays.mismatch(seen, 0, length, data, offset, offset + length)).isEqualTo(-1);
  }

  private void reads(int count, GpuStorage set, DeviceBuffer buffer, int length) {
    for (int i = 0; i < count; i++) {
      read(set, buffer, length);
    }
  }

  private void readUntil(
      BooleanSupplier end, int most, GpuStorage set, DeviceBuffer buffer, int length) {
    for (int i = 0; !end.getAsBoolean(); i++) {
      assertThat(i).as("reads; %s", set.members()).isLessThan(most);
      read(set, buffer, length);
    }
  }

  private static MemberStats member(GpuStorage set, int m) {
    return set.members().get(m);
  }

  @Test
  void aSlowCopyIsToldReadAroundAndUsedAgain() {
    try (GpuStorage set = open("replica", 3, 1, DELAY + " count=80");
        DeviceBuffer buffer = accelerator.allocate(SHORT)) {
      readUntil(() -> !member(set, 1).slow().isEmpty(), 20_000, set, buffer, SHORT);
      assertThat(set.explain().modes().get(PathKind.DIRECT)).contains("; slow: ");
      assertThat(MemberStats.slowest(set.members()).orElseThrow().slow())
          .contains("times as long as the other members");

      long before = member(set, 1).readBytes();
      reads(150, set, buffer, SHORT);
      assertThat(member(set, 1).readBytes() - before)
          .as("a fifth of its share")
          .isLessThanOrEqualTo(150 / 3 / 5 * SHORT);
      assertThat(member(set, 1).avoided()).isGreaterThan(100);

      readUntil(() -> member(set, 1).slow().isEmpty(), 20_000, set, buffer, SHORT);
      assertThat(member(set, 1).latencyP99Nanos()).isGreaterThan(member(set, 1).latencyP50Nanos());
    }
  }

  @Test
  void aSlowMemberOfAStripeIsTheSlowest() {
    try (GpuStorage set = open("stripe", 4, 2, "delay=40ms on read after=4");
        DeviceBuffer buffer = accelerator.allocate(1 << 20)) {
      readUntil(() -> !member(set, 2).slow().isEmpty(), 500, set, buffer, 1 << 20);
      assertThat(MemberStats.slowest(set.members()).orElseThrow().slow())
          .isEqualTo(member(set, 2).slow());
    }
  }

  @Test
  void aCopyThatFailsInTheMiddleIsReadElsewhere() {
    String broken = "status=media/unrecovered-read dnr on read after=3";
    try (GpuStorage set = open("replica", 3, 0, broken);
        DeviceBuffer buffer = accelerator.allocate(BYTES)) {
      reads(20, set, buffer, BYTES);
      reads(20, set, buffer, SHORT);
      assertThat(member(set, 0).failures()).isEqualTo(1);
      assertThat(member(set, 0).failure()).isNotEmpty();
      assertThat(member(set, 1).failures() + member(set, 2).failures()).isZero();
      assertThat(set.stats().get(PathKind.DIRECT).retries()).isPositive();
    }
  }

  @Test
  void eightMembersBringAsMuchEach() {
    try (GpuStorage set = open("stripe", 8, -1, "");
        DeviceBuffer buffer = accelerator.allocate(8 * BYTES)) {
      reads(3, set, buffer, 8 * BYTES);
      assertThat(set.members()).hasSize(8);
      assertThat(set.members()).extracting(MemberStats::readBytes).containsOnly(3L * BYTES);
      assertThat(set.members()).extracting(MemberStats::writtenBytes).containsOnly((long) BYTES);
      assertThat(set.members()).allMatch(m -> m.operations() > 0 && m.latencyP50Nanos() > 0);
    }
  }
}
