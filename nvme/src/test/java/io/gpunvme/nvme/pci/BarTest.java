package io.gpunvme.nvme.pci;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Test;

/** What a BAR does unless its transport knows better. */
class BarTest {
  private static final MemorySegment MEMORY = Arena.ofAuto().allocate(64, 8);

  @Test
  void peersUseTheSameMemory() {
    Bar plain =
        new Bar() {
          @Override
          public long size() {
            return MEMORY.byteSize();
          }

          @Override
          public int read32(long offset) {
            return 0;
          }

          @Override
          public void write32(long offset, int value) {}

          @Override
          public long read64(long offset) {
            return 0;
          }

          @Override
          public void write64(long offset, long value) {}

          @Override
          public MemorySegment memory(long offset, long bytes) {
            return MEMORY.asSlice(offset, bytes);
          }
        };
    assertThat(plain.peerMemory(8, 16).address()).isEqualTo(MEMORY.address() + 8);
    assertThat(plain.peerMemory(8, 16).byteSize()).isEqualTo(16);
  }
}
