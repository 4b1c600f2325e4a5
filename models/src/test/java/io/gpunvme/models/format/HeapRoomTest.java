package io.gpunvme.models.format;

import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import org.junit.jupiter.api.Test;

/** Headers and heaps. */
class HeapRoomTest {
  private static final long MIB = 1 << 20;

  @Test
  void aHeaderIsRefusedBeforeTheHeapIsFull() {
    assertThatCode(() -> HeapRoom.require("m", 32 * MIB, 128 * MIB)).doesNotThrowAnyException();
    assertThatExceptionOfType(FormatException.class)
        .isThrownBy(() -> HeapRoom.require("m", 46 * MIB, 128 * MIB))
        .withMessageContaining("heap of 128 MiB")
        .withMessageContaining("-Xmx185m");
  }

  @Test
  void theLongestHeaderFitsIntoAnUsualHeap() {
    assertThatCode(() -> HeapRoom.require("m", Safetensors.LONGEST_HEADER, 1024 * MIB))
        .doesNotThrowAnyException();
  }
}
