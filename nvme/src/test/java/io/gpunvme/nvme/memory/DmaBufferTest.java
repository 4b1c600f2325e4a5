package io.gpunvme.nvme.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Test;

/** Memory is given back whatever the bus says. */
class DmaBufferTest {
  @Test
  void freedEvenIfItCannotBeUnmapped() {
    DmaBuffer buffer =
        DmaBuffer.allocate(
            memory ->
                BusRange.contiguous(
                    memory,
                    0x1000,
                    () -> {
                      throw new IllegalStateException("no");
                    }),
            4096);
    MemorySegment memory = buffer.memory();
    assertThatThrownBy(buffer::close).isInstanceOf(IllegalStateException.class).hasMessage("no");
    assertThat(memory.scope().isAlive()).isFalse();
  }
}
