package io.gpunvme.gpu.queue;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class QueueSizesTest {
  @ParameterizedTest
  @CsvSource({
    "1, 2, 2, 1, 2",
    "2, 4, 4, 1, 4",
    "3, 4, 8, 2, 8",
    "4, 8, 8, 2, 8",
    "16, 32, 32, 4, 32",
    "17, 32, 64, 5, 64",
    "512, 1024, 1024, 9, 1024",
    "4096, 8192, 8192, 12, 8192",
  })
  void ringsAreLongerThanTheSlots(int depth, int sq, int cq, int slotBits, int entries) {
    QueueSizes sizes = QueueSizes.of(depth, false, entries);
    assertThat(sizes.sqSize()).isEqualTo(sq).isGreaterThan(depth);
    assertThat(sizes.cqSize()).isEqualTo(cq).isGreaterThanOrEqualTo(2 * depth);
    assertThat(sizes.slotBits()).isEqualTo(slotBits);
    assertThat(sizes.freeBytes()).isEqualTo(4L << slotBits);
    assertThatThrownBy(() -> QueueSizes.of(depth, false, entries - 1))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("depth " + depth);
  }

  @Test
  void theLargestDepthFits() {
    assertThat(QueueSizes.maxDepth(false, 2)).isEqualTo(1);
    assertThat(QueueSizes.maxDepth(false, 1024)).isEqualTo(512);
    assertThat(QueueSizes.maxDepth(false, 65536)).isEqualTo(4096);
    assertThat(QueueSizes.maxDepth(true, 64)).isEqualTo(32);
    assertThat(QueueSizes.maxDepth(true, 63)).isZero();
  }

  @Test
  void sharedQueuesComeInWholeWords() {
    assertThat(QueueSizes.of(96, true, 1024).freeBytes()).isEqualTo(12);
    assertThatThrownBy(() -> QueueSizes.of(48, true, 1024))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("multiple of 32");
    assertThatThrownBy(() -> QueueSizes.of(32, true, 63))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("64 entries");
  }

  @Test
  void generationsGoRoundAndLeaveOutTheCidThatMeansNone() {
    QueueSizes sizes = QueueSizes.of(16, false, 64);
    assertThat(sizes.nextCid(5)).isEqualTo(0x15);
    assertThat(sizes.nextCid(0xFFF5)).isEqualTo(0x0005);
    assertThat(sizes.nextCid(0xFFEF)).isEqualTo(0x000F);
    assertThat(QueueSizes.of(1, false, 2).nextCid(0xFFFD)).isEqualTo(0x0001);
  }
}
