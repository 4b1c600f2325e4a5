package io.gpunvme.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.ForeignMemory;
import io.gpunvme.nvme.DmaMappingException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

class ForeignMemoryTest {
  /** Read by an embedded controller, byte by byte where asked and nowhere else. */
  @Test
  void memoryOfOthersIsReadTo() {
    byte[] content = new byte[1 << 20];
    new SplittableRandom(5).nextBytes(content);
    try (Arena arena = Arena.ofConfined();
        CpuAccelerator cpu = CpuAccelerator.open();
        GpuStorage storage =
            GpuStorage.open(
                StorageAddress.parse("sim:size=1MiB"),
                cpu,
                StorageOptions.defaults().withWrite(true));
        DeviceBuffer source = cpu.allocate(content.length)) {
      source.copyFromHost(MemorySegment.ofArray(content), 0);
      storage.write(0, source, 0, content.length);
      MemorySegment theirs = arena.allocate(100_000);
      for (int[] range : new int[][] {{0, 4096, 8192}, {777, 12_345, 33_333}, {5, 1, 1}}) {
        theirs.fill((byte) 0x5A);
        int at = range[0];
        int from = range[1];
        int n = range[2];
        try (ForeignMemory memory = cpu.foreign(theirs.address() + at, n)) {
          assertThat(memory.buffer().deviceAddress() + memory.offset())
              .isEqualTo(theirs.address() + at);
          storage.read(from, memory.buffer(), memory.offset(), n);
        }
        byte[] expected = new byte[100_000];
        Arrays.fill(expected, (byte) 0x5A);
        System.arraycopy(content, from, expected, at, n);
        assertThat(theirs.mismatch(MemorySegment.ofArray(expected))).isEqualTo(-1);
      }
      assertThatThrownBy(() -> cpu.foreign(0, 1)).isInstanceOf(DmaMappingException.class);
      assertThatThrownBy(() -> cpu.foreign(theirs.address(), 0))
          .isInstanceOf(DmaMappingException.class);
    }
  }
}
